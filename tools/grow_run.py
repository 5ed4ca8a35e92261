"""Makes a long run of a short one, to measure what reads runs: ``RUN_DIR TIMES OUT``.

What ten times as many rows are in reality is a cluster that goes on for ten times as long, with the
same servers, partitions and clients, and with its faults coming again. So the run is repeated as
stretches, one behind the other. In each stretch instants, offsets, record numbers, epochs,
generations, correlation ids and numbers of faults go on where the stretch before ended: no key
of a table occurs twice, logs of partitions become longer, and what a report sorts or joins by
partition grows with them. A stretch's segments are files of their own, as rolled segments are;
base offsets, epochs, timestamps and the numbers in record values are those of the stretch, and
checksums are made anew. Whatever is counted is TIMES as much as in the first run, which a test
holds the report to.

Approximate: between stretches everybody starts anew, at once; sequences and producer ids of
idempotent producers, and checksums in the table ``appends``, stay those of the first stretch.
Left out: indexes and checkpoints (a report reads none); compressed batches, cleaned or shortened
logs, transactions, tasks, mirrors, moves and deletions, of which a run is refused.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from crc32c import crc32c
from numpy.typing import NDArray

from sim.errors import SimulationError
from sim.trace.columns import ARROW_TYPES
from sim.trace.parquet import PartFiles
from sim.trace.schema import TABLES, Table
from sim.units import GIB, MS, SECOND, Bytes

Integers = NDArray[np.int64]
_Key = TypeVar("_Key", tuple[str, int], tuple[int, str, int])

KNOWN: Final = frozenset(
    (
        "client_batches", "appends", "high_watermarks", "follower_watermarks", "acknowledgements",
        "truncations", "recoveries", "reads", "positions", "commits", "groups", "assignments",
        "revocations", "leadership", "partition_changes", "quorum", "broker_states", "node_states",
        "throttles", "faults", "load", "lag", "requests", "messages", "disk_io",
    )
)  # fmt: skip
"""Tables that can be repeated; every other one must be empty."""

INSTANTS: Final = frozenset(
    (
        "t_us", "created_us", "first_sent_us", "last_sent_us", "sent_us", "arrived_us",
        "started_us", "decided_us",
    )
)  # fmt: skip
OFFSETS: Final = frozenset(
    (
        "base_offset", "last_offset", "high_watermark", "log_end_offset", "lowest_in_sync_end",
        "sent_by_leader", "from_offset", "to_offset", "recovery_point", "offset", "offset_before",
        "position", "committed",
    )
)  # fmt: skip
NUMBERED: Final = frozenset(
    (
        "leader_epoch", "partition_epoch", "epoch", "broker_epoch", "generation", "incarnation",
        "correlation", "fault",
    )
)  # fmt: skip
"""Columns that count up over a run."""

_ROWS: Final = 32_768
_ROWS_WITH_LISTS: Final = 4_096
"""Rows of a row group, as the simulator writes them."""

_OVERHEAD: Final = 12
_HEADER: Final = 61
_CRC_AT, _CRC_FROM = 17, 21
_VALUE: Final = re.compile(b"LQR1")


@dataclass(slots=True)
class Stretch:
    """By how much everything goes on from one stretch to the next."""

    took_us: int = 0
    offsets: dict[tuple[str, int], int] = field(default_factory=dict)
    """By topic and partition."""
    records: dict[tuple[int, str, int], int] = field(default_factory=dict)
    """By producer, topic and partition."""
    numbered: dict[str, int] = field(default_factory=dict)
    """By name of the column."""


def grow(run: Path, times: int, out: Path, segment_bytes: Bytes = GIB) -> int:
    """Write a run that is ``times`` as long as the given one.

    Args:
        run: A run directory that is complete.
        times: Stretches, at least one.
        out: Where to; must not exist.
        segment_bytes: Largest size of a segment file.

    Returns:
        The rows of its trace.

    Raises:
        SimulationError: If the run has what cannot be repeated.
    """
    tables = {table.name: _read(run, table) for table in TABLES}
    unknown = [n for n, found in tables.items() if n not in KNOWN and found.num_rows]
    if unknown:
        raise SimulationError(f"{run}: cannot be repeated: it has rows of {', '.join(unknown)}")
    stretch = measured(tables)
    out.mkdir(parents=True)
    for name in ("run.json", "scenario.yaml"):
        shutil.copy(run / name, out / name)
    for table in TABLES:
        _repeat(table, tables[table.name], stretch, times, out / "trace" / table.name)
    for log in sorted((run / "disks").glob("broker-*/*/*-*")):
        if log.name != "__cluster_metadata-0":
            paths = [path for path in sorted(log.glob("*.log")) if path.stat().st_size]
            segments = [_Segment(path, stretch) for path in paths]
            _repeat_log(segments, times, out / log.relative_to(run), segment_bytes)
    rows: int = times * sum(found.num_rows for found in tables.values())
    return rows


def _read(run: Path, table: Table) -> pa.Table:
    parts = sorted((run / "trace" / table.name).glob("part-*.parquet"))
    if not parts:
        schema = pa.schema([(c.name, ARROW_TYPES[c.type]) for c in table.columns])
        return schema.empty_table()
    return pa.concat_tables([pq.ParquetFile(part).read() for part in parts]).combine_chunks()


def measured(tables: Mapping[str, pa.Table]) -> Stretch:
    """How long the run took, how long its logs became, and how far its counters came."""
    stretch = Stretch()
    instants = [t["t_us"].to_numpy() for t in tables.values() if t.num_rows]
    first = min(int(found.min()) for found in instants)
    last = max(int(found.max()) for found in instants)
    stretch.took_us = -(-(last - first + 1) // SECOND) * SECOND
    for found in tables.values():
        names = set(found.column_names)
        for name in sorted(names & NUMBERED) if found.num_rows else ():
            most = int(found[name].to_numpy().max())
            stretch.numbered[name] = max(stretch.numbered.get(name, 0), most + 1)
        if {"topic", "partition"} <= names:
            _measure_places(found, names, stretch)
    return stretch


def _measure_places(found: pa.Table, names: set[str], stretch: Stretch) -> None:
    place = ["topic", "partition"]
    for name in sorted(names & OFFSETS):
        ends = found.group_by(place).aggregate([(name, "max")])
        for row in ends.to_pylist():
            key = (row["topic"], row["partition"])
            stretch.offsets[key] = max(stretch.offsets.get(key, 0), row[f"{name}_max"] + 1)
    if {"producer_index", "first_record", "record_count"} <= names:
        behind = pc.add(found["first_record"], found["record_count"])
        ends = found.append_column("behind", behind).group_by(["producer_index", *place])
        for row in ends.aggregate([("behind", "max")]).to_pylist():
            owner = (row["producer_index"], row["topic"], row["partition"])
            stretch.records[owner] = max(stretch.records.get(owner, 0), row["behind_max"])


def _repeat(table: Table, found: pa.Table, stretch: Stretch, times: int, place: Path) -> None:
    """Write one table, in row groups as long as the simulator's."""
    steps = {c.name: _step(c.name, found, stretch) for c in table.columns} if found.num_rows else {}
    has_list = any(column.type.startswith("list") for column in table.columns)
    size = _ROWS_WITH_LISTS if has_list else _ROWS
    files = PartFiles(table, place)
    held: list[pa.RecordBatch] = []
    for nth in range(times if found.num_rows else 0):
        columns = [
            found[name].combine_chunks() if step is None else _moved(found[name], step * nth)
            for name, step in steps.items()
        ]
        held.append(pa.RecordBatch.from_arrays(columns, names=list(steps)))
        if nth < times - 1 and sum(batch.num_rows for batch in held) < size:
            continue
        ready = pa.Table.from_batches(held).combine_chunks().to_batches()[0]
        whole = ready.num_rows if nth == times - 1 else ready.num_rows // size * size
        for start in range(0, whole, size):
            files.write(ready.slice(start, min(size, whole - start)).columns)
        held = [ready.slice(whole)] if whole < ready.num_rows else []
    files.close()


def _step(name: str, found: pa.Table, stretch: Stretch) -> Integers | None:
    """What each row's value grows by from stretch to stretch; ``None`` where it stays."""
    if name == "t_us":
        return np.full(found.num_rows, stretch.took_us)
    if name in INSTANTS:
        return np.where(found[name].to_numpy() == -1, 0, stretch.took_us)
    if name in NUMBERED:
        return np.where(found[name].to_numpy() < 0, 0, stretch.numbered[name])
    if name in OFFSETS and "topic" in found.column_names:
        return np.where(found[name].to_numpy() < 0, 0, _by_row(found, stretch.offsets))
    if name == "first_record":
        each = _by_row(found, stretch.records, "producer_index")
        return np.where(found[name].to_numpy() < 0, 0, each)
    return None


def _by_row(found: pa.Table, by_key: Mapping[_Key, int], *owner: str) -> Integers:
    columns = [found[name].to_pylist() for name in (*owner, "topic", "partition")]
    each = [by_key.get(key, 0) for key in zip(*columns, strict=True)]
    return np.array(each, dtype=np.int64)


def _moved(column: pa.ChunkedArray, by: Integers) -> pa.Array:
    moved: Integers = column.to_numpy() + by
    return pa.array(moved).cast(column.type)


# -- segments --------------------------------------------------------------------------------------


class _Segment:
    """A segment's bytes, and where in them stands what differs from stretch to stretch."""

    def __init__(self, path: Path, stretch: Stretch) -> None:
        self.topic, _, number = path.parent.name.rpartition("-")
        self.partition = int(number)
        self._path = path
        self._stretch = stretch
        data = path.read_bytes()
        self._bytes = np.frombuffer(data, dtype=np.uint8)
        starts, ends = _batches(data)
        if not starts or ends[-1] != len(data):
            raise self._refused("bytes that are no batch")
        self._starts = np.array(starts, dtype=np.int64)
        self._ends = np.array(ends, dtype=np.int64)
        if (self._get(self._starts + 21, ">i2") & 7).any():
            raise self._refused("compressed batches")
        self.base_offset = int(self._get(self._starts[:1], ">i8")[0])
        self._numbers, self._steps = self._records(data)

    def _refused(self, why: str) -> SimulationError:
        return SimulationError(f"{self._path}: cannot be repeated: it has {why}")

    def _records(self, data: bytes) -> tuple[Integers, Integers]:
        """Where record numbers stand, and by how much each grows."""
        found = np.array([match.start() for match in _VALUE.finditer(data)], dtype=np.int64)
        batch = np.searchsorted(self._starts, found, side="right") - 1
        held = np.bincount(batch, minlength=len(self._starts))
        counts = self._get(self._starts + 57, ">i4")
        first = np.concatenate(([0], np.cumsum(held)[:-1]))
        numbers = self._get(found + 8, ">i8")
        nth = np.arange(len(found)) - first[batch]
        straight = numbers - nth == numbers[first[batch]]
        if ((held != 0) & (held != counts)).any() or not straight.all():
            raise self._refused("records that are not numbered one after the other")
        producers = self._get(found + 4, ">i4").tolist()
        by_producer = {
            producer: self._stretch.records[producer, self.topic, self.partition]
            for producer in sorted(set(producers))
        }
        return found + 8, np.array([by_producer[p] for p in producers], dtype=np.int64)

    def _get(self, at: Integers, kind: str) -> Integers:
        width = np.dtype(kind).itemsize
        raw = self._bytes[at[:, None] + np.arange(width)]
        return np.ascontiguousarray(raw).view(kind).reshape(len(at)).astype(np.int64)

    def moved(self, nth: int) -> tuple[int, NDArray[np.uint8]]:
        """Base offset and bytes of the segment in a stretch."""
        stretch, starts, data = self._stretch, self._starts, self._bytes.copy()
        by = nth * stretch.offsets[self.topic, self.partition]
        later_ms = nth * stretch.took_us // MS
        for at, kind, step in (
            (starts, ">i8", np.int64(by)),
            (starts + 12, ">i4", np.int64(nth * stretch.numbered.get("leader_epoch", 0))),
            (starts + 27, ">i8", np.int64(later_ms)),
            (starts + 35, ">i8", np.int64(later_ms)),
            (self._numbers, ">i8", nth * self._steps),
        ):
            self._put(data, at, kind, self._get(at, kind) + step)
        view = data.data
        spans = zip((starts + _CRC_FROM).tolist(), self._ends.tolist(), strict=True)
        sums = np.array([crc32c(view[a:b]) for a, b in spans], dtype=np.int64)
        self._put(data, starts + _CRC_AT, ">u4", sums)
        return self.base_offset + by, data

    @staticmethod
    def _put(data: NDArray[np.uint8], at: Integers, kind: str, values: Integers) -> None:
        width = np.dtype(kind).itemsize
        raw = values.astype(kind).view(np.uint8).reshape(len(at), width)
        data[at[:, None] + np.arange(width)] = raw


def _batches(data: bytes) -> tuple[list[int], list[int]]:
    """Where the batches begin and end."""
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    while at + _HEADER <= len(data) and data[at + 16] == 2:
        end = at + _OVERHEAD + int.from_bytes(data[at + 8 : at + 12], "big")
        if end > len(data):
            break
        starts.append(at)
        ends.append(end)
        at = end
    return starts, ends


def _repeat_log(
    segments: Sequence[_Segment], times: int, place: Path, segment_bytes: Bytes
) -> None:
    """Write one replica's log."""
    place.mkdir(parents=True, exist_ok=True)
    path, size = place, segment_bytes
    for nth in range(times):
        for segment in segments:
            base, data = segment.moved(nth)
            if size + len(data) > segment_bytes:
                path, size = place / f"{base:020d}.log", 0
            with path.open("ab") as file:
                file.write(data.data)
            size += len(data)


def main(argv: list[str] | None = None) -> int:
    """The command: prints how many rows the trace has."""
    parser = argparse.ArgumentParser(prog="python -m tools.grow_run", description=__doc__)
    parser.add_argument("run", type=Path, metavar="RUN_DIR")
    parser.add_argument("times", type=int)
    parser.add_argument("out", type=Path)
    asked = parser.parse_args(argv)
    rows = grow(asked.run, asked.times, asked.out)
    sys.stdout.write(f"{rows} rows\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
