"""The offset index and the time index of a segment: sparse, sorted, fixed-size entries.

Entries are written through the page cache as they come and found again by bisection in the file, so
that an index takes no memory. Preallocation and memory mapping are absent: a file holds exactly its
entries, as Kafka leaves it after a roll or a clean close.

Source: ``OffsetIndex``, ``TimeIndex``.
"""

import struct
from typing import NamedTuple

from sim.ids import Offset
from sim.log.store.stored_file import StoredFile
from sim.units import Bytes

OFFSET_ENTRY = struct.Struct(">ii")
"""Relative last offset of a batch, byte position of the batch."""

TIME_ENTRY = struct.Struct(">qi")
"""Largest timestamp so far, relative last offset of the batch that reached it."""

NO_TIMESTAMP = -1
"""Largest timestamp of a segment without records."""


class Place(NamedTuple):
    """A batch's byte position, known by its last offset."""

    offset: Offset
    position: Bytes


class OffsetIndex:
    """Maps last offsets to byte positions."""

    __slots__ = ("_base", "_limit", "file")

    def __init__(self, file: StoredFile, base_offset: Offset, max_bytes: Bytes) -> None:
        self.file = file
        self._base = base_offset
        self._limit = max_bytes // OFFSET_ENTRY.size * OFFSET_ENTRY.size

    @property
    def full(self) -> bool:
        """True if the segment must roll before its next append."""
        return self.file.size >= self._limit

    def append(self, last_offset: Offset, position: Bytes) -> None:
        """Adds an entry; both numbers grow from entry to entry."""
        self.file.append(OFFSET_ENTRY.pack(last_offset - self._base, position))

    def lookup(self, offset: Offset) -> Place:
        """The last entry not above the offset; the segment's start if there is none."""
        count = self._entries_up_to(offset)
        return Place(self._base, 0) if count == 0 else self._entry(count - 1)

    def last(self) -> Place | None:
        """The last entry."""
        count = self.file.size // OFFSET_ENTRY.size
        return self._entry(count - 1) if count else None

    def truncate_to(self, offset: Offset) -> None:
        """Keeps entries below the offset."""
        self.file.truncate(self._entries_up_to(offset - 1) * OFFSET_ENTRY.size)

    def _entries_up_to(self, offset: Offset) -> int:
        low, high = 0, self.file.size // OFFSET_ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle).offset <= offset:
                low = middle + 1
            else:
                high = middle
        return low

    def _entry(self, number: int) -> Place:
        raw = self.file.read(number * OFFSET_ENTRY.size, OFFSET_ENTRY.size)
        relative, position = OFFSET_ENTRY.unpack(raw)
        return Place(self._base + relative, position)


class Reached(NamedTuple):
    """The largest timestamp so far, and the last offset of the first batch that reached it."""

    timestamp_ms: int
    offset: Offset


class TimeIndex:
    """Maps largest timestamps to offsets. Timestamps grow strictly."""

    __slots__ = ("_base", "_limit", "file", "last_timestamp_ms")

    def __init__(self, file: StoredFile, base_offset: Offset, max_bytes: Bytes) -> None:
        self.file = file
        self._base = base_offset
        # One entry is kept free for the one that is added at a roll.
        self._limit = (max_bytes // TIME_ENTRY.size - 1) * TIME_ENTRY.size
        last = self.last()
        self.last_timestamp_ms = NO_TIMESTAMP if last is None else last.timestamp_ms

    @property
    def full(self) -> bool:
        """True if the segment must roll before its next append."""
        return self.file.size >= self._limit

    def maybe_append(self, timestamp_ms: int, offset: Offset) -> None:
        """Adds an entry if its timestamp is larger than the last one's."""
        if timestamp_ms > self.last_timestamp_ms:
            self.file.append(TIME_ENTRY.pack(timestamp_ms, offset - self._base))
            self.last_timestamp_ms = timestamp_ms

    def last(self) -> Reached | None:
        """The last entry."""
        count = self.file.size // TIME_ENTRY.size
        return self._entry(count - 1) if count else None

    def truncate_to(self, offset: Offset) -> None:
        """Keeps entries whose offset is below the given one."""
        low, high = 0, self.file.size // TIME_ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if self._entry(middle).offset < offset:
                low = middle + 1
            else:
                high = middle
        self.file.truncate(low * TIME_ENTRY.size)
        last = self.last()
        self.last_timestamp_ms = NO_TIMESTAMP if last is None else last.timestamp_ms

    def _entry(self, number: int) -> Reached:
        raw = self.file.read(number * TIME_ENTRY.size, TIME_ENTRY.size)
        timestamp, relative = TIME_ENTRY.unpack(raw)
        return Reached(timestamp, self._base + relative)
