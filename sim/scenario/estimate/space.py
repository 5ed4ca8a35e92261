"""Space on the disk: a run that would fill it is refused before anything is written.

The estimate compared is that of :mod:`sim.scenario.estimate.forecast`, from the scenario alone.
"""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sim.errors import SimulationError
from sim.scenario.estimate.forecast import Estimate, estimate
from sim.scenario.scenario import Scenario
from sim.units import GIB, KIB, MIB, SECOND, Bytes

RESERVE_MAX: Final[Bytes] = GIB
"""Bytes left free of a large file system; of a smaller one it is a twentieth."""

ANNOUNCED: Final[Bytes] = 1_000_000_000
"""More than this is announced before it is written."""


@dataclass(frozen=True, slots=True)
class Space:
    """Space of a file system, for a directory that may not be there yet."""

    where: Path
    free: Bytes
    reserve: Bytes

    @property
    def allowed(self) -> Bytes:
        """Bytes that may be written."""
        return max(0, self.free - self.reserve)

    def __str__(self) -> str:
        return f"{about(self.free)} free, of which {about(self.reserve)} stay free"


def space_at(where: Path, *, replaces: bool = False) -> Space:
    """Space for a directory.

    Args:
        where: The directory.
        replaces: Count what it holds now as free: it is removed first.
    """
    there = where.absolute()
    while not there.exists():
        there = there.parent
    usage = shutil.disk_usage(there)
    held = occupied(where) if replaces and where.is_dir() else 0
    return Space(where, usage.free + held, min(RESERVE_MAX, usage.total // 20))


def occupied(directory: Path) -> Bytes:
    """Bytes that the files below a directory take on the disk."""
    total = 0
    for root, _, files in os.walk(directory):
        for name in files:
            path = Path(root, name)
            if not path.is_symlink():
                total += path.stat().st_blocks * 512
    return total


def check_run(found: Estimate, place: Space, otherwise: Sequence[str]) -> str:
    """Check that a run fits.

    Args:
        found: Its estimate.
        place: Where it writes.
        otherwise: What helps if nothing about the run is changed.

    Returns:
        A line that announces a large run; empty for others.

    Raises:
        SimulationError: If it would fill the disk; the message says what would help.
    """
    disk = found.disk
    parts = f"(logs {about(disk.logs)}, trace {about(disk.trace)})"
    advice = [] if disk.total <= place.allowed else _advice(found, place.allowed)
    return _checked(disk.total, "the run", parts, place, [*advice, *otherwise])


def check_runs(needed: Bytes, words: str, place: Space, advice: Sequence[str]) -> str:
    """Check that several runs fit.

    Args:
        needed: Bytes of all of them.
        words: What they are.
        place: Where they write.
        advice: What would help.

    Returns:
        As :func:`check_run`.

    Raises:
        SimulationError: If they would fill the disk.
    """
    return _checked(needed, words, "at most", place, advice)


def check_scratch(scenarios: Sequence[Scenario], at_once: int, within: Path) -> str:
    """Check that runs fit whose trace is not written, and which are removed when they end.

    Args:
        scenarios: Of which so many run at once.
        at_once: How many.
        within: Where they have their scratch directories.

    Returns:
        As :func:`check_run`.

    Raises:
        SimulationError: If they would fill the disk.
    """
    sizes = sorted((estimate(each, "facts").disk.logs for each in scenarios), reverse=True)
    largest = sizes[0] if sizes else 0
    advice = ("shorten the runs", "set TMPDIR to a directory on a larger disk")
    return check_runs(largest * at_once, f"{at_once} runs at once", space_at(within), advice)


def _checked(needed: Bytes, what: str, parts: str, place: Space, advice: Sequence[str]) -> str:
    if needed > place.allowed:
        raise SimulationError(
            f"{place.where}: {what} would write about {about(needed)} there {parts}, and "
            f"{about(place.allowed)} are allowed ({place}); {'; '.join(advice)}"
        )
    if needed <= ANNOUNCED:
        return ""
    return f"{place.where}: {what} will write about {about(needed)} there {parts}; {place}"


def _advice(found: Estimate, allowed: Bytes) -> list[str]:
    """Changes after which the run would fit."""
    scenario, _ = found.works[0]
    advice = []
    if found.level == "detail" and estimate(scenario, "facts").disk.total <= allowed:
        advice.append("--trace facts")
    idle = replace(scenario, producers=(), processors=(), connectors=(), clusters=(), mirrors=())
    lasts, fixed = scenario.run.for_us // SECOND, estimate(idle, found.level).disk.total
    fitting = int(0.95 * lasts * (allowed - fixed) / max(1, found.disk.total - fixed))
    if fitting > 0:
        advice.append(f"shorten it (--set run.for={fitting}s in place of {lasts}s)")
    return [*advice, "lower the rate of its producers"]


def about(size: float) -> str:
    """A size to two figures: ``5.2 GiB``, ``130 MiB``."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            value = size / unit
            return f"{value:.1f} {name}" if value < 10 else f"{value:,.0f} {name}"
    return f"{size:.0f} B"
