"""Load surges: for a while, time passes several times as fast for producers' applications.

Arrivals are generated in the application's time; a surge compresses a piece of it into a shorter
piece of true time. Random draws are the same as without it, so the records before a surge do not
change.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.units import Micros


class Surge(NamedTuple):
    """From ``from_us`` until ``until_us``, the workload's rate is multiplied by ``factor``."""

    from_us: Micros
    until_us: Micros
    factor: int


class SurgingTime:
    """Maps the application's time to true time; both are the same until the first surge.

    Args:
        surges: In the order of time, without overlap.
    """

    def __init__(self, surges: Sequence[Surge]) -> None:
        # Pieces in which the application's time passes `factor` times as fast as the true one.
        self._true: list[Micros] = [0]
        self._own: list[Micros] = [0]
        self._factors: list[int] = [1]
        for surge in surges:
            assert surge.from_us >= self._true[-1], "surges overlap"
            self._piece(surge.from_us, surge.factor)
            self._piece(surge.until_us, 1)

    def own(self, at: Micros) -> Micros:
        """Application's time at a true instant."""
        piece = int(np.searchsorted(self._true, at, side="right")) - 1
        if piece < 0:
            return at
        return self._own[piece] + (at - self._true[piece]) * self._factors[piece]

    def true(self, blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Maps instants of the application's time to true ones; both in whole microseconds."""
        own, starts, factors = (
            np.array(column, dtype=np.int64) for column in (self._own, self._true, self._factors)
        )
        for block in blocks:
            piece = np.maximum(np.searchsorted(own, block, side="right") - 1, 0)
            yield starts[piece] + (block - own[piece]) // factors[piece]

    def _piece(self, at: Micros, factor: int) -> None:
        own = self.own(at)
        self._true.append(at)
        self._own.append(own)
        self._factors.append(factor)
