"""Server-side assignors of consumer groups (KIP-848).

``uniform`` gives members equal numbers of partitions with as few moves as possible; ``range``
assigns each topic's partitions in consecutive ranges, whatever members have. Left out: racks, which
Kafka's own assignors ignore, too.

Source: ``UniformAssignor``, ``UniformHomogeneousAssignmentBuilder``, ``RangeAssignor`` of the group
coordinator (4.3).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sim.ids import TopicPartition
from sim.protocol.assignors.registry import Assignments, range_assignment
from sim.protocol.assignors.subscription import Subscription, without_racks
from sim.protocol.coordinator.group.assignors.uniform import balanced_assignment
from sim.protocol.java.hash_order import hash_order, string_order, uuid_hash


@dataclass(frozen=True, slots=True)
class TopicDescription:
    """An assignor's description of a topic."""

    topic_id: str
    """In Kafka's printed form; its hash code decides which topic is assigned first."""
    partition_count: int
    assignable: tuple[int, ...] | None = None
    """Partitions that a share group may assign; ``None``: all."""

    @property
    def numbers(self) -> Iterable[int]:
        """Partitions that may be assigned."""
        return range(self.partition_count) if self.assignable is None else self.assignable


def described(ids: Mapping[str, str], counts: Mapping[str, int]) -> dict[str, TopicDescription]:
    """Topics that have partitions, by id, from ids and numbers of partitions by name."""
    return {ids[name]: TopicDescription(ids[name], counts[name]) for name in ids if counts[name]}


Subscriptions: TypeAlias = Mapping[str, tuple[str, ...]]
"""Topics by member id."""

Topics: TypeAlias = Mapping[str, TopicDescription]
"""Topics that exist, by name."""

Current: TypeAlias = Mapping[str, tuple[TopicPartition, ...]]
"""Present target assignment by member; a new member has no entry."""

ServerAssignor: TypeAlias = Callable[[Subscriptions, Current, Topics], Assignments]
"""Assigns partitions to members, given in the order of insertion into Kafka's table."""


def uniform_assignor(subscriptions: Subscriptions, current: Current, topics: Topics) -> Assignments:
    """Balanced first, sticky second; each member's partitions are sorted.

    Source: ``UniformAssignor.assign``.
    """
    subscribed_topics = {
        member: tuple(topic for topic in names if topic in topics)
        for member, names in subscriptions.items()
    }
    if not any(subscribed_topics.values()):
        return dict.fromkeys(subscriptions, ())
    members = string_order(subscriptions)
    first = sorted(subscriptions[members[0]])
    if all(sorted(names) == first for names in subscriptions.values()):
        shares = _homogeneous(members, subscribed_topics[members[0]], current, topics)
    else:
        ids = {topic: topics[topic].topic_id for topic in topics}
        counts = {topic: topics[topic].partition_count for topic in topics}
        shares = balanced_assignment(members, subscribed_topics, current, ids, counts)
    return {member: tuple(sorted(shares[member])) for member in subscriptions}


def range_assignor(
    subscriptions: Subscriptions,
    current: Current,  # noqa: ARG001 - it is not sticky
    topics: Topics,
) -> Assignments:
    """As the client's range.

    Source: ``RangeAssignor.assign``.
    """
    said = {member: Subscription(names) for member, names in subscriptions.items()}
    counts = {name: topic.partition_count for name, topic in topics.items()}
    return range_assignment(said, without_racks(counts))


SERVER_ASSIGNORS: Mapping[str, ServerAssignor] = {
    "uniform": uniform_assignor,
    "range": range_assignor,
}
"""Assignors by their names in ``group.consumer.assignors``."""


def _homogeneous(
    members: list[str], subscribed: tuple[str, ...], current: Current, topics: Topics
) -> dict[str, list[TopicPartition]]:
    """Assignment if all members subscribe to the same topics.

    Source: ``UniformHomogeneousAssignmentBuilder.build``.
    """

    def place(topic: str) -> int:
        return uuid_hash(topics[topic].topic_id)

    taken = {partition: None for member in members for partition in current.get(member, ())}
    unassigned = [
        partition
        for topic in hash_order(subscribed, place)
        for partition in _partitions(topic, topics)
        if partition not in taken
    ]
    total = sum(topics[topic].partition_count for topic in subscribed)
    quota, extra = divmod(total, len(members))
    shares: dict[str, list[TopicPartition]] = {}
    unfilled: list[tuple[str, int]] = []
    for at, member in enumerate(members):
        own = _by_topic(current.get(member, ()), topics)
        gets_extra = extra > 0
        left = quota + gets_extra
        kept: list[TopicPartition] = []
        for topic in hash_order(own, place):
            if topic not in subscribed:
                continue
            numbers = hash_order(own[topic], int)
            kept += [TopicPartition(topic, number) for number in numbers[:left]]
            unassigned += [TopicPartition(topic, number) for number in numbers[left:]]
            left = max(left - len(numbers), 0)
        if left > 0 and gets_extra and len(members) - at > extra:
            # A later member may have one more already, and keep it.
            left -= 1
            gets_extra = False
        if left > 0:
            unfilled.append((member, left))
        extra -= gets_extra
        shares[member] = kept
    for member, left in unfilled:
        shares[member] += unassigned[:left]
        del unassigned[:left]
    assert not unassigned, "every partition finds a member"
    return shares


def _partitions(topic: str, topics: Topics) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(topics[topic].partition_count)]


def _by_topic(places: tuple[TopicPartition, ...], topics: Topics) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, number in places:
        if topic in topics:
            found.setdefault(topic, []).append(number)
    return found
