"""Client-side assignors by name, and the coordinator partition of a group.

Source: ``org.apache.kafka.clients.consumer.RoundRobinAssignor``;
``GroupCoordinatorService.partitionFor``.
"""

from collections.abc import Mapping
from itertools import cycle

from sim.ids import TopicPartition
from sim.protocol.assignors.range import range_assignment
from sim.protocol.assignors.sticky import cooperative_sticky_assignment, sticky_assignment
from sim.protocol.assignors.subscription import (
    Assignments,
    Assignor,
    Subscriptions,
    Topics,
    as_assignments,
    member_key,
    subscribed_topics,
)
from sim.protocol.java.hash import java_string_hash

__all__ = [
    "ASSIGNORS",
    "COOPERATIVE",
    "Assignments",
    "Assignor",
    "cooperative_sticky_assignment",
    "java_string_hash",
    "partition_for_group",
    "range_assignment",
    "roundrobin_assignment",
    "sticky_assignment",
]


def roundrobin_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Assigns all partitions in order of topic and number to the members in a circle.

    A member that does not subscribe to the topic at hand is passed over.

    Source: ``RoundRobinAssignor``.
    """
    members = sorted(subscriptions, key=lambda member: member_key(member, subscriptions[member]))
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    circle = cycle(members)
    for topic in subscribed_topics(subscriptions, topics):
        for number in range(len(topics[topic])):
            # Some member subscribes to the topic, or it would not be here.
            member = next(member for member in circle if topic in subscriptions[member].topics)
            shares[member].append(TopicPartition(topic, number))
    return as_assignments(shares)


ASSIGNORS: Mapping[str, Assignor] = {
    "range": range_assignment,
    "roundrobin": roundrobin_assignment,
    "sticky": sticky_assignment,
    "cooperative-sticky": cooperative_sticky_assignment,
}
"""Assignors by their names in ``partition.assignment.strategy``."""

COOPERATIVE = ("cooperative-sticky",)
"""Assignors that let members keep partitions that do not move (KIP-429)."""


def partition_for_group(group: str, partition_count: int = 50) -> int:
    """Partition of ``__consumer_offsets`` whose leader coordinates the group.

    Source: ``Utils.abs(groupId.hashCode()) % numPartitions``; abs of the smallest int is 0.
    """
    value = abs(java_string_hash(group))
    return (0 if value == 1 << 31 else value) % partition_count
