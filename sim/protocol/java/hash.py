"""Hash codes of Java, and a set that gives out first what a set of Java would.

A table has 16 places or more, doubles when it is three quarters full, and goes through its places
in order; what shares a place comes in the order in which it came. Left out: places with more than
eight things, which Java turns into trees.

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
    """A ``HashSet`` of partitions, which never has fewer places than it once had."""

    def __init__(self) -> None:
        self._held: dict[TopicPartition, int] = {}
        self._places = _FEWEST_PLACES

    def __len__(self) -> int:
        return len(self._held)

    def add(self, partition: TopicPartition) -> None:
        """Hold it too."""
        self._held[partition] = java_partition_hash(partition)
        if len(self._held) > self._places * 3 // 4:
            self._places *= 2

    def remove(self, partition: TopicPartition) -> None:
        """Hold it no longer."""
        del self._held[partition]

    def first(self) -> TopicPartition:
        """What its iterator gives first.

        Raises:
            ValueError: If it is empty.
        """
        return min(self._held, key=lambda partition: _place(self._held[partition], self._places))


def _place(value: int, places: int) -> int:
    value &= 0xFFFF_FFFF
    return (value ^ value >> 16) & (places - 1)
