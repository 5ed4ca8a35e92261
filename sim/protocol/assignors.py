"""Who of a group gets which partitions, and which partition of the offsets topic keeps the group.

Models the client-side assignors ``range`` and ``roundrobin`` exactly, and the coordinator's hash of
a group id. Left out: rack-aware range, ``sticky`` and ``cooperative-sticky``.

Source: ``org.apache.kafka.clients.consumer.{RangeAssignor,RoundRobinAssignor}``;
``GroupCoordinatorService.partitionFor``.
"""

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import TypeAlias

from sim.ids import TopicPartition

Subscriptions: TypeAlias = Mapping[str, tuple[str, ...]]
"""Topics by member id."""

Assignments: TypeAlias = dict[str, tuple[TopicPartition, ...]]
"""Partitions by member id, sorted; every member has an entry, an idle one an empty tuple."""

Assignor: TypeAlias = Callable[[Subscriptions, Mapping[str, int]], Assignments]
"""From the members' topics and the partition count of each topic to everyone's partitions."""


def range_assignment(
    subscriptions: Subscriptions, partition_counts: Mapping[str, int]
) -> Assignments:
    """Per topic, consecutive partitions to the topic's members in the order of their ids.

    With n partitions and m members each gets n // m, and the first n mod m get one more: small
    topics pile up on the first members. A topic without a known count is left out.

    Source: ``RangeAssignor``, without racks.
    """
    shares: dict[str, list[TopicPartition]] = {member: [] for member in sorted(subscriptions)}
    for topic in _topics(subscriptions, partition_counts):
        members = [member for member in shares if topic in subscriptions[member]]
        share, extra = divmod(partition_counts[topic], len(members))
        first = 0
        for place, member in enumerate(members):
            end = first + share + (place < extra)
            shares[member] += [TopicPartition(topic, number) for number in range(first, end)]
            first = end
    return _sorted_shares(shares)


def roundrobin_assignment(
    subscriptions: Subscriptions, partition_counts: Mapping[str, int]
) -> Assignments:
    """All partitions in order of topic and number, dealt to the members in a circle.

    A member that does not subscribe to the topic at hand is passed over.

    Source: ``RoundRobinAssignor``.
    """
    shares: dict[str, list[TopicPartition]] = {member: [] for member in sorted(subscriptions)}
    circle = cycle(shares)
    for topic in _topics(subscriptions, partition_counts):
        for number in range(partition_counts[topic]):
            # Some member subscribes to the topic, or it would not be here.
            member = next(member for member in circle if topic in subscriptions[member])
            shares[member].append(TopicPartition(topic, number))
    return _sorted_shares(shares)


ASSIGNORS: Mapping[str, Assignor] = {
    "range": range_assignment,
    "roundrobin": roundrobin_assignment,
}
"""Assignors by their names in ``partition.assignment.strategy``."""


def java_string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (value * 31 + (units[place] << 8 | units[place + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def partition_for_group(group: str, partition_count: int = 50) -> int:
    """The partition of ``__consumer_offsets`` whose leader coordinates the group.

    Source: ``Utils.abs(groupId.hashCode()) % numPartitions``; abs of the smallest int is 0.
    """
    value = abs(java_string_hash(group))
    return (0 if value == 1 << 31 else value) % partition_count


def _topics(subscriptions: Subscriptions, partition_counts: Mapping[str, int]) -> list[str]:
    wanted = {topic: None for topics in subscriptions.values() for topic in topics}
    return sorted(topic for topic in wanted if partition_counts.get(topic, 0) > 0)


def _sorted_shares(shares: Mapping[str, list[TopicPartition]]) -> Assignments:
    return {member: tuple(sorted(share)) for member, share in shares.items()}
