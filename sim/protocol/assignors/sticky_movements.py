"""Partition movements between members within one assignment.

If a partition is to move opposite to an earlier one of its topic, that one moves back instead.

Source: ``AbstractStickyAssignor.PartitionMovements``.
"""

from typing import TypeAlias

from sim.ids import TopicPartition
from sim.protocol.java.hash import JavaPartitionSet

Pair: TypeAlias = tuple[str, str]
"""Former owner and new owner."""


class PartitionMovements:
    """All movements of one assignment, each from the partition's first owner."""

    def __init__(self) -> None:
        self._pairs: dict[TopicPartition, Pair] = {}
        self._by_topic: dict[str, dict[Pair, JavaPartitionSet]] = {}

    def move(self, partition: TopicPartition, old: str, new: str) -> None:
        """Notes a partition's movement."""
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
        """Partition to move, so that ``old`` has one less and ``new`` one more."""
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
