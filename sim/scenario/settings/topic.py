"""Kafka's topic settings (4.1) and the broker settings from which they are inherited.

Source: ``org.apache.kafka.common.config.TopicConfig``, ``ServerTopicConfigSynonyms``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.types import (
    INT_MAX,
    LONG_MAX,
    TIMESTAMP_TYPES,
    TOPIC_CODECS,
    Setting,
    absent,
    codec_levels,
)

BROKER_SYNONYMS: Final[Mapping[str, str]] = {
    "cleanup.policy": "log.cleanup.policy",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
    "file.delete.delay.ms": "log.segment.delete.delay.ms",
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "flush.messages": "log.flush.interval.messages",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "max.message.bytes": "message.max.bytes",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "message.timestamp.after.max.ms": "log.message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms": "log.message.timestamp.before.max.ms",
    "message.timestamp.type": "log.message.timestamp.type",
    "min.insync.replicas": "min.insync.replicas",
    "retention.bytes": "log.retention.bytes",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Topic setting and the broker setting that stands in for it, in the same unit."""

BROKER_DURATIONS: Final[Mapping[str, tuple[tuple[str, int], ...]]] = {
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", 60_000),
        ("log.retention.hours", 3_600_000),
    ),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", 3_600_000)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", 3_600_000)),
}
"""Topic settings for which a broker has several: the first that is given counts; in milliseconds.

Source: ``AbstractKafkaConfig``: ``logFlushIntervalMs``, ``logRetentionTimeMillis``, and so on.
"""

TOPIC_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("cleanup.policy", "list", "delete", choices=("compact", "delete")),
    Setting("delete.retention.ms", "int", 86_400_000, low=0),
    Setting("file.delete.delay.ms", "int", 60_000, low=0),
    *codec_levels(),
    Setting("compression.type", "string", "producer", choices=TOPIC_CODECS),
    Setting("flush.messages", "int", LONG_MAX, low=1),
    Setting("flush.ms", "int", LONG_MAX, low=0),
    Setting("index.interval.bytes", "int", 4_096, low=0, high=INT_MAX),
    Setting("max.compaction.lag.ms", "int", LONG_MAX, low=1),
    Setting("max.message.bytes", "int", 1_048_588, low=0, high=INT_MAX),
    Setting("min.cleanable.dirty.ratio", "double", 0.5, low=0, high=1),
    Setting("min.compaction.lag.ms", "int", 0, low=0),
    Setting("message.timestamp.after.max.ms", "int", 3_600_000, low=0),
    Setting("message.timestamp.before.max.ms", "int", LONG_MAX, low=0),
    Setting("message.timestamp.type", "string", "CreateTime", choices=TIMESTAMP_TYPES),
    Setting("min.insync.replicas", "int", 1, low=1, high=INT_MAX),
    Setting("retention.bytes", "int", -1, low=-1),
    Setting("retention.ms", "int", 604_800_000, low=-1),
    Setting("segment.bytes", "int", 1_073_741_824, low=1_048_576, high=INT_MAX),
    Setting("segment.index.bytes", "int", 10_485_760, low=4, high=INT_MAX),
    Setting("segment.jitter.ms", "int", 0, low=0),
    Setting("segment.ms", "int", 604_800_000, low=1),
    Setting("unclean.leader.election.enable", "boolean", False),  # noqa: FBT003 - its default
    *absent(
        "there is no tiered storage",
        ("local.retention.bytes", "int", -2),
        ("local.retention.ms", "int", -2),
        ("remote.storage.enable", "boolean", False),
        ("remote.log.copy.disable", "boolean", False),
        ("remote.log.delete.on.disable", "boolean", False),
    ),
    Setting("follower.replication.throttled.replicas", "list", ""),
    Setting("leader.replication.throttled.replicas", "list", ""),
    *absent("files hold exactly what was written", ("preallocate", "boolean", False)),
)
"""Every topic setting."""
