"""The share groups' assignor: several members may share a partition (KIP-932).

Every partition is assigned to as many members as needed for every member to have one, as evenly as
possible, and members keep partitions if possible. Each topic is assigned separately unless all
members have equal subscriptions. Simplified: of several removable partitions the first in order is
removed, where Kafka's follows the order of its hash sets.

Source: ``SimpleAssignor``, ``SimpleHomogeneousAssignmentBuilder``,
``SimpleHeterogeneousAssignmentBuilder`` of the group coordinator (4.1).
"""

from collections.abc import Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Assignments, as_assignments
from sim.protocol.coordinator.group.assignors.registry import Current, Subscriptions, Topics
from sim.protocol.java.hash_order import string_order


def simple_assignor(subscriptions: Subscriptions, current: Current, topics: Topics) -> Assignments:
    """Assigns from members' topics and their present partitions; sorted."""
    members = string_order(subscriptions)
    subscribed_topics = {
        member: sorted({topic for topic in subscriptions[member] if topic in topics})
        for member in members
    }
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    groups = list(dict.fromkeys(topic for member in members for topic in subscribed_topics[member]))
    alike = all(subscribed_topics[member] == subscribed_topics[members[0]] for member in members)
    for dealt in [groups] if alike else [[topic] for topic in groups]:
        interested = (
            [member for member in members if dealt[0] in subscribed_topics[member]] if dealt else []
        )
        targets = [
            TopicPartition(topic, number) for topic in dealt for number in topics[topic].numbers
        ]
        for member, places in _balanced(interested, targets, current).items():
            shares[member] += places
    return as_assignments({member: shares[member] for member in subscriptions})


def _balanced(
    members: Sequence[str], targets: Sequence[TopicPartition], current: Current
) -> dict[str, list[TopicPartition]]:
    if not targets or not members:
        return {}
    sharing = -(-len(members) // len(targets))
    total = sharing * len(targets)
    # Differences of ceilings, as in Kafka: their sum is the number of assignments.
    marks = [-(-total * place // len(members)) for place in range(len(members) + 1)]
    desired = {member: marks[at + 1] - marks[at] for at, member in enumerate(members)}
    known = dict.fromkeys(targets)
    has = {m: [p for p in current.get(m, ()) if p in known] for m in members}
    shared = {place: [m for m in members if place in has[m]] for place in targets}
    for place in targets:
        overfull = [m for m in shared[place] if len(has[m]) > desired[m]]
        others = [m for m in shared[place] if m not in overfull]
        for member in [*overfull, *others][: max(len(shared[place]) - sharing, 0)]:
            has[member].remove(place)
            shared[place].remove(member)
    for member in members:
        for place in has[member][: max(len(has[member]) - desired[member], 0)]:
            has[member].remove(place)
            shared[place].remove(member)
    unfilled = [member for member in members if len(has[member]) < desired[member]]
    turn = 0
    for place in targets:
        for _ in range(len(unfilled)):
            if len(shared[place]) >= sharing or not unfilled:
                break
            member = unfilled[turn % len(unfilled)]
            if place in has[member]:
                turn += 1
                continue
            has[member].append(place)
            shared[place].append(member)
            if len(has[member]) >= desired[member]:
                unfilled.remove(member)
            else:
                turn += 1
    return has
