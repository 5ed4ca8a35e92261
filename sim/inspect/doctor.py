"""Examines log directories on disk and reports what is wrong with them.

It uses only the formats, not the run: batches against their checksums and each other, indexes and
epochs against batches, snapshots against what replaying the batches gives, checkpoints against
logs, partitions against the metadata log, and the syntax of every small file. It changes nothing.

Source: the checks of ``kafka-dump-log``; ``LogLoader`` and ``KafkaServer`` for what stops a start.
"""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from sim.errors import SimulationError
from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition
from sim.inspect.doctor_directory import (
    Extent,
    bounds,
    identity_of,
    leftovers,
    moved_nowhere,
    names,
    put_aside,
    same_ids,
    small_files,
    tried,
    twice,
)
from sim.inspect.doctor_metadata import (
    BOOTSTRAP,
    ClusterState,
    examine_bootstrap,
    examine_metadata,
    replicas_out_of_place,
)
from sim.inspect.doctor_producers import ProducerReplay
from sim.inspect.doctor_transactions import TransactionReplay
from sim.inspect.finding import Finding, Severity
from sim.log.directory.names import future_partition_of, partition_of
from sim.log.partition.index import OFFSET_ENTRY, TIME_ENTRY
from sim.log.partition.reading import (
    base_offset_of,
    file_batches,
    read_offset_index,
    read_time_index,
    segments,
)
from sim.log.store import checkpoints
from sim.log.store.checkpoints import MalformedCheckpoint
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes


class _Seen(NamedTuple):
    """Reference for the indexes of one segment, one item per batch."""

    last_offset: Offset
    position: Bytes
    max_timestamp_ms: int


class _Directory(NamedTuple):
    """Contents of one log directory."""

    path: Path
    node: NodeId | None
    partitions: tuple[TopicPartition, ...]
    state: ClusterState | None
    """The metadata that lies in it."""


def examine(directory: Path) -> list[Finding]:
    """Everything wrong with a log directory, or with all log directories below a directory.

    Args:
        directory: An entry of ``log.dirs``; or a server's disks, or those of a whole run.

    Raises:
        SimulationError: If there is no such directory.
    """
    if not directory.is_dir():
        raise SimulationError(f"{directory}: no such directory")
    roots = log_directories(directory)
    findings: list[Finding] = []
    seen = [_log_directory(root, findings) for root in roots]
    findings += same_ids(roots)
    findings += twice([(each.path, each.node, each.partitions) for each in seen])
    states: dict[NodeId, ClusterState] = {}
    for each in seen:
        if each.node is not None and each.state is not None:
            states[each.node] = each.state
    for each in seen:
        state = None if each.node is None else states.get(each.node)
        if each.node is not None and state is not None:
            findings += replicas_out_of_place(each.path, each.partitions, each.node, state)
    return findings


def log_directories(directory: Path) -> list[Path]:
    """The log directories at or below a directory, which itself is one if none is found."""
    if (directory / checkpoints.META_PROPERTIES).is_file():
        return [directory]
    found = sorted(path.parent for path in directory.rglob(checkpoints.META_PROPERTIES))
    return found or [directory]


def _log_directory(directory: Path, findings: list[Finding]) -> _Directory:
    findings += small_files(directory)
    findings += examine_bootstrap(directory / BOOTSTRAP)
    cleaned = _cleaned(directory)
    extents: dict[TopicPartition, Extent] = {}
    futures: dict[TopicPartition, Extent] = {}
    state: ClusterState | None = None
    for path in sorted(directory.iterdir()):
        if not path.is_dir():
            continue
        future = future_partition_of(path.name)
        partition = None if put_aside(path) else partition_of(path.name)
        findings += names(path, partition)
        if future is not None:
            # A broker loads it like any other log, and checkpoints it.
            clean_below = cleaned.get(future, 0)
            futures[future] = _Partition(path, findings, clean_below).examine(future)
        if partition is None:
            continue
        clean_below = cleaned.get(partition, 0)
        extents[partition] = _Partition(path, findings, clean_below).examine(partition)
        if partition == METADATA_PARTITION:
            state, more = examine_metadata(path, extents[partition].end)
            findings += more
    findings += bounds(directory, futures | extents)
    findings += moved_nowhere(directory, extents, futures)
    identity = identity_of(directory)
    return _Directory(
        directory, None if identity is None else identity.node_id, tuple(extents), state
    )


def _cleaned(directory: Path) -> dict[TopicPartition, Offset]:
    """End of a log's compacted part, in which offsets may be missing."""
    path = directory / checkpoints.CLEANER_OFFSETS
    try:
        return checkpoints.decode_offsets(path.read_bytes(), path.name)
    except (FileNotFoundError, MalformedCheckpoint):
        return {}


class _Partition:
    """One partition's directory."""

    def __init__(self, path: Path, findings: list[Finding], clean_below: Offset) -> None:
        self._path = path
        self._findings = findings
        self._clean_below = clean_below
        self._transactions = TransactionReplay(clean_below)
        self._producers = ProducerReplay(path, clean_below)
        self._epochs: list[tuple[int, Offset]] = []
        self._next: Offset | None = None

    def examine(self, partition: TopicPartition) -> Extent:
        """Checks every file; returns the log's first and last offsets."""
        self._metadata(partition)
        logs, strange = segments(self._path)
        for path in strange:
            self._add(path, "not named by a base offset: a broker does not start on it")
        if not logs:
            self._add(self._path, "no segment", severity="warning")
        for log in logs:
            self._segment(log, last=log == logs[-1])
        self._epoch_file()
        self._producers.finish(self._next or 0)
        self._findings += self._producers.findings
        self._findings += leftovers(self._path)
        self._findings += self._orphans([log.stem for log in logs])
        return Extent(base_offset_of(logs[0]) if logs else 0, self._next or 0)

    def _orphans(self, bases: list[str]) -> Iterator[Finding]:
        for path in sorted(self._path.glob("*index")):
            if path.suffix in {".index", ".timeindex", ".txnindex"} and path.stem not in bases:
                yield Finding(
                    path, "warning", "an index without its log: deleted at the next start"
                )

    def _add(self, path: Path, message: str, *, severity: Severity = "error") -> None:
        self._findings.append(Finding(path, severity, message))

    def _metadata(self, partition: TopicPartition) -> None:
        path = self._path / checkpoints.PARTITION_METADATA
        if path.is_file():
            self._findings += tried(path, checkpoints.decode_partition_metadata)
        elif partition != METADATA_PARTITION:
            self._add(path, "missing: a broker takes the directory for a stray one")

    def _segment(self, log: Path, *, last: bool) -> None:
        base = base_offset_of(log)
        if self._next is not None and self._is_gap(self._next, base):
            message = f"begins at {base}, the segment before it ends at {self._next}"
            if base > self._next:
                message += ": what lay between is lost, and recovery keeps both"
            self._add(log, message)
        self._next = base
        seen: list[_Seen] = []
        end = 0
        try:
            for position, batch in file_batches(log):
                end = position + batch.size_bytes
                if not batch.valid():
                    self._add(log, f"batch at position {position}: the checksum is wrong")
                if batch.base_offset < self._next <= batch.last_offset:
                    message = f"begins at {batch.base_offset}, below offset {self._next}, where "
                    message += "the log ended: before 0.11 a broker may not start on it"
                    self._add(log, f"batch at position {position} {message}")
                elif self._is_gap(self._next, batch.base_offset):
                    message = f"offset {self._next} is followed by {batch.base_offset}"
                    self._add(log, f"batch at position {position}: {message}")
                self._epoch(log, position, batch.leader_epoch, batch.base_offset)
                self._next = batch.last_offset + 1
                self._producers.add(batch)
                self._transactions.add(batch)
                seen.append(_Seen(batch.last_offset, position, batch.max_timestamp_ms))
        except MalformedBytes as error:
            self._add(log, str(error))
        left = log.stat().st_size - end
        if left:
            severity: Severity = "warning" if last and not self._is_clean() else "error"
            self._add(log, f"{left} bytes at the end are no whole batch", severity=severity)
        self._offset_index(log.with_suffix(".index"), seen)
        self._time_index(log.with_suffix(".timeindex"), seen)
        self._findings += self._transactions.check(log.with_suffix(".txnindex"))

    def _is_gap(self, expected: Offset, found: Offset) -> bool:
        """True if offsets are missing that compaction did not remove."""
        return found != expected and not expected < found <= self._clean_below

    def _is_clean(self) -> bool:
        """True after a clean shutdown: then nothing may be half written."""
        return (self._path.parent / checkpoints.CLEAN_SHUTDOWN).is_file()

    def _epoch(self, log: Path, position: Bytes, epoch: int, base: Offset) -> None:
        if not self._epochs or epoch > self._epochs[-1][0]:
            self._epochs.append((epoch, base))
        elif epoch < self._epochs[-1][0]:
            message = f"leader epoch {epoch} follows {self._epochs[-1][0]}"
            self._add(log, f"batch at position {position}: {message}")

    def _offset_index(self, path: Path, seen: list[_Seen]) -> None:
        if not path.is_file():
            self._add(path, "missing: the segment is recovered at the next start")
            return
        if path.stat().st_size % OFFSET_ENTRY.size:
            self._add(path, "ends within an entry", severity="warning")
        positions = {batch.last_offset: batch.position for batch in seen}
        previous = -1
        for offset, position in read_offset_index(path)[: self._used(path, OFFSET_ENTRY.size)]:
            if positions.get(offset) != position:
                self._add(path, f"no batch with last offset {offset} starts at {position}")
            if offset <= previous:
                self._add(path, f"offset {offset} follows {previous}")
            previous = offset

    def _used(self, path: Path, entry_bytes: Bytes) -> int:
        """Number of entries before the zeros of a preallocated index.

        A broker makes the index of an active segment ``segment.index.bytes`` long, and trims it
        when it rolls or stops cleanly (``AbstractIndex.trimToValidSize``).
        """
        data = path.read_bytes()
        used = -(-len(data.rstrip(b"\0")) // entry_bytes)
        zeros = len(data) - used * entry_bytes
        if zeros >= entry_bytes and self._is_clean():
            self._add(path, f"{zeros} bytes of zeros at the end, which a clean shutdown trims")
        return used

    def _time_index(self, path: Path, seen: list[_Seen]) -> None:
        if not path.is_file():
            self._add(path, "missing", severity="warning")
            return
        if path.stat().st_size % TIME_ENTRY.size:
            self._add(path, "ends within an entry", severity="warning")
        timestamps = {batch.last_offset: batch.max_timestamp_ms for batch in seen}
        previous = -1
        for timestamp, offset in read_time_index(path)[: self._used(path, TIME_ENTRY.size)]:
            if timestamps.get(offset) != timestamp:
                self._add(path, f"no batch with last offset {offset} has timestamp {timestamp}")
            if timestamp <= previous:
                self._add(path, f"timestamp {timestamp} follows {previous}")
            previous = timestamp

    def _log_start(self, first_epoch_at: Offset) -> Offset:
        """Log start offset, if above the first segment's base; else 0."""
        name = self._path.name
        if name == str(METADATA_PARTITION):
            taken = self._path.glob(f"{first_epoch_at:020d}-*.checkpoint")
            return first_epoch_at if any(taken) else 0
        path = self._path.parent / checkpoints.LOG_STARTS
        try:
            starts = checkpoints.decode_offsets(path.read_bytes(), path.name)
        except (FileNotFoundError, MalformedCheckpoint):
            return 0
        return next((offset for tp, offset in starts.items() if str(tp) == name), 0)

    def _epoch_file(self) -> None:
        path = self._path / checkpoints.LEADER_EPOCHS
        if not path.is_file():
            self._add(path, "missing", severity="warning")
            return
        try:
            entries = checkpoints.decode_epochs(path.read_bytes(), path.name)
        except MalformedCheckpoint as error:
            self._add(path, str(error))
            return
        for before, after in pairwise(entries):
            if after[0] <= before[0] or after[1] <= before[1]:
                self._add(path, f"entry {after} follows {before}")
        starts = dict(entries)
        head = self._log_start(entries[0][1] if entries else 0)
        for (epoch, base), (_, end) in pairwise([*self._epochs, (0, self._next or 0)]):
            if end <= head:
                continue  # below the log start, which lies within a segment
            start = starts.get(epoch)
            if start is None or (self._is_gap(start, base) and not base < start == head):
                message = f"epoch {epoch} begins at {base} in the log, not at {starts.get(epoch)}"
                self._add(path, message)
