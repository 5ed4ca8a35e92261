"""The record accumulator: batches by partition; it pulls arrivals instead of being pushed records.

The application's sends are known ahead as arrays of instants. At any instant T the accumulator
takes all of them up to T, run by run, and computes exactly the next event for the sender: a new
batch that will linger, a full one, or exhausted memory. The result is that of appending record by
record. Two choices make "exactly" well defined: sends of one instant come before the sender's turn
at that instant, and the partitioner's load statistics are those of the sender's last turn.

While memory or metadata is missing the application blocks in ``send()``: arrivals wait and are
sent, with later timestamps, when it continues.

Source: ``clients/producer/internals/RecordAccumulator.java``, ``BufferPool.java``, KIP-794.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from sim.protocol.clients.producer.arrivals import Sends
from sim.protocol.clients.producer.batch import Arrivals, ProducerBatch
from sim.protocol.clients.producer.compression_estimate import Packing, RatioEstimator
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import ArrivalSource
from sim.protocol.clients.producer.partitioner import Loads, StickyPartitioner
from sim.protocol.clients.producer.queues import Backlog, PartitionQueue, lose_places
from sim.protocol.clients.producer.record_sizes import (
    BATCH_OVERHEAD,
    WIDTH_BOUNDS,
    RecordSizes,
    Sizing,
    varint_width,
)
from sim.units import NEVER, Bytes, Micros

_NO_QUOTA: Bytes = 1 << 60


class Accumulator(Sends):
    """All queues of one producer of one topic. Instants of arrivals are of the scenario's clock."""

    def __init__(
        self,
        config: ProducerConfig,
        source: ArrivalSource,
        unit: Callable[[], float],
        next_records: Sequence[int] = (),
    ) -> None:
        asks = config.partitioner_ignore_keys or config.partitioner_class is not None
        super().__init__(source, by_key=source.keyed and not asks)
        self._config = config
        self._keyed = source.keyed and not asks
        self.sizing = Sizing(source)
        """Sizes of this workload's records."""
        self.estimator = RatioEstimator() if config.compression_type != "none" else None
        """Expected compression; ``None`` if batches are not compressed."""
        self._values = self.sizing.values
        self._record_limit = min(config.max_request_size, config.buffer_memory)
        self._too_large = self._values.upper_bound > self._record_limit
        """True if the largest record is too large for a request, or for the memory."""
        self._capacity = max(config.batch_size, self._values.upper_bound)
        self._capacity_max = max(config.batch_size, self.sizing.upper_bound)
        self._next_records = next_records
        self._sticky = StickyPartitioner(unit, config.batch_size)
        self._loads: Loads | None = None
        self.free_bytes: Bytes = config.buffer_memory
        """Free part of ``buffer.memory``."""
        self.queues: list[PartitionQueue] = []
        """By partition; empty until the topic's metadata is known."""
        self.backlog = Backlog(self.queues)
        self._first_unused = 0
        self.led: tuple[int, ...] = ()
        """Partitions with a known leader, ascending."""

    # -- views of the sender -----------------------------------------------------------------------

    @property
    def exhausted(self) -> bool:
        """True if the application waits for memory: then every batch is sendable."""
        return self._blocked_since is not None and bool(self.queues) and not self.is_denied

    @property
    def is_spent(self) -> bool:
        """True if every record of the workload was appended."""
        return self._feed.block_end == NEVER and self._blocked_since is None

    @property
    def next_record_numbers(self) -> tuple[int, ...]:
        """By partition, the number that the next record would get."""
        if not self.queues:
            return tuple(self._next_records)
        return tuple(queue.next_record for queue in self.queues)

    def learn_partitions(self, count: int) -> None:
        """The topic's metadata has arrived: the application continues, maybe in more partitions."""
        known, have = self._next_records, len(self.queues)
        if count <= have:
            return
        lose_places(self.backlog.queues())
        for p in range(have, count):
            self.queues.append(PartitionQueue(p, known[p] if p < len(known) else 0))
        self._feed.learn_partitions(count)

    def set_clock_offset(self, offset_us: Micros) -> None:
        """The host's clock has moved; timestamps of later sends follow."""
        self.offset_us = offset_us
        for queue in self.backlog.queues():
            queue.batches[-1].seal()
        self._feed.set_clock_offset(offset_us)

    def release(self, batch: ProducerBatch) -> None:
        """Returns the batch's memory."""
        if not batch.split:
            self.free_bytes += batch.capacity

    def absorb(self, limit: Micros) -> None:
        """Appends every send intended up to the instant, inclusive."""
        while True:
            if self._blocked_since is not None and not self._unblock(limit):
                return
            if self.fatal:
                self._refuse_until(limit, self.fatal)
            elif not self.queues or self.is_denied:
                self._block_if_waiting(limit)
            elif self._too_large and all(lane.sizes is None for lane in self._feed.lanes):
                # RecordTooLargeException, at the instant of each send.
                self._refuse_until(limit, "MESSAGE_TOO_LARGE")
            elif self._keyed:
                self._absorb_keyed(limit)
            else:
                self._absorb_sticky(limit)
            if self._blocked_since is None:
                if self._feed.block_end > limit:
                    return
                self._next_block()

    def abandon(self, limit: Micros) -> None:
        """Drops every send up to the instant that still waits."""
        while self._feed.block_end <= limit or self._feed.first_instant() <= limit:
            error = "BUFFER_EXHAUSTED" if self.queues else "REQUEST_TIMED_OUT"
            self._refuse_until(limit, error)
            if self._feed.block_end > limit:
                return
            self._feed.fetch()

    def next_instant(self, is_sendable: Callable[[int], bool]) -> Micros:
        """Instant of the next event of sends to come; queued batches aside.

        Args:
            is_sendable: True if a batch of the partition could be sent at once.

        Returns:
            An instant of the scenario's clock; never too late, sometimes early.
        """
        since = self._blocked_since
        if since is not None:
            return since + self._config.max_block_us
        if not self._feed.lanes or self.is_denied:
            return max(self._feed.first_instant(), self._floor)
        if self._keyed:
            return self._next_keyed(is_sendable)
        lane = self._feed.lanes[0]
        return self._next_sticky(lane, is_sendable) if lane.at < len(lane.times) else NEVER

    def fetch_more(self) -> None:
        """Asks a source that had no more sends once again."""
        if self._feed.block_end == NEVER:
            self._next_block()

    def _next_block(self) -> None:
        lose_places(self.backlog.queues())
        self._feed.fetch()

    # -- blocking ---------------------------------------------------------------------------------

    def _unblock(self, limit: Micros) -> bool:
        """True if the application continues; refuses sends that waited for ``max.block.ms``."""
        since = self._blocked_since
        assert since is not None
        deadline = since + self._config.max_block_us
        if limit < deadline:
            if not self.queues or self.is_denied:
                return False
            if self._lacks_memory(self._feed.first_lane()[1]):
                return False
            self._set_floor(limit)
            self._blocked_since = None
            return True
        has_metadata = self.queues and not self.is_denied
        error = "BUFFER_EXHAUSTED" if has_metadata else "REQUEST_TIMED_OUT"
        self._refuse(deadline, error, self._feed.take_first())
        self._set_floor(deadline)
        self._blocked_since = None
        return True

    # -- appending --------------------------------------------------------------------------------

    def _absorb_sticky(self, limit: Micros) -> None:
        lane = self._feed.lanes[0] if self._feed.lanes else None
        if lane is None:
            return
        sticky = self._sticky
        upto = bisect_right(lane.times, limit, lane.at)
        while lane.at < upto:
            if self._too_large and self._refuses_next(lane):
                continue
            if sticky.partition < 0:
                sticky.switch(self.led, len(self.queues), self._loads)
            queue = self.queues[sticky.partition]
            queue.used = True
            batch = queue.open_batch()
            if batch is not None:
                taken = self._extend(batch, queue, lane, upto, self._quota())
                if taken >= 0:
                    sticky.produced_bytes += taken
                    if sticky.may_switch(all_full=batch.is_full):
                        sticky.switch(self.led, len(self.queues), self._loads)
                    continue
                batch.closed = True
            if sticky.may_switch(all_full=True):
                sticky.switch(self.led, len(self.queues), self._loads)
                continue
            if self._lacks_memory(lane):
                self._blocked_since = max(lane.times[lane.at], self._floor)
                return
            batch = self._open(queue, lane)
            sticky.produced_bytes += batch.size_bytes
            if sticky.may_switch(all_full=batch.is_full):
                sticky.switch(self.led, len(self.queues), self._loads)

    def _quota(self) -> Bytes:  # until the sticky partition is left in any case
        return self._sticky.batch_bytes * 2 - self._sticky.produced_bytes

    def note_loads(self) -> None:
        """The sender reads all queues' lengths (``RecordAccumulator.partitionReady``)."""
        if self._keyed or not self._config.partitioner_adaptive_partitioning_enable:
            return
        queues = self.queues
        while self._first_unused < len(queues) and queues[self._first_unused].used:
            self._first_unused += 1
        if self._first_unused == len(queues):
            lengths = {queue.partition: len(queue.batches) for queue in self.backlog.queues()}
            self._loads = Loads(self.led, lengths, len(queues))
        else:
            self._loads = None

    def _absorb_keyed(self, limit: Micros) -> None:
        lanes = self._feed.lanes
        if not self._has_memory_for(limit):
            self._absorb_in_order(limit)
            return
        for queue in self.queues if lanes else ():
            lane = lanes[queue.partition]
            upto = bisect_right(lane.times, limit, lane.at)
            while lane.at < upto:
                if self._too_large and self._refuses_next(lane):
                    continue
                queue.used = True
                self._append(queue, lane, upto)

    def _has_memory_for(self, limit: Micros) -> bool:
        """True if no send up to the instant can block, so their order across partitions is free."""
        records = self._feed.count_until(limit)
        largest = self.sizing.upper_bound
        if self.estimator is not None:
            largest = self.estimator.bound(largest)
        space = max(1, (self._capacity - BATCH_OVERHEAD) // largest)
        batches = min(records, len(self._feed.lanes) + records // space)
        return batches * self._capacity_max <= self.free_bytes

    def _absorb_in_order(self, limit: Micros) -> None:
        """Appends send by send, in the application's order, until one blocks."""
        while self._feed.first_instant() <= limit and self._feed.lanes:
            partition, lane = self._feed.first_lane()
            if self._too_large and self._refuses_next(lane):
                continue
            queue = self.queues[partition]
            queue.used = True
            at = lane.at
            self._append(queue, lane, at + 1)
            if lane.at == at and queue.open_batch() is None and self._lacks_memory(lane):
                self._blocked_since = max(lane.times[at], self._floor)
                return

    def _append(self, queue: PartitionQueue, lane: Arrivals, upto: int) -> None:
        """Appends one run to the open batch, or closes it, or opens a new one if memory allows."""
        batch = queue.open_batch()
        if batch is not None:
            if self._extend(batch, queue, lane, upto, _NO_QUOTA) < 0:
                batch.closed = True
        elif not self._lacks_memory(lane):
            self._open(queue, lane)

    def _open(self, queue: PartitionQueue, lane: Arrivals) -> ProducerBatch:
        """Opens a batch with the next arrival in it."""
        at = lane.at
        instant = max(lane.times[at], self._floor) + self.offset_us
        base_ms = instant // 1_000
        capacity = self._capacity_for(lane)
        batch = ProducerBatch(queue.partition, queue.next_record, instant, base_ms, capacity)
        batch.origin = at
        size = self._sizes_at(lane, at).table[1][1]
        if self.estimator is not None:
            batch.packing = Packing(self.estimator.ratio)
            size = batch.packing.grow(size)
        if lane.times[at] < self._floor:
            batch.add_late(lane, at, at + 1, size, base_ms)
        else:
            batch.add(lane, at, at + 1, size)
        self.free_bytes -= capacity
        self.backlog.put(batch, len(queue.batches))
        queue.next_record += 1
        lane.at = at + 1
        return batch

    def _extend(
        self, batch: ProducerBatch, queue: PartitionQueue, lane: Arrivals, upto: int, quota: Bytes
    ) -> Bytes:
        """Appends a run of records of one size each; returns their bytes, -1 if none fits."""
        at = lane.at
        late = lane.times[at] < self._floor
        space = batch.capacity - batch.size_bytes
        count, size = self._stretch(
            lane, at, upto, batch.base_ms, batch.record_count, space, quota, batch.packing
        )
        if count <= 0:
            return -1
        taken = count * size
        if batch.packing is not None:
            taken = batch.packing.grow(taken)
        if late:
            batch.add_late(lane, at, at + count, taken, (self._floor + self.offset_us) // 1_000)
        else:
            batch.add(lane, at, at + count, taken)
        queue.next_record += count
        lane.at = at + count
        return taken

    def _stretch(
        self,
        lane: Arrivals,
        at: int,
        upto: int,
        base_ms: int,
        present: int,
        space: Bytes,
        quota: Bytes,
        packing: Packing | None,
    ) -> tuple[int, Bytes]:
        """Number and bytes of arrivals from ``at`` on, all of one encoded size, that fit in a row.

        They end where the size of a record changes, where the next would not fit into ``space``,
        and with the record that reaches ``quota``; both are counted as ``packing`` estimates.
        """
        sizes = self._values
        if lane.alike is not None:
            sizes = self._sizes_at(lane, at)
            upto = min(upto, lane.alike[at])
        times = lane.times
        offset = self.offset_us
        first = times[at]
        if first < self._floor:
            upto = bisect_left(times, self._floor, at, upto)
            first = last = self._floor
        else:
            last = times[upto - 1]
        delta = (first + offset) // 1_000 - base_ms
        stamp_width = 1 if 0 <= delta < 64 else varint_width(delta)
        if delta < 0:
            upto = at + 1
        elif (last + offset) // 1_000 - base_ms >= WIDTH_BOUNDS[stamp_width]:
            bound = (base_ms + WIDTH_BOUNDS[stamp_width]) * 1_000 - offset
            upto = bisect_left(times, bound, at, upto)
        offset_width = 1 if present < 64 else varint_width(present)
        size = sizes.table[stamp_width][offset_width]
        if packing is not None:
            most = min(upto - at, WIDTH_BOUNDS[offset_width] - present)
            return packing.reaching(size, quota, packing.fitting(size, space, most)), size
        count = min(
            upto - at, WIDTH_BOUNDS[offset_width] - present, space // size, -(-quota // size)
        )
        return count, size

    def _refuses_next(self, lane: Arrivals) -> bool:
        """True if the next record is too large: ``send()`` refuses it (RecordTooLargeException).

        Source: ``KafkaProducer.ensureValidRecordSize``.
        """
        at = lane.at
        if self._sizes_at(lane, at).upper_bound <= self._record_limit:
            return False
        lane.at = at + 1
        instant = max(lane.times[at], self._floor)
        self._refuse(instant, "MESSAGE_TOO_LARGE", lane.instants_us[at : at + 1])
        return True

    def _sizes_at(self, lane: Arrivals, at: int) -> RecordSizes:
        sizes = lane.sizes
        return self._values if sizes is None else self.sizing.of(sizes[at])

    def _capacity_for(self, lane: Arrivals) -> Bytes:
        """Memory of a batch that opens with the next arrival."""
        if lane.sizes is None:
            return self._capacity
        return max(self._config.batch_size, self._sizes_at(lane, lane.at).upper_bound)

    def _lacks_memory(self, lane: Arrivals) -> bool:
        """True if no batch can be opened for the next arrival."""
        return self.free_bytes < self._capacity_for(lane)

    # -- precomputed ends of batches ---------------------------------------------------------------

    def _next_sticky(self, lane: Arrivals, is_sendable: Callable[[int], bool]) -> Micros:
        sticky = self._sticky
        first = max(lane.times[lane.at], self._floor)
        if sticky.partition < 0:
            return first
        batch = self.queues[sticky.partition].open_batch()
        wake = NEVER
        if batch is None:
            if self._lacks_memory(lane):
                return first
            leaves = sticky.may_switch(all_full=True)
            if leaves or is_sendable(sticky.partition):
                wake = first + self._config.linger_us
            quota = sticky.batch_bytes * 2 if leaves else self._quota()
        else:
            quota = self._quota()
        filled = lane.times[self._filled_index(lane, batch, quota)]
        return max(first, min(wake, filled))

    def _next_keyed(self, is_sendable: Callable[[int], bool]) -> Micros:
        wake = self._feed.block_end
        scarce = self.free_bytes < self._capacity_max * len(self.queues)
        for queue in self.queues:
            lane = self._feed.lanes[queue.partition]
            if lane.at >= len(lane.times):
                continue
            first = max(lane.times[lane.at], self._floor)
            if scarce:
                wake = min(wake, first)
                continue
            batch = queue.open_batch()
            if batch is None and is_sendable(queue.partition):
                wake = min(wake, first + self._config.linger_us)
            wake = min(wake, lane.times[self._filled_index(lane, batch, _NO_QUOTA)])
        return max(wake, self._floor)

    def _filled_index(self, lane: Arrivals, batch: ProducerBatch | None, quota: Bytes) -> int:
        """The arrival with which the batch (``None``: the next one) fills, overflows or is left.

        The last known arrival, if that comes first.
        """
        key = lane.at if batch is None else batch.origin
        if lane.filled_at == key and lane.filled_index >= lane.at:
            # The precomputed end of a batch stays true while it grows.
            return lane.filled_index
        at, end = lane.at, len(lane.times)
        if batch is None:
            base_ms = (max(lane.times[at], self._floor) + self.offset_us) // 1_000
            present, size = 1, self._sizes_at(lane, at).table[1][1]
            packing = None
            if self.estimator is not None:
                packing = Packing(self.estimator.ratio)
                size = packing.grow(size)
            space = self._capacity_for(lane) - BATCH_OVERHEAD - size
            quota -= BATCH_OVERHEAD + size
            at += 1
        else:
            base_ms, present = batch.base_ms, batch.record_count
            packing = None if batch.packing is None else batch.packing.copy()
            space = batch.capacity - batch.size_bytes
        while at < end and space > 0 and quota > 0:
            count, size = self._stretch(lane, at, end, base_ms, present, space, quota, packing)
            if count <= 0:
                break
            at += count
            present += count
            grown = count * size if packing is None else packing.grow(count * size)
            space -= grown
            quota -= grown
        index = min(at - 1 if space <= 0 or quota <= 0 else at, end - 1)
        if key >= 0:
            lane.filled_at, lane.filled_index = key, index
        return index
