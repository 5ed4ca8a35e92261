"""Settings of connectors: ``connectors[].config``, without those of their tasks' clients.

A worker's settings and a connector's are together, for every connector has workers of its own.

Source: Kafka 4.1 ``connect.runtime.{WorkerConfig,SourceConnectorConfig,ConnectorConfig}``,
``connect.runtime.distributed.DistributedConfig``; KIP-618.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.overlay import NO_BOUND, Overlay, absent, modelled, narrowed
from sim.scenario.settings.resolved import SettingValue

WORKERS: Final = "connect-cluster"
"""``group.id`` of the workers, with which transactional ids begin."""

CONNECT_SETTINGS: Final[tuple[Overlay, ...]] = (
    *narrowed(
        NO_BOUND,
        "offset.flush.interval.ms",
        "offset.flush.timeout.ms",
        low=1,
    ),
    *narrowed(
        "workers are not moved to it step by step",
        "exactly.once.source.support",
        choices=("disabled", "enabled"),
    ),
    *modelled(
        "exactly.once.support",
    ),
    *narrowed(
        "no connector draws its own boundaries",
        "transaction.boundary",
        choices=("poll", "interval"),
    ),
    *narrowed(
        "the validator is code: null, or at least 1",
        "transaction.boundary.interval.ms",
        low=1,
    ),
    *absent(
        "a connector's tasks are told by tasks, and each is a process of its own that stays where "
        "it is",
        "tasks.max",
        "scheduled.rebalance.max.delay.ms",
        "connect.protocol",
    ),
    Overlay(
        "group.id",
        absent="every connector has workers of its own",
        because="Kafka must be given it",
        default=WORKERS,
    ),
    *absent(
        "positions of a source are kept as offsets of a group",
        "offset.storage.topic",
        "offset.storage.partitions",
        "offset.storage.replication.factor",
        "offsets.storage.topic",
    ),
    *absent(
        "no record is bad",
        "errors.tolerance",
        "errors.retry.timeout",
        "errors.retry.delay.max.ms",
        "errors.deadletterqueue.topic.name",
    ),
)
"""Every setting of a connector that is known."""

SINK_CONSUMER: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
"""Settings that Connect gives the consumer of a sink task (``Worker.baseConsumerConfigs``)."""

EXACTLY_ONCE_SOURCE: Final[Mapping[str, SettingValue]] = {"enable.idempotence": True}
"""Settings that a source task with transactions has instead of Connect's usual settings
(``Worker.exactlyOnceSourceTaskProducerConfigs``)."""
