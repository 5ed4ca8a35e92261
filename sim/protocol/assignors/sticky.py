"""The assignors ``sticky`` and ``cooperative-sticky``: even, and as before as far as can be.

Both make the same assignment. ``sticky`` rebalances eagerly, so a member remembers what it gave up;
``cooperative-sticky`` leaves out what another member still has, which is given out by the rebalance
that follows when that member has given it up (KIP-429).

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
"""What a member says it has, and since which generation."""


def sticky_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Everyone's partitions, from what each member remembers."""
    held = {
        member: (said.remembered, said.remembered_generation)
        for member, said in subscriptions.items()
    }
    shares, _ = _assign(subscriptions, topics, held)
    return as_assignments(shares)


def cooperative_sticky_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Everyone's partitions without those that change hands, from what each member has."""
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
    """Everyone's partitions, and those that another member may still have."""
    members = string_order(subscriptions)
    wanted = subscribed_topics(subscriptions, topics)
    racks = RackInfo(subscriptions, topics, wanted)
    owned, disputed = _owned(members, subscriptions, held, wanted)
    counts = {topic: len(topics[topic]) for topic in wanted}
    if _all_want_the_same(subscriptions):
        partitions = [TopicPartition(t, n) for t, count in counts.items() for n in range(count)]
        even = ConstrainedAssignment(partitions, owned, disputed, racks)
        even.build()
        return even.shares, even.changing_hands
    wishes = {m: [t for t in subscriptions[m].topics if t in counts] for m in members}
    general = GeneralAssignment(counts, wishes, owned, _previous(members, held), racks)
    general.build()
    return general.shares, _changing_hands(subscriptions, general.shares)


def _all_want_the_same(subscriptions: Subscriptions) -> bool:
    first, *others = (sorted(said.topics) for said in subscriptions.values())
    return all(topics == first for topics in others)


def _owned(
    members: Sequence[str],
    subscriptions: Subscriptions,
    held: Mapping[str, _Held],
    wanted: Sequence[str],
) -> tuple[dict[str, list[TopicPartition]], dict[TopicPartition, None]]:
    """What each member has, the later generation being right, and what two of one say they have."""
    owned: dict[str, list[TopicPartition]] = {member: [] for member in members}
    owner: dict[TopicPartition, str] = {}
    disputed: dict[TopicPartition, None] = {}
    for member in members:
        partitions, generation = held[member]
        for partition in partitions:
            if partition.topic not in wanted:
                continue
            other = owner.get(partition)
            if other is None:
                owned[member].append(partition)
                owner[partition] = member
                continue
            # Kafka asks here for the generation in the subscription, whatever the assignor keeps.
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
    """Who had each partition last in a generation before the last."""
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
    """What somebody gets and somebody else has to give up first."""
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
