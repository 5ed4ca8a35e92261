"""Distributions of produce latency over time: a histogram for each bin of intended instants.

Bins are 0.1 s wide; where a run is so long that there would be too many, two become one. Only
buckets that hold something are kept.
"""

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.checking.outcomes.histogram import BUCKETS, Histogram, buckets
from sim.units import MS, Micros

WIDTH: Final[Micros] = 100 * MS
"""Width of a bin of a run of up to :data:`BINS_MAX` of them."""

BINS_MAX: Final = 2_048
_PENDING_MAX: Final = 4_096

_DENSE_MAX: Final = 64 * BUCKETS
"""Keys up to here are counted by a table, in a third of the time that sorting them takes."""


class LatencyBins:
    """Counts of acknowledged records by intended instant and latency."""

    def __init__(self, bins_max: int = BINS_MAX) -> None:
        self.width_us: Micros = WIDTH
        self._bins_max = bins_max
        self._counts: dict[int, dict[int, int]] = {}
        self._largest: dict[int, Micros] = {}
        self._pending: list[tuple[Micros, NDArray[np.int32]]] = []

    def add(self, at_us: Micros, latencies: NDArray[np.int32]) -> None:
        """Adds records acknowledged at an instant; the sequence is kept for a while."""
        self._pending.append((at_us, latencies))
        if len(self._pending) >= _PENDING_MAX:
            self._count()

    def histogram(self, holds: Callable[[Micros, Micros], bool]) -> Histogram:
        """All bins of which the function says that they count, by their beginning and end."""
        self._count()
        found = Histogram()
        for place in sorted(self._counts):
            begin = place * self.width_us
            if holds(begin, begin + self.width_us):
                found.add_counted(self._counts[place], self._largest[place])
        return found

    def _count(self) -> None:
        if not self._pending:
            return
        lengths = [len(values) for _, values in self._pending]
        took = np.concatenate([values for _, values in self._pending]).astype(np.int64)
        meant = np.repeat(np.array([at for at, _ in self._pending], np.int64), lengths) - took
        self._pending.clear()
        if not took.size:
            return
        np.maximum(took, 0, out=took)
        places = meant // self.width_us
        first = int(places.min())
        places -= first
        for key, count in _counted(places * BUCKETS + buckets(took)):
            place, bucket = divmod(key, BUCKETS)
            known = self._counts.setdefault(first + place, {})
            known[bucket] = known.get(bucket, 0) + count
        for place, largest in _maxima(places, took):
            self._largest[first + place] = max(self._largest.get(first + place, 0), largest)
        while len(self._counts) > self._bins_max:
            self._widen()

    def _widen(self) -> None:
        self.width_us *= 2
        counts, largest = self._counts, self._largest
        self._counts, self._largest = {}, {}
        for place in sorted(counts):
            known = self._counts.setdefault(place // 2, {})
            for bucket, count in counts[place].items():
                known[bucket] = known.get(bucket, 0) + count
            self._largest[place // 2] = max(self._largest.get(place // 2, 0), largest[place])


def _counted(keys: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each of the keys, none negative, and how often it is there; in their order."""
    if int(keys.max()) < _DENSE_MAX:
        table = np.bincount(keys)
        found = np.flatnonzero(table)
        counts = table[found]
    else:
        found, counts = np.unique(keys, return_counts=True)
    return zip(found.tolist(), counts.tolist(), strict=True)


def _maxima(places: NDArray[np.int64], values: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Each place and the largest of its values, none of which is negative; in their order."""
    if int(places.max()) * BUCKETS < _DENSE_MAX:
        for place in np.flatnonzero(np.bincount(places)).tolist():
            yield place, int(values.max(where=places == place, initial=0))
        return
    order = np.lexsort((values, places))
    last = np.flatnonzero(np.append(places[order][1:] != places[order][:-1], True))
    yield from zip(places[order][last].tolist(), values[order][last].tolist(), strict=True)
