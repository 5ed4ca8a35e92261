"""An accumulator that asks a ``partitioner.class`` about each record, as ``KafkaProducer.doSend``.

A record whose partitioner fails is refused: its exception is what ``send()`` throws.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence

from sim.protocol.clients.producer.accumulator import Accumulator
from sim.protocol.clients.producer.batch import Arrivals
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import (
    PARTITION_OUT_OF_RANGE,
    PARTITIONER_FAILED,
    ArrivalSource,
)
from sim.protocol.clients.producer.partitioner import RecordPartitioner, key_of
from sim.protocol.clients.producer.queues import Refused
from sim.units import Micros

_REFUSED = -1


class PartitionedAccumulator(Accumulator):
    """An :class:`Accumulator` whose records have their partition from a class."""

    def __init__(
        self,
        config: ProducerConfig,
        source: ArrivalSource,
        unit: Callable[[], float],
        next_records: Sequence[int],
        partitioner: RecordPartitioner,
    ) -> None:
        super().__init__(config, source, unit, next_records)
        self._partitioner = partitioner
        self._value_bytes = source.value_bytes
        self._has_keys = source.keyed
        self._waiting: tuple[Arrivals, int, int] | None = None
        """The record that waits for memory: its lane, its place there, and its partition."""

    def note_loads(self) -> None:
        """Does nothing: only the built-in partitioner knows loads."""

    def _absorb_sticky(self, limit: Micros) -> None:
        lane = self._feed.lanes[0] if self._feed.lanes else None
        if lane is None:
            return
        upto = bisect_right(lane.times, limit, lane.at)
        while lane.at < upto:
            partition = self._place(lane)
            if partition == _REFUSED:
                continue
            if self._lacks_memory(lane):
                self._waiting = lane, lane.at, partition
                self._blocked_since = max(lane.times[lane.at], self._floor)
                return
            self._waiting = None
            self._open(self.queues[partition], lane)

    def _place(self, lane: Arrivals) -> int:
        """The partition in which the next record opens a batch; refused if it needs none."""
        waiting = self._waiting
        if waiting is not None and waiting[0] is lane and waiting[1] == lane.at:
            # It was given this partition before it waited for memory.
            return _REFUSED if self._fits(waiting[2], lane) else waiting[2]
        partition = self._choose(lane)
        if partition == _REFUSED or self._fits(partition, lane):
            return _REFUSED
        if self._partitioner.asks_again:
            self._partitioner.on_new_batch(partition, len(self.queues), self.led)
            partition = self._choose(lane)
            if partition == _REFUSED or self._fits(partition, lane):
                return _REFUSED
        return partition

    def _fits(self, partition: int, lane: Arrivals) -> bool:
        """Appends the next record to the partition's open batch, if it fits."""
        queue = self.queues[partition]
        queue.used = True
        batch = queue.open_batch()
        if batch is None:
            return False
        if self._extend(batch, queue, lane, lane.at + 1, batch.capacity) >= 0:
            return True
        batch.closed = True
        return False

    def _choose(self, lane: Arrivals) -> int:
        """The partitioner's answer about the next record, which is refused if there is none."""
        at = lane.at
        key = None
        if self._has_keys and lane.key_ids is not None:
            key = key_of(int(lane.key_ids[at]))
        size = self._value_bytes if lane.sizes is None else max(0, lane.sizes[at])
        count = len(self.queues)
        try:
            answer = self._partitioner.partition(key, size, count, self.led)
            if 0 <= answer < count:
                return _REFUSED if self._too_large and self._refuses_next(lane) else answer
            error = PARTITION_OUT_OF_RANGE
        except Exception as failure:  # noqa: BLE001 - a user's code may raise anything
            error = f"{PARTITIONER_FAILED} ({type(failure).__name__})"
        instant = max(lane.times[at], self._floor) + self.offset_us
        self.refused.append(Refused(instant, error, lane.instants_us[at : at + 1]))
        lane.at = at + 1
        return _REFUSED

    def _next_sticky(self, lane: Arrivals, is_sendable: Callable[[int], bool]) -> Micros:  # noqa: ARG002
        # Where a record goes is not known before it is sent.
        return max(lane.times[lane.at], self._floor)
