"""A command that is killed at any instant leaves nothing that runs, blocks or strays."""

import subprocess
import sys

import pytest

from tests.kill.campaign import COMMANDS, Campaign

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")

SPARK = (pytest.mark.spark, pytest.mark.minutes(5))
EVERY = [pytest.param(c, marks=SPARK if c in ("explore", "report") else ()) for c in COMMANDS]


@pytest.mark.parametrize("name", ["run", "run --force"])
def test_a_killed_run_leaves_nothing_in_the_way_of_the_next(name, tmp_path):
    assert Campaign(tmp_path / "here", COMMANDS[name]).kills(2).wrong == []


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_ten_kills_leave_no_process_no_lock_and_no_directory(name, tmp_path):
    assert Campaign(tmp_path / "here", COMMANDS[name], 2).kills(10).wrong == []


@pytest.mark.night
@pytest.mark.parametrize("seed", range(3, 13))
@pytest.mark.parametrize("name", EVERY)
def test_a_hundred_kills_leave_no_process_no_lock_and_no_directory(name, seed, tmp_path):
    """Ten of the hundred; a whole hundred of a sweep takes an hour."""
    assert Campaign(tmp_path / "here", COMMANDS[name], seed).kills(10).wrong == []


# -- the campaign can say no -----------------------------------------------------------------------


POPEN = "subprocess.Popen([sys.executable, '-c', sys.argv[2]], stderr=subprocess.DEVNULL)"


def python(code):
    return (sys.executable, "-c", code, "planted")


def test_a_child_that_survives_its_parent_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.kill.campaign.PATIENCE_S", 0.2)
    code = "import subprocess, sys; subprocess.Popen(['sleep', '60'], stderr=subprocess.DEVNULL)"
    campaign = Campaign(tmp_path / "here", python(code))
    campaign.through("planted")
    assert "still runs" in campaign.wrong[0]
    assert "sleep 60" in campaign.wrong[0]


def test_a_process_whose_first_thread_alone_has_ended_still_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.kill.campaign.PATIENCE_S", 0.2)
    code = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)"
    )
    parent = f"import subprocess, sys, time; {POPEN}; time.sleep(1)"
    campaign = Campaign(tmp_path / "here", (*python(parent), code))
    campaign.through("planted")
    assert "still runs" in campaign.wrong[0]


def test_a_stray_directory_an_error_and_a_lock_that_is_held_are_noticed(tmp_path):
    campaign = Campaign(tmp_path / "here", python("import tempfile; tempfile.mkdtemp(); 1 / 0"))
    campaign.through("planted")
    assert "ZeroDivisionError" in campaign.wrong[0]
    assert "left tmp/" in campaign.wrong[1]
    code = "import fcntl; f = open('a.lock', 'w'); fcntl.flock(f, 2); print(1, flush=True); input()"
    with subprocess.Popen(
        python(code), cwd=campaign.home, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.read(1) == b"1"
        campaign.look("planted", holder.pid, heard=False)
        holder.stdin.close()
    assert "another run writes there" in campaign.wrong[-1]


def test_a_part_that_cannot_be_read_is_noticed_unless_an_earlier_kill_left_it(tmp_path):
    code = """
import pathlib
run = pathlib.Path("out")
run.mkdir(exist_ok=True)
(run / "run.json").write_text('{"complete": true}')
(run / "part-0.parquet").touch()
"""
    campaign = Campaign(tmp_path / "here", (*python(code)[:3], "run"))
    campaign.through("planted")
    assert ["part-0.parquet" in wrong for wrong in campaign.wrong] == [True]
    campaign.began_ns += 10**12
    assert campaign.parts() == []
