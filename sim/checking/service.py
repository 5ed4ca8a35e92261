"""When partitions did not serve: the longest time without an acknowledgement, or a delivery.

The time of a partition's traffic begins when its first record was meant to be sent and ends with
the last acknowledgement, or when the last record was meant to be sent. A *produce gap* is a part
of it without any acknowledgement. A *fetch gap* is a part of it, or of the time up to the
last delivery if that is later, without any delivery to a consumer, on partitions that were read.
So a gap has the length of an outage plus the usual distance of batches, and a partition with rare
traffic has gaps that are no outage. A few numbers are kept for each partition.
"""

from typing import Final

from sim.checking.rows import ClientBatchRow, ReadRow
from sim.units import Micros

_UNSEEN: Final[Micros] = 1 << 62


class _Gaps:
    """The longest interval between consecutive instants."""

    __slots__ = ("first", "last", "longest", "longest_from")

    def __init__(self) -> None:
        self.first: Micros = _UNSEEN
        self.last: Micros = -_UNSEEN
        self.longest: Micros = -1
        self.longest_from: Micros = 0

    def served(self, at: Micros) -> None:
        """Something was served; instants never go back."""
        if self.first == _UNSEEN:
            self.first = at
        elif at - self.last > self.longest:
            self.longest = at - self.last
            self.longest_from = self.last
        self.last = at

    def within(self, start: Micros, end: Micros) -> tuple[Micros, Micros]:
        """Length and beginning of the longest one in [start, end]; the earliest of equal ones."""
        if self.first == _UNSEEN:
            return end - start, start
        found = [
            (self.first - start, start),
            (self.longest, self.longest_from),
            (end - self.last, self.last),
        ]
        return max(found, key=lambda gap: gap[0])


class PartitionService:
    """Gaps of one partition."""

    __slots__ = ("_acked", "_delivered", "_from", "_to")

    def __init__(self) -> None:
        self._acked = _Gaps()
        self._delivered = _Gaps()
        self._from: Micros = _UNSEEN
        self._to: Micros = -_UNSEEN

    def batch(self, row: ClientBatchRow) -> None:
        """A producer learned an outcome. Records join a batch in the order of their instants."""
        at, latencies = row[0], row[18]
        if row[13] == "ok":
            self._acked.served(at)
            self._to = max(self._to, at)
        if len(latencies):
            self._from = min(self._from, at - int(latencies[0]))
            self._to = max(self._to, at - int(latencies[-1]))

    def read(self, row: ReadRow) -> None:
        """A consumer got something."""
        self._delivered.served(row[0])

    def report(self) -> dict[str, int]:
        """``produce_us`` and ``fetch_us`` with ``…_from_us``; absent without traffic or readers."""
        found: dict[str, int] = {}
        if self._from == _UNSEEN:
            return found
        found["produce_us"], found["produce_from_us"] = self._acked.within(self._from, self._to)
        if self._delivered.first != _UNSEEN:
            end = max(self._to, self._delivered.last)
            found["fetch_us"], found["fetch_from_us"] = self._delivered.within(self._from, end)
        return found
