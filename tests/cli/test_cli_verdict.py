"""``logquake verdict``: options, the answer on a terminal and for programs, exit codes."""

import json

import pytest
from typer.testing import CliRunner

import sim.cli.verdict as command
from sim.cli import app
from sim.suite.fault_outcomes import answer
from tests.suite.test_suite_verdict import FAULT, SOUND, WEAK, ran, written


def invoke(*words):
    return CliRunner().invoke(app, ["verdict", *(str(word) for word in words)])


@pytest.fixture
def stage(monkeypatch, tmp_path):
    """Stands in for the runs; what comes of them is in ``found``."""
    found = []
    calls = []

    def execute(survey, cache, some, should_stop, on_result):
        calls.append((survey, cache, some.processes, should_stop()))
        return list(found)

    monkeypatch.setattr(command, "execute", execute)
    monkeypatch.chdir(tmp_path)
    return found, calls


def lossy(tmp_path):
    (tmp_path / "verdict.json").write_text('{"partitions": {"o-0": {"lost_acked": 5, "sent": 33}}}')
    runs = [ran(1, lost_acked=5, directory=str(tmp_path))]
    return answer(FAULT, "runs/x.yaml", 33_000_000, runs)


def test_a_loss_is_told_with_its_command_and_exits_1(stage, tmp_path):
    stage[0].append(lossy(tmp_path))
    done = invoke(written(tmp_path, WEAK))
    assert done.exit_code == 1, done.output
    assert (
        "planted: 9 single faults, 30 runs of 33 s; scenarios in runs/planted-verdict"
        in done.stdout
    )
    sentence = (
        "A crash of broker-1 loses up to 5.0 s of acknowledged records (5 records), in 1 of 1 seed."
    )
    assert f"\n{sentence}\n    logquake run runs/x.yaml --seed 1\n" in done.stdout
    assert "1 of 1 single fault lost acknowledged records (1 run)." in done.stdout
    assert "29 runs did not fit into the budget of 5m" in done.stdout


def test_nothing_lost_exits_0(stage, tmp_path):
    stage[0].append(answer(FAULT, "runs/x.yaml", 1, [ran(1)]))
    done = invoke(written(tmp_path, SOUND), "--seeds", "1")
    assert done.exit_code == 0, done.output
    assert "None of 1 single fault lost an acknowledged record (1 run)." in done.stdout


def test_programs_are_answered_in_json(stage, tmp_path):
    stage[0].append(lossy(tmp_path))
    done = invoke(written(tmp_path, WEAK), "--json", "--out", tmp_path / "there")
    told = json.loads(done.stdout)
    assert done.exit_code == 1
    assert told["directory"] == str(tmp_path / "there")
    assert told["answers"][0]["findings"][0]["command"] == "logquake run runs/x.yaml --seed 1"
    assert told["untried"] == 29


def test_a_defect_in_a_run_is_the_exit_code(stage, tmp_path):
    stage[0].append(lossy(tmp_path))
    file = "runs/planted-verdict/crash-broker-1.yaml"
    broken = ran(1, status="defect", message="boom", directory="x")
    stage[0].append(answer(FAULT, file, 1, [broken]))
    done = invoke(written(tmp_path, WEAK))
    assert done.exit_code == 4
    assert "This is a defect of Logquake, not of your scenario." in done.stderr
    assert f"Please send: {file}, seed 1, version " in done.stderr
    assert "A crash of broker-1 came to no verdict: seed 1: defect: boom" in done.stdout


def test_options_reach_the_runs(stage, tmp_path):
    file = written(tmp_path, WEAK)
    invoke(
        file, "--jobs", "3", "--no-cache", "--budget", "0s", "--seeds", "4,2", "--set", "acks=all"
    )
    ((survey, cache, processes, stopped),) = stage[1]
    assert (processes, stopped) == (3, True)
    assert cache.find(survey.jobs[0]) is None
    assert [job.seed for job in survey.jobs[:2]] == [4, 4], "every fault once, then again"
    assert "acks: all" in (tmp_path / "runs/planted-verdict/crash-broker-1.yaml").read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--budget", "soon"), "--budget: "),
        (("--seeds", "x"), "--seeds: found 'x'"),
        (("--set", "acks=9"), "acks: 9"),
    ],
)
def test_bad_input_exits_2_and_writes_nothing(words, told, stage, tmp_path):
    done = invoke(written(tmp_path, WEAK), *words)
    assert done.exit_code == 2
    assert told in done.stderr
    assert not (tmp_path / "runs").exists()
