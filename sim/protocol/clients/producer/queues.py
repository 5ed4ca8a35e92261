"""A producer's queues: batches of each partition, and refused records."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.producer.batch import ProducerBatch
from sim.units import Micros


class PartitionQueue:
    """Batches of one partition that wait to be sent, oldest first; only the last may be open."""

    __slots__ = ("batches", "next_record", "partition", "used")

    def __init__(self, partition: int, next_record: int) -> None:
        self.partition = partition
        self.batches: deque[ProducerBatch] = deque()
        self.next_record = next_record
        """Number of the next record of this producer in this partition."""
        self.used = False
        """True if a record was ever intended for it."""

    def open_batch(self) -> ProducerBatch | None:
        """The batch that takes records now, if there is one."""
        batches = self.batches
        if not batches:
            return None
        last = batches[-1]
        return None if last.closed or last.capacity <= last.size_bytes else last


def lose_places(queues: list[PartitionQueue]) -> None:
    """Arrivals are counted from 0 again: an open batch's place is void."""
    for queue in queues:
        if queue.batches:
            queue.batches[-1].origin = -1


class Refused:
    """Records that ``send()`` refused; ``at`` is the instant by the host's clock."""

    __slots__ = ("at", "error", "intended_us")

    def __init__(self, at: Micros, error: str, intended_us: NDArray[np.int64]) -> None:
        self.at = at
        self.error = error
        self.intended_us = intended_us
