"""A sweep with Spark: rows are those of single runs, whoever runs them, and none is run twice."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import analysis.sweep.explore
from analysis.spark import session
from analysis.sweep.explore import explore
from analysis.sweep.store import DIED, DONE, FAILED, NUMBERS, SCHEMA, TIMES
from sim.errors import ScenarioError, SimulationError
from sim.scenario.loader import load
from sim.scenario.run.trial import COUNTS, trial
from sim.scenario.run.trial import TIMES as TRIAL_TIMES

pytestmark = pytest.mark.spark
ROOT = Path(__file__).parents[2]
TRADEOFF = ROOT / "scenarios" / "tradeoff.yaml"
SHORT = (
    "run.for=2s", "run.drain.timeout=20s", "topics.orders.partitions=1", "producers.*.rate=50/s",
    "faults=[{at: 0s..1s, do: crash, target: random broker, for: 500ms}]",
)  # fmt: skip
"""Changes that make a run of the shipped scenario a matter of tenths of a second."""
KILLED_SEEDS = 120
"""Of three configurations each: twice what ten interrupted sweeps get done."""
NEVER_UP = "controller.quorum.election.timeout.ms=3600000"


@pytest.fixture(scope="module")
def swept(spark, tmp_path_factory):
    """Two configurations on two seeds; ``told`` is what progress said."""
    out = tmp_path_factory.mktemp("sweep") / "out"
    told = []
    sweep = explore(
        TRADEOFF, ["acks=1,all"], 2, sets=SHORT, out=out,
        on_progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    return sweep, told, (out / "runs.parquet").read_bytes()


def test_a_row_is_what_a_single_run_says_and_each_is_there_once(swept):
    sweep, told, _ = swept
    assert told[0] == (0, 4)
    assert told[-1] == (4, 4)
    assert list(zip(sweep.runs["configuration"], sweep.runs["seed"], strict=True)) == [
        (0, 1), (0, 2), (1, 1), (1, 2),
    ]  # fmt: skip
    assert set(sweep.runs["status"]) == {DONE}
    alone = trial(load(TRADEOFF, [*SHORT, "acks=all"]), 2)
    found = sweep.runs.iloc[3]
    assert found["trace_digest"] == alone.trace_digest
    assert {name: found[name] for name in COUNTS} == dict(alone.records)
    assert list(found["latency_us"]) == alone.latency_us[0]
    assert found["unavailable_produce_us"] == alone.times_us["unavailable.produce.max"]
    assert list(found["faults"]) == list(alone.faults)


def test_every_number_of_a_trial_has_its_column(swept):
    sweep, _, _ = swept
    assert set(COUNTS) <= set(NUMBERS)
    assert TIMES[len(TRIAL_TIMES) :] == ("down_us", "slow_normal_us", "slow_fault_us")
    assert sweep.runs[list(NUMBERS)].notna().all().all()
    measured = [name for name in TIMES if not name.startswith(("end_to_end", "unavailable_fetch"))]
    assert sweep.runs[measured].notna().all().all()


def test_the_sweep_is_written_as_parquet_page_and_card(swept):
    sweep, _, _ = swept
    table = pq.read_table(sweep.directory / "runs.parquet")
    assert table.schema.equals(SCHEMA)
    assert table.num_rows == 4
    assert pq.read_table(sweep.directory / "configurations.parquet").num_rows == 2
    assert "Logquake sweep: tradeoff" in (sweep.directory / "report" / "index.html").read_text()
    card = json.loads((sweep.directory / "sweep.json").read_text())
    assert (card["complete"], card["seeds"], card["configurations"]) == (
        True, [1, 2], [{"acks": "1"}, {"acks": "all"}],
    )  # fmt: skip
    assert "acks=all" in sweep._repr_html_()


def test_a_sweep_that_is_asked_for_more_runs_only_that_and_nothing_twice(swept):
    sweep, _, written = swept
    told = []
    again = explore(
        TRADEOFF, {"acks": [1, "all"]}, 2, sets=SHORT, out=sweep.directory,
        on_progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    assert told == [(4, 4)]
    assert (sweep.directory / "runs.parquet").read_bytes() == written
    assert again.configurations.equals(sweep.configurations)


def test_a_run_that_fails_is_a_row_with_its_seed_and_message(spark, tmp_path):
    sweep = explore(
        TRADEOFF, {"state": {"up": {}, "down": _set(NEVER_UP)}}, [7], sets=SHORT, out=tmp_path
    )
    assert list(sweep.runs["status"]) == [DONE, FAILED]
    assert sweep.failed.to_dict("records") == [
        {"configuration": 1, "seed": 7, "status": FAILED, "message": sweep.failed["message"][0]}
    ]
    assert "SimulationError: the topics did not exist" in sweep.failed["message"][0]


def _set(text):
    key, _, value = text.partition("=")
    return {key: int(value)}


@pytest.mark.parametrize(
    ("vary", "says"),
    [
        (["ackz=1,2"], "unknown key ackz"),
        (["acks=1,2"], "acks"),
        (["min.insync.replicas=1,4"], "above replication.factor"),
    ],
)
def test_a_value_that_never_can_be_is_refused_before_anything_runs(tmp_path, vary, says):
    with pytest.raises(ScenarioError, match=says):
        explore(TRADEOFF, vary, 1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_directory_that_is_no_sweep_is_left_alone(tmp_path):
    (tmp_path / "diary.txt").write_text("mine")
    with pytest.raises(SimulationError, match="is not a sweep"):
        explore(TRADEOFF, [], 1, out=tmp_path)
    with pytest.raises(ScenarioError, match="outage: '5' has no unit"):
        explore(TRADEOFF, [], 1, outage="5", out=tmp_path)
    with pytest.raises(ScenarioError, match="seeds"):
        explore(TRADEOFF, [], [1, 1], out=tmp_path)


def test_executors_run_trials_from_the_zip_that_travels_with_the_tasks(tmp_path):
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import sim, analysis.sweep.explore as e\n"
        "from sim.scenario.loader import load\n"
        "assert sim.__file__.startswith(sys.argv[1]), sim.__file__\n"
        "text = load(sys.argv[2], sys.argv[3:]).as_yaml()\n"
        "print(e._run(('tradeoff', text), e._Task('k', 0, 1))['status'])"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, session._packages(), str(TRADEOFF), *SHORT],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout.strip() == DONE, found.stderr


# -- slow: whole sweeps, other processes -----------------------------------------------------------


def _command(out, *words, master="local[2]", sets=SHORT):
    changes = [word for change in sets for word in ("--set", change)]
    return [
        sys.executable, "-m", "sim", "explore", str(TRADEOFF), "--out", str(out), "--json",
        "--master", master, *changes, *words,
    ]  # fmt: skip


@pytest.mark.slow
def test_one_two_and_four_workers_find_the_same_to_the_byte(tmp_path):
    found = []
    for workers in (1, 2, 4):
        out = tmp_path / str(workers)
        words = ("--vary", "acks=0,1,all", "--seeds", "4")
        command = _command(out, *words, master=f"local[{workers}]")
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
        found.append((out / "runs.parquet").read_bytes())
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
def test_a_sweep_that_is_killed_ten_times_ends_with_the_same_table(tmp_path):
    words = ("--vary", "acks=0,1,all", "--seeds", f"{KILLED_SEEDS}")
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    began = time.monotonic()
    with _sweeping(whole, *words) as process:
        while not list(whole.glob("results/*.parquet")) and process.poll() is None:
            time.sleep(0.05)
        until_rows = time.monotonic() - began
    assert process.returncode == 0
    chance = random.Random(20261121)
    kept, kills = 0, []
    for _ in range(10):
        moment, everybody = chance.uniform(0.2, 1.4 * until_rows), chance.random() < 0.5
        with _sweeping(cut, *words) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(timeout=moment)
            # Its own process, or Java and Python's workers at the same instant.
            kill = os.killpg if everybody else os.kill
            kill(process.pid, signal.SIGKILL)
        now = _rows_kept(cut)
        assert now >= kept, "what was written stays"
        kept = now
        kills.append(kept)
        assert not (cut / "runs.parquet").exists()
        if (cut / "sweep.json").exists():
            assert json.loads((cut / "sweep.json").read_text())["complete"] is False
    assert 0 < kept < 3 * KILLED_SEEDS, kills
    assert len(set(kills)) > 2, kills
    subprocess.run(_command(cut, *words), check=True, cwd=ROOT, capture_output=True)
    for name in ("runs.parquet", "configurations.parquet", "sweep.json"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def _sweeping(out, *words):
    """A sweep as a process that leads a group of its own."""
    return subprocess.Popen(
        _command(out, *words), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip


def _rows_kept(out):
    files = sorted(out.glob("results/*.parquet"))
    return len({key for file in files for key in pq.read_table(file)["key"].to_pylist()})


@pytest.mark.slow
def test_single_faults_show_the_expected_order_of_loss_and_service(spark, tmp_path):
    """acks=all with two in sync never loses on a single fault, acks=1 does; service the reverse."""
    vary = ["acks=0,1,all", "min.insync.replicas=1,2,3"]
    sweep = explore(TRADEOFF, vary, 12, out=tmp_path)
    assert sweep.failed.empty
    found = sweep.configurations.set_index(["acks", "min.insync.replicas"])
    assert found.loc[("all", "2"), "lost_runs"] == found.loc[("all", "3"), "lost_runs"] == 0
    assert 0 < found.loc[("1", "2"), "lost_runs"] <= found.loc[("0", "2"), "lost_runs"]
    gaps = found["unavailable_us"]
    assert gaps["all", "3"] > gaps["all", "2"] > gaps["1", "2"] > gaps["0", "2"]


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_run_and_no_other(spark, tmp_path, monkeypatch):
    """The planted run ends its own process; what went with it is run again, one by one."""
    run = analysis.sweep.explore._run

    def deadly(text, task):
        if task.seed == 2:
            os._exit(9)
        return run(text, task)

    with monkeypatch.context() as planted:
        planted.setattr(analysis.sweep.explore, "_run", deadly)
        sweep = explore(TRADEOFF, [], 4, sets=SHORT, out=tmp_path)
    assert list(sweep.runs["status"]) == [DONE, DIED, DONE, DONE]
    mended = explore(TRADEOFF, [], 4, sets=SHORT, out=tmp_path)
    assert set(mended.runs["status"]) == {DONE}
