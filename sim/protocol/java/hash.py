"""Java's hash codes, and a set with the iteration order of Java's ``HashSet``.

A table has 16 buckets or more, doubles when it is three quarters full, and is iterated bucket by
bucket, in the order of insertion within one. Left out: buckets with more than eight entries, which
Java turns into trees.

Source: ``java.util.HashMap``, ``String.hashCode``, ``org.apache.kafka.common.TopicPartition``.
"""

from sim.ids import TopicPartition

_FEWEST_PLACES = 16


def java_string_hash(text: str) -> int:
    """``String.hashCode``: over UTF-16 code units, as a signed 32-bit number."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for place in range(0, len(units), 2):
        value = (value * 31 + (units[place] << 8 | units[place + 1])) & 0xFFFF_FFFF
    return value - (1 << 32) if value >= 1 << 31 else value


def java_partition_hash(partition: TopicPartition) -> int:
    """``TopicPartition.hashCode`` as an unsigned 32-bit number."""
    return ((31 + partition.partition) * 31 + java_string_hash(partition.topic)) & 0xFFFF_FFFF


class JavaPartitionSet:
    """A ``HashSet`` of partitions, whose table never shrinks."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        self._places = _FEWEST_PLACES

    def __len__(self) -> int:
        return len(self._held)

    def add(self, partition: TopicPartition) -> None:
        """Adds a partition."""
        self._held[partition] = java_partition_hash(partition)
        if len(self._held) > self._places * 3 // 4:
            self._places *= 2

    def remove(self, partition: TopicPartition) -> None:
        """Removes a partition."""
        del self._held[partition]

    def first(self) -> TopicPartition:
        """First element of its iterator.

        Raises:
            ValueError: If it is empty.
        """
        return min(self._held, key=lambda partition: _place(self._held[partition], self._places))


def _place(value: int, places: int) -> int:
    value &= 0xFFFF_FFFF
    return (value ^ value >> 16) & (places - 1)
