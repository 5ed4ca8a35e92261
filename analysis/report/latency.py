"""Latency of records: to their acknowledgement, by stage, and to their readers.

Latency counts from the instant at which a record was *meant* to be sent, so that time during which
a producer could not send counts (coordinated omission). All distributions are counted into the
buckets of :mod:`analysis.spark.histogram`. Times are microseconds; ``bin`` is an instant divided by
the width of the time axis. These are queries for frames of any number of runs, on any number of
machines; the report of one run has its numbers from :mod:`analysis.report.client_times`. Left out:
the stages of consumers' requests.
"""

from typing import Final

import numpy as np
import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analysis.spark import histogram
from sim.units import MS, Micros

STAGES: Final = (
    ("client queue", "first_sent_us", "created_us"),
    ("earlier attempts", "last_sent_us", "first_sent_us"),
    ("request on the network", "arrived_us", "last_sent_us"),
    ("waiting for a handler", "started_us", "arrived_us"),
    ("append", "decided_us", "started_us"),
    ("replication wait", "replied_us", "decided_us"),
    ("response on the network", "t_us", "replied_us"),
)
"""Name, end and start of each stage of a batch, in order; together they are all of its latency."""

_KEYS: Final = ["producer_index", "topic", "partition"]

ROWS_PER_DECADE: Final = 16
"""Rows of a heat map between a latency and its tenfold; the lowest row begins at 1 us."""

_FINE: Final = tuple(step * MS for step in (10, 20, 50, 100, 200, 500))
_COLUMNS: Final = 240


def fine_width(width_us: Micros, end_us: Micros) -> Micros:
    """Width of a heat map's column: the least that needs no more than 240, at most a bin's.

    It divides ``width_us``, a whole number of seconds.
    """
    return next((step for step in _FINE if end_us <= step * _COLUMNS), width_us)


def heat(counted: pd.DataFrame) -> pd.DataFrame:
    """Records by column and row of a heat map.

    Args:
        counted: ``[bin, bucket, records]`` of :func:`produce` or :func:`end_to_end`.

    Returns:
        ``DataFrame[bin, row, records]``; a row is the logarithm of the latency in microseconds, in
        steps of a decade's :data:`ROWS_PER_DECADE`.
    """
    middle = np.maximum(histogram.middle_of(counted["bucket"].to_numpy(np.int64)), 1)
    row = np.floor(np.log10(middle) * ROWS_PER_DECADE + 1e-9).astype(np.int32)
    return counted.assign(row=row).groupby(["bin", "row"], as_index=False).agg({"records": "sum"})


def bin_of(instant: Column, width_us: Micros) -> Column:
    """The bin of a time axis that an instant falls into; bins before zero are negative."""
    return f.floor(instant / width_us).cast("int")


def produce(client_batches: DataFrame, width_us: Micros) -> DataFrame:
    """Latency of acknowledged records, by topic and by the instant they were meant to be sent.

    Returns:
        What :func:`analysis.spark.histogram.count` returns, by ``topic, bin``.
    """
    records = client_batches.where(f.col("outcome") == "ok").select(
        "topic", "t_us", f.explode("latency_us").alias("took_us")
    )
    placed = records.select(
        "topic", bin_of(f.col("t_us") - f.col("took_us"), width_us).alias("bin"), "took_us"
    )
    return histogram.count(placed, ["topic", "bin"], "took_us")


def end_to_end(client_batches: DataFrame, reads: DataFrame, width_us: Micros) -> DataFrame:
    """From the intended instant to the poll that returned the record, once per reading group.

    Every return of a record counts, also the second one after a rebalance. A read belongs to the
    batch with the largest first record not above its own: one pass over both, sorted.

    Returns:
        What :func:`analysis.spark.histogram.count` returns, by ``topic, bin``; ``bin`` is of the
        intended instant.
    """
    sent = client_batches.select(
        *_KEYS,
        "first_record",
        f.lit(0).alias("kind"),
        f.struct("first_record", "t_us", "latency_us").alias("batch"),
        f.lit(None).cast("long").alias("read_us"),
        f.lit(0).alias("record_count"),
    )
    read = reads.where(f.col("producer_index") >= 0).select(
        *_KEYS,
        "first_record",
        f.lit(1).alias("kind"),
        f.lit(None).cast(sent.schema["batch"].dataType).alias("batch"),
        f.col("t_us").alias("read_us"),
        "record_count",
    )
    order = Window.partitionBy(*_KEYS).orderBy("first_record", "kind")
    matched = (
        sent.unionByName(read)
        .withColumn("batch", f.last("batch", ignorenulls=True).over(order))
        .where((f.col("kind") == 1) & f.col("batch").isNotNull())
    )
    skipped = (f.col("first_record") - f.col("batch.first_record")).cast("int")
    records = matched.select(
        "topic",
        "read_us",
        f.col("batch.t_us").alias("t_us"),
        f.explode(f.slice("batch.latency_us", skipped + 1, f.col("record_count"))).alias("took_us"),
    ).select(
        "topic",
        (f.col("t_us") - f.col("took_us")).alias("meant_us"),
        (f.col("read_us") - f.col("t_us") + f.col("took_us")).alias("took_us"),
    )
    placed = records.withColumn("bin", bin_of(f.col("meant_us"), width_us))
    return histogram.count(placed, ["topic", "bin"], "took_us")


def stages(client_batches: DataFrame, requests: DataFrame, width_us: Micros) -> DataFrame:
    """Time that acknowledged batches spent in each stage, by the instant they were acknowledged.

    Returns:
        What :func:`analysis.spark.histogram.count` returns, by ``stage, bin``; ``stage`` is the
        place in :data:`STAGES`; counts are of batches. Batches of ``acks=0`` and batches whose
        request was not traced are left out.
    """
    served = requests.where(f.col("kind") == "Produce").select(
        f.col("client").alias("producer"),
        f.col("node").alias("answered_by"),
        "correlation",
        "arrived_us",
        "started_us",
        "decided_us",
        f.col("t_us").alias("replied_us"),
    )
    ways = client_batches.where((f.col("outcome") == "ok") & (f.col("last_sent_us") >= 0)).join(
        served, ["producer", "answered_by", "correlation"]
    )
    parts = [
        f.struct(f.lit(place).alias("stage"), (f.col(end) - f.col(start)).alias("took_us"))
        for place, (_, end, start) in enumerate(STAGES)
    ]
    spent = ways.select(
        bin_of(f.col("t_us"), width_us).alias("bin"), f.explode(f.array(*parts)).alias("part")
    ).select("bin", "part.stage", "part.took_us")
    return histogram.count(spent, ["stage", "bin"], "took_us")
