"""What of a machine's files is in memory: one page cache above all its log directories.

Dirty pages are in memory by definition and are not listed. What has reached the platter, or has
been read from it, is clean: it is kept by extents of 1 MiB, and the extent that was used longest
ago goes first when dirty and clean pages together exceed the memory. A read that misses brings the
whole extent in, as readahead does for a reader that goes on.

Simplified: an extent that is written back counts as used at that moment; index files and whole-file
checkpoints take no memory; two readers of an extent that is on its way both find it there.

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
"""Memory for file pages when nobody says how much; a modelling choice."""

_FILES_APART = 1 << 32


class ColdRead(NamedTuple):
    """What a read did not find in memory."""

    bytes: Bytes
    runs: int
    """Places on the disk to go to."""
    first: int
    """Where the first of them begins; see :meth:`PageCache.read`."""
    last: int
    """Where the disk's head is afterwards, in the same terms."""


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
        """Bytes that had to make room so far."""
        self.pending: dict[TopicPartition, ColdRead] = {}
        """Reads of logs that found less than they wanted, until somebody pays for them."""
        self._stores: list[Dirty] = []
        self._extents: OrderedDict[int, tuple[Bytes, Bytes]] = OrderedDict()
        self._files = 0

    def add(self, store: Dirty) -> None:
        """A log directory's dirty pages lie in this memory, too."""
        self._stores.append(store)

    def new_file(self) -> int:
        """A number for a file that begins to exist."""
        self._files += 1
        return self._files

    def written_back(self, file: int, start: Bytes, end: Bytes) -> None:
        """Dirty bytes of a file have become clean ones."""
        position = start
        while position < end:
            stop = min(position - position % EXTENT + EXTENT, end)
            key = file * _FILES_APART + position // EXTENT
            low, high = self._extents.pop(key, (position, position))
            self.clean_bytes -= high - low
            self._put(key, low if high == position else position, stop)
            position = stop
        self._make_room()

    def read(self, file: int, start: Bytes, end: Bytes, clean: Bytes) -> ColdRead | None:
        """Somebody reads [start, end); returns what has to come from the disk, ``None`` if nothing.

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
        self._make_room()
        return ColdRead(missed, runs, first, after)

    def missed(self, partition: TopicPartition, read: ColdRead) -> None:
        """A read of a partition's log has to be paid for."""
        before = self.pending.get(partition)
        self.pending[partition] = read if before is None else together(before, read)

    def forget(self, file: int, size: Bytes, start: Bytes = 0) -> None:
        """A file that had ``size`` clean bytes was cut at ``start``, or is gone."""
        for key in self._keys(file, start, size):
            found = self._extents.pop(key, None)
            if found is None:
                continue
            self.clean_bytes -= found[1] - found[0]
            if found[0] < start:
                self._put(key, found[0], min(found[1], start))

    def drop(self) -> None:
        """Power is lost: nothing is in memory."""
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

    def _make_room(self) -> None:
        room = self.memory - sum([store.dirty_bytes for store in self._stores])
        while self.clean_bytes > room and self._extents:
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
    """Two reads as one, the other after the one."""
    runs = one.runs + other.runs - (one.last == other.first)
    return ColdRead(one.bytes + other.bytes, runs, one.first, other.last)
