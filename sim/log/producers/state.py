"""State of every idempotent producer of a log, and Kafka's check of sequences.

Five batches are remembered per producer; snapshots keep only the last, as Kafka's do.

Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``; KIP-98, KIP-890.
"""

from collections.abc import Callable, Iterator

from sim.error_codes import ErrorCode
from sim.ids import Offset, ProducerId
from sim.log.producers.snapshot import (
    LARGEST_SEQUENCE,
    MalformedSnapshot,
    ProducerEntry,
    SeenBatch,
    decode_snapshot,
    encode_snapshot,
    snapshot_file,
    snapshot_offsets,
)
from sim.log.producers.transaction_index import AbortedTxn
from sim.log.producers.transactions import (
    CompletedTransaction,
    Transactions,
    Verifications,
    by_coordinator,
    is_by_coordinator,
)
from sim.log.store.files import FileStore
from sim.wire.control_batch import read_marker
from sim.wire.record_batch import RecordBatch

_EPOCH_FOR_EACH = 2
"""First version of transactions in which each has an epoch of its own, and its marker the next."""

_LAST_EPOCH = (1 << 15) - 1


class ProducerStates:
    """All producers of one log. ``end_offset``: exclusive end of the batches applied."""

    __slots__ = ("_entries", "_snapshot_offset", "end_offset", "transactions", "verifications")

    def __init__(self) -> None:
        self._entries: dict[ProducerId, ProducerEntry] = {}
        self._snapshot_offset: Offset = 0
        self.end_offset: Offset = 0
        self.transactions = Transactions()
        self.verifications = Verifications()

    @property
    def entries(self) -> dict[ProducerId, ProducerEntry]:
        """The states, in the order of first appearance. Not to be changed."""
        return self._entries

    def check(self, batch: RecordBatch) -> ErrorCode | SeenBatch:
        """Checks a client's batch outside transactions before it is appended.

        Returns:
            NONE if it may be; the remembered batch if it repeats that one; else Kafka's error.

        Source: ``ProducerStateEntry.findDuplicateBatch``, ``ProducerAppendInfo.checkProducerEpoch``
        and ``checkSequence``.
        """
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return ErrorCode.NONE
        if entry.transaction_start >= 0:
            return self._check_outside(batch, entry)
        if batch.producer_epoch == entry.epoch and batch.base_sequence == entry.last_sequence + 1:
            return ErrorCode.NONE
        return _check_sequence(batch, entry)

    def check_transactional(self, batch: RecordBatch, guard: int) -> ErrorCode | SeenBatch:
        """Checks a transaction's data batch before it is appended; returns as :meth:`check` does.

        INVALID_TXN_STATE means that it begins an unverified transaction here.

        Args:
            batch: The batch.
            guard: What its verification gave, or one of the constants for those that need none.

        Source: ``UnifiedLog.analyzeAndValidateProducerState``, ``ProducerAppendInfo``.
        """
        coordinators = is_by_coordinator(guard)
        if coordinators:
            guard = by_coordinator(guard)
        producer = batch.producer_id
        entry = self._entries.get(producer)
        seen = None if entry is None or coordinators else _duplicate(batch, entry)
        if seen is not None:
            return seen
        verifications = self.verifications
        if not self.is_ongoing(producer, batch.producer_epoch) and not verifications.admits(
            producer, guard
        ):
            return ErrorCode.INVALID_TXN_STATE
        if entry is not None and batch.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinators:
            return ErrorCode.NONE
        is_known = entry is not None and bool(entry.batches)
        if verifications.refuses(producer, batch.base_sequence, is_known=is_known):
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return ErrorCode.NONE if entry is None else _check_sequence(batch, entry)

    def check_marker(
        self,
        producer: ProducerId,
        producer_epoch: int,
        coordinator_epoch: int,
        version: int = 0,
    ) -> ErrorCode:
        """Checks a coordinator's marker before it is appended: NONE, or the fencing error.

        Of a transaction of version 2 the epoch is a later one than that of its records; the same
        epoch is a marker that is repeated, if nothing is open (KIP-1228, KAFKA-19999).

        Source: ``ProducerAppendInfo.appendEndTxnMarker``, ``checkProducerEpoch`` (4.2).
        """
        entry = self._entries.get(producer)
        if entry is None:
            return ErrorCode.NONE
        is_late = version >= _EPOCH_FOR_EACH and producer_epoch == entry.epoch
        if producer_epoch < entry.epoch or (is_late and self._is_open(entry)):
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return ErrorCode.NONE

    @staticmethod
    def _is_open(entry: ProducerEntry) -> bool:
        return entry.transaction_start >= 0 and entry.epoch < _LAST_EPOCH

    def is_ongoing(self, producer: ProducerId, epoch: int) -> bool:
        """True if the producer has an open transaction of that epoch here."""
        entry = self._entries.get(producer)
        return entry is not None and entry.transaction_start >= 0 and entry.epoch == epoch

    def _check_outside(self, batch: RecordBatch, entry: ProducerEntry) -> ErrorCode | SeenBatch:
        """A batch outside transactions, of a producer that has one open."""
        verdict = _check_sequence(batch, entry)
        return ErrorCode.INVALID_TXN_STATE if verdict is ErrorCode.NONE else verdict

    def update(self, batch: RecordBatch) -> CompletedTransaction | None:
        """Adds a written batch that has a producer id, unchecked.

        Returns:
            The transaction that a marker has ended; ``None`` for data and for a marker of no
            transaction. It stays open until :meth:`complete`.
        """
        producer = batch.producer_id
        if not batch.record_count and batch.is_control:
            return None  # its transaction has been compacted away
        entry = self._entries.get(producer)
        if entry is None:
            entry = self._entries[producer] = ProducerEntry(batch.producer_epoch)
        elif entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches.clear()
        entry.timestamp_ms = batch.max_timestamp_ms
        if batch.is_control:
            return self._end(batch, entry)
        delta = batch.last_offset_delta
        first = batch.base_sequence
        last = first + delta
        if last > LARGEST_SEQUENCE:
            last -= LARGEST_SEQUENCE + 1
        entry.batches.append(
            SeenBatch(first, last, batch.last_offset, delta, batch.max_timestamp_ms)
        )
        if batch.is_transactional:
            self.verifications.end(producer)
            if entry.transaction_start < 0:
                entry.transaction_start = batch.base_offset
                self.transactions.begin(producer, batch.base_offset)
        return None

    def _end(self, batch: RecordBatch, entry: ProducerEntry) -> CompletedTransaction | None:
        marker = read_marker(batch)
        if marker is None:
            return None
        producer = batch.producer_id
        self.verifications.on_marker(producer, batch.producer_epoch)
        start, entry.transaction_start = entry.transaction_start, -1
        entry.coordinator_epoch = marker.coordinator_epoch
        if start < 0:
            return None
        return CompletedTransaction(producer, start, batch.base_offset, not marker.commit)

    def complete(self, completed: CompletedTransaction) -> Offset:
        """Completes a transaction whose marker is in the log: readers wait only for its commit.

        Returns:
            The last stable offset for the index of aborted transactions.
        """
        stable = self.transactions.stable_after(completed)
        self.transactions.complete(completed)
        return stable

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forgets producers silent for longer, unless a transaction is open; returns how many."""
        self.verifications.expire(now_ms, expiration_ms)
        silent = [
            producer
            for producer, entry in self._entries.items()
            if entry.transaction_start < 0 and now_ms - entry.timestamp_ms >= expiration_ms
        ]
        for producer in silent:
            del self._entries[producer]
        return len(silent)

    def evict_below(self, log_start: Offset) -> None:
        """Follows the log start; producers stay until they expire (KIP-360)."""

    def start_over(self, store: FileStore, directory: str, offset: Offset) -> None:
        """Clears everything, snapshots too; the state begins at the offset.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``ProducerStateManager.truncateFullyAndStartAt``.
        """
        for taken in snapshot_offsets(store, directory):
            store.delete(snapshot_file(directory, taken))
        self._forget()
        self.end_offset = offset

    def load_snapshot(self, data: bytes, offset: Offset) -> None:
        """Loads a snapshot file's contents; its name has the offset.

        Raises:
            MalformedSnapshot: If checksum, version or size is wrong.
        """
        entries = decode_snapshot(data)
        self._entries = dict(entries)
        for producer, entry in entries:
            if entry.transaction_start >= 0:
                self.transactions.begin(producer, entry.transaction_start)
        self.end_offset = self._snapshot_offset = offset

    def take_snapshot(self, store: FileStore, directory: str, offset: Offset) -> str | None:
        """Writes ``<offset>.snapshot`` into the page cache, if the state has changed.

        Returns:
            The file's name, ``None`` if there was nothing to write.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self.end_offset = offset
        if offset <= self._snapshot_offset:
            return None
        name = snapshot_file(directory, offset)
        store.create(name).append(encode_snapshot(self._entries))
        self._snapshot_offset = offset
        return name

    def rebuild(
        self,
        store: FileStore,
        directory: str,
        end: Offset,
        batches: Callable[[Offset], Iterator[RecordBatch]],
    ) -> None:
        """Loads the newest good snapshot up to the log end, then replays the batches after it.

        Snapshots above the log end, and damaged ones, are deleted.

        Args:
            store: Where the log is.
            directory: The partition's directory.
            end: Log end offset.
            batches: The log's batches from an offset on.

        Raises:
            DiskFailed: If the disk has failed.
            MalformedBytes: If a header is damaged; what lies before it has been replayed.

        Source: ``ProducerStateManager.truncateAndReload``, ``UnifiedLog.rebuildProducerState``.
        """
        self._forget()
        self.end_offset = 0
        for offset in reversed(snapshot_offsets(store, directory)):
            name = snapshot_file(directory, offset)
            if offset > end:
                store.delete(name)
                continue
            try:
                self.load_snapshot(store.read_whole(name) or b"", offset)
            except MalformedSnapshot:
                store.delete(name)
                continue
            break
        start, self.end_offset = self.end_offset, end
        if start < end:
            for batch in batches(start):
                if batch.producer_id >= 0:
                    self._replay(batch)

    def replay_aborted(
        self,
        store: FileStore,
        directory: str,
        start: Offset,
        batches: Callable[[Offset], Iterator[RecordBatch]],
    ) -> Iterator[AbortedTxn]:
        """Entries that the index of aborted transactions needs from the offset on.

        For segments that were recovered: begins from the newest good snapshot at or below the
        offset, and deletes none.

        Args:
            store: Where the log is.
            directory: The partition's directory.
            start: Base offset of the first recovered segment.
            batches: The log's batches from an offset on.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``LogLoader.recoverSegment``, ``LogSegment.updateProducerState``.
        """
        for offset in reversed(snapshot_offsets(store, directory)):
            if offset <= start:
                try:
                    data = store.read_whole(snapshot_file(directory, offset))
                    self.load_snapshot(data or b"", offset)
                except MalformedSnapshot:
                    continue
                break
        for batch in batches(self.end_offset):
            completed = self._replay(batch) if batch.producer_id >= 0 else None
            if completed is not None and completed[0].aborted and batch.base_offset >= start:
                transaction, stable = completed
                yield AbortedTxn(
                    batch.producer_id, transaction.first_offset, batch.base_offset, stable
                )

    def _replay(self, batch: RecordBatch) -> tuple[CompletedTransaction, Offset] | None:
        completed = self.update(batch)
        return None if completed is None else (completed, self.complete(completed))

    def _forget(self) -> None:
        self._entries.clear()
        self.transactions.clear()
        self.verifications.clear()
        self._snapshot_offset = 0


def advance_sequence(sequence: int, by: int) -> int:
    """Increments a sequence number; after 2,147,483,647 comes 0."""
    advanced = sequence + by
    return advanced if advanced <= LARGEST_SEQUENCE else advanced - LARGEST_SEQUENCE - 1


def _check_sequence(batch: RecordBatch, entry: ProducerEntry) -> ErrorCode | SeenBatch:
    """Checks epoch and sequence of a client's batch against its producer's state."""
    first = batch.base_sequence
    if batch.producer_epoch != entry.epoch:
        if batch.producer_epoch < entry.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        return ErrorCode.NONE if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    last_sequence = entry.last_sequence
    if first == last_sequence + 1:
        return ErrorCode.NONE
    seen = _duplicate(batch, entry)
    if seen is not None:
        return seen
    if first == 0 and last_sequence == LARGEST_SEQUENCE:
        return ErrorCode.NONE
    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def _duplicate(batch: RecordBatch, entry: ProducerEntry) -> SeenBatch | None:
    """The remembered batch that this one repeats.

    Source: ``ProducerStateEntry.findDuplicateBatch``.
    """
    if batch.producer_epoch != entry.epoch:
        return None
    first = batch.base_sequence
    last = advance_sequence(first, batch.last_offset_delta)
    for seen in entry.batches:
        if seen.first_sequence == first and seen.last_sequence == last:
            return seen
    return None
