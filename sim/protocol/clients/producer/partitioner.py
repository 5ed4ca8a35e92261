"""Partition of a record: by the hash of its key, or the sticky partition.

Left out: custom partitioners, ``partitioner.ignore.keys``, ``partitioner.availability.timeout.ms``.

Source: ``org.apache.kafka.common.utils.Utils.murmur2``; KIP-480, KIP-794;
``clients/producer/internals/BuiltInPartitioner.java``.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sim.units import Bytes

_SEED = 0x9747B28C
_M = 0x5BD1E995
_MASK = 0xFFFFFFFF

KEY_BYTES: Bytes = 12
"""Length of every key of a workload: ``key-%08d``."""


def murmur2(data: bytes) -> int:
    """The 32-bit murmur2 hash that Kafka's clients agree on, as Java shows it (signed)."""
    length = len(data)
    state = (_SEED ^ length) & _MASK
    whole = length & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * _M & _MASK
        word = (word ^ word >> 24) * _M & _MASK
        state = (state * _M & _MASK) ^ word
    if length > whole:
        state ^= int.from_bytes(data[whole:], "little")
        state = state * _M & _MASK
    state = (state ^ state >> 13) * _M & _MASK
    state ^= state >> 15
    return state - (1 << 32) if state & 0x80000000 else state


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
    state = np.full(key_ids.shape, _SEED ^ KEY_BYTES, dtype=np.uint32)
    prefix = np.full(key_ids.shape, int.from_bytes(b"key-", "little"), dtype=np.uint32)
    for word in (prefix, _digits(key_ids // 10_000), _digits(key_ids % 10_000)):
        mixed = word * np.uint32(_M)
        mixed = (mixed ^ (mixed >> np.uint32(24))) * np.uint32(_M)
        state = (state * np.uint32(_M)) ^ mixed
    state = (state ^ (state >> np.uint32(13))) * np.uint32(_M)
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
        queue_lengths: Queued batches of each.
        partition_count: All partitions of the topic.
    """

    __slots__ = ("partition_count", "partitions", "queue_lengths")

    def __init__(
        self, partitions: Sequence[int], queue_lengths: Sequence[int], partition_count: int
    ) -> None:
        self.partitions = partitions
        self.queue_lengths = queue_lengths
        self.partition_count = partition_count


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
            table = load_table(loads.queue_lengths, loads.partition_count)
            if table is not None:
                place = pick_by_load(table, int(self._unit() * table[-1]))
                self.partition = loads.partitions[place]
                return
        if available:
            self.partition = available[int(self._unit() * len(available))]
        else:
            self.partition = int(self._unit() * partition_count)
