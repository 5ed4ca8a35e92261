"""The sticky assignors if all members have equal subscriptions.

Each member keeps its partitions up to its quota; the others are assigned, within racks first. With
n partitions and m members, n mod m of them get one more than n // m.

Source: ``AbstractStickyAssignor.ConstrainedAssignmentBuilder``.
"""

from collections.abc import Mapping, Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.sticky_racks import RackInfo


class ConstrainedAssignment:
    """One assignment, to be built.

    Args:
        partitions: All of them, sorted by topic and number.
        owned: Partitions of each member, in the order in which members are visited.
        disputed: Partitions that several members of one generation claim.
        racks: Racks of members and partitions.
    """

    def __init__(
        self,
        partitions: Sequence[TopicPartition],
        owned: Mapping[str, Sequence[TopicPartition]],
        disputed: Mapping[TopicPartition, None],
        racks: RackInfo,
    ) -> None:
        self.shares: dict[str, list[TopicPartition]] = {member: [] for member in owned}
        """Partitions of each member."""
        self.changing_hands: dict[TopicPartition, str] = {}
        """Partitions that another member may still own, and their new owners."""
        self._partitions = partitions
        self._owned = owned
        self._disputed = disputed
        self._racks = racks
        self._least, self._extras_left = divmod(len(partitions), len(owned))
        self._most = self._least + (self._extras_left > 0)
        self._given_up: dict[TopicPartition, str] = {}
        self._below: list[str] = []
        """Members below the minimum."""
        self._at_least: list[str] = []
        """Members at the minimum that may get one more."""

    def build(self) -> None:
        """Fills :attr:`shares`."""
        for member, owned in self._owned.items():
            self._keep(member, owned)
        kept = {p: None for share in self.shares.values() for p in share}
        left = [partition for partition in self._partitions if partition not in kept]
        self._below.sort()
        self._at_least.sort()
        left = self._racks.rarest_first(left)
        if self._racks.consumers:
            left = self._deal_within_racks(left)
        self._deal(left)
        assert all(len(share) >= self._least for share in self.shares.values()), (
            f"a member has less than {self._least}: {self.shares}"
        )

    def _keep(self, member: str, owned: Sequence[TopicPartition]) -> None:
        for partition in owned:
            if self._racks.mismatch(member, partition):
                self._given_up[partition] = member
        held = [
            partition
            for partition in sorted(owned, key=lambda p: (p.partition, p.topic))
            if not self._racks.mismatch(member, partition) and partition not in self._disputed
        ]
        if len(held) < self._least:
            quota = len(held)
            self._below.append(member)
        elif len(held) >= self._most and self._extras_left:
            quota = self._most
            self._take_extra()
        else:
            quota = self._least
            if self._extras_left:
                self._at_least.append(member)
        self.shares[member] += held[:quota]
        for partition in held[quota:]:
            self._given_up[partition] = member

    def _take_extra(self) -> None:
        """One more member has one more than the minimum."""
        self._extras_left -= 1
        if self._extras_left == 0:
            self._at_least.clear()

    def _deal_within_racks(self, left: list[TopicPartition]) -> list[TopicPartition]:
        """Assigns partitions to members of their racks; returns the others."""
        still_left: list[TopicPartition] = []
        turn = 0
        for partition in left:
            place = self._racks.next_near(partition, self._below, turn)
            if place >= 0:
                member = self._below[place]
                count = len(self.shares[member]) + 1
                if count >= self._least:
                    del self._below[place]
                    if count < self._most and self._extras_left:
                        self._at_least.append(member)
                else:
                    place += 1
                turn = place % len(self._below) if self._below else 0
            else:
                place = self._racks.next_near(partition, self._at_least, 0)
                if place < 0:
                    still_left.append(partition)
                    continue
                member = self._at_least[place]
                if len(self.shares[member]) + 1 == self._most:
                    del self._at_least[place]
                    self._take_extra()
            self._give(partition, member)
        return still_left

    def _deal(self, left: Sequence[TopicPartition]) -> None:
        """Assigns the others to members below the minimum in turn, then to those at it."""
        turn = 0
        for partition in left:
            if self._below:
                turn = turn if turn < len(self._below) else 0
                member = self._below[turn]
                self._give(partition, member)
                if len(self.shares[member]) == self._least:
                    del self._below[turn]
                    self._at_least.append(member)
                else:
                    turn += 1
            else:
                self._give(partition, self._at_least.pop(0))

    def _give(self, partition: TopicPartition, member: str) -> None:
        self.shares[member].append(partition)
        if self._given_up.get(partition, member) != member or partition in self._disputed:
            self.changing_hands[partition] = member
