"""Gaps of service of partitions: records waited, and none was acknowledged, or delivered.

A record waits for its producer from the instant at which it was meant to be sent until the producer
has its outcome. Where that is a failure that a retry might have mended, the application waits until
its next record, if that is no more than a second later. A *produce gap* is a stretch of time
throughout which some record of the partition, or its application, waits and none is acknowledged. A
record waits for its readers from the same instant until a
consumer gets it or, if none ever does, until the partition's traffic ends: the last
acknowledgement, intended instant or delivery. A *fetch gap* is a stretch throughout which some
acknowledged record waits so and no consumer gets any record of the partition, on partitions that
were read. A partition without traffic has no gap.

Offsets identify the records of a read: the acknowledged batch that begins at or before them has
their instants.

Spark is not involved. A trace of 10^8 rows has five million batches and as many reads; 31 and 28
bytes of each are held, their records' latencies are looked at a row group at a time, and gaps are
found a partition at a time.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.spark import tables
from sim.error_codes import RETRIABLE_NAMES
from sim.units import SECOND, Micros

REPORTED_FROM: Micros = SECOND
"""Gaps longer than this are listed; the longest of each partition always is."""

_BATCHES: Final = ("t_us", "topic", "partition", "outcome", "error", "base_offset", "latency_us")
_READS: Final = ("t_us", "topic", "partition", "base_offset", "last_offset")
_PARTITION_BITS: Final = 32
_NEVER: Final = np.iinfo(np.int64).min

Column = npt.NDArray[Any]
Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Gaps:
    """All gaps of one partition on one side, in order of time."""

    side: Literal["produce", "fetch"]
    topic: str
    partition: int
    from_us: Numbers
    to_us: Numbers


@dataclass(frozen=True, slots=True)
class Waits:
    """Waits of one partition: since when, until when, and whether a retry might have helped."""

    start_us: Numbers
    stop_us: Numbers
    failed: Mask


class _Partitions:
    """Numbers of partitions, in the order in which they were found."""

    def __init__(self) -> None:
        self._topics: dict[str, int] = {}
        self._numbers: dict[int, int] = {}

    def numbered(self, rows: pa.Table) -> npt.NDArray[np.int32]:
        """The number of each row's partition."""
        topics = tables.codes(rows["topic"], self._topics) << _PARTITION_BITS
        # A record that was refused before it had a partition has -1.
        keys, places = np.unique(topics + 1 + rows["partition"].to_numpy(), return_inverse=True)
        known = [self._numbers.setdefault(key, len(self._numbers)) for key in keys.tolist()]
        found: npt.NDArray[np.int32] = np.array(known, np.int32)[places]
        return found

    def __len__(self) -> int:
        return len(self._numbers)

    def named(self) -> list[tuple[str, int, int]]:
        """Topic, partition and number of each, ordered."""
        topics = list(self._topics)
        mask = (1 << _PARTITION_BITS) - 1
        return sorted(
            (topics[key >> _PARTITION_BITS], (key & mask) - 1, number)
            for key, number in self._numbers.items()
        )


class _Columns:
    """Columns of a table in memory, filled a row group at a time.

    Args:
        count: Rows of all row groups.
        kinds: Type of each column.
    """

    def __init__(self, count: int, kinds: Mapping[str, npt.DTypeLike]) -> None:
        # Parts to be joined at the end would need twice the memory.
        self.whole: dict[str, Column] = {name: np.empty(count, kinds[name]) for name in kinds}
        self._filled = 0

    def add(self, rows: Mapping[str, Column]) -> None:
        """Adds the same rows of every column."""
        begin = self._filled
        for name, values in rows.items():
            self._filled = begin + len(values)
            self.whole[name][begin : self._filled] = values


class _Rows:
    """Columns of a table in memory, by partition.

    Args:
        columns: In the order of the trace.
        number: The partition's, of each row.
    """

    def __init__(self, columns: Mapping[str, Column], number: npt.NDArray[np.int32]) -> None:
        self._columns = columns
        self._order = np.argsort(number, kind="stable").astype(np.int32)
        self._ends = np.cumsum(np.bincount(number))

    def of(self, number: int) -> dict[str, Column]:
        """Columns of a partition's rows, in the order of the trace."""
        begin = self._ends[number - 1] if 0 < number <= len(self._ends) else 0
        end = self._ends[number] if number < len(self._ends) else begin
        mine = self._order[begin:end]
        return {name: column[mine] for name, column in self._columns.items()}


def gaps(run: Path) -> Iterator[Gaps]:
    """All gaps of both sides: of fetch, those of partitions that were read.

    Args:
        run: Run directory, with the trace tables ``client_batches`` and ``reads``.

    Returns:
        Gaps by side, ``produce`` first, then by topic and partition.

    Raises:
        SimulationError: If a table is of another version, or cannot be read.
    """
    partitions = _Partitions()
    batches, ends = _batches(run, partitions)
    yield from _of_producers(batches, partitions)
    yield from _of_readers(_reads(run, partitions), batches, ends, partitions)


def produce_gaps(run: Path) -> Iterator[Gaps]:
    """The gaps of :func:`gaps` of producers alone."""
    partitions = _Partitions()
    batches, _ = _batches(run, partitions)
    yield from _of_producers(batches, partitions)


def fetch_gaps(run: Path) -> Iterator[Gaps]:
    """The gaps of :func:`gaps` of readers alone."""
    partitions = _Partitions()
    batches, ends = _batches(run, partitions)
    yield from _of_readers(_reads(run, partitions), batches, ends, partitions)


def notable(found: Iterable[Gaps], longer_than: Micros = REPORTED_FROM) -> pd.DataFrame:
    """Each partition's longest gap, and every gap longer than the given length.

    Returns:
        ``[side, topic, partition, from_us, to_us, gap_us, is_longest]``, in the order of ``found``;
        of equal gaps the earliest is the longest.
    """
    sides: list[str] = []
    topics: list[str] = []
    columns: dict[str, list[Column]] = {
        "partition": [np.empty(0, np.int32)],
        "from_us": [np.empty(0, np.int64)],
        "to_us": [np.empty(0, np.int64)],
        "is_longest": [np.empty(0, np.bool_)],
    }
    for each in found:
        length = each.to_us - each.from_us
        is_longest = np.arange(len(length)) == np.argmax(length) if len(length) else length > 0
        shown = is_longest | (length > longer_than)
        count = int(shown.sum())
        sides += [each.side] * count
        topics += [each.topic] * count
        columns["partition"].append(np.full(count, each.partition, np.int32))
        columns["from_us"].append(each.from_us[shown])
        columns["to_us"].append(each.to_us[shown])
        columns["is_longest"].append(is_longest[shown])
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    return pd.DataFrame(
        {
            "side": pd.Series(sides, dtype=object),
            "topic": pd.Series(topics, dtype=object),
            "partition": whole["partition"],
            "from_us": whole["from_us"],
            "to_us": whole["to_us"],
            "gap_us": whole["to_us"] - whole["from_us"],
            "is_longest": whole["is_longest"],
        }
    )


def _batches(run: Path, partitions: _Partitions) -> tuple[_Rows, Numbers]:
    """Batches, and the last acknowledgement or intended instant of each partition.

    ``meant_us`` is the intended instant of the first record, the acknowledgement's without one.
    """
    kinds = {
        "number": np.int32, "t_us": np.int64, "meant_us": np.int64, "base_offset": np.int64,
        "has_records": np.bool_, "is_ok": np.bool_, "failed": np.bool_,
    }  # fmt: skip
    columns = _Columns(tables.rows(run, ["client_batches"]), kinds)
    ends = np.empty(0, np.int64)
    retriable = pa.array(RETRIABLE_NAMES)
    for rows in tables.row_groups(run, "client_batches", _BATCHES):
        number = partitions.numbered(rows)
        t_us = rows["t_us"].to_numpy()
        is_ok = pc.equal(rows["outcome"], "ok").to_numpy()
        has_records, first, last = _first_and_last(rows["latency_us"])
        columns.add(
            {
                "number": number,
                "t_us": t_us,
                "meant_us": t_us - first,
                "base_offset": rows["base_offset"].to_numpy(),
                "has_records": has_records,
                "is_ok": is_ok,
                "failed": ~is_ok & pc.is_in(rows["error"], retriable).to_numpy(),
            }
        )
        ends = np.pad(ends, (0, len(partitions) - len(ends)), constant_values=_NEVER)
        np.maximum.at(ends, number[is_ok], t_us[is_ok])
        np.maximum.at(ends, number[has_records], (t_us - last)[has_records])
    return _Rows(columns.whole, columns.whole.pop("number")), ends


def _first_and_last(lists: pa.ChunkedArray) -> tuple[Mask, Numbers, Numbers]:
    """True for lists that have members; the first and the last of each, 0 where there is none."""
    whole = lists.combine_chunks()
    lengths = whole.value_lengths().to_numpy()
    members = whole.flatten().to_numpy()
    has_any = lengths > 0
    ends = np.cumsum(lengths[has_any], dtype=np.int64)
    first, last = np.zeros(len(whole), np.int64), np.zeros(len(whole), np.int64)
    first[has_any] = members[ends - lengths[has_any]]
    last[has_any] = members[ends - 1]
    return has_any, first, last


def _reads(run: Path, partitions: _Partitions) -> _Rows:
    kinds = {"number": np.int32, "t_us": np.int64, "base_offset": np.int64, "last_offset": np.int64}
    columns = _Columns(tables.rows(run, ["reads"]), kinds)
    for rows in tables.row_groups(run, "reads", _READS):
        offsets = {name: rows[name].to_numpy() for name in ("t_us", "base_offset", "last_offset")}
        columns.add({"number": partitions.numbered(rows), **offsets})
    return _Rows(columns.whole, columns.whole.pop("number"))


def _of_producers(batches: _Rows, partitions: _Partitions) -> Iterator[Gaps]:
    for topic, partition, number in partitions.named():
        mine = batches.of(number)
        waiting = mine["has_records"]
        start, stop = mine["meant_us"][waiting], mine["t_us"][waiting]
        served = mine["t_us"][mine["is_ok"]]
        found = _between(Waits(start, stop, mine["failed"][waiting]), served)
        yield Gaps("produce", topic, partition, *found)


def _of_readers(
    reads: _Rows, batches: _Rows, ends: Numbers, partitions: _Partitions
) -> Iterator[Gaps]:
    for topic, partition, number in partitions.named():
        got = reads.of(number)
        if len(got["t_us"]):
            sent = batches.of(number)
            acked = sent["is_ok"] & (sent["base_offset"] >= 0)
            end_us = ends[number] if number < len(ends) else _NEVER
            waits = _readers_waits(got, sent["base_offset"][acked], sent["meant_us"][acked], end_us)
            yield Gaps("fetch", topic, partition, *_between(waits, got["t_us"]))


def _readers_waits(
    reads: dict[str, Column], offsets: Numbers, meant_us: Numbers, end_us: Micros
) -> Waits:
    """Waits of the acknowledged records of a partition, those that no consumer ever got last.

    Args:
        reads: At least one.
        offsets: First offsets of acknowledged batches.
        meant_us: Their intended instants.
        end_us: The partition's last acknowledgement or intended instant.
    """
    order = np.lexsort((meant_us, offsets))
    offsets, meant_us = offsets[order], meant_us[order]
    t_us = reads["t_us"]
    # Where no batch begins at or before the read, the place is that of the last element.
    places = np.searchsorted(offsets, reads["base_offset"], side="right") - 1
    start = np.minimum(t_us, np.append(meant_us, np.iinfo(np.int64).max)[places])
    stop = t_us
    never = meant_us[offsets > reads["last_offset"].max()]
    traffic_end = max(end_us, t_us.max())
    if len(never) and never.min() < traffic_end:
        start, stop = np.append(start, never.min()), np.append(stop, traffic_end)
    return Waits(start, stop, np.zeros(len(start), np.bool_))


def _between(waits: Waits, served: Numbers) -> tuple[Numbers, Numbers]:
    """Stretches in which at least one wait is open, cut where something was served.

    The number of open waits behind each instant determines the times of waiting. Where the last one
    ends by a failure, and the next begins shortly afterwards, the time between them counts, too.

    Returns:
        Begin and end of each stretch, in order.
    """
    every = np.sort(np.concatenate([waits.start_us, waits.stop_us, served]))
    is_another = np.ones(len(every), np.bool_)
    is_another[1:] = every[1:] != every[:-1]
    t_us = every[is_another]  # np.unique would take forty times as long for so many.
    begun = np.bincount(np.searchsorted(t_us, waits.start_us), minlength=len(t_us))
    ended = np.bincount(np.searchsorted(t_us, waits.stop_us), minlength=len(t_us))
    are_open = np.cumsum(begun - ended)
    is_soon = np.zeros(len(t_us), np.bool_)
    is_soon[:-1] = np.diff(t_us) <= REPORTED_FROM
    is_joined = (are_open == 0) & is_soon & _marked(t_us, waits.stop_us[waits.failed])
    is_waiting = (are_open > 0) | is_joined
    was_waiting = np.zeros(len(t_us), np.bool_)
    was_waiting[1:] = is_waiting[:-1]
    is_end = _marked(t_us, served) | ~is_waiting | ~was_waiting
    ends, lasts = t_us[is_end], is_waiting[is_end][:-1]
    return ends[:-1][lasts], ends[1:][lasts]


def _marked(t_us: Numbers, those: Numbers) -> Mask:
    """True for each of all instants, ordered, that is among those."""
    found = np.zeros(len(t_us), np.bool_)
    found[np.searchsorted(t_us, those)] = True
    return found
