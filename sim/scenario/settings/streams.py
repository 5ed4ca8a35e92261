"""Kafka Streams' settings, as far as they concern one task that reads, processes and writes.

Settings of its clients are beside them as ``consumer.…`` and ``producer.…``, which is how Streams
names them.

Source: ``org.apache.kafka.streams.StreamsConfig``.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.behaviours.versions import is_since
from sim.scenario.settings.overlay import Overlay, absent, modelled
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX

AT_LEAST_ONCE: Final = "at_least_once"
"""The guarantee that is not one of the exact ones, whose names changed (KIP-447, KIP-732)."""

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
        "consumer.partition.assignment.strategy: range is eager, as a value up to 2.3 would be; "
        "later ones are for joins",
        "upgrade.from",
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

_CONSUMER: Final[Mapping[str, SettingValue]] = {
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "max.poll.records": 1_000,
}

EXACTLY_ONCE_CONSUMER: Final[Mapping[str, SettingValue]] = {"isolation.level": "read_committed"}
"""``CONSUMER_EOS_OVERRIDES``; no other value goes with it."""


def consumer_defaults(version: str) -> dict[str, SettingValue]:
    """``CONSUMER_DEFAULT_OVERRIDES`` of a version; commits are the task's own.

    Before 2.0 a task might take any time between two polls.
    """
    patience = {} if is_since(version, "2.0") else {"max.poll.interval.ms": INT_MAX}
    return {**_CONSUMER, **patience}


def producer_defaults(version: str, *, exactly_once: bool) -> dict[str, SettingValue]:
    """``PRODUCER_DEFAULT_OVERRIDES`` of a version, and its ``PRODUCER_EOS_OVERRIDES``."""
    found: dict[str, SettingValue] = {"linger.ms": 100}
    timed = is_since(version, "2.1")
    if not timed:
        found["retries"] = INT_MAX if exactly_once else 10
    if not exactly_once:
        return found
    if timed:
        found["delivery.timeout.ms"] = INT_MAX
    if is_since(version, "2.6"):
        found["transaction.timeout.ms"] = 10_000
    if not is_since(version, "3.0"):
        found["enable.idempotence"] = True  # the default since then
    if not is_since(version, "2.0"):
        found["max.in.flight.requests.per.connection"] = 1
    return found
