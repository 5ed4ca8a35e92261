"""Real time as the calendar of faults uses it: instants since the scenario's zero."""

import heapq
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from typing import Final

from sim.units import MS, SECOND, Micros

_LOOK_US: Final[Micros] = 20 * MS


class Clock:
    """The machine's clock, and calls that are due at instants of it."""

    def __init__(self) -> None:
        self.zero_us: Micros = 0
        """The scenario's zero, in microseconds since 1970."""
        self._calls: list[tuple[Micros, int, Callable[..., object], tuple[object, ...]]] = []
        self._numbers = count()

    def now(self) -> Micros:
        """Microseconds since the zero."""
        return time.time_ns() // 1_000 - self.zero_us

    def begin_in(self, delay: Micros) -> None:
        """Sets the zero to so long from now."""
        self.zero_us = time.time_ns() // 1_000 + delay

    def date(self) -> str:
        """The zero as a date, in UTC."""
        return datetime.fromtimestamp(self.zero_us // 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def call_at(self, at: Micros, fn: Callable[..., object], *args: object) -> None:
        """Runs ``fn(*args)`` at the instant, or as soon after it as :meth:`advance` can."""
        heapq.heappush(self._calls, (at, next(self._numbers), fn, args))

    def call_in(self, delay: Micros, fn: Callable[..., object], *args: object) -> None:
        """Runs ``fn(*args)`` after the delay."""
        self.call_at(self.now() + delay, fn, *args)

    def advance(self, until: Micros, look: Callable[[], bool]) -> None:
        """Makes the calls that are due up to the instant, and waits for it.

        Args:
            until: The instant.
            look: Called often, between calls; when it returns true, the wait ends.
        """
        while not look():
            now = self.now()
            if self._calls and self._calls[0][0] <= min(now, until):
                _, _, fn, args = heapq.heappop(self._calls)
                fn(*args)
                continue
            if now >= until:
                return
            due = min(until, self._calls[0][0] if self._calls else until)
            time.sleep(min(max(due - now, 0), _LOOK_US) / SECOND)
