"""Page cache of a machine, above all its log directories.

Dirty pages are in memory by definition and are not listed. What has reached the platter, or has
been read from it, is clean: it is kept by extents of 1 MiB, and the extent that was used longest
ago goes first when dirty and clean pages together exceed the memory. A read that misses brings the
whole extent in, as readahead does for a sequential reader.

Simplified: an extent that is written back counts as used at that moment; index files and whole-file
checkpoints take no memory; a second reader of an extent that is being read finds it in memory.

Source: Linux ``mm/filemap.c``, ``mm/readahead.c``; our own granularity.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from sim.ids import TopicPartition
from sim.units import GIB, MIB, Bytes

EXTENT: Bytes = MIB
"""Unit in which files are kept in memory and read ahead."""

DEFAULT_MEMORY: Bytes = 8 * GIB
"""Default memory for file pages; a modelling choice."""

_FILES_APART = 1 << 32


class ColdRead(NamedTuple):
    """Part of a read that was not in memory."""

    bytes: Bytes
    runs: int
    """Seeks on the disk."""
    first: int
    """Start of the first of them; see :meth:`PageCache.read`."""
    last: int
    """Position of the disk's head afterwards, in the same terms."""


class Dirty(Protocol):
    """A store whose dirty pages take memory."""

    dirty_bytes: Bytes


class PageCache:
    """The clean file pages of one machine.

    Args:
        memory: Bytes for file pages, dirty ones included.
    """

    def __init__(self, memory: Bytes = DEFAULT_MEMORY) -> None:
        self.memory = memory
        self.clean_bytes: Bytes = 0
        """Bytes of the extents that are in memory."""
        self.evicted_bytes: Bytes = 0
        """Bytes evicted so far."""
        self.pending: dict[TopicPartition, ColdRead] = {}
        """Reads of logs that missed the cache and are not paid for yet."""
        self._stores: list[Dirty] = []
        self._extents: OrderedDict[int, tuple[Bytes, Bytes]] = OrderedDict()
        self._files = 0

    def add(self, store: Dirty) -> None:
        """Adds a log directory whose dirty pages take this memory, too."""
        self._stores.append(store)

    def new_file(self) -> int:
        """Number of a new file."""
        self._files += 1
        return self._files

    def written_back(self, file: int, start: Bytes, end: Bytes) -> None:
        """Adds bytes of a file that were written back."""
        position = start
        while position < end:
            stop = min(position - position % EXTENT + EXTENT, end)
            key = file * _FILES_APART + position // EXTENT
            low, high = self._extents.pop(key, (position, position))
            self.clean_bytes -= high - low
            self._put(key, low if high == position else position, stop)
            position = stop
        self._evict()

    def read(self, file: int, start: Bytes, end: Bytes, clean: Bytes) -> ColdRead | None:
        """Reads [start, end); returns what has to come from the disk, ``None`` if nothing.

        Args:
            file: The file's number.
            start: First byte.
            end: Byte after the last; not above ``clean``.
            clean: Bytes of the file that are not dirty, so that readahead may bring them.
        """
        missed = runs = 0
        first = after = -1
        for key in self._keys(file, start, end):
            low = key % _FILES_APART * EXTENT
            high = min(low + EXTENT, clean)
            found = self._extents.get(key)
            if found is not None and found[0] <= max(start, low) and found[1] >= min(end, high):
                self._extents.move_to_end(key)
                continue
            if found is not None:
                del self._extents[key]
                self.clean_bytes -= found[1] - found[0]
            self._put(key, low, high)
            missed += high - low
            runs += key != after
            first = key if first < 0 else first
            after = key + 1
        if not missed:
            return None
        self._evict()
        return ColdRead(missed, runs, first, after)

    def missed(self, partition: TopicPartition, read: ColdRead) -> None:
        """Adds a read of a partition's log that has to be paid for."""
        before = self.pending.get(partition)
        self.pending[partition] = read if before is None else together(before, read)

    def forget(self, file: int, size: Bytes, start: Bytes = 0) -> None:
        """Drops a file's pages between ``start`` and ``size``, after truncation or deletion."""
        for key in self._keys(file, start, size):
            found = self._extents.pop(key, None)
            if found is None:
                continue
            self.clean_bytes -= found[1] - found[0]
            if found[0] < start:
                self._put(key, found[0], min(found[1], start))

    def drop(self) -> None:
        """Drops everything, as a power loss does."""
        self._extents.clear()
        self.pending.clear()
        self.clean_bytes = 0

    def _keys(self, file: int, start: Bytes, end: Bytes) -> range:
        if start >= end:
            return range(0)
        base = file * _FILES_APART
        return range(base + start // EXTENT, base + (end - 1) // EXTENT + 1)

    def _put(self, key: int, low: Bytes, high: Bytes) -> None:
        self._extents[key] = (low, high)
        self.clean_bytes += high - low

    def _evict(self) -> None:
        limit = self.memory - sum([store.dirty_bytes for store in self._stores])
        while self.clean_bytes > limit and self._extents:
            _, (low, high) = self._extents.popitem(last=False)
            self.clean_bytes -= high - low
            self.evicted_bytes += high - low


def all_of(reads: Iterable[ColdRead | None]) -> ColdRead | None:
    """Reads one after the other as one; ``None`` if memory held all of it."""
    cold: ColdRead | None = None
    for read in reads:
        if read is not None:
            cold = read if cold is None else together(cold, read)
    return cold


def together(one: ColdRead, other: ColdRead) -> ColdRead:
    """Joins two reads, the second after the first."""
    runs = one.runs + other.runs - (one.last == other.first)
    return ColdRead(one.bytes + other.bytes, runs, one.first, other.last)
