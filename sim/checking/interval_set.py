"""Sets of whole numbers as sorted, disjoint, half-open ranges.

Records of a batch are a range, and acknowledged batches mostly follow each other, so a set of
millions of records is a few ranges. Source: the coalescing interval set of any textbook.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

Range = tuple[int, int]
"""``(start, stop)``, ``stop`` exclusive and above ``start``."""


class IntervalSet:
    """A set of whole numbers; memory is two numbers for each gap in it."""

    __slots__ = ("_starts", "_stops")

    def __init__(self, ranges: Iterable[Range] = ()) -> None:
        self._starts: list[int] = []
        self._stops: list[int] = []
        for start, stop in ranges:
            self.add(start, stop)

    def __iter__(self) -> Iterator[Range]:
        return zip(self._starts, self._stops, strict=True)

    def __len__(self) -> int:
        """Number of elements, not of ranges."""
        return sum(self._stops) - sum(self._starts)

    @property
    def stop(self) -> int:
        """Least upper bound, exclusive; 0 for an empty set."""
        return self._stops[-1] if self._stops else 0

    def add(self, start: int, stop: int) -> None:
        """Adds the numbers of [start, stop); an empty range changes nothing."""
        if start >= stop:
            return
        starts, stops = self._starts, self._stops
        if not stops or start > stops[-1]:
            starts.append(start)
            stops.append(stop)
            return
        if start == stops[-1]:
            stops[-1] = stop
            return
        low = bisect_left(stops, start)
        high = bisect_right(starts, stop)
        if low < high:
            start = min(start, starts[low])
            stop = max(stop, stops[high - 1])
        starts[low:high] = [start]
        stops[low:high] = [stop]

    def cut(self, end: int) -> None:
        """Drops the numbers from ``end`` on."""
        keep = bisect_left(self._starts, end)
        del self._starts[keep:]
        del self._stops[keep:]
        if keep and self._stops[-1] > end:
            self._stops[-1] = end

    def within(self, start: int, stop: int) -> list[Range]:
        """The ranges of the set that lie in [start, stop), cut to it."""
        found = []
        for place in range(bisect_right(self._stops, start), len(self._starts)):
            if self._starts[place] >= stop:
                break
            found.append((max(start, self._starts[place]), min(stop, self._stops[place])))
        return found

    def missing(self, start: int, stop: int) -> list[Range]:
        """The ranges of [start, stop) that are not in the set."""
        found = []
        for held_start, held_stop in self.within(start, stop):
            if held_start > start:
                found.append((start, held_start))
            start = held_stop
        if start < stop:
            found.append((start, stop))
        return found

    def minus(self, other: "IntervalSet") -> list[Range]:
        """The ranges of this set that are not in the other one."""
        return [gap for start, stop in self for gap in other.missing(start, stop)]

    def union(self, *others: "IntervalSet") -> "IntervalSet":
        """Union, as a new set."""
        ranges = sorted(each for intervals in (self, *others) for each in intervals)
        return IntervalSet(ranges)


def size(ranges: Iterable[Range]) -> int:
    """Number of elements of disjoint ranges."""
    return sum(stop - start for start, stop in ranges)
