"""Wake-up delays of waiting threads, by the operating system and the JVM.

Drawn in blocks ahead of time, as every request needs one.
"""

import numpy as np

from sim.rng import VectorStream
from sim.substrate.distributions import Spread, quantile_table
from sim.units import Micros

_AHEAD = 4_096
"""Draws per block."""


class Wakeups:
    """Delays of one host's threads, bound to a stream of chance.

    Args:
        spread: Of a delay.
        stream: Of the host.
    """

    __slots__ = ("_ahead", "_stream", "_table")

    def __init__(self, spread: Spread, stream: VectorStream) -> None:
        self._table = np.array(quantile_table(spread), dtype=np.int64)
        self._stream = stream
        self._ahead: list[Micros] = []

    def draw(self) -> Micros:
        """The next delay in microseconds."""
        if not self._ahead:
            cells = (self._stream.units(_AHEAD) * len(self._table)).astype(np.int64)
            self._ahead = self._table[cells].tolist()
        return self._ahead.pop()
