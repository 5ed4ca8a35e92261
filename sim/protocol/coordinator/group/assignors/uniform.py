"""The uniform assignor for members that subscribe to different topics.

Members keep partitions of topics that they still subscribe to, others are assigned to the least
loaded subscriber of their topic, and then partitions move, topic by topic, from the most to the
least loaded.

Source: ``UniformHeterogeneousAssignmentBuilder`` of the group coordinator (4.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.ids import TopicPartition
from sim.protocol.java.hash_order import uuid_words

_PASSES_MAX = 16
_NOBODY = -1


def balanced_assignment(
    members: list[str],
    subscribed: Mapping[str, tuple[str, ...]],
    current: Mapping[str, tuple[TopicPartition, ...]],
    topic_ids: Mapping[str, str],
    counts: Mapping[str, int],
) -> dict[str, list[TopicPartition]]:
    """Partitions of every member, in no order.

    Args:
        members: In the order of Kafka's table; earlier ones win ties.
        subscribed: The topics of each member, all of which exist.
        current: Former partitions of each member.
        topic_ids: In Kafka's printed form; the last tie-break between topics.
        counts: Partitions of each topic.
    """
    builder = _Builder(len(members), topic_ids, counts)
    for index, member in enumerate(members):
        for topic in subscribed[member]:
            builder.subscribers.setdefault(topic, []).append(index)
    for topic in builder.subscribers:
        builder.owners[topic] = [_NOBODY] * counts[topic]
    for index, member in enumerate(members):
        for topic, number in current.get(member, ()):
            if topic in subscribed[member]:
                builder.give(topic, number, index)
    builder.assign_rest()
    builder.balance()
    shares: dict[str, list[TopicPartition]] = {member: [] for member in members}
    for topic, owners in builder.owners.items():
        for number, index in enumerate(owners):
            shares[members[index]].append(TopicPartition(topic, number))
    return shares


@dataclass(slots=True)
class _Range:
    """Members of one topic by load, with a range at either end that is filled and emptied evenly.

    Source: ``MemberAssignmentBalancer``.
    """

    loads: list[int]
    order: list[int]
    low_end: int = 0
    low_load: int = 0
    next_low: int = 0
    high_start: int = 0
    high_end: int = 0
    high_load: int = 0
    next_high: int = 0

    def begin(self, members: list[int]) -> int:
        """Begins with the members of a topic; the difference between their loads."""
        self.order = sorted(members, key=lambda index: (self.loads[index], index))
        least, most = self.loads[self.order[0]], self.loads[self.order[-1]]
        self.low_end, self.low_load, self.next_low = 0, least - 1, 0
        self.high_start = self.high_end = len(self.order)
        self.high_load, self.next_high = most + 1, len(self.order) - 1
        return most - least

    def least_loaded(self) -> int:
        """Member that gets a partition, whose load is incremented."""
        if self.next_low >= self.low_end:
            self.low_load += 1
            while (
                self.low_end < len(self.order)
                and self.loads[self.order[self.low_end]] == self.low_load
            ):
                self.low_end += 1
            self.next_low = 0
        self.next_low += 1
        return self.order[self.next_low - 1]

    def most_loaded(self) -> int:
        """Member that loses a partition, whose load is decremented; -1 if none can."""
        if self.next_high < self.high_start:
            if self.high_end <= self.high_start and self.high_start > 0:
                # Those excluded have emptied the range: it must be able to grow.
                self.high_load = self.loads[self.order[self.high_start - 1]]
            else:
                self.high_load -= 1
            while (
                self.high_start > 0
                and self.loads[self.order[self.high_start - 1]] == self.high_load
            ):
                self.high_start -= 1
            self.next_high = self.high_end - 1
        if self.next_high < 0:
            return _NOBODY
        self.next_high -= 1
        return self.order[self.next_high + 1]

    def exclude(self) -> None:
        """Excludes the member returned last: it has nothing to lose."""
        at, last = self.next_high + 1, self.high_end - 1
        self.order[at], self.order[last] = self.order[last], self.order[at]
        self.high_end -= 1

    def is_balanced(self) -> bool:
        """True if another move would not bring the ends closer."""
        return self.high_load - self.low_load <= 1


@dataclass(slots=True)
class _Builder:
    member_count: int
    topic_ids: Mapping[str, str]
    counts: Mapping[str, int]
    subscribers: dict[str, list[int]] = field(default_factory=dict)
    owners: dict[str, list[int]] = field(default_factory=dict)
    loads: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.loads = [0] * self.member_count

    def give(self, topic: str, number: int, index: int) -> None:
        """Moves a partition to a member from its owner, if any."""
        before = self.owners[topic][number]
        if before != _NOBODY:
            self.loads[before] -= 1
        self.owners[topic][number] = index
        self.loads[index] += 1

    def assign_rest(self) -> None:
        """Assigns partitions without an owner to the least loaded subscriber."""
        members = _Range(self.loads, [])
        free = {
            topic: [number for number, index in enumerate(owners) if index == _NOBODY]
            for topic, owners in self.owners.items()
        }
        for topic in self._sorted([topic for topic, numbers in free.items() if numbers]):
            members.begin(self.subscribers[topic])
            for number in free[topic]:
                self.give(topic, number, members.least_loaded())

    def balance(self) -> None:
        """Moves partitions of all topics until a whole round moves none."""
        topics = self._sorted([t for t, indices in self.subscribers.items() if len(indices) > 1])
        last_moved = _NOBODY
        for _ in range(_PASSES_MAX):
            for at, topic in enumerate(topics):
                if at == last_moved:
                    return
                if self._balance_topic(topic) or last_moved == _NOBODY:
                    last_moved = at

    def _balance_topic(self, topic: str) -> bool:
        members = _Range(self.loads, [])
        if members.begin(self.subscribers[topic]) <= 1:
            return False
        own: dict[int, list[int]] = {}
        for number, index in enumerate(self.owners[topic]):
            own.setdefault(index, []).append(number)
        moved = False
        while not members.is_balanced():
            giver = members.most_loaded()
            while giver != _NOBODY and not own.get(giver):
                members.exclude()
                giver = members.most_loaded()
            if giver == _NOBODY:
                break
            number = own[giver].pop()
            taker = members.least_loaded()
            if members.is_balanced():
                break
            self.give(topic, number, taker)
            moved = True
        return moved

    def _sorted(self, topics: list[str]) -> list[str]:
        """Most partitions for each subscriber first, then fewest subscribers, then by id."""

        def rank(topic: str) -> tuple[float, int, tuple[int, int]]:
            count = len(self.subscribers[topic])
            return -self.counts[topic] / count, count, uuid_words(self.topic_ids[topic])

        return sorted(topics, key=rank)
