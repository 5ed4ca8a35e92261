"""``logquake calibrate`` without a Kafka: refusals, and a fit of what a run left."""

import json

import pytest
import yaml
from typer.testing import CliRunner

import sim.rehearsal.apache
from sim.calibration import plan, run
from sim.calibration.outside import Outside, described
from sim.cli import app
from sim.errors import SimulationError
from sim.rehearsal.apache import Apache
from sim.scenario.loader import load_data
from sim.scenario.run.runner import run as simulate


def called(*words):
    return CliRunner().invoke(app, ["calibrate", *map(str, words)])


def refused(*words):
    done = called(*words)
    assert done.exit_code == 2, done.output
    return done.output + done.stderr


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """A simulated run of some loads of a plan, with a slow disk."""
    whole = plan.whole(plan.Shape(), 2, rounds=1)
    kept = ("flushed", "medium")
    whole["producers"] = [p for p in whole["producers"] if p["name"].partition("-")[0] in kept]
    del whole["faults"]
    whole["cluster"]["disk"] = {"flush": {"p50": "4ms", "p99": "12ms"}}
    out = tmp_path_factory.mktemp("calibration") / "measured"
    simulate(load_data(whole, "calibrate"), 7, out)
    return out


def test_what_a_run_left_is_fitted_and_written(simulated, tmp_path):
    out = tmp_path / "out"
    done = called("--from", simulated, "--out", out)
    assert done.exit_code == 0, done.output + done.stderr
    assert "absent   not fitted: network.client.p50" in done.output
    assert "flushed\tfitted\tp50" in done.output
    assert "medium\theld back\tp99" in done.output
    preset = yaml.safe_load((out / "hardware.yaml").read_text())
    assert 2_500 < int(preset["disk"]["flush"]["p50"].removesuffix("us")) < 6_400
    assert preset["measured"]["cluster"] == "a simulated cluster"
    assert json.loads((out / "calibration.json").read_text())["runs"] > 10
    assert "exists; --force replaces it" in refused("--from", simulated, "--out", out)


def test_what_is_no_calibration_is_refused(simulated, tmp_path):
    assert "no run.json; give directories that logquake calibrate wrote" in refused(
        "--from", tmp_path, "--out", tmp_path / "x"
    )
    card = json.loads((simulated / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(card | {"complete": False}))
    (tmp_path / "scenario.yaml").write_text("x: 1")
    assert "interrupted" in refused("--from", tmp_path, "--out", tmp_path / "x")


def test_a_run_of_another_scenario_is_refused(simulated, tmp_path):
    (tmp_path / "run.json").write_text((simulated / "run.json").read_text())
    text = (simulated / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace("-round-1", "-other"))
    assert "one of the plan of logquake calibrate" in refused("--from", tmp_path)


def test_calibrations_of_other_clusters_are_not_fitted_together(simulated, tmp_path):
    (tmp_path / "run.json").write_text((simulated / "run.json").read_text())
    text = (simulated / "scenario.yaml").read_text()
    (tmp_path / "scenario.yaml").write_text(text.replace("brokers: 3", "brokers: 4"))
    found = refused("--from", simulated, "--from", tmp_path)
    assert "4 brokers of Kafka 4.3" in found
    assert "fit each alone" in found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seconds", 1), "--seconds: found 1; allowed: 2 to 30"),
        (("--topic", "t"), "go with --bootstrap-servers HOST:PORT"),
        (("--yes-produce",), "go with --bootstrap-servers HOST:PORT"),
        (("--bootstrap-servers", "h:1"), "without --topic NAME"),
        (("--bootstrap-servers", "h:1", "--topic", "t"), "add --yes-produce to do it"),
        (("--bootstrap-servers", "h:1", "--from", "d"), "allowed: one of the two"),
        (("--kafka", "2.8"), "--kafka: found '2.8'; allowed: 3.9,"),
    ],
)
def test_options_that_contradict_each_other_are_refused(words, said, tmp_path):
    assert said in refused(*words, "--out", tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_release_is_a_version_or_its_number(monkeypatch, tmp_path):
    seen = []

    def found(version, directory):
        seen.append(version)
        raise SimulationError("enough")

    monkeypatch.setattr(sim.rehearsal.apache, "found", found)
    for kafka in ("4.3", "4.3.1"):
        assert "enough" in refused("--kafka", kafka, "--out", tmp_path / "x")
    assert seen == ["4.3", "4.3"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0", "the cluster has no such topic; make one for this alone"),
        ("3\t2\t3\t12000", "has 12,000 records; a calibration writes only to a topic of its own"),
    ],
)
def test_a_topic_that_is_not_its_own_is_refused(line, said, monkeypatch):
    with pytest.raises(SimulationError, match=said):
        describing(monkeypatch, f"print({line!r})")


def describing(monkeypatch, program):
    """The cluster as a program in the place of Java's describes it."""
    words = ["python3", "-c", program]
    monkeypatch.setattr(Apache, "classes", lambda _: None)
    monkeypatch.setattr(Apache, "java", lambda *_, **__: words)
    return described(Outside("h:1", "mine"), Apache("4.3.1", None), "4.3")


def test_the_simulated_cluster_has_the_shape_of_the_real_one(monkeypatch):
    shape = describing(monkeypatch, "print('5\\t3\\t2\\t0')")
    assert shape == plan.Shape(5, "4.3", "mine", 3, 2)
    assert shape.is_outside


def test_nobody_who_answers_is_said_with_what_can_be_done(monkeypatch):
    with pytest.raises(SimulationError, match="--bootstrap-servers h:1: no route; allowed: HOST"):
        describing(monkeypatch, "import sys; sys.exit('no route')")


def test_an_interrupted_measurement_fits_nothing(monkeypatch, tmp_path):
    monkeypatch.setattr(sim.rehearsal.apache, "found", lambda *_: Apache("4.3.1", tmp_path))
    monkeypatch.setattr(run, "here", lambda *_, **__: None)
    done = called("--out", tmp_path / "x")
    assert done.exit_code == 130
    assert "interrupted: nothing was fitted" in done.stderr
    assert not (tmp_path / "x").exists()
