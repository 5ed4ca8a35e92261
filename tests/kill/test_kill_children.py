"""Children end with their parent, and what a process keeps for a while goes with it."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from analysis.spark import java
from sim.scratch import PREFIX, Scratch, clear, scratch
from tests.kill.campaign import in_session
from tests.scenarios.run_kit import ROOT

ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="processes are found in /proc")
PATIENCE_S = 60

POOL = """
import multiprocessing, sys, time
from concurrent.futures import ProcessPoolExecutor
from sim.suite.pool import _listen
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context, initializer=_listen) as pool:
        print(*pool.map(abs, range(8)), flush=True)
        pool.submit(time.sleep, 600).result()
"""
"""One worker in the middle of its job, and one that waits for the next."""

FORKED = POOL.replace('multiprocessing.get_context("spawn")', "_context()").replace(
    "import _listen", "import _context, _listen"
)
"""As the program has them where it has one thread: copies of a process that is warm."""

UNASKED = """
from sim import lifetime
lifetime._set_death_signal = lambda: None
"""
"""As on systems other than Linux; workers run it too."""

TWIN = """
import sys
from sim.lifetime import child
print("begins", flush=True)
words = (
    "import sys, time; from sim import lifetime; lifetime._set_death_signal = lambda: None; "
    "lifetime.end_with_input(); time.sleep(600)"
)
child([sys.executable, "-c", words])
"""


def python(place, text, ready):
    """A program as the leader of a session; it has said that it is ready."""
    file = place / "program.py"
    file.write_text(text)
    process = subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, start_new_session=True,
        env=os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(place)},
    )  # fmt: skip
    assert process.stdout.readline().startswith(ready)
    return process


def ended(session):
    until = time.monotonic() + PATIENCE_S
    while (found := in_session(session)) and time.monotonic() < until:
        time.sleep(0.05)
    for pid, _ in found:
        os.kill(pid, signal.SIGKILL)
    return found


@ON_LINUX
@pytest.mark.parametrize(
    ("text", "ready", "processes"),
    [
        (POOL, b"0 1", 4),
        (UNASKED + POOL, b"0 1", 4),
        (FORKED, b"0 1", 3),
        (UNASKED + FORKED, b"0 1", 3),
        (TWIN, b"begins", 2),
    ],
    ids=[
        "workers",
        "workers without the kernel's help",
        "forked workers",
        "forked workers without the kernel's help",
        "a run in a process of its own",
    ],
)
def test_children_end_with_a_killed_parent(tmp_path, text, ready, processes):
    with python(tmp_path, text, ready) as parent:
        until = time.monotonic() + PATIENCE_S
        while len(in_session(parent.pid)) < processes:
            assert time.monotonic() < until
            time.sleep(0.05)
        parent.kill()
    assert ended(parent.pid) == []


def test_a_scratch_directory_lasts_as_long_as_its_block(tmp_path):
    with scratch(tmp_path) as place:
        (place / "file").write_text("x")
        clear(tmp_path)
        assert (place / "file").is_file(), "its process runs: nobody takes it"
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_goes_when_the_next_one_starts(tmp_path):
    text = """
from sim.scratch import Scratch
made = Scratch()
(made.path / "deep").mkdir()
print("made", flush=True)
input()
"""
    (tmp_path / PREFIX[:-1]).mkdir()
    (tmp_path / "of others").mkdir()
    with python(tmp_path, text, b"made") as owner:
        (left,) = tmp_path.glob(f"{PREFIX}*")
        Scratch(tmp_path).close()
        assert (left / "deep").is_dir()
        owner.kill()
    Scratch(tmp_path).close()
    here = {path.name for path in tmp_path.iterdir()}
    assert here == {PREFIX[:-1], "of others", "program.py"}, "and nothing else goes"


def test_a_link_is_not_followed_when_scratch_directories_are_cleared(tmp_path):
    theirs = tmp_path / "theirs"
    (theirs / "deep").mkdir(parents=True)
    (tmp_path / f"{PREFIX}link").symlink_to(theirs)
    clear(tmp_path)
    assert (theirs / "deep").is_dir()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_in_order_and_nohup_is_kept(tmp_path, number):
    text = """
import signal, sys, time
from sim.lifetime import interrupt_by_signals
if sys.argv[1:]: signal.signal(signal.SIGHUP, signal.SIG_IGN)
interrupt_by_signals()
from sim.cli.run import stop_requests
from sim.cli.exits import exit_codes
from sim.scratch import scratch
with exit_codes(), scratch():
    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN, flush=True)
    time.sleep(600)
"""
    with python(tmp_path, text, b"False") as process:
        assert list(tmp_path.glob(f"{PREFIX}*"))
        process.send_signal(number)
    assert list(tmp_path.glob(f"{PREFIX}*")) == []
    words = [sys.executable, str(tmp_path / "program.py"), "nohup"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout.readline() == b"True\n"
        process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_exit_code_is_130_wherever_a_signal_meets_the_program(tmp_path, number):
    (tmp_path / "program.py").write_text(f"""
import os, sys
from sim.lifetime import interrupt_by_signals
interrupt_by_signals()
try:
    exec("os.kill(os.getpid(), {int(number)})")
except KeyboardInterrupt:
    sys.exit(130)
""")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    words = [sys.executable, "-m", "program"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 130, done.stderr


@pytest.mark.parametrize("hears", [True, False])
def test_a_signal_within_a_class_body_of_an_import_is_an_interrupt(tmp_path, hears):
    """What ``__set_name__`` raises is wrapped in a RuntimeError up to Python 3.11."""
    (tmp_path / "program.py").write_text(f"""
import os, signal
import sim.cli

class Field:
    def __set_name__(self, owner, name):
        if {hears}:
            os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("of a library")

def app(prog_name):
    class Owner:
        field = Field()

sim.cli.app = app
sim.cli.main()
""")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"}
    words = [sys.executable, "-m", "program"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (130 if hears else 1), done.stderr
    assert ("of a library" in done.stderr) == (not hears)


@pytest.mark.parametrize("hears", [True, False])
def test_what_fails_while_an_interrupted_command_closes_is_no_defect(tmp_path, hears):
    text = f"""
import os, signal, sys
import typer
from sim.cli.exits import exit_codes
from sim.lifetime import interrupt_by_signals
interrupt_by_signals()
try:
    with exit_codes():
        try:
            {"os.kill(os.getpid(), signal.SIGTERM)" if hears else "pass"}
        finally:
            raise ValueError("half an answer")
except typer.Exit as end:
    sys.exit(end.exit_code)
"""
    (tmp_path / "program.py").write_text(text)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py")],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == (130 if hears else 4)
    assert ("half an answer" in done.stderr) is not hears


@ON_LINUX
@pytest.mark.slow
@pytest.mark.spark
def test_the_java_process_ends_with_a_killed_parent_and_its_directories_at_the_next_start(tmp_path):
    text = """
from analysis.spark.session import start
spark = start("local[1]")
print(spark.range(9).count(), flush=True)
spark.sparkContext.parallelize([1], 1).map(lambda _: __import__("time").sleep(600)).collect()
"""
    with python(tmp_path, text, b"9") as parent:
        while not any("pyspark.daemon" in words for _, words in in_session(parent.pid)):
            time.sleep(0.1)
        parent.kill()
    assert ended(parent.pid) == []
    clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["program.py"]


def test_a_directory_in_which_a_worker_still_writes_is_removed_when_it_ends(tmp_path, monkeypatch):
    place = tmp_path / "logquake-scratch-x"
    (place / "deep").mkdir(parents=True)
    remove, left = shutil.rmtree, iter(range(3))

    def disturbed(path, **options):
        remove(path, **options)
        if next(left, None) is not None:  # a worker's last files
            (place / "deep").mkdir(parents=True)
            (place / "deep" / "late").write_text("x")

    monkeypatch.setattr(java.shutil, "rmtree", disturbed)
    java._clear(place)
    assert not place.exists()
    (place / "deep").mkdir(parents=True)
    monkeypatch.setattr(java.shutil, "rmtree", lambda path, **options: None)
    monkeypatch.setattr(java, "_ENDS_WITHIN_S", 0.1)
    java._clear(place)
    assert place.exists(), "patience has an end"
