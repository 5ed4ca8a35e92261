"""Racks of members and partitions, as used by the sticky assignors.

Source: ``AbstractStickyAssignor.RackInfo``; KIP-881.
"""

from collections.abc import Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscriptions, Topics, racks_matter


class RackInfo:
    """Racks of members and partitions; empty if racks do not matter."""

    def __init__(
        self, subscriptions: Subscriptions, topics: Topics, subscribed: Sequence[str]
    ) -> None:
        consumers = {member: said.rack for member, said in subscriptions.items() if said.rack}
        partitions: dict[TopicPartition, tuple[str, ...]] = {}
        if consumers:
            partitions = {
                TopicPartition(topic, number): racks
                for topic in subscribed
                for number, racks in enumerate(topics[topic])
            }
        at: dict[str, int] = {}
        for rack in consumers.values():
            at[rack] = at.get(rack, 0) + 1
        self._consumers_near = {
            partition: sum(at.get(rack, 0) for rack in racks)
            for partition, racks in partitions.items()
        }
        matter = racks_matter(consumers, partitions)
        self.consumers: dict[str, str] = consumers if matter else {}
        """Racks of the members that are in one."""
        self.partitions: dict[TopicPartition, tuple[str, ...]] = partitions if matter else {}
        """Racks of each partition's replicas."""

    def mismatch(self, member: str, partition: TopicPartition) -> bool:
        """True if the member's rack has no replica of the partition."""
        rack = self.consumers.get(member)
        return rack is not None and rack not in self.partitions.get(partition, ())

    def rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Partitions with the fewest members in their racks first."""
        near = self._consumers_near
        return sorted(partitions, key=lambda partition: near.get(partition, 0))

    def next_near(self, partition: TopicPartition, members: Sequence[str], first: int) -> int:
        """Index of the next member in a rack of the partition, from ``first`` around; or -1."""
        racks = self.partitions.get(partition, ())
        for step in range(len(members) if racks else 0):
            place = (first + step) % len(members)
            if self.consumers.get(members[place]) in racks:
                return place
        return -1
