"""Kafka Streams' settings (4.1), as far as they concern one task that reads, processes and writes.

Settings of its clients are beside them as ``consumer.…`` and ``producer.…``, which is how Streams
names them.

Source: ``org.apache.kafka.streams.StreamsConfig``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.overlay import Overlay, absent, modelled
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX

EXACTLY_ONCE: Final = "exactly_once_v2"

STREAMS_SETTINGS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "processing.guarantee",
        "commit.interval.ms",
    ),
    *absent(
        "a task has one thread, and its name is the application's",
        "application.id",
        "num.stream.threads",
        "group.protocol",
    ),
    *absent(
        "tasks have no state",
        "num.standby.replicas",
        "state.dir",
        "statestore.cache.max.bytes",
        "replication.factor",
        "topology.optimization",
    ),
    *absent(
        "records are taken as they come, and an error gives the round up",
        "max.task.idle.ms",
        "buffered.records.per.partition",
        "task.timeout.ms",
        "poll.ms",
    ),
)
"""Every Streams setting that is known."""

EXACTLY_ONCE_COMMIT_INTERVAL_MS: Final = 100
"""``commit.interval.ms`` where nothing else is given and each commit is a transaction."""

CONSUMER_DEFAULTS: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "max.poll.records": 1_000,
}
"""``CONSUMER_DEFAULT_OVERRIDES``; commits are the task's own."""

PRODUCER_DEFAULTS: Final[Mapping[str, SettingValue]] = {"linger.ms": 100}
"""``PRODUCER_DEFAULT_OVERRIDES``."""

EXACTLY_ONCE_CONSUMER: Final[Mapping[str, SettingValue]] = {"isolation.level": "read_committed"}
"""``CONSUMER_EOS_OVERRIDES``; no other value goes with it."""

EXACTLY_ONCE_PRODUCER: Final[Mapping[str, SettingValue]] = {
    "delivery.timeout.ms": INT_MAX,
    "transaction.timeout.ms": 10_000,
}
"""``PRODUCER_EOS_OVERRIDES``, idempotence aside, which is the default in any case."""
