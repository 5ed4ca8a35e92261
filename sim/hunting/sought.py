"""Failures that are looked for: ``lost_acked,down>60s,stuck``."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sim.errors import SimulationError
from sim.scenario.expect.bounds import VOCABULARY, found_in
from sim.scenario.text.problems import nearest
from sim.scenario.text.quantities import QuantityError, parse_duration, show_duration
from sim.units import SECOND, Micros

DOWN: Final = "down"
"""The longest outage of any kind, see :mod:`sim.scenario.run.answer`."""

STUCK: Final = "stuck"
"""The cluster does not come to rest after the last heal, see :mod:`sim.hunting.rest`."""

DEFAULT: Final = "lost_acked,down>60s,stuck"

_DOWN_US: Final[Micros] = 30 * SECOND
"""An outage of which no length is given: clients have seen timeouts (``request.timeout.ms``)."""

_UNITS: Final = ("time", "records")
"""Units of numbers of which more is worse."""


@dataclass(frozen=True, slots=True)
class Sought:
    """One number of a verdict, and the bound above which it is a failure."""

    name: str
    above: int
    """Records, or microseconds."""

    def __str__(self) -> str:
        if self.name == DOWN or (self.name in VOCABULARY and VOCABULARY[self.name][0] == "time"):
            return f"{self.name}>{show_duration(self.above)}"
        return f"{self.name}>{self.above}" if self.above else self.name

    def found(self, verdict: Mapping[str, Any]) -> int:
        """The number, if it is above the bound; else 0. Of ``stuck`` no verdict says anything."""
        if self.name == STUCK:
            return 0
        size = (
            int(verdict["answer"][DOWN]["size"])
            if self.name == DOWN
            else found_in(self.name, verdict) or 0
        )
        return size if size > self.above else 0


def parse(text: str) -> tuple[Sought, ...]:
    """The failures of ``NAME`` or ``NAME>BOUND``, separated by commas, each name once.

    Raises:
        SimulationError: For a name that is not known, or a bound that cannot be read.
    """
    found: dict[str, Sought] = {}
    for word in text.split(","):
        each = _parse(word.strip())
        found.setdefault(each.name, each)
    return tuple(found.values())


def show(sought: tuple[Sought, ...]) -> str:
    """The text from which :func:`parse` makes the same."""
    return ",".join(map(str, sought))


def _parse(word: str) -> Sought:
    name, sign, bound = (part.strip() for part in word.partition(">"))
    known = (DOWN, STUCK, *(n for n, (unit, _) in VOCABULARY.items() if unit in _UNITS))
    if name not in known:
        hint = nearest(name, known)
        raise SimulationError(
            f"--looking-for: found {word!r}; allowed: {', '.join(known)}, a number with > and a "
            f"bound where 0 is not meant, as in down>60s{f'; {hint}' if hint else ''}"
        )
    is_time = name == DOWN or (name != STUCK and VOCABULARY[name][0] == "time")
    if not sign:
        return Sought(name, _DOWN_US if is_time else 0)
    try:
        above = parse_duration(bound) if is_time else int(bound)
    except (QuantityError, ValueError):
        above = -1
    if above < 0 or name == STUCK:
        allowed = "a time such as 60s" if is_time else "a whole number"
        allowed = "stuck alone, without a bound" if name == STUCK else allowed
        raise SimulationError(f"--looking-for: found {word!r}; allowed after >: {allowed}")
    return Sought(name, above)
