"""``--keep`` removes the rest when both judges have run; other commands say what is missing."""

import json
import shutil
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.scenario.run.directory import RunDirectory, keep_only
from sim.scenario.run.runner import run
from sim.suite import work
from sim.suite.cache import Cache
from sim.suite.plan import Job, plan
from tests.scenarios.run_kit import SHIPPED, text_of

SHORT = {"lasts": "1s", "producer": {"rate": "100/s"}, "topic": {"partitions": 1}}
CARDS = {"run.json", "verdict.json", "scenario.yaml"}


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def names(directory):
    return {path.name for path in directory.iterdir()}


@pytest.fixture
def file(tmp_path):
    made = tmp_path / "short.yaml"
    made.write_text(text_of(**SHORT, expect={"lost_acked": 0}))
    return made


def card(directory):
    return json.loads((directory / "run.json").read_text())


@pytest.mark.parametrize(
    ("kept", "left"),
    [("all", {"trace", "disks"}), ("logs", {"disks"}), ("verdict", set())],
)
def test_what_is_kept_is_there_and_the_card_says_so(file, tmp_path, kept, left):
    out = tmp_path / "out"
    answer = invoke("run", file, "--out", out, "--keep", kept)
    assert answer.exit_code == 0, answer.stderr
    assert names(out) == CARDS | left
    assert (card(out)["kept"], card(out)["complete"]) == (kept, True)
    assert ("removed from the run directory" in answer.stdout) is (kept != "all")
    assert answer.stdout.splitlines()[-1] == str(out)
    told = json.loads(invoke("run", file, "--out", out, "--force", "--keep", kept, "--json").stdout)
    assert told["kept"] == kept
    assert not (out / "run.lock").exists()


def test_the_verdict_is_the_same_whatever_is_kept(file, tmp_path):
    for kept in ("all", "verdict"):
        invoke("run", file, "--out", tmp_path / kept, "--keep", kept)
    first, second = (tmp_path / kept for kept in ("all", "verdict"))
    assert (first / "verdict.json").read_bytes() == (second / "verdict.json").read_bytes()
    assert card(first)["trace_digest"] == card(second)["trace_digest"]
    assert card(first)["disk_digest"] == card(second)["disk_digest"]


def test_a_run_that_does_not_hold_is_reduced_too(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(text_of(**SHORT, expect={"sent": "at least 999"}))
    answer = invoke("run", file, "--out", tmp_path / "out", "--keep", "verdict")
    assert answer.exit_code == 1
    assert names(tmp_path / "out") == CARDS


def test_other_clusters_of_the_run_are_reduced_alike(tmp_path):
    out = tmp_path / "out"
    sets = ("--set", "run.for=2s", "--set", "faults=[]", "--set", "expect={}")
    path = tmp_path / "mirror.yaml"
    text = SHIPPED["region-loss-mirror"].read_text()
    path.write_text(text.replace("start: 17s, stop: 22s", "start: 1s").replace("start: 17s, ", ""))
    answer = invoke("run", path, "--out", out, "--keep", "verdict", *sets)
    assert answer.exit_code in (0, 1), answer.stderr
    assert names(out) == CARDS | {"clusters"}
    assert names(out / "clusters" / "dr") == CARDS
    assert card(out / "clusters" / "dr")["kept"] == "verdict"
    assert card(out)["clusters"]["dr"]["kept"] == "verdict"


@pytest.fixture
def reduced(file, tmp_path):
    """A run directory that holds the verdict only."""
    out = tmp_path / "out"
    assert invoke("run", file, "--seed", "3", "--out", out, "--keep", "verdict").exit_code == 0
    return out


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("report", "{out}"), "trace"),
        (("explain", "{out}"), "trace"),
        (("diff", "{out}", "{out}"), "trace"),
        (("export", "{out}", "--perfetto", "{out}.json"), "trace"),
        (("dump", "{out}/disks/broker-1/data-0/orders-0/00000000000000000000.log"), "disks"),
        (("doctor", "{out}/disks"), "disks"),
    ],
)
def test_a_command_that_needs_what_is_not_there_says_how_to_get_it_again(reduced, words, part):
    answer = invoke(*(word.format(out=reduced) for word in words))
    assert answer.exit_code == 2
    assert answer.stderr == (
        f"{reduced}: the run was kept as verdict (--keep verdict), without {part}/; to get it "
        f"again: logquake run {reduced}/scenario.yaml --seed 3 --trace detail --out {reduced} "
        "--force\n"
    )


def test_a_notebook_is_told_the_same(reduced, file):
    result = run(file, 3, reduced, force=True)
    keep_only(reduced, "logs", result.card)
    with pytest.raises(SimulationError, match=r"kept as logs .*--force"):
        result.table("appends")


def test_the_command_that_is_named_makes_the_same_run_again(reduced):
    before = card(reduced)
    told = invoke("explain", reduced).stderr.split("again: logquake ")[1].split()
    assert invoke(*told).exit_code == 0
    after = card(reduced)
    assert names(reduced) == CARDS | {"trace", "disks"}
    for name in ("trace_digest", "disk_digest", "scenario_digest", "seed"):
        assert after[name] == before[name]
    assert after["kept"] == "all"


def test_segment_files_of_a_run_that_kept_its_logs_are_read(file, tmp_path):
    out = tmp_path / "out"
    invoke("run", file, "--out", out, "--keep", "logs")
    (log, *_) = sorted(out.glob("disks/broker-*/*/orders-0/*.log"))
    assert invoke("dump", log).exit_code == 0
    assert invoke("doctor", out / "disks").exit_code == 0
    assert "kept as logs (--keep logs), without trace/" in invoke("report", out).stderr


# -- judges, defects, interruptions ---------------------------------------------------------------


@pytest.fixture
def reporter(monkeypatch):
    """Stands in for the report; notes what it finds in the directory."""

    def differing(*differences):
        seen = []

        def build(runs, *, master, on_progress, explain, prepares):
            seen.append(names(runs[0]))
            report = runs[0] / "report"
            report.mkdir()
            made = [{"topic": "", "name": n, "spark": 1, "checker": 2} for n in differences]
            found = {"complete": True, "differences": made, "inputs": {"differences": []}}
            (report / "report.json").write_text(json.dumps(found))
            return report / "index.html"

        module = types.ModuleType("analysis.report.write")
        module.build = build
        monkeypatch.setitem(sys.modules, "analysis.report.write", module)
        return seen

    return differing


def test_the_report_is_made_of_the_whole_run_and_stays(file, tmp_path, reporter):
    seen = reporter()
    answer = invoke("run", file, "--out", tmp_path / "out", "--report", "--keep", "verdict")
    assert answer.exit_code == 0, answer.stderr
    assert {"trace", "disks"} <= seen[0] - {"run.lock"}
    assert names(tmp_path / "out") == CARDS | {"report"}


def test_of_a_run_that_shows_a_defect_everything_is_kept(file, tmp_path, reporter):
    reporter("survived")
    answer = invoke("run", file, "--out", tmp_path / "out", "--report", "--keep", "verdict")
    assert answer.exit_code == 4
    assert names(tmp_path / "out") == CARDS | {"report", "trace", "disks"}
    assert card(tmp_path / "out")["kept"] == "all"


def test_of_a_run_that_is_interrupted_everything_is_kept(file, tmp_path, monkeypatch):
    import sim.cli.run as command  # noqa: PLC0415 - what is planted in

    def stopped(scenario, seed, out, options, case, hooks):
        return run(scenario, seed, out, should_stop=lambda: True)

    monkeypatch.setattr(command, "_run", stopped)
    answer = invoke("run", file, "--out", tmp_path / "out", "--keep", "verdict")
    assert answer.exit_code == 130
    assert {"trace", "disks"} <= names(tmp_path / "out")
    assert (card(tmp_path / "out")["kept"], card(tmp_path / "out")["complete"]) == ("all", False)


def test_nothing_is_removed_of_a_run_that_has_replaced_this_one(file, tmp_path):
    out = tmp_path / "out"
    first = run(file, 1, out)
    run(file, 2, out, force=True)
    with pytest.raises(SimulationError, match="another run has replaced this one"):
        keep_only(out, "verdict", first.card)
    assert {"trace", "disks"} <= names(out)
    assert card(out)["kept"] == "all"


def test_nothing_is_removed_while_another_run_writes_there(file, tmp_path):
    out = tmp_path / "out"
    result = run(file, 1, out)
    other = RunDirectory(out, force=True)
    with pytest.raises(SimulationError, match="another run writes there"):
        keep_only(out, "verdict", result.card)
    other.release()


# -- many runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kept", "left"),
    [(None, None), ("verdict", CARDS), ("logs", CARDS | {"disks"})],
)
def test_a_job_keeps_of_a_run_that_held_what_it_is_to_keep(file, tmp_path, kept, left):
    out = tmp_path / "out"
    found = work.execute(Job(str(file), 1, str(out), "k", keep=kept))
    assert found.status == "held"
    assert (names(out) if out.exists() else None) == left
    assert found.directory == ("" if kept is None else str(out))


@pytest.mark.parametrize(("kept", "left"), [(None, {"trace", "disks"}), ("verdict", set())])
def test_a_job_that_does_not_hold_stays_whole_unless_less_is_to_be_kept(tmp_path, kept, left):
    file, out = tmp_path / "bad.yaml", tmp_path / "out"
    file.write_text(text_of(**SHORT, expect={"sent": "at least 999"}))
    assert work.execute(Job(str(file), 1, str(out), "k", keep=kept)).status == "failed"
    assert names(out) == CARDS | left


def test_a_check_keeps_what_it_is_asked_to(file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert invoke("check", file, "--seeds", "5", "--keep", "verdict").exit_code == 0
    assert names(Path("runs/check/short-s5")) == CARDS


def test_a_known_result_is_run_again_if_less_of_it_was_kept(file, tmp_path):
    cache = Cache(tmp_path / "cache")

    def job(keep):
        (made,) = plan([file], (1,), tmp_path / "runs", keep=keep)
        return made

    cache.keep(job("logs"), work.execute(job("logs")))
    assert cache.find(job(None)) is not None
    assert cache.find(job("verdict")) is not None
    assert cache.find(job("logs")) is not None
    assert cache.find(job("all")) is None
    shutil.rmtree(tmp_path / "runs")
    assert cache.find(job("verdict")) is None
