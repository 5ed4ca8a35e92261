"""The assignors ``sticky`` and ``cooperative-sticky``: balanced, with as few moves as possible.

Both compute the same assignment. ``sticky`` rebalances eagerly, so a member remembers partitions
that it gave up; ``cooperative-sticky`` leaves out partitions that another member still owns, which
are assigned by the rebalance that follows their revocation (KIP-429).

Source: ``AbstractStickyAssignor``, ``StickyAssignor``, ``CooperativeStickyAssignor``; KIP-54,
KIP-341, KIP-792.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from sim.ids import TopicPartition
from sim.protocol.assignors.sticky_constrained import ConstrainedAssignment
from sim.protocol.assignors.sticky_general import GeneralAssignment
from sim.protocol.assignors.sticky_racks import RackInfo
from sim.protocol.assignors.subscription import (
    Assignments,
    Subscription,
    Subscriptions,
    Topics,
    as_assignments,
    subscribed_topics,
)
from sim.protocol.java.hash_order import string_order

_Held: TypeAlias = tuple[Sequence[TopicPartition], int]
"""Partitions that a member claims, and their generation."""


def sticky_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Assigns from each member's remembered partitions."""
    held = {
        member: (said.remembered, said.remembered_generation)
        for member, said in subscriptions.items()
    }
    shares, _ = _assign(subscriptions, topics, held)
    return as_assignments(shares)


def cooperative_sticky_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Assigns from each member's owned partitions, without those that change hands."""
    held = {member: (said.owned, _generation(said)) for member, said in subscriptions.items()}
    shares, changing_hands = _assign(subscriptions, topics, held)
    for partition, member in changing_hands.items():
        shares[member].remove(partition)
    return as_assignments(shares)


def _generation(said: Subscription) -> int:
    return said.remembered_generation if said.generation < 0 else said.generation


def _assign(
    subscriptions: Subscriptions, topics: Topics, held: Mapping[str, _Held]
) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, str]]:
    """Assignment, and partitions that another member may still own."""
    members = string_order(subscriptions)
    subscribed = subscribed_topics(subscriptions, topics)
    racks = RackInfo(subscriptions, topics, subscribed)
    owned, disputed = _owned(members, subscriptions, held, subscribed)
    counts = {topic: len(topics[topic]) for topic in subscribed}
    if _equal_subscriptions(subscriptions):
        partitions = [TopicPartition(t, n) for t, count in counts.items() for n in range(count)]
        even = ConstrainedAssignment(partitions, owned, disputed, racks)
        even.build()
        return even.shares, even.changing_hands
    subscribed_by_member = {m: [t for t in subscriptions[m].topics if t in counts] for m in members}
    general = GeneralAssignment(
        counts, subscribed_by_member, owned, _previous(members, held), racks
    )
    general.build()
    return general.shares, _changing_hands(subscriptions, general.shares)


def _equal_subscriptions(subscriptions: Subscriptions) -> bool:
    first, *others = (sorted(said.topics) for said in subscriptions.values())
    return all(topics == first for topics in others)


def _owned(
    members: Sequence[str],
    subscriptions: Subscriptions,
    held: Mapping[str, _Held],
    subscribed: Sequence[str],
) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, None]]:
    """Owned partitions by member, by the latest generation, and those claimed twice in one."""
    owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    owner: dict[TopicPartition, str] = {}
    disputed: dict[TopicPartition, None] = {}
    for member in members:
        partitions, generation = held[member]
        for partition in partitions:
            if partition.topic not in subscribed:
                continue
            other = owner.get(partition)
            if other is None:
                owned[member].append(partition)
                owner[partition] = member
                continue
            # Kafka uses the generation in the subscription here, whatever the assignor keeps.
            theirs = subscriptions[other].generation
            if generation < theirs:
                continue
            if partition in owned[other]:
                owned[other].remove(partition)
            owner[partition] = member
            if generation == theirs:
                disputed[partition] = None
            else:
                owned[member].append(partition)
    return owned, disputed


def _previous(members: Sequence[str], held: Mapping[str, _Held]) -> dict[TopicPartition, str]:
    """Last owner of each partition in a generation before the last."""
    last = max(generation for _, generation in held.values())
    found: dict[TopicPartition, tuple[int, str]] = {}
    for member in members:
        partitions, generation = held[member]
        if generation >= last:
            continue
        for partition in partitions:
            if partition not in found or generation > found[partition][0]:
                found[partition] = (generation, member)
    return {partition: member for partition, (_, member) in found.items()}


def _changing_hands(
    subscriptions: Subscriptions, shares: Mapping[str, Sequence[TopicPartition]]
) -> dict[TopicPartition, str]:
    """Partitions that a member gets and another one has to revoke first."""
    given_up = {
        partition: None
        for member, said in subscriptions.items()
        for partition in said.owned
        if partition not in shares[member]
    }
    return {
        partition: member
        for member, share in shares.items()
        for partition in share
        if partition in given_up and partition not in subscriptions[member].owned
    }
