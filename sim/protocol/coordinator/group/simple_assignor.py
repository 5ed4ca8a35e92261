"""Which members of a share group fetch from which partitions: several may share one (KIP-932).

Every partition goes to as many members as are needed to give everybody something, as evenly as
that goes, and members keep what they have where they can. Each topic is dealt by itself unless all
members want the same topics. Simplified: of several things that could be taken away, the first in
order goes, where Kafka's goes by the order of its hash sets.

Source: ``SimpleAssignor``, ``SimpleHomogeneousAssignmentBuilder``,
``SimpleHeterogeneousAssignmentBuilder`` of the group coordinator (4.1).
"""

from collections.abc import Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Assignments, as_assignments
from sim.protocol.coordinator.group.assignors import Current, Subscriptions, Topics
from sim.protocol.java.hash_order import string_order


def simple_assignor(subscriptions: Subscriptions, current: Current, topics: Topics) -> Assignments:
    """From members' topics and what they have now to everyone's partitions, sorted."""
    members = string_order(subscriptions)
    wanted = {
        member: sorted({topic for topic in subscriptions[member] if topic in topics})
        for member in members
    }
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    groups = list(dict.fromkeys(topic for member in members for topic in wanted[member]))
    alike = all(wanted[member] == wanted[members[0]] for member in members)
    for dealt in [groups] if alike else [[topic] for topic in groups]:
        interested = [member for member in members if dealt[0] in wanted[member]] if dealt else []
        targets = [
            TopicPartition(topic, number)
            for topic in dealt
            for number in range(topics[topic].partition_count)
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
    # The products of a ceiling, as Kafka counts them: they sum up to all there is to give.
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
