"""Settings of connectors: ``connectors[].config``, without those of their tasks' clients.

A worker's settings and a connector's stand together, for every connector has workers of its own.

Source: Kafka 4.1 ``connect.runtime.{WorkerConfig,SourceConnectorConfig,ConnectorConfig}``,
``connect.runtime.distributed.DistributedConfig``; KIP-618.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX, LONG_MAX, Setting, absent

CONNECT_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("offset.flush.interval.ms", "int", 60_000, low=1, high=INT_MAX),
    Setting("offset.flush.timeout.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("exactly.once.source.support", "string", "disabled", choices=("disabled", "enabled")),
    Setting("exactly.once.support", "string", "requested", choices=("requested", "required")),
    Setting("transaction.boundary", "string", "poll", choices=("poll", "interval")),
    Setting("transaction.boundary.interval.ms", "int", None, low=1, high=LONG_MAX),
    *absent(
        "a connector's tasks are told by tasks, and each is a process of its own that stays where "
        "it is",
        ("tasks.max", "int", 1),
        ("group.id", "string", "connect-cluster"),
        ("scheduled.rebalance.max.delay.ms", "int", 300_000),
        ("connect.protocol", "string", "sessioned"),
    ),
    *absent(
        "positions of a source are kept as offsets of a group",
        ("offset.storage.topic", "string", None),
        ("offset.storage.partitions", "int", 25),
        ("offset.storage.replication.factor", "int", 3),
        ("offsets.storage.topic", "string", None),
    ),
    *absent(
        "no record is bad",
        ("errors.tolerance", "string", "none"),
        ("errors.retry.timeout", "int", 0),
        ("errors.retry.delay.max.ms", "int", 60_000),
        ("errors.deadletterqueue.topic.name", "string", ""),
    ),
)
"""Every setting of a connector that is known."""

SINK_CONSUMER: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
}
"""What Connect gives the consumer of a sink task (``Worker.baseConsumerConfigs``)."""

EXACTLY_ONCE_SOURCE: Final[Mapping[str, SettingValue]] = {"enable.idempotence": True}
"""What a source task with transactions has instead of Connect's usual settings
(``Worker.exactlyOnceSourceTaskProducerConfigs``)."""

WORKERS: Final = "connect-cluster"
"""``group.id`` of the workers, with which transactional ids begin."""
