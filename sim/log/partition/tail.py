"""The newest batches of a log as objects, so that readers at the tail parse nothing.

Bounded in bytes; evicted batches are read from the file. Kafka has no such cache: the page cache
plays that part.
"""

from bisect import bisect_left

from sim.ids import Offset
from sim.units import Bytes
from sim.wire.record_batch import RecordBatch

_COMPACT_AFTER = 256


class Tail:
    """Consecutive batches up to the log end."""

    __slots__ = ("_batches", "_bytes", "_ends", "_head", "_least", "_limit", "first_offset")

    def __init__(self, first_offset: Offset, limit: Bytes, least: int) -> None:
        """Begins empty at the log end; keeps ``limit`` bytes, and ``least`` batches always."""
        self._batches: list[RecordBatch | None] = []
        self._ends: list[Offset] = []
        self._head = 0
        self._bytes: Bytes = 0
        self._limit = limit
        self._least = least
        self.first_offset = first_offset
        """Offset of the first record it holds."""

    def add(self, batch: RecordBatch) -> None:
        """Appends the next batch."""
        self._batches.append(batch)
        self._ends.append(batch.last_offset)
        self._bytes += batch.size_bytes
        if self._bytes > self._limit:
            self._shrink()

    def read(self, start: Offset, end: Offset, max_bytes: Bytes) -> tuple[RecordBatch, ...]:
        """Batches from the one that holds ``start``, while their last offset is below ``end``.

        ``start`` is not below :attr:`first_offset`. The first batch is given however large it is.
        """
        ends = self._ends
        batches = self._batches
        at = len(ends) - 1
        if at < self._head or ends[at] < start:
            return ()
        if at > self._head and ends[at - 1] >= start:
            at = bisect_left(ends, start, self._head)
        found: list[RecordBatch] = []
        for i in range(at, len(ends)):
            batch = batches[i]
            if batch is None or ends[i] >= end:
                break
            max_bytes -= batch.size_bytes
            if max_bytes < 0 and found:
                break
            found.append(batch)
        return tuple(found)

    def bytes_between(self, start: Offset, end: Offset, enough: Bytes) -> Bytes:
        """Bytes of the batches that :meth:`read` would give; stops counting at ``enough``."""
        ends = self._ends
        total = 0
        for i in range(len(ends) - 1, self._head - 1, -1):
            last = ends[i]
            if last < start or total >= enough:
                break
            batch = self._batches[i]
            if batch is not None and last < end:
                total += batch.size_bytes
        return total

    def truncate_to(self, offset: Offset) -> None:
        """Drops the batch that holds the offset and all later ones; the offset is the log end."""
        while len(self._ends) > self._head and self._ends[-1] >= offset:
            self._ends.pop()
            batch = self._batches.pop()
            self._bytes -= batch.size_bytes if batch is not None else 0
        if len(self._ends) == self._head:
            self._batches.clear()
            self._ends.clear()
            self._head = 0
            self._bytes = 0
            self.first_offset = offset

    def forget_below(self, offset: Offset) -> None:
        """Evicts the batches that begin below the offset, which are read from files now."""
        batches = self._batches
        head = self._head
        while head < len(batches):
            batch = batches[head]
            assert batch is not None, "only batches before the head are evicted"
            if batch.base_offset >= offset:
                break
            self._bytes -= batch.size_bytes
            self.first_offset = batch.last_offset + 1
            batches[head] = None
            head += 1
        self._head = head
        self.first_offset = max(self.first_offset, offset)

    def _shrink(self) -> None:
        batches = self._batches
        head = self._head
        while self._bytes > self._limit and len(batches) - head > self._least:
            batch = batches[head]
            assert batch is not None, "only batches before the head are evicted"
            self._bytes -= batch.size_bytes
            self.first_offset = batch.last_offset + 1
            batches[head] = None
            head += 1
        if head > _COMPACT_AFTER:
            del batches[:head], self._ends[:head]
            head = 0
        self._head = head
