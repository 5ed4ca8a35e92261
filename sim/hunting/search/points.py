"""Points of a run that its machines have named: an instant, a step of a protocol, a server.

The next step of the same kind lies between two of them: between append and answer, between vote and
reply, between the record of a transaction's end and its markers. The same schedule with the same
seed comes to the same point again, so a fault that is added there meets it.
"""

from dataclasses import dataclass
from typing import Final

from sim.units import Micros

KEPT: Final = 4
"""Points of one name that a run keeps: the first one, and the last ones of those whose number is a
power of two, so that they are spread over the run."""


DATA_PATH: Final = ("append", "copy", "acknowledgement")
"""Points of a record on its way."""


@dataclass(frozen=True, slots=True)
class Point:
    """One step of a machine."""

    name: str
    at_us: Micros
    node: str


class Points:
    """Points of a run."""

    def __init__(self) -> None:
        self._kept: dict[str, list[Point]] = {}
        self._counts: dict[str, int] = {}

    def note(self, name: str, at: Micros, node: str) -> None:
        """Takes one down, if it is worth keeping."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if count & (count - 1):
            return
        kept = self._kept.setdefault(name, [])
        kept.append(Point(name, at, node))
        if len(kept) > KEPT:
            del kept[1]

    def kept(self) -> tuple[Point, ...]:
        """All that were kept, by name and instant; what was before zero cannot be aimed at."""
        return tuple(p for points in self._kept.values() for p in points if p.at_us >= 0)
