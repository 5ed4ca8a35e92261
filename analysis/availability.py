"""When a partition did not serve: gaps between acknowledgements, and between deliveries.

A *produce gap* is an interval without any acknowledgement of a batch of the partition, within the
time of its traffic: from the earliest instant at which a record of it was meant to be sent to the
latest acknowledgement or intended instant. A *fetch gap* is an interval without any delivery to a
consumer, within the time of traffic or up to the last delivery if that is later, on partitions that
somebody read. A gap therefore has the length of an outage plus the usual distance of batches, and a
partition with rarer traffic than the reported length has gaps that are no outage.
"""

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from sim.units import SECOND, Micros

REPORTED_FROM: Micros = SECOND
"""Gaps longer than this are listed; the longest of each partition always is."""

_PARTITION = ["topic", "partition"]


def traffic(client_batches: DataFrame) -> DataFrame:
    """Time of each partition's traffic; records join a batch in the order of their instants.

    Returns:
        ``DataFrame[topic, partition, start_us, end_us]``.
    """
    acked = f.when(f.col("outcome") == "ok", f.col("t_us"))
    meant_first = f.col("t_us") - f.try_element_at("latency_us", f.lit(1))
    meant_last = f.col("t_us") - f.try_element_at("latency_us", f.lit(-1))
    return client_batches.groupBy(*_PARTITION).agg(
        f.min(meant_first).alias("start_us"),
        f.greatest(f.max(acked), f.max(meant_last)).alias("end_us"),
    )


def produce_gaps(client_batches: DataFrame, spans: DataFrame) -> DataFrame:
    """All produce gaps.

    Args:
        client_batches: Trace table.
        spans: Rows of :func:`traffic`.

    Returns:
        ``DataFrame[topic, partition, from_us, to_us, gap_us]``.
    """
    served = client_batches.where(f.col("outcome") == "ok").select(*_PARTITION, "t_us")
    return _gaps(served, spans)


def fetch_gaps(reads: DataFrame, spans: DataFrame) -> DataFrame:
    """All fetch gaps of partitions that were read.

    Args:
        reads: Trace table.
        spans: Rows of :func:`traffic`.

    Returns:
        ``DataFrame[topic, partition, from_us, to_us, gap_us]``.
    """
    last = reads.groupBy(*_PARTITION).agg(f.max("t_us").alias("last_us"))
    longer = spans.join(last, _PARTITION).select(
        *_PARTITION, "start_us", f.greatest("end_us", "last_us").alias("end_us")
    )
    return _gaps(reads.select(*_PARTITION, "t_us"), longer)


def notable(gaps: DataFrame, longer_than: Micros = REPORTED_FROM) -> DataFrame:
    """Each partition's longest gap, and every gap longer than the given length.

    Returns:
        The rows of ``gaps`` with ``is_longest`` added; of equal gaps the earliest is the longest.
    """
    rank = f.struct(f.col("gap_us"), -f.col("from_us"), f.col("to_us"))
    every = Window.partitionBy(*_PARTITION)
    ranked = gaps.withColumn("is_longest", rank == f.max(rank).over(every))
    return ranked.where(f.col("is_longest") | (f.col("gap_us") > longer_than))


def _gaps(served: DataFrame, spans: DataFrame) -> DataFrame:
    ends = spans.select(*_PARTITION, f.explode(f.array("start_us", "end_us")).alias("t_us"))
    instants = served.unionByName(ends)
    order = Window.partitionBy(*_PARTITION).orderBy("t_us")
    return (
        instants.join(f.broadcast(spans), _PARTITION)
        .where(f.col("t_us").between(f.col("start_us"), f.col("end_us")))
        .select(*_PARTITION, f.lag("t_us").over(order).alias("from_us"), "t_us")
        .where(f.col("from_us").isNotNull())
        .select(
            *_PARTITION,
            "from_us",
            f.col("t_us").alias("to_us"),
            (f.col("t_us") - f.col("from_us")).alias("gap_us"),
        )
    )
