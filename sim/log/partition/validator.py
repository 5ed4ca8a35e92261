"""Validates a client's records beyond size and checksum, and converts batches.

Only topics whose settings require it pay: a topic at Kafka's defaults has no rules. Left out:
conversion of old message formats, and checks of what only a faulty client would send.

Source: ``LogValidator``, ``UnifiedLog.append``; KIP-32, KIP-937 for the bounds of timestamps.
"""

from typing import Protocol

from sim.error_codes import ErrorCode
from sim.log.config import RecordRules
from sim.units import Bytes
from sim.wire.compression import CODECS, Codec
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch
from sim.wire.rewrite import recompressed, with_append_time


class Limits(Protocol):
    """Limits of sizes and timestamps in a log's settings."""

    @property
    def max_message_bytes(self) -> Bytes:
        """``max.message.bytes``."""

    @property
    def segment_bytes(self) -> Bytes:
        """``segment.bytes``."""

    @property
    def message_timestamp_after_max_ms(self) -> int:
        """``message.timestamp.after.max.ms``."""


def unwanted(batch: RecordBatch, config: Limits, now_ms: int) -> ErrorCode | None:
    """Error of a batch that any log would reject; ``None`` without one.

    Source: ``UnifiedLog.analyzeAndValidateRecords``, ``LogValidator``.
    """
    size = batch.size_bytes
    if size > config.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if size > config.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    if not batch.valid():
        return ErrorCode.CORRUPT_MESSAGE
    if batch.max_timestamp_ms - now_ms > config.message_timestamp_after_max_ms:
        return ErrorCode.INVALID_TIMESTAMP
    return None


def validated(batch: RecordBatch, rules: RecordRules, now_ms: int) -> RecordBatch | ErrorCode:
    """The batch as the leader will write it, except for its offset, or its error.

    One bad record rejects the whole batch; a bad timestamp is reported before a missing key.

    Args:
        batch: As it came; its checksum is right.
        rules: Of its topic.
        now_ms: The leader's clock.
    """
    try:
        if rules.before_max_ms is not None and not rules.append_time:
            earliest = now_ms - rules.before_max_ms
            if any(record.timestamp_ms < earliest for record in batch.records()):
                return ErrorCode.INVALID_TIMESTAMP
        if rules.compacted and any(record.key is None for record in batch.records()):
            return ErrorCode.INVALID_RECORD
        if rules.codec is not None and must_recompress(batch, rules.codec):
            batch = recompressed(batch, rules.codec, rules.level)
    except MalformedBytes:
        return ErrorCode.CORRUPT_MESSAGE
    return with_append_time(batch, now_ms) if rules.append_time else batch


def fitted(
    batch: RecordBatch, limits: Limits, rules: RecordRules, now_ms: int
) -> RecordBatch | ErrorCode:
    """The same, with the size checked again, as another codec may have changed it."""
    found = validated(batch, rules, now_ms)
    if isinstance(found, ErrorCode):
        return found
    if found.size_bytes > limits.max_message_bytes:
        return ErrorCode.MESSAGE_TOO_LARGE
    if found.size_bytes > limits.segment_bytes:
        return ErrorCode.RECORD_LIST_TOO_LARGE
    return found


def must_recompress(batch: RecordBatch, codec: Codec) -> bool:
    """True if the topic requires another codec; plain control records are left as they are."""
    number = batch.attributes & 7
    return number != CODECS.index(codec) and not (batch.is_control and number == 0)
