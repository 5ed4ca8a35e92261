"""Runs of the shipped scenarios, made once and shared by all workers of a test run."""

import fcntl
import os
import shutil
import subprocess
import sys

import pytest

from tests.scenarios.compiled import COMPILED, SWITCH
from tests.scenarios.run_kit import CATALOGUE, ROOT, SHIPPED, SMALL, Ran


class Shared:
    """One directory for all workers; who needs a run first makes it, the others wait for it."""

    def __init__(self, directory):
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._users = (directory / "users.lock").open("w")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        self._read = {}

    def ran(self, name):
        if name not in self._read:
            out = self.directory / name
            with (self.directory / f"{name}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not (self.directory / f"{name}.done").exists():
                    self._run(name, out)
            self._read[name] = Ran(out)
        return self._read[name]

    def _run(self, name, out):
        scenario = SMALL if name == "small" else (SHIPPED | CATALOGUE)[name]
        done = subprocess.run(
            [sys.executable, "-m", "sim", "run", str(scenario), "--out", str(out), "--force"],
            cwd=ROOT, env=os.environ | COMPILED, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        (self.directory / f"{name}.done").touch()

    def close(self):
        """The last user removes the runs: together they are half a gigabyte."""
        try:
            fcntl.flock(self._users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        finally:
            self._users.close()
        shutil.rmtree(self.directory)


@pytest.fixture(scope="session")
def shared(tmp_path_factory, request):
    base = tmp_path_factory.getbasetemp()
    workers = hasattr(request.config, "workerinput")
    found = Shared((base.parent if workers else base) / "shipped")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _here_if_a_defect_may_be_planted(request):
    SWITCH.here = "monkeypatch" in request.fixturenames
    yield
    SWITCH.here = False
