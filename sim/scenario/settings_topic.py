"""Kafka's topic settings (4.1) and the broker settings from which they are inherited.

Source: ``org.apache.kafka.common.config.TopicConfig``, ``ServerTopicConfigSynonyms``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings_types import INT_MAX, LONG_MAX, Setting, absent

BROKER_SYNONYMS: Final[Mapping[str, str]] = {
    "flush.messages": "log.flush.interval.messages",
    "index.interval.bytes": "log.index.interval.bytes",
    "max.message.bytes": "message.max.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "segment.bytes": "log.segment.bytes",
    "segment.index.bytes": "log.index.size.max.bytes",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Topic setting and the broker setting that stands in for it; ``segment.ms`` is in hours there."""

TOPIC_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("flush.messages", "int", LONG_MAX, low=1),
    Setting("index.interval.bytes", "int", 4_096, low=0, high=INT_MAX),
    Setting("max.message.bytes", "int", 1_048_588, low=0, high=INT_MAX),
    Setting("min.insync.replicas", "int", 1, low=1, high=INT_MAX),
    Setting("segment.bytes", "int", 1_073_741_824, low=1_048_576, high=INT_MAX),
    Setting("segment.index.bytes", "int", 10_485_760, low=4, high=INT_MAX),
    Setting("segment.ms", "int", 604_800_000, low=1),
    Setting("unclean.leader.election.enable", "boolean", False),  # noqa: FBT003 - its default
    *absent(
        "logs are neither compacted nor deleted by age or size",
        ("cleanup.policy", "string", "delete"),
        ("delete.retention.ms", "int", 86_400_000),
        ("file.delete.delay.ms", "int", 60_000),
        ("max.compaction.lag.ms", "int", LONG_MAX),
        ("min.compaction.lag.ms", "int", 0),
        ("min.cleanable.dirty.ratio", "double", 0.5),
        ("retention.bytes", "int", -1),
        ("retention.ms", "int", 604_800_000),
    ),
    *absent(
        "there is no tiered storage",
        ("local.retention.bytes", "int", -2),
        ("local.retention.ms", "int", -2),
        ("remote.storage.enable", "boolean", False),
        ("remote.log.copy.disable", "boolean", False),
        ("remote.log.delete.on.disable", "boolean", False),
    ),
    *absent(
        "there are no quotas",
        ("follower.replication.throttled.replicas", "list", ""),
        ("leader.replication.throttled.replicas", "list", ""),
    ),
    *absent("batches are not compressed", ("compression.type", "string", "producer")),
    *absent("flushes by time are not modelled", ("flush.ms", "int", LONG_MAX)),
    *absent(
        "records keep the time of their creation, which is never refused",
        ("message.timestamp.type", "string", "CreateTime"),
        ("message.timestamp.before.max.ms", "int", LONG_MAX),
        ("message.timestamp.after.max.ms", "int", 3_600_000),
    ),
    *absent("files hold exactly what was written", ("preallocate", "boolean", False)),
    *absent("segments roll without jitter", ("segment.jitter.ms", "int", 0)),
)
"""Every topic setting."""
