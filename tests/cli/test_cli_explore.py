"""``explore`` and ``study year``: what they take, what they refuse, what they say."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import analysis.sweep.explore
from analysis.sweep.results import Sweep
from sim.cli import app
from sim.cli.explore import parse_seeds
from sim.errors import SimulationError
from tests.analysis.test_analysis_sweep import KEYS, ROWS, S, failed

TRADEOFF = Path(__file__).parents[2] / "scenarios" / "tradeoff.yaml"


def invoke(*words):
    return CliRunner().invoke(app, list(words))


@pytest.fixture
def stage(monkeypatch, tmp_path):
    """Stands in for the sweep; what it was asked for is in ``calls``."""
    calls = []
    rows = list(ROWS)

    def explore(path, vary, seeds, **options):
        calls.append((path, vary, seeds, options))
        (tmp_path / "report").mkdir()
        (tmp_path / "report" / "report.json").write_text('{"verdict": "well"}')
        return Sweep("trade", "c", tmp_path, KEYS, [("acks=2", "no such")], rows, S)

    monkeypatch.setattr(analysis.sweep.explore, "explore", explore)
    return calls, rows


@pytest.mark.parametrize(
    ("text", "seeds"), [("1", range(1, 2)), ("50", range(1, 51)), ("51..53", range(51, 54))]
)
def test_seeds_are_a_number_or_a_range(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize("text", ["0", "-1", "5..4", "x", "1000001", "1..2..3", ""])
def test_what_is_no_number_of_seeds_is_refused(text):
    with pytest.raises(SimulationError, match="--seeds: found"):
        parse_seeds(text)


def test_options_are_passed_on_and_the_table_is_one_line_for_each_configuration(stage):
    calls, _ = stage
    done = invoke(
        "explore", str(TRADEOFF), "--vary", "acks=1,all", "--vary", "linger.ms=0,5", "--seeds", "4",
        "--set", "run.for=9s", "--outage", "5s", "--master", "local[1]",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    ((path, vary, seeds, options),) = calls
    assert (path, vary, seeds) == (TRADEOFF, ("acks=1,all", "linger.ms=0,5"), range(1, 5))
    assert (options["sets"], options["outage"]) == (("run.for=9s",), "5s")
    assert (options["master"], options["out"]) == ("local[1]", None)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(
        "1\t0\t3 records\t1 ms\t1 ms, in a fault 1 ms\t50 % (6.76 % to 93.2 %)\t"
    )
    assert lines[2].startswith(
        "all\t0\tnothing\t1 ms\t1 ms, in a fault 1 ms\tnone in 4 (below 75 %)\t"
    )
    assert "2 of 4 configurations lost nothing in 4 runs each" in done.stdout
    assert "cannot be  acks=2: no such" in done.stdout
    assert lines[-1].endswith("report/index.html")


def test_json_is_the_reports_own(stage):
    told = json.loads(invoke("explore", str(TRADEOFF), "--json").stdout)
    assert told["verdict"] == "well"
    assert told["report"].endswith("report/index.html")


def test_failed_runs_end_with_the_code_of_a_defect_and_name_a_seed(stage):
    _, rows = stage
    rows[3] = failed(0, 4, "InvariantBroken: logs differ")
    done = invoke("explore", str(TRADEOFF))
    assert done.exit_code == 4
    assert "1 of 16 runs failed; seed 4: InvariantBroken: logs differ" in done.stderr
    assert "This is a defect of Logquake, not of your scenario." in done.stderr
    assert f"Please send: {TRADEOFF}, seed 4, version " in done.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--vary", "acks"), "varies nothing"),
        (("--vary", "acks=1,5"), "acks"),
        (("--vary", "ackz=1,2"), "unknown key ackz"),
        (("--seeds", "none"), "--seeds: found 'none'"),
        (("--outage", "5"), "outage: '5' has no unit"),
    ],
)
def test_bad_input_is_refused_before_anything_runs(words, says, tmp_path):
    done = invoke("explore", str(TRADEOFF), "--out", str(tmp_path / "out"), *words)
    assert done.exit_code == 2
    assert says in done.stderr
    assert not (tmp_path / "out").exists()


# -- study year ------------------------------------------------------------------------------------

YEAR = """
claim: A year of three brokers.
cluster: {brokers: 3, controllers: 3}
topics: {orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 2}}}
faults:
  - {do: failed-disk, target: each broker, mtbf: 100d, mttr: 10h}
run: {for: 60s}
"""


@pytest.fixture
def year(tmp_path):
    path = tmp_path / "year.yaml"
    path.write_text(YEAR)
    return str(path)


def test_a_year_has_a_line_for_each_question(year):
    done = invoke("study", "year", year, "--samples", "100")
    assert done.exit_code == 0, done.output
    names = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert names == ["loss", "outage", "below_min_isr"]
    assert "100 samples" in done.stdout


def test_a_year_in_json_has_value_error_and_interval(year):
    answers = json.loads(invoke("study", "year", year, "--samples", "100", "--json").stdout)
    loss = answers[0]
    assert loss["low"] < loss["chance"]["value"] < loss["high"]
    assert loss["chance"]["error"] > 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("year",), "takes a scenario file"),
        (("year", "YEAR", "--partitions", "100"), "no --partitions"),
        (("failover", "YEAR"), "takes no scenario"),
        (("failover", "--set", "acks=1"), "takes no scenario"),
        (("year", "YEAR", "--set", "faults=[]"), "no fault has mtbf"),
    ],
)
def test_options_of_another_study_are_refused(year, words, says):
    done = invoke("study", *(year if word == "YEAR" else word for word in words))
    assert done.exit_code == 2
    assert says in done.stderr
