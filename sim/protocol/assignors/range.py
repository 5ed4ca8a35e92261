"""The ``range`` assignor: for each topic, consecutive partitions to members in their order.

If racks matter, members get partitions of their own rack first, and topics of the same members and
the same size get the same numbers (KIP-881).

Source: ``org.apache.kafka.clients.consumer.RangeAssignor``.
"""

from collections.abc import Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import (
    Assignments,
    Subscriptions,
    Topics,
    as_assignments,
    member_key,
    racks_matter,
    subscribed_topics,
)


def range_assignment(subscriptions: Subscriptions, topics: Topics) -> Assignments:
    """Assigns, per topic, consecutive partitions to the topic's members in order.

    With n partitions and m members each gets n // m, and the first n mod m get one more: small
    topics pile up on the first members. A topic that does not exist is left out.
    """
    shares: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
    states = [
        _TopicState(topic, topics[topic], subscriptions, shares)
        for topic in subscribed_topics(subscriptions, topics)
    ]
    if any(state.rack_aware for state in states):
        _match_racks(states)
    for state in states:
        state.assign_ranges(only_own_rack=False)
    return as_assignments(shares)


class _TopicState:
    """One topic during its assignment."""

    def __init__(
        self,
        topic: str,
        partition_racks: Sequence[tuple[str, ...]],
        subscriptions: Subscriptions,
        shares: dict[str, list[TopicPartition]],
    ) -> None:
        named = [member for member, said in subscriptions.items() if topic in said.topics]
        self.members = sorted(named, key=lambda member: member_key(member, subscriptions[member]))
        self.count = len(partition_racks)
        self._topic = topic
        self._shares = shares
        self._racks = {
            member: subscriptions[member].rack
            for member in self.members
            if subscriptions[member].rack
        }
        self._partition_racks = partition_racks
        places = {TopicPartition(topic, n): racks for n, racks in enumerate(partition_racks)}
        self.rack_aware = racks_matter(self._racks, places)
        self.has_racks = bool(self._racks)
        self._unassigned = dict.fromkeys(range(self.count))
        self._got = dict.fromkeys(self.members, 0)
        self._each, self._extras = divmod(self.count, len(self.members))

    def matches(self, member: str, number: int) -> bool:
        """True if the partition has a replica in the member's rack, or the member has no rack."""
        rack = self._racks.get(member)
        return rack is None or rack in self._partition_racks[number]

    def capacity(self, member: str) -> int:
        """Number of partitions that the member may still get."""
        return max(0, self._each + (self._extras > 0) - self._got[member])

    def assign(self, member: str, numbers: Sequence[int]) -> None:
        """Assigns these partitions to the member."""
        self._shares[member] += [TopicPartition(self._topic, number) for number in numbers]
        self._got[member] += len(numbers)
        if self._got[member] > self._each:
            self._extras -= 1
        for number in numbers:
            del self._unassigned[number]

    def assign_ranges(self, *, only_own_rack: bool) -> None:
        """Assigns to each member in turn the first unassigned partitions, up to its number."""
        for member in self.members:
            fitting = [
                number
                for number in self._unassigned
                if not only_own_rack or self.matches(member, number)
            ]
            capacity = self.capacity(member)
            if fitting and capacity:
                self.assign(member, fitting[:capacity])


def _match_racks(states: Sequence[_TopicState]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_TopicState]] = {}
    for state in states:
        count = state.count if state.has_racks else 0
        alike.setdefault((tuple(state.members), count), []).append(state)
    for together in alike.values():
        if len(together) > 1:
            _match_together(together)
        elif together[0].rack_aware:
            together[0].assign_ranges(only_own_rack=True)


def _match_together(states: Sequence[_TopicState]) -> None:
    """Assigns each number of all the topics to the first member whose rack has all of them."""
    first = states[0]
    remaining = dict.fromkeys(first.members)
    for number in range(first.count if first.has_racks else 0):
        for member in remaining:
            if all(s.matches(member, number) and s.capacity(member) > 0 for s in states):
                break
        else:
            continue
        for state in states:
            state.assign(member, (number,))
        if not any(state.capacity(member) > 0 for state in states):
            del remaining[member]
