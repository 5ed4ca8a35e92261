"""Checks of Kafka's ``kafka-dump-log``: indexes against their log, and gaps in the offsets.

Source: ``DumpLogSegments.{dumpIndex,dumpTimeIndex,TimeIndexDumpErrors}``,
``OffsetIndex.sanityCheck``, ``TimeIndex.sanityCheck``.
"""

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from sim.errors import SimulationError
from sim.ids import Offset
from sim.log.partition.index import OFFSET_ENTRY, TIME_ENTRY, Place, Reached
from sim.log.partition.reading import (
    base_offset_of,
    file_batches,
    read_offset_index,
    read_time_index,
)
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch

MESSAGE_MAX: Bytes = 5 * 1024 * 1024
"""``--max-message-size``: how far a batch that an index points to may reach."""


@dataclass(slots=True)
class Complaints:
    """Complaints printed after all files, in Kafka's words."""

    lines: list[str] = field(default_factory=list)

    def gaps(self, path: Path, pairs: list[tuple[Offset, Offset]]) -> None:
        """Records that do not follow each other."""
        if pairs:
            self.lines.append(f"Non-consecutive offsets in {path.absolute()}")
            self.lines += [f"  {before} is followed by {after}" for before, after in pairs]

    def mismatches(self, path: Path, pairs: list[tuple[Offset, Offset]]) -> None:
        """Entries of an offset index that point to another batch."""
        if pairs:
            self.lines.append(f"Mismatches in :{path.absolute()}")
            self.lines += [
                f"  Index offset: {entry}, log offset: {found}" for entry, found in reversed(pairs)
            ]

    def times(self, path: Path, pairs: list[tuple[int, int]]) -> None:
        """Entries of a time index with a time that the batch does not have."""
        if pairs:
            self.lines.append(f"Found timestamp mismatch in :{path.absolute()}")
            self.lines += [f"  Index timestamp: {a}, log timestamp: {b}" for a, b in pairs]

    def unordered(self, path: Path, pairs: list[tuple[int, int]]) -> None:
        """Entries of a time index that do not grow."""
        if pairs:
            self.lines.append(f"Found out of order timestamp in :{path.absolute()}")
            self.lines += [
                f"  Index timestamp: {a}, Previously indexed timestamp: {b}" for a, b in pairs
            ]

    def not_found(self, path: Path, pairs: list[tuple[Offset, Offset]]) -> None:
        """Entries of a time index whose offset ends no batch."""
        if pairs:
            self.lines.append(f"The following indexed offsets are not found in :{path.absolute()}")
            self.lines += [f"Indexed offset: {a}, found log offset: {b}" for a, b in pairs]


def check_offset_index(path: Path, largest: Bytes, complaints: Complaints) -> Iterator[Place]:
    """Entries of an ``.index`` file, each checked against the batch it points to.

    Args:
        path: The file; its ``.log`` lies beside it.
        largest: A batch that is larger is not found.
        complaints: Get what is wrong.

    Raises:
        SimulationError: If there is no log beside it, or no batch where an entry points.
    """
    starts = dict(_log_of(path))
    wrong: list[tuple[Offset, Offset]] = []
    places = read_offset_index(path)
    for place in places[: _used([p.offset for p in places], base_offset_of(path))]:
        batch = starts.get(place.position)
        if batch is None or batch.size_bytes > largest:
            raise SimulationError(
                f"{path}: no batch of at most {largest} bytes at position {place.position}, where "
                f"the entry of offset {place.offset} points"
            )
        if batch.last_offset != place.offset:
            wrong.append((place.offset, batch.last_offset))
        yield place
    complaints.mismatches(path, wrong)


def check_time_index(path: Path, complaints: Complaints) -> Iterator[Reached]:
    """Entries of a ``.timeindex`` file, each checked against the batch that ends at its offset.

    Raises:
        SimulationError: If ``.log`` or ``.index`` do not lie beside it.
    """
    if not path.with_suffix(".index").is_file():
        raise SimulationError(f"{path}: no {path.with_suffix('.index').name} beside it")
    batches = [batch for _, batch in _log_of(path)]
    ends = [batch.last_offset for batch in batches]
    times: list[tuple[int, int]] = []
    unordered: list[tuple[int, int]] = []
    missing: list[tuple[Offset, Offset]] = []
    previous = -1
    entries = read_time_index(path)
    for reached in entries[: _used([e.offset for e in entries], base_offset_of(path))]:
        number = bisect_left(ends, reached.offset)
        if number == len(ends) or ends[number] != reached.offset:
            missing.append((reached.offset, ends[number] if number < len(ends) else -1))
        else:
            largest = max([record.timestamp_ms for record in batches[number].records()], default=-1)
            if largest != reached.timestamp_ms:
                times.append((reached.timestamp_ms, largest))
            if previous >= reached.timestamp_ms:
                unordered.append((reached.timestamp_ms, previous))
        previous = reached.timestamp_ms
        yield reached
    complaints.times(path, times)
    complaints.unordered(path, unordered)
    complaints.not_found(path, missing)


def sanity_check(path: Path) -> None:
    """The check by which a broker decides at its start whether an index must be rebuilt.

    Raises:
        SimulationError: If it must be.
    """
    base, size = base_offset_of(path), path.stat().st_size
    is_time = path.suffix == ".timeindex"
    entry = TIME_ENTRY.size if is_time else OFFSET_ENTRY.size
    if size % entry:
        raise SimulationError(f"{path}: {size} bytes found, a multiple of {entry} expected")
    entries = read_time_index(path) if is_time else read_offset_index(path)
    if entries and entries[-1].offset < base:
        raise SimulationError(
            f"{path}: last offset {entries[-1].offset} found, {base} or more expected"
        )
    times = read_time_index(path) if is_time else []
    if times and times[-1].timestamp_ms < times[0].timestamp_ms:
        raise SimulationError(
            f"{path}: last timestamp {times[-1].timestamp_ms} found, {times[0].timestamp_ms} or "
            "more expected"
        )


def _used(offsets: list[Offset], base: Offset) -> int:
    """Number of entries in use: a preallocated file ends in zeros, which read as the base."""
    for number, offset in enumerate(offsets):
        if number and offset == base:
            return number
    return len(offsets)


def _log_of(path: Path) -> list[tuple[Bytes, RecordBatch]]:
    log = path.with_suffix(".log")
    if not log.is_file():
        raise SimulationError(f"{path}: no {log.name} beside it; an index is held against its log")
    found: list[tuple[Bytes, RecordBatch]] = []
    with suppress(MalformedBytes):  # entries that point behind the damage find no batch
        found.extend(file_batches(log))
    return found
