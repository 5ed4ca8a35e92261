"""A log's settings from its topic's configs, and the jitter drawn for its segments.

Source: ``LogConfig.fromProps``, ``LogConfig.maxSegmentMs``, ``LogConfig.randomSegmentJitter``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from sim.log.config import NO_LIMIT, LogConfig, RecordRules
from sim.rng import Streams
from sim.units import SECOND, Micros
from sim.wire.compression import Codec

_NUMBERS: Final[Mapping[str, str]] = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.index.bytes": "segment_index_bytes",
    "segment.jitter.ms": "segment_jitter_ms",
    "index.interval.bytes": "index_interval_bytes",
    "flush.messages": "flush_messages",
    "flush.ms": "flush_ms",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
    "retention.ms": "retention_ms",
    "retention.bytes": "retention_bytes",
    "local.retention.ms": "local_retention_ms",
    "local.retention.bytes": "local_retention_bytes",
    "file.delete.delay.ms": "file_delete_delay_ms",
    "delete.retention.ms": "delete_retention_ms",
    "min.compaction.lag.ms": "min_compaction_lag_ms",
    "max.compaction.lag.ms": "max_compaction_lag_ms",
}


@dataclass(frozen=True, slots=True)
class ProducerUpkeep:
    """Settings of logs' producer state."""

    expiration_ms: int = 24 * 3_600_000
    """``producer.id.expiration.ms``."""
    check_us: Micros = 600 * SECOND
    """``producer.id.expiration.check.interval.ms``."""
    leave_with_records: bool = False
    """True if a producer is removed with its last record, as until 2.4."""
    markers_renew: bool = True
    """True if the marker at the end of a transaction counts as activity, as since 2.5."""


_TODAY: Final = ProducerUpkeep()

_TOPIC_CODECS: Final[Mapping[str, Codec]] = {
    "uncompressed": "none", "gzip": "gzip", "snappy": "snappy", "lz4": "lz4", "zstd": "zstd",
}  # fmt: skip


def log_config(
    configs: Mapping[str, str],
    producers: ProducerUpkeep = _TODAY,
    *,
    by_last_offset: bool = False,
) -> LogConfig:
    """Settings of a log, from those configs of its topic and its broker that a log has."""
    chosen: dict[str, int] = {
        ours: int(configs[name]) for name, ours in _NUMBERS.items() if name in configs
    }
    rules = record_rules(configs)
    if rules is not None and rules.append_time:
        chosen["message_timestamp_after_max_ms"] = NO_LIMIT
    policy = configs.get("cleanup.policy", "delete").split(",")
    given = LogConfig(
        **chosen,
        delete="delete" in policy,
        compact="compact" in policy,
        remote=configs.get("remote.storage.enable") == "true",
        rules=rules,
        producer_id_expiration_ms=producers.expiration_ms,
        producers_leave_with_records=producers.leave_with_records,
        markers_renew_producers=producers.markers_renew,
        by_last_offset=by_last_offset,
        min_cleanable_dirty_ratio=float(configs.get("min.cleanable.dirty.ratio", "0.5")),
    )
    if given.compact and given.max_compaction_lag_ms < given.segment_ms:
        # A segment that never rolled would never be compacted.
        return replace(given, segment_ms=given.max_compaction_lag_ms)
    return given


def record_rules(configs: Mapping[str, str]) -> RecordRules | None:
    """Validation rules of a topic's records; ``None`` for the defaults."""
    compression = configs.get("compression.type", "producer")
    codec = None if compression == "producer" else _TOPIC_CODECS[compression]
    before = int(configs.get("message.timestamp.before.max.ms", NO_LIMIT))
    level = configs.get(f"compression.{codec}.level")
    rules = RecordRules(
        compacted="compact" in configs.get("cleanup.policy", "").split(","),
        append_time=configs.get("message.timestamp.type") == "LogAppendTime",
        before_max_ms=None if before == NO_LIMIT else before,
        codec=codec,
        level=None if level is None else int(level),
    )
    return None if rules == RecordRules(level=rules.level) else rules


def jitter_from(streams: Streams, name: str) -> Callable[[LogConfig], int]:
    """Draws the jitter by which a segment rolls before ``segment.ms``, from the named stream."""

    def draw(config: LogConfig) -> int:
        limit = min(config.segment_jitter_ms, config.segment_ms)
        return int(streams.named(name).unit() * limit) if limit > 0 else 0

    return draw
