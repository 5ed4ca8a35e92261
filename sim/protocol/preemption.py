"""A thread that is interrupted in the middle of a step, as historic rules have it that were races.

A decision takes no time, so no other event can come between its halves. Where Kafka let one come
between them, the historic rule decides the first half, asks for :class:`Preempt`, and decides the
rest on :class:`Resumed`, on what is so by then. The rule of today has one half, and asks for
nothing.

The rest of a step must stand on its own: leaderships, sessions and transactions may be over.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from sim.units import Micros


class Preempt(NamedTuple):
    """Effect: take the processor from the thread that decides, and give it to others.

    The host says for how long; ``token`` comes back as :class:`Resumed`.
    """

    token: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Event: an interrupted thread goes on."""

    token: int


E = TypeVar("E")
"""The effects of a machine, :class:`Preempt` among them."""

Rest: TypeAlias = Callable[[Micros, list[E]], None]
"""The other half of a step, given the instant and where its effects go."""


class Threads(Generic[E]):
    """The threads of one machine that were interrupted."""

    def __init__(self) -> None:
        self._rests: dict[int, Rest[E]] = {}
        self._tokens = 0

    def interrupt(self, rest: Rest[E]) -> Preempt:
        """Do the rest of a step later: what else happens meanwhile happens before it."""
        self._tokens += 1
        self._rests[self._tokens] = rest
        return Preempt(self._tokens)

    def resumed(self, token: int, now: Micros, out: list[E]) -> None:
        """Do the rest of a step."""
        self._rests.pop(token)(now, out)
