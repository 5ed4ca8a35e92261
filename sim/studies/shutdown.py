"""Time of a broker's controlled shutdown before Kafka 1.1, and since.

The cluster of Jun Rao, "Apache Kafka Supports 200K Partitions Per Cluster" (2018): five brokers,
five ZooKeeper servers, topics of one partition with two replicas. The controller moved one
partition after the other: it read and wrote each state and waited for both, and sent each one's
requests to brokers separately; and each election wrote the states of all partitions to its log, so
that the time grew with the square of the cluster. Costs are :class:`FailoverCosts`, as for
fail-overs.

Source: KAFKA-5642 (1.1), KAFKA-6116; ``kafka.controller.KafkaController.shutdownBroker`` (0.10).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from sim.studies.failover import (
    PUBLISHED,
    ClusterShape,
    ControlPlane,
    Event,
    FailoverCosts,
    measure,
)

SIZE: Final = 25_000
"""Partitions of the published cluster."""


@dataclass(frozen=True, slots=True)
class ShutdownRow:
    """One line of the study's table."""

    partitions: int
    replicas_moved: int
    """Replicas on the broker that stops: led ones and followers."""
    controller: str
    """The controller's way of working."""
    seconds: float
    """From the broker's ControlledShutdown request until it is granted."""
    published_seconds: float
    """The same in the article; 0 for a size that is not in it."""


_WAYS: Final = (
    ("one by one, every state logged with each", 1, True, 390.0),
    ("one by one", 1, False, 30.0),
    ("together (1.1)", 10, False, 3.0),
)


def shape_of(partitions: int) -> ClusterShape:
    """The published cluster with so many partitions."""
    return ClusterShape(partitions, brokers=5, replication=2, partitions_per_topic=1, zookeepers=5)


def table(
    sizes: tuple[int, ...] = (SIZE,), costs: FailoverCosts = PUBLISHED
) -> Iterator[ShutdownRow]:
    """All rows: for each size the oldest version first."""
    for size in sizes:
        for name, in_flight, logs, published in _WAYS:
            shape = replace(shape_of(size), in_flight=in_flight, logs_every_state=logs)
            found = measure(shape, ControlPlane.ZOOKEEPER, Event.CONTROLLED_SHUTDOWN, costs)
            yield ShutdownRow(
                size, found.replicas_moved, name, found.seconds, published if size == SIZE else 0.0
            )
