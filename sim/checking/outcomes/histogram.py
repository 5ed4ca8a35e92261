"""Percentiles of millions of durations in fixed memory, with whole numbers only.

A value up to 255 us has a bucket of its own; above, each power of two is cut into 128 buckets, so a
bucket is at most 1/128 of its values wide and its middle is at most 0.4 % from any of them. The
largest value is kept exactly. Source: Tene's HdrHistogram.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.units import Micros

RELATIVE_ERROR: Final = 1 / 256
"""Relative error of every percentile but the largest value, which is exact."""

RANKS: Final[dict[str, tuple[int, int]]] = {
    "p50": (1, 2),
    "p90": (9, 10),
    "p99": (99, 100),
    "p999": (999, 1000),
}
"""Percentiles of a summary as fractions; the nearest rank is taken."""

_SUB_BITS: Final = 7

BUCKETS: Final = 64 << _SUB_BITS
"""Buckets of any histogram."""

_PENDING_MAX: Final = 8_192


class Histogram:
    """Counts of durations in microseconds; negative ones count as 0."""

    __slots__ = ("_counts", "_largest", "_pending", "_shifts")

    def __init__(self) -> None:
        self._counts: NDArray[np.int64] = np.zeros(BUCKETS, dtype=np.int64)
        self._largest: Micros = 0
        self._pending: list[NDArray[np.int32]] = []
        self._shifts: list[int] = []

    def add(self, values: NDArray[np.int32], shift: Micros = 0) -> None:
        """Counts every value plus ``shift``; the sequence is kept for a while and not copied."""
        self._pending.append(values)
        self._shifts.append(shift)
        if len(self._pending) >= _PENDING_MAX:
            self._count()

    def add_counted(self, counts: Mapping[int, int], largest: Micros) -> None:
        """Adds what was counted elsewhere: values by :func:`buckets`, and the largest of them."""
        for bucket, count in counts.items():
            self._counts[bucket] += count
        self._largest = max(self._largest, largest)

    def summary(self) -> dict[str, int]:
        """``p50 p90 p99 p999 max`` in microseconds, and ``records``; empty if nothing was added."""
        self._count()
        total = int(self._counts.sum())
        if total == 0:
            return {}
        up_to = np.cumsum(self._counts)
        found = {}
        for name, (above, below) in RANKS.items():
            rank = -(-total * above // below)
            bucket = int(np.searchsorted(up_to, rank))
            found[name] = min(_middle(bucket), self._largest)
        return {**found, "max": self._largest, "records": total}

    def counted(self) -> tuple[list[Micros], list[int]]:
        """Middles of the buckets that are not empty, in order, and their counts.

        No middle is above the largest value, so the last one is exact.
        """
        self._count()
        places = [int(place) for place in np.flatnonzero(self._counts)]
        values = [min(_middle(place), self._largest) for place in places]
        if values:
            values[-1] = self._largest
        return values, [int(self._counts[place]) for place in places]

    def _count(self) -> None:
        if not self._pending:
            return
        lengths = [len(values) for values in self._pending]
        values = np.concatenate(self._pending).astype(np.int64)
        values += np.repeat(np.array(self._shifts, dtype=np.int64), lengths)
        self._pending.clear()
        self._shifts.clear()
        if not values.size:
            return
        np.maximum(values, 0, out=values)
        self._largest = max(self._largest, int(values.max()))
        counted = np.bincount(buckets(values))
        self._counts[: counted.size] += counted


def buckets(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """The bucket of each value; none is negative."""
    # frexp gives the bit length exactly: a double holds every value below 2**53.
    bits = np.frexp(values.astype(np.float64))[1].astype(np.int64)
    exponent = np.maximum(bits - _SUB_BITS - 1, 0)
    return (exponent << _SUB_BITS) + (values >> exponent)


def _middle(bucket: int) -> Micros:
    exponent = max((bucket >> _SUB_BITS) - 1, 0)
    low = (bucket - (exponent << _SUB_BITS)) << exponent
    return low + ((1 << exponent) - 1) // 2
