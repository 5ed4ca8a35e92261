"""One partition's log in one log directory: segments, epochs, producers, recovery point.

Synchronous, as Kafka's ``UnifiedLog`` is under its lock; the caller pays simulated time for the
bytes that a flush reports. Simplified: truncation within a batch leaves the log end at its base
offset; batches larger than ``segment.bytes`` together are written one by one, not rejected.

Source: ``UnifiedLog``, ``LocalLog``, ``LogValidator``; KIP-101, KIP-98.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from sim.log.config import NO_LIMIT, LogConfig, no_jitter
from sim.log.partition.epoch_cache import EpochCache
from sim.log.partition.file_reader import FileReader
from sim.log.partition.log_transactions import LogTransactions
from sim.log.partition.results import AnyBatch, Appended, EpochEnd, RolledFlush, answer_to, refused
from sim.log.partition.segment import Segment, base_of
from sim.log.partition.tail import Tail
from sim.log.partition.tiered import TieredLog
from sim.log.partition.truncation import cut_segments, damage_met_by, delete_segment
from sim.log.partition.validator import fitted, unwanted
from sim.log.producers.state import ProducerStates
from sim.log.producers.transactions import NO_GUARD
from sim.log.store.files import FileStore
from sim.log.store.page_cache import ColdRead, all_of
from sim.units import MIB, Bytes
from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import RecordBatch

_ENOUGH: Bytes = 64 * MIB


class PartitionLog(TieredLog):
    """One replica's log, as real files. Satisfies ``sim.protocol.ports.ReplicaLog``."""

    def __init__(
        self,
        partition: TopicPartition,
        store: FileStore,
        directory: str,
        config: LogConfig,
        *,
        segments: list[Segment],
        epochs: EpochCache,
        producers: ProducerStates,
        log_end_offset: Offset,
        log_start_offset: Offset,
        recovery_point: Offset,
    ) -> None:
        """Assembles a loaded log; :mod:`sim.log.partition.recovery` loads and creates logs."""
        super().__init__()
        self.partition = partition
        self.store = store
        self.directory = directory
        """Name of the partition's directory in the store."""
        self.config = config
        self.log_end_offset = log_end_offset
        self.log_start_offset = log_start_offset
        self.recovery_point = recovery_point
        """Everything below is on the platter, unless the disk lies."""
        self._segments = segments
        self._active = segments[-1]
        self._epochs = epochs
        self._producers = producers
        self.transactions = LogTransactions(producers, self._segments_from)
        """Transactions: the bound of read_committed readers, and what they skip."""
        self._tail = Tail(log_end_offset, config.tail_bytes, config.tail_batches)
        self.cut_to: Offset = NO_LIMIT
        """Lowest truncation offset since the cleaner's checkpoint was last written."""
        self._rolled_to: Offset | None = None
        self._rolled_snapshots: list[str] = []
        self._reader = FileReader(partition, store.cache, self._segments_from)
        self.draw_jitter_ms: Callable[[LogConfig], int] = no_jitter
        """Draws the time by which a new segment rolls earlier than ``segment.ms``."""
        self._count_bytes()

    def __repr__(self) -> str:
        return f"PartitionLog({self.partition}, {self.log_start_offset}..{self.log_end_offset})"

    # -- state -------------------------------------------------------------------------------------

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last entry of the epoch cache; -1 when it is empty."""
        return self._epochs.latest

    @property
    def epochs(self) -> tuple[tuple[LeaderEpoch, Offset], ...]:
        """Entries of the epoch cache: (epoch, start offset), oldest first."""
        return self._epochs.entries

    @property
    def producers(self) -> ProducerStates:
        """State of idempotent producers."""
        return self._producers

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, oldest first; the last is active."""
        return tuple(self._segments)

    @property
    def size_bytes(self) -> Bytes:
        """Bytes of all batches."""
        return self._active.start_bytes + self._active.size

    # -- epochs ------------------------------------------------------------------------------------

    def begin_epoch(self, epoch: LeaderEpoch) -> None:
        """Starts a leader epoch at the log end offset (KIP-101).

        Raises:
            DiskFailed: If the checkpoint cannot be written.
        """
        self._epochs.assign(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one and the offset after its last record (KIP-279)."""
        return EpochEnd(*self._epochs.end_offset_for(epoch, self.log_end_offset))

    # -- writing -----------------------------------------------------------------------------------

    def append_as_leader(
        self, batch: AnyBatch, leader_epoch: LeaderEpoch, now_ms: int, guard: int = NO_GUARD
    ) -> Appended:
        """Validates (size, checksum, timestamp, producer state), assigns offsets, and writes.

        Args:
            batch: The batch of a client, or of a coordinator.
            leader_epoch: Of this leadership.
            now_ms: Milliseconds since 1970.
            guard: For a transaction's batch, what its verification gave.

        Raises:
            DiskFailed: If the disk has failed or is full; the log end shows if the batch is in.
        """
        assert isinstance(batch, RecordBatch), "a real log takes real batches"
        refusal = unwanted(batch, self.config, now_ms)
        if refusal is not None:
            return refused(refusal)
        if self.config.rules is not None:
            verdict = fitted(batch, self.config, self.config.rules, now_ms)
            if isinstance(verdict, ErrorCode):
                return refused(verdict)
            batch = verdict
        base = self.log_end_offset
        last = base + batch.last_offset_delta
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, base)
        active = self._active
        if active.must_roll(batch.size_bytes, batch.max_timestamp_ms, last, self.config):
            active = self._roll(base)
        if batch.producer_id >= 0 and not batch.is_control:
            if batch.is_transactional:
                known = self._producers.check_transactional(batch, guard)
            else:
                known = self._producers.check(batch)
            if known is not ErrorCode.NONE:
                return answer_to(known)
        stamped = batch.stamped(base, leader_epoch)
        self._write(active, stamped)
        due = last + 1 - self.recovery_point >= self.config.flush_messages
        return Appended(ErrorCode.NONE, base, last, duplicate=False, flush_due=due, batch=stamped)

    def append_marker(
        self,
        producer: ProducerId,
        producer_epoch: int,
        coordinator_epoch: int,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        *,
        committed: bool,
        version: int = 0,
    ) -> Appended:
        """Ends a producer's transaction here, as its coordinator has decided (KIP-98).

        INVALID_PRODUCER_EPOCH and TRANSACTION_COORDINATOR_FENCED reject late ones.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        ending = producer, producer_epoch, coordinator_epoch
        refusal = self._producers.check_marker(*ending, version)
        if refusal is not ErrorCode.NONE:
            return refused(refusal)
        said = Marker(committed, *ending)
        return self.append_as_leader(end_transaction_marker(said, now_ms), leader_epoch, now_ms)

    def append_as_follower(self, batches: Sequence[AnyBatch]) -> bool:
        """Writes batches exactly as given, at their own offsets.

        Returns:
            True if ``flush.messages`` requires an fsync now.

        Raises:
            AssertionError: If a batch starts below the log end offset; before 0.11: ends there.
            CorruptRecord: If a checksum is wrong; then nothing was written.
            DiskFailed: If the disk has failed or is full; the log end shows what was written.
        """
        size = 0
        for batch in batches:
            assert isinstance(batch, RecordBatch), "a real log takes real batches"
            if not batch.valid():
                raise CorruptRecord(f"{self.partition}: bad checksum at {batch.base_offset}")
            size += batch.size_bytes
        together = size <= self.config.segment_bytes
        if together:
            self._roll_for(batches, size)
        for batch in batches:
            assert isinstance(batch, RecordBatch), "checked above"
            base = batch.base_offset
            # Where the leader has compacted, offsets are missing.
            known_by = batch.last_offset if self.config.by_last_offset else base
            assert known_by >= self.log_end_offset, f"{batch!r} does not follow {self!r}"
            if not together:
                self._roll_for((batch,), batch.size_bytes)
            if batch.leader_epoch != self._epochs.latest:
                self._epochs.assign(batch.leader_epoch, base)
            self._write(self._active, batch)
        return self.log_end_offset - self.recovery_point >= self.config.flush_messages

    def expire_producers(self, now_ms: int) -> int:
        """Forgets idempotent producers silent for longer than ``producer.id.expiration.ms``."""
        return self._producers.expire(now_ms, self.config.producer_id_expiration_ms)

    # -- reading -----------------------------------------------------------------------------------

    def read(self, start: Offset, end: Offset, max_bytes: Bytes) -> tuple[RecordBatch, ...]:
        """Whole batches from the one that holds ``start``, with last offsets below ``end``.

        At least one batch is returned when there is one, however large. Below the tail in memory
        one segment is read at a time, so fewer bytes may come than are there. Checksums are not
        verified: damage inside a batch reaches the fetcher, as in Kafka.

        Raises:
            DiskFailed: If the disk has failed.
            CorruptRecord: If a header on the platter is damaged beyond reading.
        """
        if start >= self.log_end_offset or start >= end:
            return ()
        if start >= self._tail.first_offset:
            return self._tail.read(start, end, max_bytes)
        return self._reader.read(start, end, max_bytes)

    def use_all(self) -> ColdRead | None:
        """Touches the whole log for reading; returns what was not in memory."""
        return all_of(segment.log.use(0, segment.size) for segment in self._segments)

    def bytes_between(self, start: Offset, end: Offset) -> Bytes:
        """Bytes that a read of [start, end) would return: exact at the tail up to 64 MiB.

        Below the tail they are exact to ``index.interval.bytes`` and a batch.
        """
        if start >= end or start >= self.log_end_offset:
            return 0
        if start >= self._tail.first_offset:
            return self._tail.bytes_between(start, end, _ENOUGH)
        return max(self._byte_position(end) - self._byte_position(start), 1)

    def batches(self, start: Offset = 0) -> Iterator[RecordBatch]:
        """Every batch from the one that holds ``start``, from the files.

        Raises:
            DiskFailed: If the disk has failed.
            MalformedBytes: If a header is damaged.
        """
        for segment in self._segments_from(start):
            found = segment.find(start)
            if found is not None:
                for _, batch in segment.batches(found[0]):
                    yield batch

    def offset_for_timestamp(self, timestamp_ms: int) -> Offset:
        """First offset of a record at or after the timestamp; -1 if there is none."""
        return self._reader.offset_for_timestamp(timestamp_ms, self.log_start_offset)

    # -- cutting -----------------------------------------------------------------------------------

    def truncate_to(self, offset: Offset) -> None:
        """Drops everything at and above the offset; epochs and producer state follow.

        Raises:
            DiskFailed: If the disk has failed.
            CorruptRecord: If a header is damaged; the log end shows what is left: nothing is cut in
                front of the damage. Producers are rebuilt as far as they could be read.

        Source: ``UnifiedLog.truncateTo``, ``LocalLog.truncateTo``.
        """
        if offset >= self.log_end_offset:
            self._epochs.truncate_from_end(offset)
            return
        if offset < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        self._reader.forget()
        end, overlap = self.log_end_offset, self.config.by_last_offset
        end, epochs_end, damage = cut_segments(
            self.store, self.directory, self._segments, offset, end, overlap=overlap
        )
        self._active = self._segments[-1]
        self._epochs.truncate_from_end(epochs_end)
        self.log_end_offset = end
        self.cut_to = min(self.cut_to, end)
        self._tail.truncate_to(end)
        self.recovery_point = min(self.recovery_point, end)
        self.log_start_offset = min(self.log_start_offset, end)
        self._forget_rolls()
        met = damage_met_by(self._active.read_largest_timestamp, self.rebuild_producers)
        if damage or met:
            raise CorruptRecord(f"{self.partition}: {damage or met}")

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Drops everything; the next record gets the offset.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self._reader.forget()
        for segment in self._segments:
            delete_segment(self.store, self.directory, segment)
        self._active = Segment.create(self.store, self.directory, offset, self.config)
        self._segments = [self._active]
        self._epochs.clear()
        self.log_start_offset = self.log_end_offset = self.recovery_point = self.cut_to = offset
        self._tail = Tail(offset, self.config.tail_bytes, self.config.tail_batches)
        self._forget_rolls()
        self._producers.start_over(self.store, self.directory, offset)

    def raise_log_start(self, offset: Offset) -> bool:
        """Raises the log start offset; returns False if it was not below the offset.

        Raises:
            DiskFailed: If the disk has failed or is full.

        Source: ``UnifiedLog.maybeIncrementLogStartOffset``.
        """
        if offset <= self.log_start_offset:
            return False
        self._epochs.truncate_from_start(offset)
        self.log_start_offset = offset
        self._producers.evict_below(offset)
        return True

    def roll(self) -> None:
        """Begins a new segment at the log end, unless the active one is empty.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self._roll(self.log_end_offset)

    def put_segments(self, at: int, count: int, instead: Sequence[Segment]) -> None:
        """Replaces ``count`` segments from number ``at`` on, never the active one, by others."""
        assert at + count < len(self._segments), "the active segment is never replaced"
        self._segments[at : at + count] = instead
        self._reader.forget()
        if instead:
            self._tail.forget_below(self._active.base_offset)
        self._count_bytes()

    # -- durability --------------------------------------------------------------------------------

    def flush_bytes(self, up_to: Offset | None = None) -> Bytes:
        """Bytes that :meth:`flush` would move to the platter now."""
        return sum(segment.dirty_bytes for segment in self._unflushed(up_to))

    def flush(self, up_to: Offset | None = None) -> Bytes:
        """Makes every record below ``up_to`` durable (default: all); the recovery point follows.

        Whole segments are synced, the one that holds the recovery point first.

        Returns:
            Bytes moved to the platter.

        Raises:
            DiskFailed: If the disk has failed.
        """
        target = self.log_end_offset if up_to is None else min(up_to, self.log_end_offset)
        moved = sum([segment.flush() for segment in self._unflushed(up_to)])
        for name in self._rolled_snapshots:
            if self.store.exists(name):
                moved += self.store.flush(name)
        self._rolled_snapshots.clear()
        self.recovery_point = max(self.recovery_point, target)
        return moved

    def take_rolled(self) -> RolledFlush | None:
        """Flush scheduled by rolls since the last call; pay for it, then ``flush(up_to)``."""
        up_to = self._rolled_to
        if up_to is None:
            return None
        self._rolled_to = None
        return RolledFlush(up_to, self.flush_bytes(up_to))

    def close(self) -> Bytes:
        """Clean close: last time index entry, producer snapshot, fsync; returns the bytes moved.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self._active.close_out()
        name = self._producers.take_snapshot(self.store, self.directory, self.log_end_offset)
        if name is not None:
            self._rolled_snapshots.append(name)
        return self.flush()

    def rebuild_producers(self) -> None:
        """Reads the producers again; DiskFailed if the disk failed, MalformedBytes at damage."""
        self._producers.rebuild(self.store, self.directory, self.log_end_offset, self.batches)
        self._producers.evict_below(self.log_start_offset)

    def rename_directory(self, name: str) -> None:
        """Renames the log's directory in its store; DiskFailed if the disk has failed."""
        self.store.rename_directory(self.directory, name)
        old, self.directory = len(self.directory), name
        self._rolled_snapshots = [name + snapshot[old:] for snapshot in self._rolled_snapshots]
        self._epochs.move_to(name)
        for segment in self._segments:
            segment.move_to(name)

    # -- inside ------------------------------------------------------------------------------------

    def _write(self, segment: Segment, batch: RecordBatch) -> None:
        """Appends a batch: once its file has it, it is in the log, even if a later step fails."""
        position = segment.write(batch)
        self._tail.add(batch)
        self.log_end_offset = batch.last_offset + 1
        segment.index_batch(position, batch)
        if batch.producer_id >= 0:
            completed = self._producers.update(batch)
            if completed is not None:
                self.transactions.complete(completed, segment)

    def _roll_for(self, batches: Sequence[AnyBatch], size: Bytes) -> None:
        """Rolls first if the set belongs into a new segment."""
        if not batches:
            return
        largest = batches[0].max_timestamp_ms
        if len(batches) > 1:
            largest = max([batch.max_timestamp_ms for batch in batches])
        if self._active.must_roll(size, largest, batches[-1].last_offset, self.config):
            # Kafka takes the first batch's offset: a cleaner's gap would look like a lost end.
            self._roll(self.log_end_offset)

    def _roll(self, base: Offset) -> Segment:
        """Begins a new segment at the offset.

        Source: ``LocalLog.roll``, ``UnifiedLog.roll``.
        """
        if self._active.size == 0 and self._active.base_offset == base:
            return self._active
        self._active.close_out()
        fresh = Segment.create(self.store, self.directory, base, self.config)
        fresh.start_bytes = self._active.start_bytes + self._active.size
        fresh.jitter_ms = self.draw_jitter_ms(self.config)
        self._segments.append(fresh)
        self._active = fresh
        name = self._producers.take_snapshot(self.store, self.directory, base)
        if name is not None:
            self._rolled_snapshots.append(name)
        self._rolled_to, self.store.has_rolled = base, True
        return fresh

    def _unflushed(self, up_to: Offset | None) -> list[Segment]:
        """Segments from the one that holds the recovery point to the one before ``up_to``."""
        first = self._segment_number(self.recovery_point)
        found = self._segments[first:]
        return found if up_to is None else [s for s in found if s.base_offset < up_to]

    def _segments_from(self, offset: Offset) -> list[Segment]:
        return self._segments[self._segment_number(offset) :]

    def _segment_number(self, offset: Offset) -> int:
        """Index of the segment that would hold the offset."""
        last = len(self._segments) - 1
        if offset >= self._segments[last].base_offset:
            return last
        return max(bisect_right(self._segments, offset, key=base_of) - 1, 0)

    def _byte_position(self, offset: Offset) -> Bytes:
        """Bytes before the offset in the whole log, to the precision of the index."""
        if offset >= self.log_end_offset:
            return self.size_bytes
        segment = self._segments[self._segment_number(offset)]
        return segment.start_bytes + segment.index.lookup(offset).position

    def _forget_rolls(self) -> None:
        if self._rolled_to is not None and self._rolled_to > self.log_end_offset:
            self._rolled_to = None

    def _count_bytes(self) -> None:
        total = 0
        for segment in self._segments:
            segment.start_bytes = total
            total += segment.size
