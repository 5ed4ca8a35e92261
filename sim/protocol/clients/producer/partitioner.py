"""Partition of a record: by the hash of its key, the sticky partition, or a ``partitioner.class``.

Left out: ``partitioner.availability.timeout.ms``.

Source: ``org.apache.kafka.common.utils.Utils.murmur2``; KIP-369, KIP-480, KIP-794;
``clients/producer/internals/BuiltInPartitioner.java``, ``clients/producer/Partitioner.java``.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sim.protocol.java.murmur2 import MULTIPLIER, SEED, murmur2
from sim.units import Bytes

KEY_BYTES: Bytes = 12
"""Length of every key of a workload: ``key-%08d``."""


def key_of(key_id: int) -> bytes:
    """Key of a workload's key id, :data:`KEY_BYTES` long; ids are below 100 million."""
    return b"key-%08d" % key_id


def partition_of(key: bytes, partition_count: int) -> int:
    """Partition of a keyed record, counted over all partitions, available or not."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


def partitions_of_keys(key_ids: NDArray[np.int64], partition_count: int) -> NDArray[np.int64]:
    """Partitions of many workload keys at once: :func:`partition_of` over :func:`key_of`.

    Args:
        key_ids: int64, shape (records,), each in [0, 10**8).
        partition_count: Partitions of the topic.
    """
    state = np.full(key_ids.shape, SEED ^ KEY_BYTES, dtype=np.uint32)
    prefix = np.full(key_ids.shape, int.from_bytes(b"key-", "little"), dtype=np.uint32)
    for word in (prefix, _digits(key_ids // 10_000), _digits(key_ids % 10_000)):
        mixed = word * np.uint32(MULTIPLIER)
        mixed = (mixed ^ (mixed >> np.uint32(24))) * np.uint32(MULTIPLIER)
        state = (state * np.uint32(MULTIPLIER)) ^ mixed
    state = (state ^ (state >> np.uint32(13))) * np.uint32(MULTIPLIER)
    state ^= state >> np.uint32(15)
    return (state & np.uint32(0x7FFFFFFF)).astype(np.int64) % partition_count


def _digits(numbers: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Four decimal digits of each number as the little-endian word of their ASCII bytes."""
    word = np.zeros(numbers.shape, dtype=np.uint32)
    for place, power in enumerate((1_000, 100, 10, 1)):
        word |= ((numbers // power % 10 + 48) << (8 * place)).astype(np.uint32)
    return word


def load_table(queue_lengths: Sequence[int], partition_count: int) -> tuple[int, ...] | None:
    """Cumulative weights of partitions by the length of their queues, longest queue least likely.

    Args:
        queue_lengths: Queued batches of each partition with a known leader.
        partition_count: All partitions of the topic.

    Returns:
        ``None`` if all queues are equal: then the choice is uniform.

    Source: KIP-794; ``BuiltInPartitioner.updatePartitionLoadStats``.
    """
    if not queue_lengths or partition_count < 2:
        return None
    longest = max(queue_lengths)
    if len(queue_lengths) == partition_count and min(queue_lengths) == longest:
        return None
    table = []
    total = 0
    for length in queue_lengths:
        total += longest + 1 - length
        table.append(total)
    return tuple(table)


def pick_by_load(table: Sequence[int], number: int) -> int:
    """Index in the table for a number in [0, last weight)."""
    return bisect_right(table, number)


class Loads:
    """Queue lengths of a topic at the sender's last turn.

    Args:
        partitions: Those with a known leader, ascending.
        waiting: Queued batches of each partition that has any.
        partition_count: All partitions of the topic.
    """

    __slots__ = ("_partition_count", "_waiting", "partitions")

    def __init__(
        self, partitions: Sequence[int], waiting: Mapping[int, int], partition_count: int
    ) -> None:
        self.partitions = partitions
        self._waiting = waiting
        self._partition_count = partition_count

    def table(self) -> tuple[int, ...] | None:
        """Cumulative weights of the partitions, as :func:`load_table`."""
        waiting = self._waiting
        if not waiting and len(self.partitions) == self._partition_count:
            return None
        lengths = [waiting.get(partition, 0) for partition in self.partitions]
        return load_table(lengths, self._partition_count)


class StickyPartitioner:
    """Stays with one partition until about a batch was produced to it, then draws the next.

    Source: KIP-480, KIP-794; ``BuiltInPartitioner``.
    """

    __slots__ = ("_unit", "batch_bytes", "partition", "produced_bytes")

    def __init__(self, unit: Callable[[], float], batch_bytes: Bytes) -> None:
        self._unit = unit
        self.batch_bytes = max(1, batch_bytes)
        """``batch.size``; produced bytes reach it before a switch."""
        self.partition = -1
        """The current partition; -1 before the first record."""
        self.produced_bytes: Bytes = 0
        """Bytes produced to it since it was chosen, batch overheads included."""

    def may_switch(self, *, all_full: bool) -> bool:
        """True if it is time for another partition; early only if no open batch is left behind."""
        produced = self.produced_bytes
        return produced >= self.batch_bytes * 2 or (all_full and produced >= self.batch_bytes)

    def switch(self, available: Sequence[int], partition_count: int, loads: Loads | None) -> None:
        """Draws the next partition.

        Args:
            available: Partitions with a known leader, ascending.
            partition_count: All partitions of the topic.
            loads: Queue lengths at the sender's last turn; ``None`` without load statistics
                (adaptive partitioning off, no turn yet, or a partition never used).
        """
        self.produced_bytes = 0
        if loads is not None:
            table = loads.table()
            if table is not None:
                place = pick_by_load(table, int(self._unit() * table[-1]))
                self.partition = loads.partitions[place]
                return
        if available:
            self.partition = available[int(self._unit() * len(available))]
        else:
            self.partition = int(self._unit() * partition_count)


class RecordPartitioner:
    """A ``partitioner.class``: it chooses for each record, in the order of the application's sends.

    Source: ``clients/producer/Partitioner.java``, ``KafkaProducer.doSend``.
    """

    __slots__ = ("asks_again",)

    def __init__(self, *, asks_again: bool) -> None:
        self.asks_again = asks_again
        """True if a record that opens a batch is given a second partition (2.4 to 3.9)."""

    def partition(
        self,
        key: bytes | None,
        value_bytes: Bytes,
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Chooses a partition.

        Args:
            key: The record's; ``None`` without one.
            value_bytes: Size of its value; 0 for a tombstone.
            partition_count: All partitions of the topic.
            available: Those with a known leader, ascending.
        """
        raise NotImplementedError

    def on_new_batch(self, previous: int, partition_count: int, available: Sequence[int]) -> None:
        """Learns that a record did not fit into an open batch of the partition it was given."""


class RoundRobinPartitioner(RecordPartitioner):
    """One available partition after the other, whatever the key.

    The second question about a record skips a partition: with an even number of them, and batches
    that never fill, half get nothing (KAFKA-9965).

    Args:
        first: Where it begins; 0, but drawn in the default partitioner before 2.4.
        asks_again: As in every partitioner.

    Source: ``clients/producer/RoundRobinPartitioner.java``.
    """

    __slots__ = ("_next",)

    def __init__(self, first: int = 0, *, asks_again: bool) -> None:
        super().__init__(asks_again=asks_again)
        self._next = first

    def partition(
        self,
        key: bytes | None,  # noqa: ARG002 - for others
        value_bytes: Bytes,  # noqa: ARG002 - for others
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Takes the next partition that has a leader; of all, if none has."""
        number, self._next = self._next, (self._next + 1) & 0x7FFFFFFF
        return available[number % len(available)] if available else number % partition_count


class UniformStickyPartitioner(RecordPartitioner):
    """One partition until a record opens a batch there, then another, whatever the key.

    Source: KIP-480; ``UniformStickyPartitioner.java``, ``internals/StickyPartitionCache.java``.
    """

    __slots__ = ("_sticky", "_unit")

    def __init__(self, unit: Callable[[], float], *, asks_again: bool) -> None:
        super().__init__(asks_again=asks_again)
        self._unit = unit
        self._sticky = -1

    def partition(
        self,
        key: bytes | None,  # noqa: ARG002 - for subclasses
        value_bytes: Bytes,  # noqa: ARG002 - for others
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Returns the partition that it stays with."""
        if self._sticky < 0:
            self.on_new_batch(-1, partition_count, available)
        return self._sticky

    def on_new_batch(self, previous: int, partition_count: int, available: Sequence[int]) -> None:
        """Draws another partition, unless the batch is another partition's."""
        if self._sticky not in (-1, previous):
            return
        if not available:
            self._sticky = int(self._unit() * partition_count)
            return
        others = [each for each in available if each != self._sticky] or available
        self._sticky = others[int(self._unit() * len(others))]


class DefaultPartitioner(UniformStickyPartitioner):
    """By the hash of the key; records without one are sticky (2.4 to 3.9).

    Source: KIP-480; ``internals/DefaultPartitioner.java``.
    """

    __slots__ = ()

    def partition(
        self,
        key: bytes | None,
        value_bytes: Bytes,
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Hashes the key; without one, the sticky partition."""
        if key is None:
            return super().partition(key, value_bytes, partition_count, available)
        return partition_of(key, partition_count)


class FormerDefaultPartitioner(RoundRobinPartitioner):
    """By the hash of the key; records without one in turns, from anywhere (before 2.4).

    Source: ``internals/DefaultPartitioner.java`` of 2.3.
    """

    __slots__ = ()

    def partition(
        self,
        key: bytes | None,
        value_bytes: Bytes,
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Hashes the key; without one, the next partition."""
        if key is None:
            return super().partition(key, value_bytes, partition_count, available)
        return partition_of(key, partition_count)


class Partitioning(Protocol):
    """A partitioner of a user's own: a pure function of its inputs, and of its earlier answers."""

    def partition(
        self,
        topic: str,
        key: bytes | None,
        value_size: int,
        partitions: int,
        available: tuple[int, ...],
    ) -> object:
        """Returns a partition from 0 to ``partitions`` - 1, as an int."""


class OwnPartitioner(RecordPartitioner):
    """A ``partitioner.class`` that a user wrote.

    Args:
        own: The user's.
        topic: Topic of its records.
        asks_again: As in every partitioner.
    """

    __slots__ = ("_own", "_topic")

    def __init__(self, own: Partitioning, topic: str, *, asks_again: bool) -> None:
        super().__init__(asks_again=asks_again)
        self._own = own
        self._topic = topic

    def partition(
        self,
        key: bytes | None,
        value_bytes: Bytes,
        partition_count: int,
        available: Sequence[int],
    ) -> int:
        """Asks the user's class, whose errors pass through; -1 for what is no int."""
        answer = self._own.partition(
            self._topic, key, value_bytes, partition_count, tuple(available)
        )
        # Of a class that is not compiled anything may come.
        return answer if type(answer) is int else -1


MakePartitioner = Callable[[Callable[[], float]], RecordPartitioner]
"""Makes the partitioner of a new client library, with its chance."""
