"""Which partitions one assignment has moved between which members.

When a partition is to go the way opposite to one of its topic that has gone before, that one goes
back instead.

Source: ``AbstractStickyAssignor.PartitionMovements``.
"""

from typing import TypeAlias

from sim.ids import TopicPartition
from sim.protocol.java.hash import JavaPartitionSet

Pair: TypeAlias = tuple[str, str]
"""The member that had it, and the one that gets it."""


class PartitionMovements:
    """All movements of one assignment, each from where the partition was at first."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, Pair] = {}
        self._by_topic: dict[str, dict[Pair, JavaPartitionSet]] = {}

    def move(self, partition: TopicPartition, old: str, new: str) -> None:
        """A partition goes from one member to another."""
        before = self._pairs.pop(partition, None)
        if before is None:
            self._note(partition, (old, new))
            return
        of_topic = self._by_topic[partition.topic]
        of_topic[before].remove(partition)
        if not len(of_topic[before]):
            del of_topic[before]
        if before[0] != new:
            self._note(partition, (before[0], new))

    def to_be_moved(self, partition: TopicPartition, old: str, new: str) -> TopicPartition:
        """What is to move so that one partition less is with ``old`` and one more with ``new``."""
        of_topic = self._by_topic.get(partition.topic, {})
        before = self._pairs.get(partition)
        opposite = of_topic.get((new, old if before is None else before[0]))
        return partition if opposite is None else opposite.first()

    def _note(self, partition: TopicPartition, pair: Pair) -> None:
        self._pairs[partition] = pair
        of_topic = self._by_topic.setdefault(partition.topic, {})
        if pair not in of_topic:
            of_topic[pair] = JavaPartitionSet()
        of_topic[pair].add(partition)
