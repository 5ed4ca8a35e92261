"""Where the members and the replicas are, as the sticky assignors ask for it.

Source: ``AbstractStickyAssignor.RackInfo``; KIP-881.
"""

from collections.abc import Sequence

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscriptions, Topics, racks_matter


class RackInfo:
    """Racks of members and partitions; empty where they do not tell partitions apart."""

    def __init__(self, subscriptions: Subscriptions, topics: Topics, wanted: Sequence[str]) -> None:
        consumers = {member: said.rack for member, said in subscriptions.items() if said.rack}
        partitions: dict[TopicPartition, tuple[str, ...]] = {}
        if consumers:
            partitions = {
                TopicPartition(topic, number): racks
                for topic in wanted
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
        """Whether the member's rack has no replica of the partition."""
        rack = self.consumers.get(member)
        return rack is not None and rack not in self.partitions.get(partition, ())

    def rarest_first(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Those first that fewest members are near to."""
        near = self._consumers_near
        return sorted(partitions, key=lambda partition: near.get(partition, 0))

    def next_near(self, partition: TopicPartition, members: Sequence[str], first: int) -> int:
        """The place of the next member in a rack of the partition, from ``first`` around; or -1."""
        racks = self.partitions.get(partition, ())
        for step in range(len(members) if racks else 0):
            place = (first + step) % len(members)
            if self.consumers.get(members[place]) in racks:
                return place
        return -1
