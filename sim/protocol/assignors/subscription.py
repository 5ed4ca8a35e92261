"""Subscriptions of members, and the types of assignors.

Source: ``ConsumerPartitionAssignor.Subscription``; KIP-429, KIP-792, KIP-881.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from sim.ids import TopicPartition

NO_GENERATION = -1
"""Generation of a member without one."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """One member's subscription, and its partitions."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    """Owned partitions: none, unless it rebalances cooperatively."""
    generation: int = NO_GENERATION
    """Generation of the owned partitions."""
    rack: str = ""
    """``client.rack``."""
    instance_id: str = ""
    """``group.instance.id``."""
    remembered: tuple[TopicPartition, ...] = ()
    """The sticky assignor's user data: its last assignment, which it has revoked since."""
    remembered_generation: int = NO_GENERATION
    """The generation of its last assignment, as the sticky assignors keep it."""


Subscriptions: TypeAlias = Mapping[str, Subscription]
"""By member id, in the order in which the leader received them."""

Topics: TypeAlias = Mapping[str, tuple[tuple[str, ...], ...]]
"""For each topic that exists, the racks of each partition's replicas; empty where unknown."""

Assignments: TypeAlias = dict[str, tuple[TopicPartition, ...]]
"""Partitions by member id, sorted; every member has an entry, an idle one an empty tuple."""

Assignor: TypeAlias = Callable[[Subscriptions, Topics], Assignments]
"""From subscriptions and topics to the assignment."""

MemberKey: TypeAlias = tuple[bool, str]
"""Sorts members as ``MemberInfo`` does."""


def member_key(member: str, subscription: Subscription) -> MemberKey:
    """Members with an instance id come first, by it; the others by their member ids."""
    instance = subscription.instance_id
    return (not instance, instance or member)


def subscribed_topics(subscriptions: Subscriptions, topics: Topics) -> list[str]:
    """Existing topics with a subscriber, sorted."""
    subscribed = {topic: None for said in subscriptions.values() for topic in said.topics}
    return sorted(topic for topic in subscribed if topics.get(topic))


def without_racks(counts: Mapping[str, int]) -> Topics:
    """Topics by their partition counts, without racks."""
    return {topic: ((),) * count for topic, count in counts.items()}


def as_assignments(shares: Mapping[str, list[TopicPartition]]) -> Assignments:
    """Sorted partitions of every member."""
    return {member: tuple(sorted(share)) for member, share in shares.items()}


def racks_matter(
    consumer_racks: Mapping[str, str], partition_racks: Mapping[TopicPartition, tuple[str, ...]]
) -> bool:
    """True if consumers' racks matter (KIP-881).

    They do if a consumer is in a rack that has replicas, and some rack has no replica of some
    partition.

    Source: ``AbstractPartitionAssignor.useRackAwareAssignment``.
    """
    everywhere = dict.fromkeys(rack for racks in partition_racks.values() for rack in racks)
    if not any(rack in everywhere for rack in consumer_racks.values()):
        return False
    return any(len(racks) < len(everywhere) for racks in partition_racks.values())
