"""Inputs of the verdict on one run, gathered from its trace and its disks.

Of every run ranges of records are counted without Spark: of each outcome, and, where no transaction
decides what is visible, of the final leaders' logs. What else may become of records, Spark joins.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from analysis.spark import tables
from analysis.verify import compaction, policy, survivors
from analysis.verify.headers import Headers
from analysis.verify.places import NUMBER_BITS, Levels, Records, together
from analysis.verify.transactions import TransactionTables

OUTCOMES: Final = {"acked": "ok", "failed": "failed", "unknown": "unknown"}
"""Outcomes of a batch at its producer, by the kind of range that it makes."""

_BATCHES: Final = (
    "topic", "partition", "producer_index", "first_record", "record_count", "outcome",
)  # fmt: skip
_LOG: Final = "broker int, topic string, partition int"


@dataclass(frozen=True, slots=True)
class RunData:
    """Inputs of the verdict on one run."""

    client_batches: DataFrame
    """Trace table."""
    survivors: DataFrame
    """Rows of :data:`analysis.verify.survivors.SCHEMA`."""
    leaders: DataFrame
    """Rows of :meth:`analysis.verify.headers.Headers.leaders`."""
    starts: DataFrame
    """Rows of :func:`analysis.verify.policy.starts`."""
    counted: DataFrame
    """``DataFrame[topic, partition, producer_index, first_record, record_count, acked, failed,
    unknown, present]``: ranges within which nothing changes, with the batches that hold each.
    ``present`` is 0 with transactions."""
    unreadable: pd.DataFrame
    """Rows of :meth:`analysis.verify.headers.Headers.unreadable`."""
    may_differ: bool
    """False if it is known that no replicas of a partition differ."""
    may_be_reordered: bool
    """False if it is known that every producer's records are in their order."""
    expired: DataFrame | None
    """Rows of :func:`analysis.verify.policy.expiry`; ``None`` if no log start ever moved."""
    leadership: DataFrame
    """Trace table."""
    ended: DataFrame | None
    """Rows of :func:`analysis.verify.policy.deleted`; ``None`` if no topic was deleted."""
    visited: DataFrame | None = None
    """Rows of :func:`analysis.verify.compaction.cleaned`; ``None`` without cleanings."""
    record_keys: DataFrame | None = None
    """Trace table; ``None`` without cleanings."""
    transactions: TransactionTables | None = None
    """``None`` without any."""
    contents: DataFrame | None = None
    """Trace table ``log_contents``; ``None`` without cleanings."""


def gather(
    spark: SparkSession, run: Path, replicas: Sequence[survivors.ReplicaFiles], place: Path
) -> RunData:
    """Read a run's trace and the files of its replicas.

    Args:
        spark: The session.
        run: Run directory.
        replicas: Its replicas.
        place: Directory of the table of survivors, which is made.

    Raises:
        SimulationError: If a table is of another version, or cannot be read.
    """

    def table(name: str) -> DataFrame:
        return tables.read(spark, run, name)

    def is_there(name: str) -> bool:
        return not tables.is_empty(run, name)

    found = survivors.table(spark, replicas, place)
    changes, leadership, log_starts = (
        table(name) for name in ("partition_changes", "leadership", "log_starts")
    )
    starts = policy.starts(tables.small(run, "log_starts"))
    headers = Headers(place, starts)
    leaders = headers.leaders(tables.small(run, "partition_changes"))
    parts = _transactions(table) if is_there("transaction_records") else None
    records = Records()
    present, is_behind = headers.led(leaders, records)
    counted = _counted(run, records, present if parts is None else Levels())
    expired = ended = visited = keys = contents = None
    if is_there("log_starts"):
        below = policy.expiry(log_starts, table("high_watermarks"), leadership)
        expired = tables.held(spark, below)
    if is_there("topic_deletions"):
        ended = tables.held(spark, policy.deleted(table("topic_deletions"), changes))
    if is_there("log_contents"):
        contents, keys = table("log_contents"), table("record_keys")
        visited = compaction.cleaned(contents)
    return RunData(
        table("client_batches"),
        found,
        spark.createDataFrame(leaders, "topic string, partition int, leader int"),
        spark.createDataFrame(starts, f"{_LOG}, start long"),
        spark.createDataFrame(counted),
        headers.unreadable(),
        # Cleaned logs are compared by their records, not by their headers.
        contents is not None or headers.do_logs_differ(),
        is_behind,
        expired,
        leadership,
        ended,
        visited,
        keys,
        parts,
        contents,
    )


def _counted(run: Path, records: Records, present: Levels) -> pa.Table:
    """Rows of :attr:`RunData.counted`."""
    levels = {kind: Levels() for kind in OUTCOMES} | {"present": present}
    for rows in tables.row_groups(run, "client_batches", _BATCHES):
        begin, count = records.placed(rows), rows["record_count"].to_numpy().astype(np.int64)
        for kind, outcome in OUTCOMES.items():
            is_so = pc.equal(rows["outcome"], outcome).to_numpy()
            levels[kind].add(begin[is_so], count[is_so])
    ranges = together(levels)
    begin = ranges.pop("begin")
    owners = pd.DataFrame(records.owners(), columns=["topic", "partition", "producer_index"])
    owners = owners.astype({"topic": object, "partition": np.int32, "producer_index": np.int32})
    frame = owners.take(begin >> NUMBER_BITS).reset_index(drop=True)
    frame["first_record"] = begin % (1 << NUMBER_BITS)
    frame["record_count"] = ranges.pop("count")
    whole = pa.Table.from_pandas(frame.assign(**ranges), preserve_index=False)
    return whole.set_column(0, "topic", whole["topic"].cast(pa.string()))


def _transactions(table: Callable[[str], DataFrame]) -> TransactionTables:
    return TransactionTables(
        table("transaction_records"),
        table("transaction_outcomes"),
        table("reads"),
        table("committed_readers"),
    )
