"""Examines a log directory as it lies on disk and says what is wrong with it.

It knows only the formats, not the run: batches against their checksums and each other, indexes,
epochs and snapshots against batches, and the syntax of every small file. It changes nothing.

Source: the checks of ``kafka-dump-log``; ``LogLoader`` and ``KafkaServer`` for what stops a start.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Literal, NamedTuple

from sim.errors import SimulationError
from sim.ids import METADATA_PARTITION, Offset, TopicPartition
from sim.log import checkpoints
from sim.log.checkpoints import MalformedCheckpoint
from sim.log.index import OFFSET_ENTRY, TIME_ENTRY
from sim.log.manager import partition_of
from sim.log.producer_state import MalformedSnapshot, decode_snapshot
from sim.log.reading import (
    base_offset_of,
    file_batches,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from sim.log.transaction_index import ABORTED_ENTRY
from sim.units import Bytes
from sim.wire.control_batch import read_marker
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch

"""Type of the control record that aborts a transaction."""


class Finding(NamedTuple):
    """Something wrong with a file. A warning is legal after an unclean stop, an error never is."""

    path: Path
    severity: Literal["error", "warning"]
    message: str


class _Seen(NamedTuple):
    """What the indexes of one segment are checked against, one item per batch."""

    last_offset: Offset
    position: Bytes
    max_timestamp_ms: int


def examine(directory: Path) -> list[Finding]:
    """Everything wrong with a log directory (an entry of ``log.dirs``); empty if it is sound.

    Raises:
        SimulationError: If there is no such directory.
    """
    if not directory.is_dir():
        raise SimulationError(f"{directory}: no such directory")
    findings = list(_small_files(directory))
    cleaned = _cleaned(directory)
    ends: dict[TopicPartition, Offset] = {}
    for path in sorted(directory.iterdir()):
        if not path.is_dir() or path.name.endswith("-delete"):
            continue
        partition = partition_of(path.name)
        if partition is None:
            findings.append(Finding(path, "error", "not a partition's directory"))
            continue
        clean_below = cleaned.get(partition, 0)
        ends[partition] = _Partition(path, findings, clean_below).examine(partition)
    findings += _offsets_beyond(directory, ends)
    return findings


def _small_files(directory: Path) -> Iterator[Finding]:
    identity = directory / checkpoints.META_PROPERTIES
    if identity.is_file():
        yield from _try(identity, checkpoints.decode_identity)
    else:
        yield Finding(identity, "error", "missing: a broker does not start without it")
    for name in _CHECKPOINTS:
        path = directory / name
        if path.is_file():
            yield from _try(path, checkpoints.decode_offsets)


_CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_STARTS,
    checkpoints.CLEANER_OFFSETS,
)


def _cleaned(directory: Path) -> dict[TopicPartition, Offset]:
    """Below which offset a log was compacted: there offsets may be missing."""
    path = directory / checkpoints.CLEANER_OFFSETS
    try:
        return checkpoints.decode_offsets(path.read_bytes(), path.name)
    except (FileNotFoundError, MalformedCheckpoint):
        return {}


def _try(path: Path, decode: Callable[[bytes, str], object]) -> Iterator[Finding]:
    try:
        decode(path.read_bytes(), path.name)
    except MalformedCheckpoint as error:
        yield Finding(path, "error", str(error))


def _offsets_beyond(directory: Path, ends: dict[TopicPartition, Offset]) -> Iterator[Finding]:
    """Checkpointed offsets that the logs do not reach."""
    for name in (checkpoints.RECOVERY_POINTS, checkpoints.HIGH_WATERMARKS):
        path = directory / name
        try:
            offsets = checkpoints.decode_offsets(path.read_bytes(), name)
        except (FileNotFoundError, MalformedCheckpoint):
            continue
        for partition, offset in offsets.items():
            if offset > ends.get(partition, offset):
                message = f"{partition}: {offset} is beyond the log end {ends[partition]}"
                yield Finding(path, "warning", message)


class _Partition:
    """One partition's directory."""

    def __init__(self, path: Path, findings: list[Finding], clean_below: Offset) -> None:
        self._path = path
        self._findings = findings
        self._clean_below = clean_below
        self._aborted: dict[Offset, int] = {}
        self._epochs: list[tuple[int, Offset]] = []
        self._next: Offset | None = None

    def examine(self, partition: TopicPartition) -> Offset:
        """Check every file; returns the log end offset."""
        self._metadata(partition)
        logs = sorted(self._path.glob("*.log"))
        if not logs:
            self._note(self._path, "no segment", severity="warning")
        for log in logs:
            self._segment(log, last=log == logs[-1])
        self._epoch_file()
        for snapshot in sorted(self._path.glob("*.snapshot")):
            try:
                decode_snapshot(snapshot.read_bytes())
            except MalformedSnapshot as error:
                self._note(snapshot, str(error), severity="warning")
        return self._next or 0

    def _note(
        self, path: Path, message: str, *, severity: Literal["error", "warning"] = "error"
    ) -> None:
        self._findings.append(Finding(path, severity, message))

    def _metadata(self, partition: TopicPartition) -> None:
        path = self._path / checkpoints.PARTITION_METADATA
        if path.is_file():
            self._findings += _try(path, checkpoints.decode_partition_metadata)
        elif partition != METADATA_PARTITION:
            self._note(path, "missing: a broker takes the directory for a stray one")

    def _segment(self, log: Path, *, last: bool) -> None:
        base = base_offset_of(log)
        if self._next is not None and self._is_gap(self._next, base):
            self._note(log, f"begins at {base}, the segment before it ends at {self._next}")
        self._next = base
        seen: list[_Seen] = []
        end = 0
        try:
            for position, batch in file_batches(log):
                end = position + batch.size_bytes
                if not batch.valid():
                    self._note(log, f"batch at position {position}: the checksum is wrong")
                if self._is_gap(self._next, batch.base_offset):
                    message = f"offset {self._next} is followed by {batch.base_offset}"
                    self._note(log, f"batch at position {position}: {message}")
                self._epoch(log, position, batch.leader_epoch, batch.base_offset)
                self._next = batch.last_offset + 1
                if batch.is_control and batch.is_transactional:
                    self._marker(batch)
                seen.append(_Seen(batch.last_offset, position, batch.max_timestamp_ms))
        except MalformedBytes as error:
            self._note(log, str(error))
        left = log.stat().st_size - end
        if left:
            severity: Literal["error", "warning"] = "warning" if last else "error"
            self._note(log, f"{left} bytes at the end are no whole batch", severity=severity)
        self._offset_index(log.with_suffix(".index"), seen)
        self._time_index(log.with_suffix(".timeindex"), seen)
        self._transaction_index(log.with_suffix(".txnindex"))

    def _is_gap(self, expected: Offset, found: Offset) -> bool:
        """Whether offsets are missing that compaction has not taken."""
        return found != expected and not expected < found <= self._clean_below

    def _marker(self, batch: RecordBatch) -> None:
        marker = read_marker(batch)
        if marker is not None and not marker.commit:
            self._aborted[batch.last_offset] = batch.producer_id

    def _transaction_index(self, path: Path) -> None:
        """Each aborted transaction has its entry; compaction may have taken its marker."""
        markers, self._aborted = self._aborted, {}
        entries = read_transaction_index(path) if path.is_file() else []
        if path.is_file() and path.stat().st_size % ABORTED_ENTRY.size:
            self._note(path, "ends within an entry", severity="warning")
        for entry in entries:
            found = markers.pop(entry.last_offset, None)
            if found != entry.producer_id and entry.last_offset >= self._clean_below:
                message = f"no marker at {entry.last_offset} aborts producer {entry.producer_id}"
                self._note(path, message)
        for offset, producer in markers.items():
            self._note(path, f"the abort of producer {producer} at {offset} has no entry")

    def _epoch(self, log: Path, position: Bytes, epoch: int, base: Offset) -> None:
        if not self._epochs or epoch > self._epochs[-1][0]:
            self._epochs.append((epoch, base))
        elif epoch < self._epochs[-1][0]:
            message = f"leader epoch {epoch} follows {self._epochs[-1][0]}"
            self._note(log, f"batch at position {position}: {message}")

    def _offset_index(self, path: Path, seen: list[_Seen]) -> None:
        if not path.is_file():
            self._note(path, "missing: the segment is recovered at the next start")
            return
        if path.stat().st_size % OFFSET_ENTRY.size:
            self._note(path, "ends within an entry", severity="warning")
        positions = {batch.last_offset: batch.position for batch in seen}
        previous = -1
        for offset, position in read_offset_index(path):
            if positions.get(offset) != position:
                self._note(path, f"no batch with last offset {offset} starts at {position}")
            if offset <= previous:
                self._note(path, f"offset {offset} follows {previous}")
            previous = offset

    def _time_index(self, path: Path, seen: list[_Seen]) -> None:
        if not path.is_file():
            self._note(path, "missing", severity="warning")
            return
        if path.stat().st_size % TIME_ENTRY.size:
            self._note(path, "ends within an entry", severity="warning")
        timestamps = {batch.last_offset: batch.max_timestamp_ms for batch in seen}
        previous = -1
        for timestamp, offset in read_time_index(path):
            if timestamps.get(offset) != timestamp:
                self._note(path, f"no batch with last offset {offset} has timestamp {timestamp}")
            if timestamp <= previous:
                self._note(path, f"timestamp {timestamp} follows {previous}")
            previous = timestamp

    def _epoch_file(self) -> None:
        path = self._path / checkpoints.LEADER_EPOCHS
        if not path.is_file():
            self._note(path, "missing", severity="warning")
            return
        try:
            entries = checkpoints.decode_epochs(path.read_bytes(), path.name)
        except MalformedCheckpoint as error:
            self._note(path, str(error))
            return
        for before, after in pairwise(entries):
            if after[0] <= before[0] or after[1] <= before[1]:
                self._note(path, f"entry {after} follows {before}")
        starts = dict(entries)
        for epoch, base in self._epochs:
            start = starts.get(epoch)
            if start is None or self._is_gap(start, base):
                message = f"epoch {epoch} begins at {base} in the log, not at {starts.get(epoch)}"
                self._note(path, message)
