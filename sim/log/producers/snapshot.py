"""One producer's state in one log, and the snapshot file that keeps it across a restart.

Source: ``ProducerStateEntry``, ``ProducerSnapshot.json``, ``ProducerStateManager.writeSnapshot``.
"""

import re
import struct
from collections import deque
from typing import NamedTuple

from crc32c import crc32c

from sim.ids import Offset, ProducerId
from sim.log.store.files import FileStore

REMEMBERED_BATCHES = 5
"""Batches remembered per producer; duplicates of older ones are out of order."""

SNAPSHOT_HEAD = struct.Struct(">hIi")
"""Version, checksum of what follows it, number of entries."""

SNAPSHOT_ENTRY = struct.Struct(">qhiqiqiq")
"""Producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first
offset of the open transaction."""

SNAPSHOT_VERSION = 1
"""The only version that is valid."""

LARGEST_SEQUENCE = (1 << 31) - 1
"""After it comes 0."""

_SNAPSHOT_NAME = re.compile(r"\d{20}\.snapshot")


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


def snapshot_offsets(store: FileStore, directory: str) -> list[Offset]:
    """Offsets of a partition's snapshot files, ascending."""
    names = store.names(directory)
    return [int(name[:20]) for name in names if _SNAPSHOT_NAME.fullmatch(name)]


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
