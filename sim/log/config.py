"""Settings of one partition's log, with Kafka's defaults.

Source: ``TopicConfig`` and ``LogConfig`` of Kafka 4.x.
"""

from dataclasses import dataclass

from sim.units import MIB, Bytes
from sim.wire.compression import Codec

NO_LIMIT = (1 << 63) - 1
"""Kafka's value for never."""


@dataclass(frozen=True, slots=True)
class RecordRules:
    """A topic's rules for the records that its leaders take in."""

    compacted: bool = False
    """``cleanup.policy`` has ``compact``: every record needs a key."""
    append_time: bool = False
    """``message.timestamp.type`` is ``LogAppendTime``."""
    before_max_ms: int | None = None
    """``message.timestamp.before.max.ms``; ``None`` for no bound."""
    codec: Codec | None = None
    """``compression.type``; ``None`` for ``producer``, which leaves every batch as it is."""
    level: int | None = None
    """Of the codec; ``None`` for Kafka's default."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """Settings of one log. Index files are never preallocated: they hold exactly their entries."""

    segment_bytes: Bytes = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_index_bytes: Bytes = 10 * MIB
    index_interval_bytes: Bytes = 4096
    flush_messages: int = NO_LIMIT
    flush_ms: int = NO_LIMIT
    max_message_bytes: Bytes = 1_048_588
    message_timestamp_after_max_ms: int = 3_600_000
    """``NO_LIMIT`` too where the leader sets the time."""
    rules: RecordRules | None = None
    """Other rules for records that leaders enforce; ``None`` at Kafka's defaults."""
    producer_id_expiration_ms: int = 24 * 3_600_000
    """Time after a producer's last activity until its state expires."""
    producers_leave_with_records: bool = False
    """True if a producer is evicted with its last record, as until 2.4; not a setting."""
    markers_renew_producers: bool = True
    """True if the end of a transaction is activity of its producer; until 2.5 it was not."""
    delete: bool = True
    """True if ``cleanup.policy`` names ``delete``: old segments are deleted by age and size."""
    compact: bool = False
    """True if ``cleanup.policy`` names ``compact``: of each key the last record stays."""
    retention_ms: int = 7 * 24 * 3_600_000
    """-1: no limit."""
    retention_bytes: Bytes = -1
    """-1: no limit."""
    remote: bool = False
    """``remote.storage.enable``: closed segments are copied to an object store (KIP-405)."""
    local_retention_ms: int = -2
    """``local.retention.ms``; -2: as ``retention.ms``."""
    local_retention_bytes: Bytes = -2
    """``local.retention.bytes``; -2: as ``retention.bytes``."""
    segment_jitter_ms: int = 0
    """Upper bound of the random time by which each segment rolls earlier."""
    file_delete_delay_ms: int = 60_000
    """Time between renaming and unlinking a deleted segment's files."""
    delete_retention_ms: int = 24 * 3_600_000
    """Retention of a tombstone after the first cleaning that saw it."""
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = NO_LIMIT
    min_cleanable_dirty_ratio: float = 0.5
    by_last_offset: bool = False
    """True if batches are checked against the log end by their last offset alone, as compressed
    sets were before 0.11; not a setting. One that begins below the end repeats offsets of the log;
    readers, which also use last offsets, get them from the older batch."""
    tail_bytes: Bytes = 2 * MIB
    """Newest bytes kept as batches in memory for readers at the tail; no setting of Kafka's."""
    tail_batches: int = 16
    """Batches kept in any case."""

    @property
    def kept_here(self) -> tuple[int, Bytes]:
        """Time in ms and bytes for which segments stay in the local log; -1: no limit.

        Source: ``UnifiedLog.localRetentionMs``, ``localRetentionSize``.
        """
        if not self.remote:
            return self.retention_ms, self.retention_bytes
        time, size = self.local_retention_ms, self.local_retention_bytes
        return (
            self.retention_ms if time == -2 else time,
            self.retention_bytes if size == -2 else size,
        )


def no_jitter(_: LogConfig) -> int:
    """Default jitter by which a segment rolls earlier than ``segment.ms``."""
    return 0
