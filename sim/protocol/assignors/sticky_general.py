"""The sticky assignors if members have different subscriptions.

Members keep their partitions, unassigned ones go to the member with the fewest, and then partitions
move from members with many to members with few, until no move improves the balance.

Source: ``AbstractStickyAssignor.GeneralAssignmentBuilder``.
"""

from collections.abc import Mapping, Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.sticky_movements import PartitionMovements
from sim.protocol.assignors.sticky_racks import RackInfo


class GeneralAssignment:
    """One assignment, to be built.

    Args:
        counts: Partitions of each existing topic with a subscriber.
        subscribed: For each member, its topics of ``counts``.
        owned: Partitions of each member.
        previous: The last owner in an earlier generation.
        racks: Racks of members and partitions.
    """

    def __init__(
        self,
        counts: Mapping[str, int],
        subscribed: Mapping[str, Sequence[str]],
        owned: Mapping[str, Sequence[TopicPartition]],
        previous: Mapping[TopicPartition, str],
        racks: RackInfo,
    ) -> None:
        self._counts = counts
        self._subscribed = {member: dict.fromkeys(topics) for member, topics in subscribed.items()}
        self._previous = previous
        self._racks = racks
        self._movements = PartitionMovements()
        self._subscribers: dict[str, list[str]] = {topic: [] for topic in counts}
        for member, topics in self._subscribed.items():
            for topic in topics:
                self._subscribers[topic].append(member)
        by_demand = sorted(counts, key=lambda topic: (len(self._subscribers[topic]), topic))
        self._partitions = [TopicPartition(t, n) for t in by_demand for n in range(counts[t])]
        self._owner = {p: member for member, places in owned.items() for p in places}
        self._revokes = False
        """True if a member owns partitions that it may not keep."""
        self.shares: dict[str, list[TopicPartition]] = {
            member: self._kept(member, places) for member, places in owned.items()
        }
        """Partitions of each member."""
        self._movable: dict[str, None] = {}
        """Members that may get or give partitions."""

    def build(self) -> None:
        """Fills :attr:`shares`."""
        kept = {p: None for share in self.shares.values() for p in share}
        left = [partition for partition in self._partitions if partition not in kept]
        self._movable = dict.fromkeys(self.shares)
        fresh = not kept
        if self._racks.consumers:
            left_over = [partition for partition in left if not self._place(partition, near=True)]
        else:
            left_over = left
        for partition in left_over:
            self._place(partition, near=False)
        may_move = [p for p in self._partitions if len(self._subscribers[p.topic]) > 1]
        still_new = [p for p in left if len(self._subscribers[p.topic]) > 1]
        for member in self._subscribed:
            if not self._takes_part(member):
                del self._movable[member]
        before = {member: list(self.shares[member]) for member in self._movable}
        unevenness = self._unevenness()
        if not self._revokes:
            self._even_out(still_new)
        moved = self._even_out(may_move)
        if not fresh and moved and self._unevenness() >= unevenness:
            self.shares.update(before)

    def _kept(self, member: str, places: Sequence[TopicPartition]) -> list[TopicPartition]:
        """Partitions that the member may keep."""
        kept = []
        for partition in places:
            is_subscribed = partition.topic in self._subscribed[member]
            if is_subscribed and not self._racks.mismatch(member, partition):
                kept.append(partition)
            else:
                self._revokes = True
        return kept

    # -- predicates --------------------------------------------------------------------------------

    def _fewest_first(self) -> list[str]:
        return sorted(self._movable, key=lambda member: (len(self.shares[member]), member))

    def _most(self, member: str) -> int:
        """Number of partitions that the member could have at most."""
        return sum(self._counts[topic] for topic in self._subscribed[member])

    def _takes_part(self, member: str) -> bool:
        """True if the member may get more, or has partitions that another one may get."""
        if len(self.shares[member]) < self._most(member):
            return True
        return any(len(self._subscribers[p.topic]) > 1 for p in self.shares[member])

    def _unevenness(self) -> int:
        """Balance score: the sum of the differences of all pairs."""
        sizes = [len(self.shares[member]) for member in self._movable]
        return sum(abs(a - b) for at, a in enumerate(sizes) for b in sizes[at + 1 :])

    def _is_balanced(self) -> bool:
        members = self._fewest_first()
        size = {member: len(self.shares[member]) for member in members}
        if size[members[0]] >= size[members[-1]] - 1:
            return True
        for member in members:
            if size[member] == self._most(member):
                continue
            for topic in self._subscribed[member]:
                for number in range(self._counts[topic]):
                    owner = self._owner[TopicPartition(topic, number)]
                    if owner != member and size[member] + 1 < size[owner]:
                        return False
        return True

    # -- moves ------------------------------------------------------------------------------------

    def _place(self, partition: TopicPartition, *, near: bool) -> bool:
        """Assigns it to the subscriber with the fewest; true if there is one."""
        for member in self._fewest_first():
            is_subscribed = partition.topic in self._subscribed[member]
            if is_subscribed and not (near and self._racks.mismatch(member, partition)):
                self.shares[member].append(partition)
                self._owner[partition] = member
                return True
        return False

    def _even_out(self, partitions: Sequence[TopicPartition]) -> bool:
        """Moves partitions until no move improves the balance; true if any moved."""
        moved = False
        again = True
        while again:
            again = False
            for partition in partitions:
                if self._is_balanced():
                    break
                if self._move_if_better(partition):
                    moved = again = True
        return moved

    def _move_if_better(self, partition: TopicPartition) -> bool:
        owner = self._owner[partition]
        spare = len(self.shares[owner]) - 1
        earlier = self._previous.get(partition)
        if earlier is not None and spare > len(self.shares[earlier]):
            self._move(partition, earlier)
            return True
        # Near members come first, but the one with the fewest gets it: one pass is enough.
        if any(spare > len(self.shares[other]) for other in self._subscribers[partition.topic]):
            wanting = (m for m in self._fewest_first() if partition.topic in self._subscribed[m])
            self._move(partition, next(wanting))
            return True
        return False

    def _move(self, partition: TopicPartition, new: str) -> None:
        partition = self._movements.to_be_moved(partition, self._owner[partition], new)
        old = self._owner[partition]
        self._movements.move(partition, old, new)
        self.shares[old].remove(partition)
        self.shares[new].append(partition)
        self._owner[partition] = new
