"""One batch of a producer, from its first record to its outcome.

A batch does not copy its records: it keeps the runs of arrivals in it.

Source: ``clients/producer/internals/ProducerBatch.java``; ``MemoryRecordsBuilder.hasRoomFor``.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.ids import TopicPartition
from sim.protocol.clients.producer.compression_estimate import Packing
from sim.protocol.clients.producer.events import BatchDone, ProducerBatchDraft
from sim.protocol.clients.producer.record_sizes import (
    BATCH_OVERHEAD,
    RecordSizes,
    Sizing,
    varint_width,
)
from sim.units import EPOCH_MS, Bytes, Micros

NO_SEQUENCE = -1
"""A batch that was never drained has no sequence."""

_ANY_LATER: Final = (1 << 31) - 1
"""The largest leader epoch: none is newer."""


class Arrivals:
    """A run of arrivals for one destination: ``times`` are ``instants_us`` as a list, to bisect.

    ``places`` has the place of each in its block, for arrivals sorted by partition. ``alike`` has
    for each the end of its run of values of one size, and ``sizes`` that size, or ``TOMBSTONE``;
    both are ``None`` if all values have one size.
    """

    __slots__ = (
        "alike",
        "at",
        "filled_at",
        "filled_index",
        "instants_us",
        "key_ids",
        "places",
        "sizes",
        "stamps_ms",
        "times",
        "value_sizes",
    )

    def __init__(
        self,
        instants_us: NDArray[np.int64],
        key_ids: NDArray[np.int64] | None,
        offset_us: Micros,
        places: list[int] | None,
        value_sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.instants_us = instants_us
        self.key_ids = key_ids
        self.times: list[int] = instants_us.tolist()
        self.places = places
        self.value_sizes = value_sizes
        self.alike: list[int] | None = None
        self.sizes: list[int] | None = None
        if value_sizes is not None:
            self.alike = _ends_of_runs(value_sizes)
            self.sizes = value_sizes.tolist()
        self.at = 0
        """Number of arrivals that the application has sent."""
        self.filled_at = -1
        self.filled_index = -1
        self.stamp(offset_us)

    def stamp(self, offset_us: Micros) -> None:
        """Computes Kafka's timestamps with the host clock's offset."""
        self.stamps_ms = (self.instants_us + offset_us) // 1_000 + EPOCH_MS
        self.filled_at = -1


_Stretch = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None, NDArray[np.int64] | None
]


def _ends_of_runs(kinds: NDArray[np.int64]) -> list[int]:
    """For each place, the end of its run of equal values."""
    count = len(kinds)
    if not count:
        return []
    ends = np.append(np.flatnonzero(kinds[1:] != kinds[:-1]) + 1, count)
    found: list[int] = np.repeat(ends, np.diff(ends, prepend=0)).tolist()
    return found


class ProducerBatch:
    """Records of one partition in one batch. Instants are of the host's clock."""

    __slots__ = (
        "_arrivals",
        "_draft",
        "_start",
        "_stop",
        "_stretches",
        "answered_by",
        "attempts",
        "backoff_us",
        "base_ms",
        "base_sequence",
        "capacity",
        "changed_at_attempt",
        "closed",
        "correlation",
        "created_us",
        "done",
        "error",
        "first_record",
        "first_sent_us",
        "in_flight",
        "in_retry",
        "last_attempt_us",
        "last_sent_us",
        "leader_epoch",
        "may_be_written",
        "origin",
        "packing",
        "partition",
        "producer_epoch",
        "producer_id",
        "record_count",
        "sends",
        "sequence_reset",
        "size_bytes",
        "split",
    )

    def __init__(
        self, partition: int, first_record: int, created_us: Micros, base_ms: int, capacity: Bytes
    ) -> None:
        self.partition = partition
        self.first_record = first_record
        self.record_count = 0
        self.created_us = created_us
        self.base_ms = base_ms
        """Timestamp of the first record, from the scenario's zero."""
        self.capacity = capacity
        """Write limit, and the batch's share of ``buffer.memory``."""
        self.size_bytes: Bytes = BATCH_OVERHEAD
        """Encoded size so far."""
        self.packing: Packing | None = None
        """Expected compression of its records; ``None``: none. Then ``size_bytes`` is an estimate
        until the batch is drained."""
        self.origin = -1
        """Index of the first record among its arrivals."""
        self.closed = False
        """True if it takes no more records."""
        self.done = False
        self.split = False
        self.attempts = self.sends = 0
        """Times re-enqueued, and times sent."""
        self.last_attempt_us = created_us
        self.backoff_us: Micros = 0
        self.in_retry = False
        self.in_flight = False
        """True while it is in flight."""
        self.may_be_written = False
        """True if an attempt ended with an unknown outcome."""
        self.error = "NONE"
        self.first_sent_us: Micros | None = None
        self.last_sent_us: Micros | None = None
        self.correlation = self.answered_by = -1
        self.leader_epoch = -1
        self.changed_at_attempt = -1
        self.producer_id = self.producer_epoch = -1
        self.base_sequence = NO_SEQUENCE
        self.sequence_reset = False
        self._stretches: list[_Stretch] = []
        self._arrivals: Arrivals | None = None
        self._start = self._stop = 0
        self._draft: ProducerBatchDraft | None = None

    @property
    def is_full(self) -> bool:
        """``MemoryRecordsBuilder.isFull``: closed, or at its write limit."""
        return self.closed or self.capacity <= self.size_bytes

    @property
    def last_sequence(self) -> int:
        """Sequence of the last record."""
        return self.base_sequence + self.record_count - 1

    def add(self, arrivals: Arrivals, start: int, stop: int, size_bytes: Bytes) -> None:
        """Adds arrivals [start, stop), sent at their own instants."""
        self.record_count += stop - start
        self.size_bytes += size_bytes
        if arrivals is self._arrivals and start == self._stop:
            self._stop = stop
            return
        self.seal()
        self._arrivals, self._start, self._stop = arrivals, start, stop

    def add_late(
        self, arrivals: Arrivals, start: int, stop: int, size_bytes: Bytes, stamp_ms: int
    ) -> None:
        """Adds arrivals [start, stop), all sent late, at one instant with that timestamp."""
        self.record_count += stop - start
        self.size_bytes += size_bytes
        self.seal()
        self._arrivals, self._start, self._stop = None, 0, 0
        self._stretches.append(
            (
                arrivals.instants_us[start:stop],
                np.full(stop - start, stamp_ms + EPOCH_MS, dtype=np.int64),
                None if arrivals.key_ids is None else arrivals.key_ids[start:stop],
                None if arrivals.value_sizes is None else arrivals.value_sizes[start:stop],
            )
        )

    def give_sequence(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Numbers the batch (``setProducerState``, ``resetProducerState``)."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = sequence
        self._draft = None

    def note_leader_epoch(self, epoch: int) -> None:
        """Notes the attempt at which the leader was seen to change (KIP-951)."""
        if epoch > self.leader_epoch:
            self.leader_epoch = epoch
            self.changed_at_attempt = self.attempts

    def wait_out_backoff(self) -> None:
        """Keeps the back-off even if a newer leader becomes known (before KIP-951)."""
        self.leader_epoch = _ANY_LATER

    def backing_off_until(self) -> Micros:
        """End of the back-off after a failed attempt; its creation or less without one.

        A retry does not wait once a newer leader epoch is known (KIP-951).
        """
        if self.attempts in (0, self.changed_at_attempt):
            return self.created_us
        return self.last_attempt_us + self.backoff_us

    def records(self) -> _Stretch:
        """Intended instants, timestamps, keys and sizes of values of all records, in order."""
        self.seal()
        self._arrivals = None
        stretches = self._stretches
        if len(stretches) > 1:
            keys = [keys for _, _, keys, _ in stretches if keys is not None]
            sizes = [sizes for _, _, _, sizes in stretches if sizes is not None]
            stretches[:] = [
                (
                    np.concatenate([intended for intended, _, _, _ in stretches]),
                    np.concatenate([stamps for _, stamps, _, _ in stretches]),
                    np.concatenate(keys) if keys else None,
                    np.concatenate(sizes) if sizes else None,
                )
            ]
        return stretches[0]

    def draft(self, topic_partition: TopicPartition) -> ProducerBatchDraft:
        """The batch as it is to be encoded; the same object while nothing has changed."""
        if self._draft is None:
            intended, stamps, keys, values = self.records()
            self._draft = ProducerBatchDraft(
                topic_partition,
                self.first_record,
                intended,
                stamps,
                keys,
                self.producer_id,
                self.producer_epoch,
                self.base_sequence,
                values,
            )
        return self._draft

    def record_bound(self, sizing: Sizing) -> Bytes:
        """Largest size of a batch of the largest record (``maxRecordSize``)."""
        values = self.records()[3]
        if values is None:
            return sizing.values.upper_bound
        extremes = (int(values.min()), int(values.max()))
        return max(sizing.of(value).upper_bound for value in extremes)

    def parts(self, sizing: Sizing, target_bytes: Bytes, ratio: float) -> list["ProducerBatch"]:
        """The same records in batches of about the target size, at least one record each.

        They count as never tried, keep the creation instant and the sequences, and are not counted
        in ``buffer.memory``. Source: ``ProducerBatch.split``.

        Args:
            sizing: Sizes of this workload's records.
            target_bytes: Write limit of each part, unless its first record alone takes more.
            ratio: Expected compression ratio; ignored without compression.
        """
        intended, stamps, keys, values = self.records()
        parts: list[ProducerBatch] = []
        part = self
        start = 0
        for number, stamp in enumerate(stamps.tolist()):
            stamp_ms = stamp - EPOCH_MS
            sizes = sizing.values if values is None else sizing.of(int(values[number]))
            if not parts or part.size_bytes + _size_in(sizes, part, stamp_ms) > part.capacity:
                limit = max(target_bytes, sizes.upper_bound)
                part = self._part(number, stamp_ms, limit, ratio)
                parts.append(part)
                start = number
            size = _size_in(sizes, part, stamp_ms)
            part.size_bytes += size if part.packing is None else part.packing.grow(size)
            part.record_count += 1
            span = slice(start, number + 1)
            part._stretches[:] = [  # noqa: SLF001 - its own kind
                (
                    intended[span],
                    stamps[span],
                    None if keys is None else keys[span],
                    None if values is None else values[span],
                )
            ]
        return parts

    def outcome(self, outcome: str, base_offset: int = -1) -> BatchDone:
        """The batch's row for the trace."""
        return BatchDone(
            self.partition,
            self.first_record,
            self.record_count,
            self.size_bytes,
            self.created_us,
            self.first_sent_us,
            self.last_sent_us,
            self.sends,
            outcome,
            self.error,
            base_offset,
            self.answered_by,
            self.correlation,
            self.records()[0],
        )

    def _part(self, number: int, base_ms: int, capacity: Bytes, ratio: float) -> "ProducerBatch":
        part = ProducerBatch(
            self.partition, self.first_record + number, self.created_us, base_ms, capacity
        )
        if self.packing is not None:
            part.packing = Packing(ratio)
        part.split = True
        part.closed = True
        part.may_be_written = self.may_be_written
        part.last_attempt_us = self.created_us
        if self.base_sequence != NO_SEQUENCE:
            part.give_sequence(self.producer_id, self.producer_epoch, self.base_sequence + number)
        return part

    def seal(self) -> None:
        """Fixes the timestamps of the records so far."""
        arrivals = self._arrivals
        if arrivals is not None and self._stop > self._start:
            start, stop = self._start, self._stop
            keys = arrivals.key_ids
            self._stretches.append(
                (
                    arrivals.instants_us[start:stop],
                    arrivals.stamps_ms[start:stop],
                    None if keys is None else keys[start:stop],
                    None if arrivals.value_sizes is None else arrivals.value_sizes[start:stop],
                )
            )
            self._start = stop


def _size_in(sizes: RecordSizes, batch: ProducerBatch, stamp_ms: int) -> Bytes:
    stamp_width = varint_width(stamp_ms - batch.base_ms)
    return sizes.table[stamp_width][varint_width(batch.record_count)]
