"""A run directory is known for one from its first moment, and one run at a time writes to it."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from sim.errors import SimulationError
from sim.locks import check_free, hold
from sim.scenario.run import directory as rundir
from sim.scenario.run.directory import LOCK, RunDirectory, keep_only
from sim.trace.kept import LEFT_OUT, check_kept, kept_of
from tests.kill.campaign import TINY
from tests.scenarios.run_kit import ROOT, text_of

HOLDER = """
import sys
from pathlib import Path
from sim.scenario.run.directory import RunDirectory
RunDirectory(Path(sys.argv[1]), force=True)
print("holds", flush=True)
input()
"""


@pytest.fixture
def out(tmp_path):
    """What an earlier run left."""
    made = tmp_path / "out"
    (made / "disks" / "broker-1").mkdir(parents=True)
    (made / "trace").mkdir()
    (made / "verdict.json").write_text("{}")
    (made / "run.json").write_text('{"complete": true}')
    return made


def content(directory):
    return {
        path.relative_to(directory).as_posix(): path.read_bytes() if path.is_file() else None
        for path in directory.rglob("*")
    }


def holder(directory):
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)], env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout.readline() == b"holds\n"
    return process


@pytest.mark.parametrize("force", [True, False])
def test_a_second_run_says_who_writes_there_and_touches_nothing(tmp_path, force):
    out, file = tmp_path / "out", tmp_path / "tiny.yaml"
    file.write_text(text_of(**TINY))
    words = ["run", str(file), "--out", str(out), *(["--force"] * force)]
    with holder(out) as first:
        before = content(out)
        second = subprocess.run(
            [sys.executable, "-m", "sim", *words], env=os.environ | {"PYTHONPATH": str(ROOT)},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert content(out) == before
        first.kill()
    assert second.returncode == 2
    told = rf"out: another run writes there: process {first.pid}, since [-\d]{{10}} [:\d]{{8}} UTC"
    assert re.search(told, second.stderr)
    RunDirectory(out, force=True).release()


def test_two_runs_at_once_do_not_cost_the_earlier_one(out):
    first = RunDirectory(out, force=True)
    (first.path / "verdict.json").write_text('{"held": true}')
    for force in (True, False):
        with pytest.raises(SimulationError, match=f"process {os.getpid()}"):
            RunDirectory(out, force=force)
    first.release()
    assert content(out)["verdict.json"] == b'{"held": true}'
    assert not (out / LOCK).exists()


@pytest.mark.parametrize("gone", range(3))
def test_a_run_killed_while_it_clears_leaves_a_run_directory(out, monkeypatch, gone):
    """``gone``: how many directories of the earlier run are gone when the kill comes."""
    (out / "clusters").mkdir()
    real, removed = shutil.rmtree, []

    def rmtree(path):
        if len(removed) == gone:
            raise KeyboardInterrupt
        removed.append(path)
        real(path)

    monkeypatch.setattr(rundir.shutil, "rmtree", rmtree)
    with pytest.raises(KeyboardInterrupt):
        RunDirectory(out, force=True)
    monkeypatch.undo()
    assert json.loads((out / "run.json").read_text()) == {"complete": False}
    (out / LOCK).write_text("4711\n")
    with pytest.raises(SimulationError, match="add --force to replace it"):
        RunDirectory(out, force=False)
    RunDirectory(out, force=True).release()
    assert {path.name for path in out.iterdir()} == {"run.json"}


@pytest.mark.parametrize(
    ("kept", "gone"), [("logs", 0), ("logs", 1), ("verdict", 0), ("verdict", 1), ("verdict", 2)]
)
def test_a_removal_that_is_killed_leaves_a_run_directory_that_says_what_is_missing(
    out, monkeypatch, gone, kept
):
    """``gone``: how many of the card and the directories are changed when the kill comes."""
    parts = LEFT_OUT[kept]
    card = {"complete": True, "seed": 7}
    (out / "run.json").write_text(json.dumps(card))
    done = []

    def step(real, name):
        def do(*given):
            if len(done) == gone:
                raise KeyboardInterrupt
            done.append(name)
            real(*given)

        return do

    monkeypatch.setattr(rundir, "_write_kept", step(rundir._write_kept, "card"))
    monkeypatch.setattr(rundir.shutil, "rmtree", step(shutil.rmtree, "part"))
    with pytest.raises(KeyboardInterrupt):
        keep_only(out, kept, card)
    monkeypatch.undo()
    left = {path.name for path in out.iterdir()}
    assert left == {"run.json", "verdict.json", "disks", "trace"} - set(parts[: max(0, gone - 1)])
    assert kept_of(out) == ("all" if gone == 0 else kept), "said before anything is removed"
    if gone:
        with pytest.raises(SimulationError, match="without trace/"):
            check_kept(out, "trace")
    RunDirectory(out, force=True).release()
    assert {path.name for path in out.iterdir()} == {"run.json"}


@pytest.mark.parametrize("left", [(), (LOCK,), (LOCK, "run.json.tmp")])
def test_what_a_run_made_before_its_card_is_taken_for_a_runs(tmp_path, left):
    for name in left:
        (tmp_path / name).touch()
    made = RunDirectory(tmp_path, force=False)
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", LOCK}
    assert json.loads((tmp_path / "run.json").read_text()) == {"complete": False}
    made.release()


@pytest.mark.parametrize("name", ["letter.txt", "disks", "scenario.yaml"])
def test_a_directory_of_something_else_is_left_as_it_is(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / "run.json.tmp").touch()
    before = content(tmp_path)
    with pytest.raises(SimulationError, match="is not a run directory"):
        RunDirectory(tmp_path, force=True)
    assert content(tmp_path) == before


def test_a_lock_file_without_a_holder_blocks_nobody_and_goes(tmp_path):
    file = tmp_path / "a.lock"
    file.write_text("4711\n")
    check_free(file)
    lock = hold(file)
    assert file.read_text() == f"{os.getpid()}\n"
    with pytest.raises(SimulationError, match=f"process {os.getpid()}"):
        check_free(file)
    lock.release()
    lock.release()
    assert list(tmp_path.iterdir()) == []
