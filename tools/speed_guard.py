"""Holds the speed against the last release's: ``[--runs 5]``; exits 1 at 10 % below it.

The figure is ``bare_events_per_batch`` of the benchmark: how many timeouts a bare SimPy loop makes
in the processor time of one batch. Loop and run follow each other in one process, so that a slower
or a busier machine moves both; each measurement is a process of its own, and the median counts.
What the last release had is in the table of ``docs/performance.md``.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Final

from sim.lifetime import child

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = ROOT / "docs" / "performance.md"
SECONDS: Final = 5
"""Simulated seconds of a measurement."""

ALLOWED: Final = 0.9
"""Share of the last release's speed below which it is a regression."""

_ROW: Final = re.compile(r"^\| (\d+\.\d+\.\d+) \| ([\d.]+) \|", re.MULTILINE)


def released(text: str) -> tuple[str, float]:
    """The last release in the table, and its figure.

    Raises:
        ValueError: If there is none.
    """
    rows = _ROW.findall(text)
    if not rows:
        raise ValueError(f"{TABLE.name}: no line such as '| 0.2.0 | 450 |' with a release")
    version, figure = rows[-1]
    return version, float(figure)


def is_slower(found: float, before: float) -> bool:
    """True if a batch takes so long that the speed is 10 % or more below the release's."""
    return before / found <= ALLOWED


def measured(runs: int) -> float:
    """Median of the figure over so many processes.

    Raises:
        RuntimeError: If the benchmark fails, or nothing is compiled, which the table is about.
    """
    figures: list[float] = []
    for _ in range(runs):
        done = child([sys.executable, "-m", "sim.bench", str(SECONDS)])
        if done.returncode != 0:
            raise RuntimeError(f"the benchmark failed: {done.stderr}")
        found = json.loads(done.stdout)
        if not found["compiled"]:
            raise RuntimeError("the sources were measured; make compile")
        figures.append(found["bare_events_per_batch"])
    return median(figures)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    found = measured(parser.parse_args().runs)
    version, before = released(TABLE.read_text(encoding="utf-8"))
    sys.stdout.write(
        f"a batch costs {found:.0f} bare SimPy events; {before:.0f} in {version}: "
        f"{before / found:.2f} of its speed\n"
    )
    return int(is_slower(found, before))


if __name__ == "__main__":
    sys.exit(main())
