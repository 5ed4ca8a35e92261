"""Measures the report of a run: ``RUN_DIR [--memory 2g]``; prints one line of JSON.

The report is made in a process of its own. While it works, the process and all below it are looked
at five times a second: processor time, and the most memory that was resident, for Java, for the
Python that drives it, and for Spark's Python workers together. Each step is told on standard error
as it begins, and with it how much time had gone into those before. Linux only (``/proc``).

Local mode has no executors of its own: the driver's Java process does their work, so one limit
(``SPARK_DRIVER_MEMORY``) holds for both. What lives shorter than a look is missed.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from analysis.spark import tables

_EVERY_S: Final = 0.2
_TICKS: Final = os.sysconf("SC_CLK_TCK")
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_REPORT: Final = """
import sys
from pathlib import Path
from analysis.report.write import build
tell = lambda step: print(step, flush=True)
build([Path(sys.argv[1])], on_progress=tell)
tell("done")
"""


@dataclass(slots=True)
class Seen:
    """What was seen so far."""

    cpu_s: dict[int, float] = field(default_factory=dict)
    """Processor time of each process, by its number."""
    java: int = 0
    driver: int = 0
    workers: int = 0
    """Most bytes that were resident; of the workers, together."""

    def look(self, root: int) -> None:
        """Look at a process and all below it."""
        workers = 0
        for pid in (root, *_below(root)):
            try:
                stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
            except OSError:
                continue  # It has just ended.
            name = stat[stat.index("(") + 1 : stat.rindex(")")]
            words = stat[stat.rindex(")") + 2 :].split()
            self.cpu_s[pid] = (int(words[11]) + int(words[12])) / _TICKS
            resident = int(words[21]) * _PAGE
            if name.startswith("java"):
                self.java = max(self.java, resident)
            elif pid == root:
                self.driver = max(self.driver, resident)
            else:
                workers += resident
        self.workers = max(self.workers, workers)


def _below(root: int) -> Iterator[int]:
    """Every process below one."""
    try:
        tasks = list(Path(f"/proc/{root}/task").iterdir())
        children = [
            int(child)
            for task in tasks
            for child in (task / "children").read_text(encoding="utf-8").split()
        ]
    except OSError:
        return
    for child in children:
        yield child
        yield from _below(child)


def measure(run: Path, memory: str) -> dict[str, object]:
    """Make the report, and say what it took.

    Args:
        run: A run directory.
        memory: Most that Java's heap may be, as ``2g``.

    Raises:
        CalledProcessError: If the report could not be made.
    """
    seen = Seen()
    began = time.monotonic()
    steps: list[tuple[float, float, str]] = []
    command = [sys.executable, "-c", _REPORT, str(run)]
    environment = os.environ | {"SPARK_DRIVER_MEMORY": memory}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        lines = process.stdout
        if lines is None:
            raise OSError("no pipe")
        os.set_blocking(lines.fileno(), False)
        is_running = True
        while is_running:
            is_running = process.poll() is None
            seen.look(process.pid)
            for line in (lines.read() or b"").decode().splitlines():
                cpu_s = sum(seen.cpu_s.values())
                steps.append((round(time.monotonic() - began, 1), round(cpu_s, 1), line))
                sys.stderr.write(f"{steps[-1]}\n")
            time.sleep(_EVERY_S)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    seconds = time.monotonic() - began
    segments = [path.stat().st_size for path in (run / "disks").glob("broker-*/*/*-*/*.log")]
    return {
        "rows": tables.rows(run),
        "segment_bytes": sum(segments),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(seen.cpu_s.values()), 1),
        "java_mb": seen.java // 1_000_000,
        "driver_mb": seen.driver // 1_000_000,
        "workers_mb": seen.workers // 1_000_000,
        "steps": steps,
    }


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m tools.measure_report", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN_DIR")
    parser.add_argument("--memory", default="2g")
    asked = parser.parse_args()
    sys.stdout.write(json.dumps(measure(asked.run, asked.memory)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
