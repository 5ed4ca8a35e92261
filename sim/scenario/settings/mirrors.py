"""Settings of mirrors: ``mirrors[].config``, without those of a mirror's two clients.

Source: Kafka 4.1 ``connect.mirror.{MirrorConnectorConfig,MirrorSourceConfig,
MirrorCheckpointConfig,DefaultReplicationPolicy}``, Connect's ``WorkerConfig``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX, LONG_MAX, Setting, absent

MIRROR_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("source.cluster.alias", "string", "source"),
    Setting("replication.factor", "int", 2, low=1, high=1_000),
    Setting(
        "replication.policy.class",
        "string",
        "DefaultReplicationPolicy",
        choices=("DefaultReplicationPolicy", "IdentityReplicationPolicy"),
    ),
    Setting("replication.policy.separator", "string", "."),
    Setting("offset.lag.max", "int", 100, low=0, high=LONG_MAX),
    Setting("offset.flush.interval.ms", "int", 60_000, low=1, high=INT_MAX),
    Setting("emit.checkpoints.enabled", "boolean", default=True),
    Setting("emit.checkpoints.interval.seconds", "int", 60, low=1, high=INT_MAX),
    Setting("sync.group.offsets.enabled", "boolean", default=False),
    Setting("sync.group.offsets.interval.seconds", "int", 60, low=1, high=INT_MAX),
    *absent(
        "a mirror is one task, and knows its topics and groups from the beginning",
        ("tasks.max", "int", 1),
        ("target.cluster.alias", "string", "target"),
        ("refresh.topics.enabled", "boolean", True),
        ("refresh.topics.interval.seconds", "int", 600),
        ("refresh.groups.enabled", "boolean", True),
        ("refresh.groups.interval.seconds", "int", 600),
        ("consumer.poll.timeout.ms", "int", 1_000),
    ),
    *absent(
        "offsets of the mirror are a group's in the source cluster, outside of transactions",
        ("exactly.once.source.support", "string", "disabled"),
        ("offset.flush.timeout.ms", "int", 5_000),
    ),
    *absent(
        "syncs, checkpoints and heartbeats are in no topic",
        ("offset-syncs.topic.location", "string", "source"),
        ("offset-syncs.topic.replication.factor", "int", 3),
        ("checkpoints.topic.replication.factor", "int", 3),
        ("emit.heartbeats.enabled", "boolean", True),
        ("emit.heartbeats.interval.seconds", "int", 1),
    ),
    *absent(
        "settings of a topic are copied once, without those that Kafka leaves out by default",
        ("sync.topic.configs.enabled", "boolean", True),
        ("sync.topic.configs.interval.seconds", "int", 600),
    ),
)
"""Every setting of a mirror that is known."""

MIRROR_CONSUMER: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
"""What a mirror gives its consumer (``MirrorConnectorConfig.sourceConsumerConfig``)."""

MIRROR_PRODUCER: Final[Mapping[str, SettingValue]] = {
    "acks": "all",
    "delivery.timeout.ms": INT_MAX,
    "enable.idempotence": False,
    "max.block.ms": LONG_MAX,
    "max.in.flight.requests.per.connection": 1,
}
"""What Connect gives the producer of a task (``Worker.baseProducerConfigs``)."""

EXCLUDED_CONFIGS: Final = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "message.timestamp.type",
    "min.insync.replicas",
    "unclean.leader.election.enable",
)
"""Settings of a topic that are not copied (``DefaultConfigPropertyFilter``)."""
