"""Retention of one batch in a cleaning: all of it, some records, an empty batch, or nothing.

Source: ``Cleaner.cleanInto``, ``Cleaner.shouldRetainRecord``, ``MemoryRecords.filterTo``;
KAFKA-8522 for delete horizons, KIP-98 for empty batches and markers; KAFKA-4545 for the horizon
of a whole segment, as before 3.1.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sim.ids import Offset, ProducerId
from sim.log.cleaning.cleaned_transactions import CleanedTransactions
from sim.log.cleaning.offset_map import OffsetMap
from sim.log.producers.snapshot import ProducerEntry
from sim.wire.compression import compress
from sim.wire.record_batch import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    NewRecord,
    Record,
    RecordBatch,
    assemble,
    encode_record,
)

NO_HORIZON = -1
"""Delete horizon of a batch whose tombstones no cleaner has seen yet."""

_NO_TIMESTAMP = -1


class Kept(NamedTuple):
    """Outcome for one batch."""

    batch: RecordBatch | None
    """``None`` if the whole batch is removed."""
    tombstones_removed: int


class BatchFilter:
    """The rules of one cleaning.

    Args:
        offsets: Latest offsets of the keys in the dirty part.
        transactions: Follows the transactions while batches are read in order.
        producers: The log's live producers; the last batch of each stays, if need be empty.
        round_end: First offset that this cleaning does not touch; a batch that ends there stays, if
            need be empty.
        now_ms: Wall clock of the cleaning.
        delete_retention_ms: ``delete.retention.ms``.
        segment_is_past: Whether tombstones of the segment may go; ``None``: each batch decides.
        tombstones_below: Offset from which on no tombstone may go; ``None``: there is none.
    """

    __slots__ = (
        "_delete_retention_ms",
        "_now_ms",
        "_offsets",
        "_producers",
        "_round_end",
        "_segment_is_past",
        "_tombstones_below",
        "_transactions",
    )

    def __init__(
        self,
        offsets: OffsetMap,
        transactions: CleanedTransactions,
        producers: dict[ProducerId, ProducerEntry],
        round_end: Offset,
        now_ms: int,
        delete_retention_ms: int,
        *,
        segment_is_past: bool | None = None,
        tombstones_below: Offset | None = None,
    ) -> None:
        self._offsets = offsets
        self._transactions = transactions
        self._producers = producers
        self._round_end = round_end
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms
        self._segment_is_past = segment_is_past
        self._tombstones_below = tombstones_below

    def keep(self, batch: RecordBatch) -> Kept:
        """The retained part of the batch. Batches come in the order of their offsets, each once.

        Raises:
            MalformedBytes: If a record cannot be read.
        """
        horizon = delete_horizon_ms(batch)
        is_past = horizon != NO_HORIZON and horizon <= self._now_ms
        by_batch = self._segment_is_past is None
        if self._segment_is_past is not None:
            is_past = self._segment_is_past
        needless_marker = False
        if batch.is_control:
            needless_marker = self._transactions.marker_read(batch)
            discard = needless_marker and is_past
        else:
            discard = self._transactions.data_read(batch)
        records = list(batch.records())
        kept = [
            record
            for record in records
            if not discard and (batch.is_control or self._stays(record, is_past=is_past))
        ]
        removed = _tombstones(records) - _tombstones(kept) if not batch.is_control else 0
        if not kept:
            return Kept(_empty(batch) if self._keeps_empty(batch) else None, removed)
        has_tombstone = any(record.value is None for record in kept)
        new_horizon = by_batch and (has_tombstone or needless_marker) and horizon == NO_HORIZON
        if len(kept) == len(records) and not new_horizon:
            return Kept(batch, 0)
        if new_horizon:
            horizon = self._now_ms + self._delete_retention_ms
        return Kept(_rebuilt(batch, kept, horizon), removed)

    def _stays(self, record: Record, *, is_past: bool) -> bool:
        if record.offset > self._offsets.latest_offset:
            return True
        if record.key is None or record.offset < self._offsets.get(record.key):
            return False
        if record.value is not None or not is_past:
            return True
        return self._tombstones_below is not None and record.offset >= self._tombstones_below

    def _keeps_empty(self, batch: RecordBatch) -> bool:
        if batch.last_offset + 1 == self._round_end:
            return True
        entry = self._producers.get(batch.producer_id) if batch.producer_id >= 0 else None
        if entry is None:
            return False
        if entry.batches:
            return batch.last_offset == entry.batches[-1].last_offset
        return batch.is_control and batch.producer_epoch == entry.epoch


def delete_horizon_ms(batch: RecordBatch) -> int:
    """Delete horizon of the batch's tombstones or marker; -1 if no cleaner has set it."""
    return batch.base_timestamp_ms if batch.attributes & DELETE_HORIZON else NO_HORIZON


def _tombstones(records: Sequence[Record]) -> int:
    return sum([record.value is None for record in records])


def _rebuilt(batch: RecordBatch, records: Sequence[Record], horizon_ms: int) -> RecordBatch:
    """The batch with fewer records; its offsets and sequences stay what they were."""
    has_horizon = horizon_ms != NO_HORIZON
    base_timestamp = horizon_ms if has_horizon else records[0].timestamp_ms
    body = b"".join(
        [
            encode_record(
                NewRecord(record.timestamp_ms, record.key, record.value, record.headers),
                record.timestamp_ms - base_timestamp,
                record.offset - batch.base_offset,
            )
            for record in records
        ]
    )
    largest = max([record.timestamp_ms for record in records])
    append_time = batch.attributes & LOG_APPEND_TIME != 0
    data = assemble(
        (compress(batch.codec, body),),
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes & ~DELETE_HORIZON | (DELETE_HORIZON if has_horizon else 0),
        last_offset_delta=batch.last_offset_delta,
        base_timestamp_ms=base_timestamp,
        max_timestamp_ms=batch.max_timestamp_ms if append_time else largest,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=len(records),
    )
    return RecordBatch(data, checked=True)


def _empty(batch: RecordBatch) -> RecordBatch:
    """The batch without records, which keeps its offsets and sequences."""
    data = assemble(
        (),
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=batch.attributes & (LOG_APPEND_TIME | TRANSACTIONAL | CONTROL),
        last_offset_delta=batch.last_offset_delta,
        base_timestamp_ms=_NO_TIMESTAMP,
        max_timestamp_ms=batch.max_timestamp_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=0,
    )
    return RecordBatch(data, producer_index=-1, first_record=-1, checked=True)
