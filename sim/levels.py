"""Colours of the three numbers of a run (:mod:`sim.scenario.run.answer`): one rule for all."""

from typing import Final, Literal

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
