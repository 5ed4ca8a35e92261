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
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from sim.error_codes import RETRIABLE_NAMES
from sim.units import SECOND, Micros

REPORTED_FROM: Micros = SECOND
"""Gaps longer than this are listed; the longest of each partition always is."""

_PARTITION: Final = ["topic", "partition"]
_SIDE: Final = ["side", *_PARTITION]
_WAIT: Final = (*_SIDE, "start_us", "stop_us", "failed")

Parts = tuple[DataFrame, DataFrame]
"""Waits, and instants at which something was served; of one side or of both."""


def gaps(client_batches: DataFrame, reads: DataFrame) -> DataFrame:
    """All gaps of both sides, in one pass: of fetch, those of partitions that were read.

    Args:
        client_batches: Trace table.
        reads: Trace table.

    Returns:
        ``DataFrame[side, topic, partition, from_us, to_us, gap_us]``; ``side`` is ``produce`` or
        ``fetch``.
    """
    waits, served = _of_producers(client_batches)
    more_waits, more_served = _of_readers(reads, client_batches)
    return _gaps(waits.union(more_waits), served.union(more_served))


def produce_gaps(client_batches: DataFrame) -> DataFrame:
    """The gaps of :func:`gaps` of producers alone."""
    return _gaps(*_of_producers(client_batches))


def fetch_gaps(reads: DataFrame, client_batches: DataFrame) -> DataFrame:
    """The gaps of :func:`gaps` of readers alone."""
    return _gaps(*_of_readers(reads, client_batches))


def _of_producers(client_batches: DataFrame) -> Parts:
    may_be_retried = (f.col("outcome") != "ok") & f.col("error").isin(*RETRIABLE_NAMES)
    side = f.lit("produce").alias("side")
    waits = client_batches.where(f.size("latency_us") > 0).select(
        side,
        *_PARTITION,
        _meant(1).alias("start_us"),
        f.col("t_us").alias("stop_us"),
        may_be_retried.cast("int").alias("failed"),
    )
    served = client_batches.where(f.col("outcome") == "ok").select(side, *_PARTITION, "t_us")
    return waits, served


def _of_readers(reads: DataFrame, client_batches: DataFrame) -> Parts:
    side = f.lit("fetch").alias("side")
    acked = client_batches.where((f.col("outcome") == "ok") & (f.col("base_offset") >= 0)).select(
        *_PARTITION,
        f.col("base_offset").alias("offset"),
        f.coalesce(_meant(1), f.col("t_us")).alias("meant_us"),
    )
    nothing = f.lit(None).cast("long")
    both = acked.withColumn("t_us", nothing).unionByName(
        reads.select(
            *_PARTITION, f.col("base_offset").alias("offset"), nothing.alias("meant_us"), "t_us"
        )
    )
    below = Window.partitionBy(*_PARTITION).orderBy(
        "offset", f.col("t_us").asc_nulls_first(), "meant_us"
    )
    known = f.last("meant_us", ignorenulls=True).over(
        below.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    got = (
        both.withColumn("known_us", known)
        .where(f.col("t_us").isNotNull())
        .select(
            *_PARTITION,
            f.least("t_us", f.coalesce("known_us", "t_us")).alias("start_us"),
            f.col("t_us").alias("stop_us"),
        )
    )
    every = got.union(_never_read(reads, client_batches, acked))
    waits = every.withColumns({"side": side, "failed": f.lit(0)}).select(*_WAIT)
    return waits, reads.select(side, *_PARTITION, "t_us")


def _never_read(reads: DataFrame, client_batches: DataFrame, acked: DataFrame) -> DataFrame:
    """The time in which acknowledged records waited that no consumer ever got."""
    acked_at = f.when(f.col("outcome") == "ok", f.col("t_us"))
    ends = client_batches.groupBy(*_PARTITION).agg(
        f.greatest(f.max(acked_at), f.max(_meant(-1))).alias("end_us")
    )
    last = reads.groupBy(*_PARTITION).agg(
        f.max("last_offset").alias("last_offset"), f.max("t_us").alias("last_us")
    )
    return (
        acked.join(f.broadcast(last), _PARTITION)
        .where(f.col("offset") > f.col("last_offset"))
        .groupBy(*_PARTITION, "last_us")
        .agg(f.min("meant_us").alias("start_us"))
        .join(ends, _PARTITION)
        .select(*_PARTITION, "start_us", f.greatest("end_us", "last_us").alias("stop_us"))
        .where(f.col("start_us") < f.col("stop_us"))
    )


def _meant(place: int) -> Column:
    """Intended instant of the record at that place of a batch; places count from 1, or -1."""
    return f.col("t_us") - f.try_element_at("latency_us", f.lit(place))


def notable(gaps: DataFrame, longer_than: Micros = REPORTED_FROM) -> DataFrame:
    """Each partition's longest gap, and every gap longer than the given length.

    Returns:
        The rows of ``gaps`` with ``is_longest`` added; of equal gaps the earliest is the longest.
    """
    rank = f.struct(f.col("gap_us"), -f.col("from_us"), f.col("to_us"))
    every = Window.partitionBy(*_SIDE)
    ranked = gaps.withColumn("is_longest", rank == f.max(rank).over(every))
    return ranked.where(f.col("is_longest") | (f.col("gap_us") > longer_than))


def _gaps(waits: DataFrame, served: DataFrame) -> DataFrame:
    """Stretches in which at least one wait is open, cut where something was served.

    One pass over all instants: the number of open waits behind each determines the times of
    waiting. Where the last one ends by a failure, and the next begins shortly afterwards, the time
    between them counts, too.
    """
    no = f.lit(False)  # noqa: FBT003 - a literal of Spark's
    edge = f.explode(
        f.array(
            f.struct(
                f.col("start_us").alias("t_us"), f.lit(1).alias("opened"), f.lit(0).alias("failed")
            ),
            f.struct(f.col("stop_us").alias("t_us"), f.lit(-1).alias("opened"), f.col("failed")),
        )
    )
    edges = waits.select(*_SIDE, edge.alias("edge")).select(
        *_SIDE, "edge.t_us", "edge.opened", "edge.failed", f.lit(0).alias("served")
    )
    marks = served.select(
        *_SIDE,
        "t_us",
        f.lit(0).alias("opened"),
        f.lit(0).alias("failed"),
        f.lit(1).alias("served"),
    )
    order = Window.partitionBy(*_SIDE).orderBy("t_us")
    upwards = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    instants = edges.unionByName(marks).groupBy(*_SIDE, "t_us")
    is_soon = f.lead("t_us").over(order) - f.col("t_us") <= REPORTED_FROM
    before = f.lag("is_joined", 1).over(order)
    was_waiting = (f.col("open") > f.col("opened")) | f.coalesce(before, no)
    is_waiting = (f.col("open") > 0) | f.col("is_joined")
    return (
        instants.agg(
            f.sum("opened").alias("opened"),
            f.max("failed").alias("failed"),
            f.max("served").alias("served"),
        )
        .withColumn("open", f.sum("opened").over(upwards))
        .withColumn(
            "is_joined",
            f.coalesce((f.col("open") == 0) & (f.col("failed") > 0) & is_soon, no),
        )
        .withColumn("was_waiting", was_waiting)
        .where((f.col("served") > 0) | ~is_waiting | ~f.col("was_waiting"))
        .select(
            *_SIDE,
            is_waiting.alias("is_waiting"),
            f.col("t_us").alias("from_us"),
            f.lead("t_us").over(order).alias("to_us"),
        )
        .where(f.col("is_waiting") & f.col("to_us").isNotNull())
        .select(*_SIDE, "from_us", "to_us", (f.col("to_us") - f.col("from_us")).alias("gap_us"))
    )
