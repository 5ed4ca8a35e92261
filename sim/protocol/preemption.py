"""Preemption of a thread in the middle of a step, for historic behaviours that were races.

A decision takes no time, so no other event can come between its halves. Where Kafka let one come
between them, the historic behaviour decides the first half, emits :class:`Preempt`, and decides the
rest on :class:`Resumed`, with the state at that time. Today's behaviour has one half.

The rest of a step must not rely on the first half: leaderships, sessions and transactions may have
ended.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from sim.units import Micros


class Preempt(NamedTuple):
    """Effect: preempts the deciding thread in favour of others.

    The process chooses the duration; ``token`` comes back as :class:`Resumed`.
    """

    token: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """Event: a preempted thread resumes."""

    token: int


E = TypeVar("E")
"""The effects of a machine, :class:`Preempt` among them."""

Rest: TypeAlias = Callable[[Micros, list[E]], None]
"""The rest of a step, called with the instant and the list of its effects."""


class Threads(Generic[E]):
    """Preempted threads of one machine."""

    def __init__(self) -> None:
        self._rests: dict[int, Rest[E]] = {}
        self._tokens = 0

    def interrupt(self, rest: Rest[E]) -> Preempt:
        """Does the rest of a step later, after events that come meanwhile."""
        self._tokens += 1
        self._rests[self._tokens] = rest
        return Preempt(self._tokens)

    def resumed(self, token: int, now: Micros, out: list[E]) -> None:
        """Does the rest of a step."""
        self._rests.pop(token)(now, out)
