"""First pass of a cleaning: the latest offset of every key in the dirty part of a log.

The map is bounded as Kafka's is, by bytes of 24 for each key. When it is full, the pass ends with
the last batch that it holds whole, and only so far is the log cleaned. Keys are kept themselves,
not their MD5 sums, so that two keys are never taken for one.

Source: ``SkimpyOffsetMap``, ``Cleaner.buildOffsetMap``.
"""

from collections.abc import Iterator

from sim.errors import CorruptRecord
from sim.ids import Offset
from sim.log.cleaning.cleaned_transactions import CleanedTransactions, aborted_between
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment
from sim.units import Bytes
from sim.wire.record_batch import RecordBatch

ENTRY_BYTES: Bytes = 24
"""Size of a key in Kafka's map: its MD5 sum and an offset."""


class OffsetMap:
    """Keys with their latest offsets, up to ``latest_offset``."""

    __slots__ = ("_capacity", "_offsets", "latest_offset", "read_bytes")

    def __init__(self, capacity: int) -> None:
        """Begins empty; never holds more than ``capacity`` keys."""
        self._capacity = capacity
        self._offsets: dict[bytes, Offset] = {}
        self.latest_offset: Offset = -1
        """Every key up to here is in the map."""
        self.read_bytes: Bytes = 0
        """Bytes of batches that were read for it."""

    def __len__(self) -> int:
        return len(self._offsets)

    def put(self, key: bytes, offset: Offset) -> bool:
        """Maps the key to the offset; returns False if the map is full."""
        if len(self._offsets) >= self._capacity:
            return False
        self._offsets[key] = offset
        return True

    def get(self, key: bytes) -> Offset:
        """Latest offset of the key in what was read; -1 if it was not seen there."""
        return self._offsets.get(key, -1)

    def take_in(self, batch: RecordBatch, start: Offset, transactions: CleanedTransactions) -> bool:
        """Adds the keys of a batch; returns False if the map is full."""
        self.read_bytes += batch.size_bytes
        if batch.is_control:
            transactions.marker_read(batch)
        elif not transactions.data_read(batch):
            for record in batch.records():
                noted = record.key is None or record.offset < start
                if not noted and not self.put(record.key or b"", record.offset):
                    return False
        if batch.last_offset >= start:
            self.latest_offset = max(self.latest_offset, batch.last_offset)
        return True


def capacity_of(buffer_bytes: Bytes, load_factor: float) -> int:
    """Capacity of one cleaner's map, in keys."""
    return int(buffer_bytes // ENTRY_BYTES * load_factor)


def build_offset_map(log: PartitionLog, start: Offset, end: Offset, capacity: int) -> OffsetMap:
    """Reads the dirty part of a log, [start, end), as far as the map can hold its keys.

    Raises:
        DiskFailed: If the disk has failed.
        CorruptRecord: If a checksum is wrong, or an offset is not its segment's; stricter than
            Kafka, which does not check, and fails when it splits the segment that it has written.
        MalformedBytes: If a header or a record cannot be read.
    """
    found = OffsetMap(capacity)
    transactions = CleanedTransactions()
    transactions.add(aborted_between(log, start, end))
    dirty = segments_between(log, start, end)
    for number, segment in enumerate(dirty):
        position = segment.index.lookup(start).position
        following = dirty[number + 1].base_offset if number + 1 < len(dirty) else end
        for batch in checked_batches(log, segment, position):
            if batch.last_offset >= following:
                message = f"{log.partition}: offset {batch.last_offset} is not below {following}"
                raise CorruptRecord(message)
            if not found.take_in(batch, start, transactions):
                return found
        # Offsets may be missing at the end of a segment: they are mapped, too.
        found.latest_offset = max(found.latest_offset, following - 1)
    return found


def segments_between(log: PartitionLog, start: Offset, end: Offset) -> list[Segment]:
    """The segment that would hold ``start`` and those behind it that begin below ``end``.

    Source: ``LogSegments.values``.
    """
    segments = log.segments
    if start >= end:
        return []
    first = 0
    for number, segment in enumerate(segments):
        if segment.base_offset > start:
            break
        first = number
    return [segment for segment in segments[first:] if segment.base_offset < end]


def checked_batches(
    log: PartitionLog, segment: Segment, position: Bytes = 0
) -> Iterator[RecordBatch]:
    """A segment's batches from a batch's position on; none of them is damaged.

    Raises:
        DiskFailed: If the disk has failed.
        CorruptRecord: If a checksum is wrong.
        MalformedBytes: If a header cannot be read.
    """
    for at, batch in segment.batches(position):
        if not batch.valid():
            raise CorruptRecord(f"{log.partition}: bad checksum at {batch.base_offset}, byte {at}")
        yield batch
