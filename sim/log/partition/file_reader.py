"""Reader of a log below its tail: whole batches from the files of its segments.

Source: ``LocalLog.read``, ``LogSegment.read``.
"""

from collections.abc import Callable

from sim.errors import CorruptRecord
from sim.ids import NO_OFFSET, Offset, TopicPartition
from sim.log.partition.segment import Segment
from sim.log.store.page_cache import PageCache
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch


class FileReader:
    """Reads batches of one log; a sequential reader is spared the index lookup.

    Args:
        partition: Whose log it is.
        cache: Counts reads that miss it.
        segments_from: Its segments from the one that holds an offset on.
    """

    __slots__ = ("_cache", "_hint", "_partition", "_segments_from")

    def __init__(
        self,
        partition: TopicPartition,
        cache: PageCache,
        segments_from: Callable[[Offset], list[Segment]],
    ) -> None:
        self._partition = partition
        self._cache = cache
        self._segments_from = segments_from
        self._hint: tuple[Offset, Segment, Bytes] | None = None

    def forget(self) -> None:
        """Drops the cached position: segments or positions have changed."""
        self._hint = None

    def read(self, start: Offset, end: Offset, max_bytes: Bytes) -> tuple[RecordBatch, ...]:
        """Whole batches from the one that holds ``start``, with last offsets below ``end``.

        Raises:
            DiskFailed: If the disk has failed.
            CorruptRecord: If a header on the platter is damaged beyond reading.
        """
        hint = self._hint
        found: list[RecordBatch] = []
        try:
            place = hint[1:] if hint is not None and hint[0] == start else self._locate(start)
            if place is None:
                return ()
            segment, position = place
            start_position = position
            for at, batch in segment.batches(position):
                if batch.last_offset >= end:
                    break
                max_bytes -= batch.size_bytes
                if max_bytes < 0 and found:
                    break
                found.append(batch)
                position = at + batch.size_bytes
        except MalformedBytes as error:
            raise CorruptRecord(f"{self._partition}: {error}") from error
        cold = segment.log.use(start_position, position)
        if cold is not None:
            self._cache.missed(self._partition, cold)
        if found and position < segment.size:
            self._hint = (found[-1].last_offset + 1, segment, position)
        return tuple(found)

    def offset_for_timestamp(self, timestamp_ms: int, start: Offset) -> Offset:
        """First offset from ``start`` on of a record at or after the timestamp; -1 for none.

        Raises:
            DiskFailed: If the disk has failed.
            CorruptRecord: If a header or a record on the way is damaged.

        Source: ``UnifiedLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``.
        """
        try:
            for segment in self._segments_from(start):
                if segment.largest_timestamp_ms() >= timestamp_ms:
                    for _, batch in segment.batches(0):
                        if batch.max_timestamp_ms >= timestamp_ms and batch.last_offset >= start:
                            for record in batch.records():
                                if record.timestamp_ms >= timestamp_ms and record.offset >= start:
                                    return record.offset
        except MalformedBytes as error:
            raise CorruptRecord(f"{self._partition}: {error}") from error
        return NO_OFFSET

    def _locate(self, offset: Offset) -> tuple[Segment, Bytes] | None:
        """Position of the batch that holds the offset, or of the next one."""
        for segment in self._segments_from(offset):
            found = segment.find(offset)
            if found is not None:
                return segment, found[0]
        return None
