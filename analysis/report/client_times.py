"""Latencies of records, stages of batches and outcomes of one run, counted.

Spark is not involved: every record has a latency or two, every batch seven stages, and a bucket and
a bin of each are a few operations of numpy on a row group, where Spark makes a row of each. Of a
batch 16 bytes are held, of a read 32, of a produce request 40. The counts are those of
:mod:`analysis.report.latency`, whose queries notebooks use over any number of runs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from analysis.report.latency import STAGES
from analysis.spark import histogram, tables
from analysis.verify.places import NUMBER_BITS, Numbers, Records, Requests
from sim.units import Micros

NAMES: Final = ("produce", "end_to_end")

_SUMS: Final = {"records": "sum", "top_us": "max", "sum_us": "sum"}
_KEYS: Final = ("topic", "partition", "producer_index", "first_record")
_BATCHES: Final = ("t_us", "topic", "outcome", "latency_us")
_READS: Final = ("t_us", *_KEYS, "record_count")
_REQUESTS: Final = (
    "t_us", "kind", "client", "node", "correlation", "arrived_us", "started_us", "decided_us",
)  # fmt: skip
_SENT: Final = (
    "t_us", "producer", "answered_by", "correlation", "outcome", "created_us", "first_sent_us",
    "last_sent_us",
)  # fmt: skip
_OUTCOMES: Final = ("t_us", "outcome", "record_count", "size_bytes")

Frames = tuple[pd.DataFrame, pd.DataFrame]


def latencies(run: Path, width_us: Micros) -> Mapping[str, Frames]:
    """Latencies of ``produce`` and ``end_to_end``, in two passes over the batches.

    Args:
        run: Run directory, with the trace tables ``client_batches`` and ``reads``.
        width_us: Width of a bin of the time axis; bins are of the intended instants.

    Returns:
        By name the counts of :func:`analysis.spark.histogram.count`, by ``bin`` and by ``topic``.

    Raises:
        SimulationError: If a table is of another version, or cannot be read.
    """
    records = Records()
    reads = _matched(run, records)
    topics: dict[str, int] = {}
    counted = {name: _Counted(width_us) for name in NAMES}
    place = 0
    for rows in tables.row_groups(run, "client_batches", _BATCHES):
        batches = _Batches.of(rows, topics)
        is_ok = pc.equal(rows["outcome"], "ok").to_numpy()
        each = np.repeat(is_ok, batches.lengths)
        counted["produce"].add(
            np.repeat(batches.topic, batches.lengths)[each],
            np.repeat(batches.t_us, batches.lengths)[each] - batches.took_us[each],
            batches.took_us[each],
        )
        counted["end_to_end"].add(*reads.of(batches, place))
        place += rows.num_rows
    return {name: each.frames(list(topics)) for name, each in counted.items()}


def stages(run: Path, width_us: Micros) -> pd.DataFrame:
    """Time that acknowledged batches spent in each stage, by the instant they were acknowledged.

    Args:
        run: Run directory, with the trace tables ``client_batches`` and ``requests``; without the
            second, which is of level ``detail``, there is nothing to count.
        width_us: Width of a bin of the time axis.

    Returns:
        Counts by ``stage, bin``, those of :func:`analysis.report.latency.stages`.

    Raises:
        SimulationError: If a table is of another version, or cannot be read.
    """
    placing = Requests()
    served, times = _served(run, placing)
    found: list[pd.DataFrame] = []
    for rows in tables.row_groups(run, "client_batches", _SENT):
        sent = pc.and_(pc.equal(rows["outcome"], "ok"), pc.greater_equal(rows["last_sent_us"], 0))
        batches = rows.filter(sent)
        key = placing.placed(batches, "producer", "answered_by")
        first, behind = (np.searchsorted(served, key, side) for side in ("left", "right"))
        counts = behind - first
        place = _stretches(first, counts)
        way = {name: column[place] for name, column in times.items()} | {
            name: np.repeat(batches[name].to_numpy(), counts)
            for name in ("t_us", "created_us", "first_sent_us", "last_sent_us")
        }
        bins = way["t_us"] // width_us * len(STAGES)
        for stage, (_, end, start) in enumerate(STAGES if len(place) else ()):
            took_us = way[end] - way[start]
            found.append(_count(bins + stage, histogram.buckets_of(took_us), took_us))
    counted = _merged(found)
    keys = counted.pop("key")
    counted.insert(0, "stage", (keys % len(STAGES)).astype(np.int32))
    counted.insert(1, "bin", (keys // len(STAGES)).astype(np.int32))
    return counted


def outcomes(run: Path, width_us: Micros) -> pd.DataFrame:
    """Records by the instant at which their producer had the outcome.

    Args:
        run: Run directory, with the trace table ``client_batches``.
        width_us: Width of a bin of the time axis.

    Returns:
        ``[bin, outcome, records, bytes]``, in this order.

    Raises:
        SimulationError: If the table is of another version, or cannot be read.
    """
    found = []
    for rows in tables.row_groups(run, "client_batches", _OUTCOMES):
        bins = (rows["t_us"].to_numpy() // width_us).astype(np.int32)
        texts = rows["outcome"].cast(pa.string())
        columns = {
            "bin": pa.array(bins), "outcome": texts,
            "records": rows["record_count"], "bytes": rows["size_bytes"],
        }  # fmt: skip
        whole = pa.table(columns).group_by(["bin", "outcome"])
        found.append(whole.aggregate([("records", "sum"), ("bytes", "sum")]))
    summed = pa.concat_tables(found).group_by(["bin", "outcome"])
    totals = summed.aggregate([("records_sum", "sum"), ("bytes_sum", "sum")])
    frame: pd.DataFrame = totals.rename_columns(["bin", "outcome", "records", "bytes"]).to_pandas()
    return frame.sort_values(["bin", "outcome"], ignore_index=True)


@dataclass(frozen=True, slots=True)
class _Batches:
    """Batches of a row group, and the latencies of all of their records, one after the other."""

    topic: Numbers
    t_us: Numbers
    lengths: Numbers
    took_us: Numbers

    @classmethod
    def of(cls, rows: pa.Table, topics: dict[str, int]) -> "_Batches":
        lists = rows["latency_us"].combine_chunks()
        return cls(
            tables.codes(rows["topic"], topics),
            rows["t_us"].to_numpy(),
            lists.value_lengths().to_numpy().astype(np.int64),
            lists.flatten().to_numpy().astype(np.int64),
        )


class _Reads:
    """Reads, in the order of the batches whose records they returned.

    Args:
        batch: Number of each read's batch, in the order of the trace, ascending.
        skipped: Records of the batch before the first one that was read.
        count: Records that were read.
        t_us: Instant of the read.
    """

    def __init__(self, batch: Numbers, skipped: Numbers, count: Numbers, t_us: Numbers) -> None:
        self._batch = batch
        self._skipped = skipped
        self._count = count
        self._t_us = t_us

    def of(self, batches: _Batches, place: int) -> tuple[Numbers, Numbers, Numbers]:
        """Topic, intended instant and latency of each record of some batches that was read.

        Args:
            batches: Those from number ``place`` on.
            place: Number of the first.
        """
        bounds = np.searchsorted(self._batch, (place, place + len(batches.t_us)))
        mine = slice(*bounds)
        batch = self._batch[mine] - place
        # What a batch does not have was not read from it.
        counts = np.clip(batches.lengths[batch] - self._skipped[mine], 0, self._count[mine])
        ends = np.cumsum(batches.lengths)
        begin = ends[batch] - batches.lengths[batch] + self._skipped[mine]
        took_us = batches.took_us[_stretches(begin, counts)]
        meant_us = np.repeat(batches.t_us[batch], counts) - took_us
        read_us = np.repeat(self._t_us[mine], counts)
        return np.repeat(batches.topic[batch], counts), meant_us, read_us - meant_us


def _served(run: Path, placing: Requests) -> tuple[Numbers, dict[str, Numbers]]:
    """Places of produce requests, ascending, and the instants of each at its broker."""
    names = {
        "arrived_us": "arrived_us", "started_us": "started_us", "decided_us": "decided_us",
        "replied_us": "t_us",
    }  # fmt: skip
    places: list[Numbers] = []
    parts: dict[str, list[Numbers]] = {name: [] for name in names}
    for rows in tables.row_groups(run, "requests", _REQUESTS):
        produce = rows.filter(pc.equal(rows["kind"], "Produce"))
        places.append(placing.placed(produce, "client", "node"))
        for name, column in names.items():
            parts[name].append(produce[column].to_numpy())
    whole = np.concatenate(places)
    order = np.argsort(whole, kind="stable")
    return whole[order], {name: np.concatenate(each)[order] for name, each in parts.items()}


def _matched(run: Path, records: Records) -> _Reads:
    """Each read with its batch: that with the largest first record not above the read's own."""
    groups = tables.row_groups(run, "client_batches", _KEYS)
    batches = np.concatenate([records.placed(rows) for rows in groups])
    order = np.argsort(batches, kind="stable")
    batches = batches[order]
    found: list[tuple[Numbers, ...]] = []
    for rows in tables.row_groups(run, "reads", _READS):
        known = rows.filter(pc.greater_equal(rows["producer_index"], 0))
        first = records.placed(known)
        place = np.searchsorted(batches, first, side="right") - 1
        skipped = first - np.append(batches, 0)[place]
        # Below a pair's own batches another pair's end.
        is_sent = (place >= 0) & (
            np.append(batches, 0)[place] >> NUMBER_BITS == first >> NUMBER_BITS
        )
        columns = (
            np.append(order, 0)[place],
            skipped,
            known["record_count"].to_numpy().astype(np.int64),
            known["t_us"].to_numpy(),
        )
        found.append(tuple(column[is_sent] for column in columns))
    batch, skipped, count, t_us = (np.concatenate(parts) for parts in zip(*found, strict=True))
    by_batch = np.argsort(batch, kind="stable")
    return _Reads(batch[by_batch], skipped[by_batch], count[by_batch], t_us[by_batch])


def _stretches(begin: Numbers, counts: Numbers) -> Numbers:
    """Numbers from each beginning on, so many of each."""
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    found: Numbers = np.repeat(begin, counts) + within
    return found


class _Counted:
    """Latencies of one kind, counted by bin and by topic."""

    def __init__(self, width_us: Micros) -> None:
        self._width_us = width_us
        self._bins: list[pd.DataFrame] = []
        self._topics: list[pd.DataFrame] = []

    def add(self, topic: Numbers, meant_us: Numbers, took_us: Numbers) -> None:
        """Counts some records."""
        if not len(took_us):
            return
        bucket = histogram.buckets_of(took_us)
        self._bins.append(_count(meant_us // self._width_us, bucket, took_us))
        self._topics.append(_count(topic, bucket, took_us))

    def frames(self, topics: list[str]) -> Frames:
        """Counts by ``bin`` and by ``topic``."""
        timed, others = _merged(self._bins), _merged(self._topics)
        named = np.array(topics, object)[others["key"].to_numpy()]
        return (
            timed.rename(columns={"key": "bin"}).astype({"bin": np.int32}),
            others.assign(key=named).rename(columns={"key": "topic"}),
        )


def _count(key: Numbers, bucket: Numbers, took_us: Numbers) -> pd.DataFrame:
    """Counts by key and bucket; keys are close to one another."""
    least, width = int(key.min()), int(bucket.max()) + 1
    place = (key - least) * width + bucket
    records = np.bincount(place)
    top_us = np.full(len(records), np.iinfo(np.int64).min)
    np.maximum.at(top_us, place, took_us)
    # Sums of whole numbers below 2^53 are exact.
    sum_us = np.bincount(place, weights=took_us).astype(np.int64)
    there = np.flatnonzero(records)
    columns = {
        "key": there // width + least, "bucket": (there % width).astype(np.int32),
        "records": records[there], "top_us": top_us[there], "sum_us": sum_us[there],
    }  # fmt: skip
    return pd.DataFrame(columns)


def _merged(parts: list[pd.DataFrame]) -> pd.DataFrame:
    nothing = _count(np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))[:0]
    whole = pd.concat(parts) if parts else nothing
    return whole.groupby(["key", "bucket"], as_index=False).agg(_SUMS)
