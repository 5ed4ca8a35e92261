"""Two runs side by side, by the real command."""

import json
import shutil

import pytest
from typer.testing import CliRunner

from sim.cli import app
from tests.scenarios.run_kit import text_of

QUICK = {"lasts": "3s", "producer": {"rate": "200/s"}, "topic": {"partitions": 1}}


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Runs ``a`` and ``again`` of one scenario, and ``b`` with another setting."""
    place = tmp_path_factory.mktemp("diff")
    (place / "tiny.yaml").write_text(text_of(**QUICK))
    change = ("--set", "producers.0.config.acks=1")
    for name, more in (("a", ()), ("again", ()), ("b", change)):
        done = invoke("run", place / "tiny.yaml", "--out", place / name, *more)
        assert done.exit_code == 0, done.output
    return place


def test_the_same_scenario_and_seed_are_one_run(place):
    done = invoke("diff", place / "a", place / "again")
    assert done.exit_code == 0, done.output
    assert "are one" in done.output


def test_tables_of_another_level_are_named_as_not_compared(place):
    done = invoke("run", place / "tiny.yaml", "--out", place / "facts", "--trace", "facts")
    assert done.exit_code == 0, done.output
    done = invoke("diff", place / "facts", place / "a")
    assert done.exit_code == 0, done.output
    first, second = done.output.splitlines()
    assert first.startswith("compared without ")
    assert " requests, " in first
    assert first.endswith(": only a has them (--trace)")
    assert second.endswith("every row of the tables that both have are equal")
    found = json.loads(invoke("diff", place / "facts", place / "a", "--json").output)
    assert found["equal"]
    assert found["not_compared"][0] == []


def test_a_setting_that_differs_is_named_and_where_the_runs_part(place):
    done = invoke("diff", place / "a", place / "b")
    assert done.exit_code == 1, done.output
    assert "config.acks: all | 1" in done.output
    lines = done.output.splitlines()
    names = [line.split()[0] for line in lines]
    assert [name for name in names if name in ("lost", "down", "slow")] == ["lost", "down", "slow"]
    [parted] = [line for line in lines if line.startswith("parted")]
    assert " s, table " in parted


def test_programs_get_the_same_and_verdict_files_will_do(place):
    files = [place / name / "verdict.json" for name in ("a", "b")]
    done = invoke("diff", *files, "--json")
    assert done.exit_code == 1
    found = json.loads(done.output)
    assert not found["equal"]
    assert any(key.endswith("config.acks") for key in found["settings"])
    parted = found["divergence"]
    rows = (parted["first"], parted["second"])
    assert parted["t_us"] == min(row["t_us"] for row in rows if row is not None)


def test_a_number_that_was_changed_afterwards_is_found(place, tmp_path):
    shutil.copytree(place / "a", tmp_path / "a")
    file = tmp_path / "a" / "verdict.json"
    verdict = json.loads(file.read_text())
    verdict["records"]["lost_acked"] += 3
    file.write_text(json.dumps(verdict))
    done = invoke("diff", place / "a", tmp_path / "a")
    assert done.exit_code == 1
    assert "records  lost_acked: 0 | 3" in done.output
    assert "parted" not in done.output


@pytest.mark.parametrize("missing", ["run.json", "verdict.json", "scenario.yaml"])
def test_what_is_no_run_is_refused_by_name(missing, place, tmp_path):
    shutil.copytree(place / "a", tmp_path / "a")
    (tmp_path / "a" / missing).unlink()
    done = invoke("diff", place / "a", tmp_path / "a")
    assert done.exit_code == 2
    assert f"no {missing}" in done.output


def test_a_verdict_of_an_older_version_is_refused_with_what_to_do(place, tmp_path):
    shutil.copytree(place / "a", tmp_path / "a")
    file = tmp_path / "a" / "verdict.json"
    verdict = json.loads(file.read_text())
    del verdict["answer"]
    file.write_text(json.dumps(verdict))
    done = invoke("diff", place / "a", tmp_path / "a")
    assert done.exit_code == 2
    assert "run the scenario again" in done.output
