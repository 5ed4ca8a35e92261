"""What a log remembers of every idempotent producer, and Kafka's check of sequences.

Five batches are remembered per producer; snapshots keep only the last, as Kafka's do. Transaction
verification (KIP-890) and the index of aborted transactions are absent; open transactions and their
markers are followed only as far as the snapshot file shows them.

Source: ``ProducerStateManager``, ``ProducerAppendInfo``, ``ProducerStateEntry``; KIP-98.
"""

import re
import struct
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from crc32c import crc32c

from sim.error_codes import ErrorCode
from sim.ids import Offset, ProducerId
from sim.log.files import FileStore
from sim.wire.record_batch import RecordBatch

REMEMBERED_BATCHES = 5
"""Duplicates of older batches are out of order."""

SNAPSHOT_HEAD = struct.Struct(">hIi")
"""Version, checksum of what follows it, number of entries."""

SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first
offset of the open transaction."""

SNAPSHOT_VERSION = 1
"""The only version that is valid."""

_LARGEST_SEQUENCE = (1 << 31) - 1
_SNAPSHOT_NAME = re.compile(r"\d{20}\.snapshot")
_MARKER_VALUE = struct.Struct(">hi")


class SeenBatch(NamedTuple):
    """A remembered batch; sequences and offsets are inclusive."""

    first_sequence: int
    last_sequence: int
    last_offset: Offset
    offset_delta: int
    timestamp_ms: int

    @property
    def first_offset(self) -> Offset:
        """Offset of its first record."""
        return self.last_offset - self.offset_delta


class MalformedSnapshot(ValueError):  # noqa: N818 - it names what was found
    """A producer snapshot cannot be used. ``args``: the message."""


class ProducerEntry:
    """One producer's state in one log."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "timestamp_ms", "transaction_start")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[SeenBatch] = deque(maxlen=REMEMBERED_BATCHES)
        self.timestamp_ms = -1
        self.coordinator_epoch = -1
        self.transaction_start: Offset = -1

    @property
    def last_sequence(self) -> int:
        """Of the last data batch of this epoch; -1 if there is none."""
        return self.batches[-1].last_sequence if self.batches else -1


class ProducerStates:
    """All producers of one log. ``end_offset`` is how far the state has come, exclusive."""

    __slots__ = ("_entries", "_snapshot_offset", "end_offset")

    def __init__(self) -> None:
        self._entries: dict[ProducerId, ProducerEntry] = {}
        self._snapshot_offset: Offset = 0
        self.end_offset: Offset = 0

    @property
    def entries(self) -> dict[ProducerId, ProducerEntry]:
        """The states, in the order of first appearance. Not to be changed."""
        return self._entries

    def check(self, batch: RecordBatch) -> ErrorCode | SeenBatch:
        """A client's batch is about to be appended.

        Returns:
            NONE if it may be; the remembered batch if it is a retry of that one; else Kafka's "no".

        Source: ``ProducerStateEntry.findDuplicateBatch``, ``ProducerAppendInfo.checkProducerEpoch``
        and ``checkSequence``.
        """
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return ErrorCode.NONE
        first = batch.base_sequence
        if batch.producer_epoch != entry.epoch:
            if batch.producer_epoch < entry.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH
            return ErrorCode.NONE if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        last_sequence = entry.last_sequence
        if first == last_sequence + 1:
            return ErrorCode.NONE
        last = advance_sequence(first, batch.last_offset_delta)
        for seen in entry.batches:
            if seen.first_sequence == first and seen.last_sequence == last:
                return seen
        if first == 0 and last_sequence == _LARGEST_SEQUENCE:
            return ErrorCode.NONE
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def update(self, batch: RecordBatch) -> None:
        """A batch with a producer id was written: remember it, unchecked."""
        producer = batch.producer_id
        if not batch.record_count and batch.is_control:
            return  # its transaction has been compacted away, and all that it said with it
        entry = self._entries.get(producer)
        if entry is None:
            entry = self._entries[producer] = ProducerEntry(batch.producer_epoch)
        elif entry.epoch != batch.producer_epoch:
            entry.epoch = batch.producer_epoch
            entry.batches.clear()
        entry.timestamp_ms = batch.max_timestamp_ms
        if batch.is_control:
            entry.coordinator_epoch = _coordinator_epoch(batch)
            entry.transaction_start = -1
            return
        delta = batch.last_offset_delta
        first = batch.base_sequence
        last = first + delta
        if last > _LARGEST_SEQUENCE:
            last -= _LARGEST_SEQUENCE + 1
        entry.batches.append(
            SeenBatch(first, last, batch.last_offset, delta, batch.max_timestamp_ms)
        )
        if batch.is_transactional and entry.transaction_start < 0:
            entry.transaction_start = batch.base_offset

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Forget producers silent for longer, unless a transaction is open; returns how many."""
        silent = [
            producer
            for producer, entry in self._entries.items()
            if entry.transaction_start < 0 and now_ms - entry.timestamp_ms >= expiration_ms
        ]
        for producer in silent:
            del self._entries[producer]
        return len(silent)

    def start_over(self, store: FileStore, directory: str, offset: Offset) -> None:
        """Forget everything, snapshots too; the state begins at the offset.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``ProducerStateManager.truncateFullyAndStartAt``.
        """
        for taken in snapshot_offsets(store, directory):
            store.delete(snapshot_file(directory, taken))
        self._entries.clear()
        self.end_offset = offset
        self._snapshot_offset = 0

    def load_snapshot(self, data: bytes, offset: Offset) -> None:
        """Take over a snapshot file's contents, whose name says the offset.

        Raises:
            MalformedSnapshot: If checksum, version or size is wrong.
        """
        entries = decode_snapshot(data)
        self._entries = dict(entries)
        self.end_offset = self._snapshot_offset = offset

    def take_snapshot(self, store: FileStore, directory: str, offset: Offset) -> str | None:
        """Write ``<offset>.snapshot`` into the page cache, if anything came since the last one.

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
        """Start from the newest good snapshot up to the log end, then replay the batches after it.

        Snapshots above the log end, and damaged ones, are deleted.

        Args:
            store: Where the log is.
            directory: The partition's directory.
            end: Log end offset.
            batches: The log's batches from an offset on.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``ProducerStateManager.truncateAndReload``, ``UnifiedLog.rebuildProducerState``.
        """
        self._entries.clear()
        self.end_offset = self._snapshot_offset = 0
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
        if self.end_offset < end:
            for batch in batches(self.end_offset):
                if batch.producer_id >= 0:
                    self.update(batch)
        self.end_offset = end


def snapshot_offsets(store: FileStore, directory: str) -> list[Offset]:
    """Offsets of a partition's snapshot files, ascending."""
    names = store.names(directory)
    return [int(name[:20]) for name in names if _SNAPSHOT_NAME.fullmatch(name)]


def advance_sequence(sequence: int, by: int) -> int:
    """A sequence number further on; after 2,147,483,647 comes 0."""
    advanced = sequence + by
    return advanced if advanced <= _LARGEST_SEQUENCE else advanced - _LARGEST_SEQUENCE - 1


def snapshot_file(directory: str, offset: Offset) -> str:
    """Name of the snapshot of everything below the offset."""
    return f"{directory}/{offset:020d}.snapshot"


def encode_snapshot(entries: dict[ProducerId, ProducerEntry]) -> bytes:
    """A snapshot file's contents, entries in the order in which Java's ``HashMap`` gives them."""
    rows = []
    for producer in _java_order(list(entries)):
        entry = entries[producer]
        last = entry.batches[-1] if entry.batches else SeenBatch(-1, -1, -1, 0, -1)
        rows.append(
            SNAPSHOT_ENTRY.pack(
                producer,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.timestamp_ms,
                entry.coordinator_epoch,
                entry.transaction_start,
            )
        )
    checked = struct.pack(">i", len(rows)) + b"".join(rows)
    return struct.pack(">hI", SNAPSHOT_VERSION, crc32c(checked)) + checked


def decode_snapshot(data: bytes) -> list[tuple[ProducerId, ProducerEntry]]:
    """Entries of a snapshot file.

    Raises:
        MalformedSnapshot: If checksum, version or size is wrong.
    """
    if len(data) < SNAPSHOT_HEAD.size:
        raise MalformedSnapshot(f"{len(data)} bytes are no producer snapshot")
    version, crc, count = SNAPSHOT_HEAD.unpack_from(data)
    if version != SNAPSHOT_VERSION:
        raise MalformedSnapshot(f"producer snapshot version {version} found, 1 expected")
    if crc != crc32c(data[6:]):
        raise MalformedSnapshot("the producer snapshot's checksum is wrong")
    if len(data) != SNAPSHOT_HEAD.size + count * SNAPSHOT_ENTRY.size:
        raise MalformedSnapshot(f"{count} entries declared in {len(data)} bytes")
    found = []
    for row in SNAPSHOT_ENTRY.iter_unpack(data[SNAPSHOT_HEAD.size :]):
        producer, epoch, sequence, offset, delta, timestamp, coordinator, transaction = row
        entry = ProducerEntry(epoch)
        entry.timestamp_ms = timestamp
        entry.coordinator_epoch = coordinator
        entry.transaction_start = transaction
        if sequence >= 0:
            first = sequence - delta if sequence >= delta else sequence - delta + (1 << 31)
            entry.batches.append(SeenBatch(first, sequence, offset, delta, timestamp))
        found.append((producer, entry))
    return found


def _java_order(producers: list[ProducerId]) -> list[ProducerId]:
    """Producer ids in the order of their buckets in a ``HashMap<Long, …>`` of that many entries."""
    table = 16
    while len(producers) > table * 3 // 4:
        table *= 2

    def bucket(producer: ProducerId) -> int:
        folded = (producer ^ producer >> 32) & 0xFFFFFFFF
        return (folded ^ folded >> 16) & table - 1

    return sorted(producers, key=bucket)


def _coordinator_epoch(batch: RecordBatch) -> int:
    record = next(batch.records())
    if record.value is None or len(record.value) != _MARKER_VALUE.size:
        return -1
    epoch: int = _MARKER_VALUE.unpack(record.value)[1]
    return epoch
