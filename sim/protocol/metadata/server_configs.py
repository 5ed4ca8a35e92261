"""Settings of servers in the metadata: the cluster's default, one broker's own, and its file's.

A topic without a value of its own has the broker's, under another name.

Source: ``DynamicBrokerConfig``, ``ServerTopicConfigSynonyms``; KIP-226.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sim.ids import NodeId

TOPIC_NAMES: Final[Mapping[str, str]] = {
    "compression.gzip.level": "compression.gzip.level",
    "compression.lz4.level": "compression.lz4.level",
    "compression.type": "compression.type",
    "compression.zstd.level": "compression.zstd.level",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.cleanable.ratio": "min.cleanable.dirty.ratio",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.index.interval.bytes": "index.interval.bytes",
    "log.index.size.max.bytes": "segment.index.bytes",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "log.roll.jitter.ms": "segment.jitter.ms",
    "log.roll.ms": "segment.ms",
    "log.segment.bytes": "segment.bytes",
    "log.segment.delete.delay.ms": "file.delete.delay.ms",
    "message.max.bytes": "max.message.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
    "unclean.recovery.strategy": "unclean.recovery.strategy",
}
"""Topics' names of the broker settings that they inherit and that can change at any time."""


@dataclass(frozen=True, slots=True)
class ServerFile:
    """Settings of one server's file that may be changed while it runs, by the broker's names."""

    node: NodeId = -1
    settings: Mapping[str, str] = field(default_factory=dict)

    def of(self, node: NodeId) -> "ServerFile":
        """The same of one server."""
        return ServerFile(node, self.settings) if self.settings else NO_FILE


NO_FILE: Final = ServerFile()
"""Of a server none of whose settings change."""


def effective(
    file: ServerFile, cluster: Mapping[str, str], brokers: Mapping[NodeId, Mapping[str, str]]
) -> dict[str, str]:
    """A server's settings by the broker's names: its own before the cluster's and its file's.

    Source: the order of precedence in ``DynamicBrokerConfig``.
    """
    return {**file.settings, **cluster, **brokers.get(file.node, {})}


def of_topics(settings: Mapping[str, str]) -> dict[str, str]:
    """The same by the topics' names."""
    return {TOPIC_NAMES.get(name, name): value for name, value in settings.items()}
