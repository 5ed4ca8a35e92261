"""Rules of the three numbers of a run (:mod:`sim.scenario.run.answer`) for all that show them."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from sim.units import SECOND, Micros

Level = Literal["green", "amber", "red"]

AMBER_FROM: Final[Micros] = SECOND
RED_FROM: Final[Micros] = 30 * SECOND
"""Kafka's default of ``request.timeout.ms``: clients have seen timeouts."""

_LEVELS: Final = ("green", "amber", "red")


def level_of(length: Micros) -> Level:
    """The colour of a time."""
    return "red" if length >= RED_FROM else "amber" if length >= AMBER_FROM else "green"


def rank(level: str, size: int) -> tuple[int, int]:
    """The order of one of the three numbers of many runs: colour first, then the number."""
    return _LEVELS.index(level), size


def formed(verdict: Mapping[str, Any]) -> dict[str, Mapping[str, int]]:
    """Partitions whose readers had their first record before any fault: their wait is no outage.

    Args:
        verdict: Content of ``verdict.json``: ``faults``, ``availability`` and ``end_us`` are read.

    Returns:
        Entries of its ``availability.started`` by partition.
    """
    began = [each["began_us"] for each in verdict["faults"] if each["began_us"] is not None]
    first = min(began, default=verdict["end_us"])
    started = verdict["availability"].get("started", {})
    return {name: each for name, each in started.items() if each["first_us"] <= first}
