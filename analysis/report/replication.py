"""Leadership and in-sync replicas over time, as the controller committed them.

Left out: the brokers' view (table ``leadership``), which can be late.
"""

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from sim.units import Micros

_PARTITION = ["topic", "partition"]


def spans(partition_changes: DataFrame, high_watermarks: DataFrame, end_us: Micros) -> DataFrame:
    """Intervals within which a partition's state does not change.

    Args:
        partition_changes: Trace table.
        high_watermarks: Trace table, for the effective ``min.insync.replicas``.
        end_us: End of the last interval of each partition.

    Returns:
        ``DataFrame[topic, partition, from_us, to_us, leader, leader_epoch, partition_epoch,
        in_sync, in_sync_count, replicas, replica_count, min_in_sync, unclean, is_under_min]``.
        ``min_in_sync`` is 0 where no leader's row has it, and nothing is under it then.
    """
    order = Window.partitionBy(*_PARTITION).orderBy("t_us", "partition_epoch")
    least = high_watermarks.groupBy(*_PARTITION).agg(f.max("min_in_sync").alias("min_in_sync"))
    return (
        partition_changes.select(
            *_PARTITION,
            f.col("t_us").alias("from_us"),
            f.coalesce(f.lead("t_us").over(order), f.greatest(f.lit(end_us), "t_us")).alias(
                "to_us"
            ),
            "leader",
            "leader_epoch",
            "partition_epoch",
            "in_sync",
            _members("in_sync"),
            "replicas",
            _members("replicas").alias("replica_count"),
            "unclean",
        )
        .join(f.broadcast(least), _PARTITION, "left")
        .withColumn("min_in_sync", f.coalesce("min_in_sync", f.lit(0)))
        .withColumn("is_under_min", f.col("in_sync_count") < f.col("min_in_sync"))
    )


def totals(found: DataFrame) -> DataFrame:
    """Time of each partition without a leader, and under its minimum ISR.

    Args:
        found: Rows of :func:`spans`.

    Returns:
        ``DataFrame[topic, partition, leaderless_us, under_min_us, elections,
        unclean_elections]``; the first leader of a partition is no election.
    """
    took = f.col("to_us") - f.col("from_us")
    return found.groupBy(*_PARTITION).agg(
        f.sum(f.when(f.col("leader") < 0, took).otherwise(0)).alias("leaderless_us"),
        f.sum(f.when(f.col("is_under_min"), took).otherwise(0)).alias("under_min_us"),
        (f.count_distinct("leader_epoch") - 1).alias("elections"),
        f.sum(f.col("unclean").cast("int")).alias("unclean_elections"),
    )


def _members(column: str) -> Column:
    joined = f.col(column)
    return f.when(joined == "", 0).otherwise(f.size(f.split(joined, ","))).alias(f"{column}_count")
