"""Settings of mirrors: ``mirrors[].config``, without those of a mirror's two clients.

Source: Kafka 4.1 ``connect.mirror.{MirrorConnectorConfig,MirrorSourceConfig,
MirrorCheckpointConfig,DefaultReplicationPolicy}``, Connect's ``WorkerConfig``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.versions import is_since
from sim.scenario.settings.facts import settings_of
from sim.scenario.settings.overlay import (
    NO_BOUND,
    NO_JAVA,
    Overlay,
    absent,
    has,
    modelled,
    narrowed,
)
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX, LONG_MAX

FIRST_VERSION: Final = "2.4"
"""The version that brought MirrorMaker 2 (KIP-382)."""

MIRROR_SETTINGS: Final[tuple[Overlay, ...]] = (
    Overlay("source.cluster.alias", because="Kafka must be given it", default="source"),
    *narrowed(
        "Kafka has no bound; a topic has at least one replica, and -1 is no number of them here",
        "replication.factor",
        low=1,
        high=1_000,
    ),
    *narrowed(
        NO_JAVA,
        "replication.policy.class",
        choices=("DefaultReplicationPolicy", "IdentityReplicationPolicy"),
    ),
    *modelled(
        "replication.policy.separator",
    ),
    *narrowed(
        NO_BOUND,
        "offset.lag.max",
        low=0,
    ),
    *narrowed(
        NO_BOUND,
        "offset.flush.interval.ms",
        low=1,
    ),
    *modelled(
        "emit.checkpoints.enabled",
    ),
    *narrowed(
        NO_BOUND,
        "emit.checkpoints.interval.seconds",
        low=1,
    ),
    *modelled(
        "sync.group.offsets.enabled",
    ),
    *narrowed(
        NO_BOUND,
        "sync.group.offsets.interval.seconds",
        low=1,
    ),
    *absent(
        "a mirror is one task, and knows its topics and groups from the beginning",
        "tasks.max",
        "target.cluster.alias",
        "refresh.topics.enabled",
        "refresh.topics.interval.seconds",
        "refresh.groups.enabled",
        "refresh.groups.interval.seconds",
        "consumer.poll.timeout.ms",
    ),
    *absent(
        "offsets of the mirror are a group's in the source cluster, outside of transactions",
        "exactly.once.source.support",
        "offset.flush.timeout.ms",
    ),
    *absent(
        "syncs, checkpoints and heartbeats are in no topic",
        "offset-syncs.topic.location",
        "offset-syncs.topic.replication.factor",
        "checkpoints.topic.replication.factor",
        "emit.heartbeats.enabled",
        "emit.heartbeats.interval.seconds",
    ),
    *absent(
        "settings of a topic are copied once, without those that Kafka leaves out by default",
        "sync.topic.configs.enabled",
        "sync.topic.configs.interval.seconds",
    ),
)
"""Every setting of a mirror that is known."""

MIRROR_CONSUMER: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
"""Settings that a mirror gives its consumer (``MirrorConnectorConfig.sourceConsumerConfig``)."""

MIRROR_PRODUCER: Final[Mapping[str, SettingValue]] = {
    "acks": "all",
    "delivery.timeout.ms": INT_MAX,
    "enable.idempotence": False,
    "max.block.ms": LONG_MAX,
    "max.in.flight.requests.per.connection": 1,
}
"""Settings that Connect gives the producer of a task (``Worker.baseProducerConfigs``)."""


def producers_of_workers(version: str) -> dict[str, SettingValue]:
    """Settings that Connect of a version gives the producer of a task.

    Before 3.0 a request had all the time there is, and before 2.1 (KIP-91) retries bounded it.
    """
    found = {
        name: value for name, value in MIRROR_PRODUCER.items() if has("producer", name, version)
    }
    if not is_since(version, "3.0"):
        found["request.timeout.ms"] = INT_MAX
    if not is_since(version, "2.1"):
        found["retries"] = INT_MAX
    return found


def excluded_configs() -> tuple[str, ...]:
    """Settings of a topic that are not copied: Kafka's default of ``config.properties.exclude``."""
    facts = settings_of("mirror property filter")["config.properties.exclude"].near()
    return tuple((facts.default or "").replace("\\", "").split(","))
