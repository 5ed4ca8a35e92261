"""Rewrites a batch under its checksum, as a leader does: the codec, and the time of its append.

Source: ``LogValidator.buildRecordsAndAssignOffsets``, ``DefaultRecordBatch.setMaxTimestamp``.
"""

from sim.wire.compression import CODECS, Codec, compress, decompress
from sim.wire.record_batch import (
    COMPRESSION,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    RecordBatch,
    assemble,
)


def recompressed(batch: RecordBatch, codec: Codec, level: int | None = None) -> RecordBatch:
    """The same records under another codec; the size changes, and so does the checksum.

    Offsets and timestamps stay what they are, so the records' own bytes do too.

    Raises:
        MalformedBytes: If the records cannot be decompressed.
    """
    body = decompress(batch.codec, batch.data[HEADER_BYTES:])
    attributes = batch.attributes & ~COMPRESSION | CODECS.index(codec)
    return _with(batch, compress(codec, body, level), attributes, batch.max_timestamp_ms)


def with_append_time(batch: RecordBatch, now_ms: int) -> RecordBatch:
    """The batch with the leader's time for every record; what the client wrote stays below it."""
    return _with(batch, batch.data[HEADER_BYTES:], batch.attributes | LOG_APPEND_TIME, now_ms)


def _with(batch: RecordBatch, body: bytes, attributes: int, max_timestamp_ms: int) -> RecordBatch:
    data = assemble(
        (body,),
        base_offset=batch.base_offset,
        leader_epoch=batch.leader_epoch,
        attributes=attributes,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp_ms=batch.base_timestamp_ms,
        max_timestamp_ms=max_timestamp_ms,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.record_count,
    )
    return RecordBatch(
        data,
        producer_index=batch.producer_index,
        first_record=batch.first_record,
        checked=True,
    )
