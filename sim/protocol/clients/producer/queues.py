"""A producer's queues: batches of each partition, and refused records."""

from bisect import insort
from collections import deque

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.producer.batch import ProducerBatch
from sim.units import Micros


class PartitionQueue:
    """Batches of one partition that wait to be sent, oldest first; only the last may be open."""

    __slots__ = ("batches", "is_listed", "next_record", "partition", "used")

    def __init__(self, partition: int, next_record: int) -> None:
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.next_record = next_record
        """Number of the next record of this producer in this partition."""
        self.used = False
        """True if a record was ever intended for it."""
        self.is_listed = False
        """True if the backlog has it among those that may have batches."""

    def open_batch(self) -> ProducerBatch | None:
        """The batch that takes records now, if there is one."""
        batches = self.batches
        if not batches:
            return None
        last = batches[-1]
        return None if last.closed or last.capacity <= last.size_bytes else last


class Backlog:
    """The queues of a topic that have batches: what a look at them costs grows with those alone.

    Args:
        queues: All of them, by partition; it may grow.
    """

    __slots__ = ("_all", "_listed")

    def __init__(self, queues: list[PartitionQueue]) -> None:
        self._all = queues
        self._listed: list[int] = []

    def put(self, batch: ProducerBatch, place: int) -> None:
        """Puts a batch into its partition's queue, behind so many others."""
        queue = self._all[batch.partition]
        queue.batches.insert(place, batch)
        if not queue.is_listed:
            queue.is_listed = True
            insort(self._listed, batch.partition)

    def queues(self) -> list[PartitionQueue]:
        """Those with batches, in the order of their partitions."""
        found: list[PartitionQueue] = []
        for partition in self._listed:
            queue = self._all[partition]
            if queue.batches:
                found.append(queue)
            else:
                queue.is_listed = False
        if len(found) < len(self._listed):
            self._listed = [queue.partition for queue in found]
        return found


def lose_places(queues: list[PartitionQueue]) -> None:
    """Arrivals are counted from 0 again: the place of each queue's open batch is void."""
    for queue in queues:
        queue.batches[-1].origin = -1


class Refused:
    """Records that ``send()`` refused; ``at`` is the instant by the host's clock."""

    __slots__ = ("at", "error", "intended_us")

    def __init__(self, at: Micros, error: str, intended_us: NDArray[np.int64]) -> None:
        self.at = at
        self.error = error
        self.intended_us = intended_us
