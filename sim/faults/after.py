"""Instants relative to another fault of the calendar, and their order."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from sim.units import Micros

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class After:
    """An instant, or a window, so long after another fault begins or ends."""

    name: str
    """The other fault's."""
    from_end: bool
    """True: after its duration is up; else after it begins."""
    low_us: Micros
    """Negative: before it."""
    high_us: Micros

    def window_us(self, lasts_us: Micros | None) -> tuple[Micros, Micros]:
        """First and last distance from the other fault's beginning, given its duration."""
        end = lasts_us or 0 if self.from_end else 0
        return end + self.low_us, end + self.high_us

    def later(self, by_us: Micros) -> "After":
        """The same, later."""
        return After(self.name, self.from_end, self.low_us + by_us, self.high_us + by_us)


class CycleError(ValueError):
    """Entries that wait for each other. ``args[0]``: their keys, each refers to the next."""


def in_order(references: Mapping[K, K | None]) -> tuple[K, ...]:
    """Keys so that each comes behind the one it refers to.

    Raises:
        CycleError: If there is no such order.
    """
    done: dict[K, None] = {}
    for key in references:
        chain: dict[K, None] = {}
        at: K | None = key
        while at is not None and at not in done:
            if at in chain:
                met = list(chain)
                raise CycleError(met[met.index(at) :])
            chain[at] = None
            at = references[at]
        done.update(dict.fromkeys(reversed(chain)))
    return tuple(done)
