"""Removals by policy: from log starts, high watermarks and elections in the trace.

A missing record was removed lawfully if retention or a DeleteRecords request moved a log start
above its acknowledged offset, no further than the true high watermark of that instant, and if no
election had lost the record before: a later leader whose log ended at or below that offset when it
began never had it. Appends and truncations are not used, so this is independent of the checker
inside the simulator.

Source: ``UnifiedLog.deletableSegments``, ``UnifiedLog.maybeIncrementLogStartOffset``; KIP-101.
"""

from typing import Final

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

POLICIES: Final = ("retention.ms", "retention.bytes", "delete_records")
"""Reasons of ``log_starts`` that remove records lawfully."""

_PARTITION: Final = ["topic", "partition"]
_REPLICA: Final = ["broker", *_PARTITION]
_NEVER: Final = (1 << 62) - 1


def starts(log_starts: pd.DataFrame) -> pd.DataFrame:
    """Log start of each replica; a replica whose log start never moved is not listed.

    Args:
        log_starts: Trace table.

    Returns:
        ``[broker, topic, partition, start]``, in this order.
    """
    order = [*_REPLICA, "t_us", "to_offset"]
    last = log_starts.sort_values(order).drop_duplicates(_REPLICA, keep="last")
    named = last.rename(columns={"to_offset": "start"})[[*_REPLICA, "start"]]
    return named.reset_index(drop=True)


def expiry(log_starts: DataFrame, high_watermarks: DataFrame, leadership: DataFrame) -> DataFrame:
    """Offsets below which policy removed everything.

    Args:
        log_starts: Trace table.
        high_watermarks: Trace table.
        leadership: Trace table: a leader begins with a high watermark of its own.

    Returns:
        ``DataFrame[topic, partition, below]``, of partitions from which policy removed anything.
    """
    moved = log_starts.where(f.col("reason").isin(*POLICIES)).select(
        *_PARTITION, "t_us", f.col("to_offset").alias("to"), f.lit(None).cast("long").alias("high")
    )
    affected = moved.select(*_PARTITION).distinct()
    nothing = f.lit(None).cast("long").alias("to")
    high = f.col("high_watermark").alias("high")
    watermarks = high_watermarks.select(*_PARTITION, "t_us", nothing, high).unionByName(
        leadership.where(f.col("role") == "leader").select(*_PARTITION, "t_us", nothing, high)
    )
    so_far = (
        Window.partitionBy(*_PARTITION)
        .orderBy("t_us")
        .rangeBetween(Window.unboundedPreceding, Window.currentRow)
    )
    return (
        moved.unionByName(watermarks.join(f.broadcast(affected), _PARTITION, "left_semi"))
        .withColumn("committed", f.coalesce(f.max("high").over(so_far), f.lit(0)))
        .where(f.col("to").isNotNull())
        .groupBy(*_PARTITION)
        .agg(f.max(f.least("to", "committed")).alias("below"))
        .where(f.col("below") > 0)
    )


def deleted(topic_deletions: DataFrame, partition_changes: DataFrame) -> DataFrame:
    """Instants of deletions, until which acknowledged records were of the deleted topic.

    Args:
        topic_deletions: Trace table.
        partition_changes: Trace table: a topic created again begins with partition epoch 0.

    Returns:
        ``DataFrame[topic, partition, until_us]``; the largest instant if it was not created again.
    """
    ends = topic_deletions.groupBy("topic").agg(f.max("t_us").alias("deleted_us"))
    return (
        partition_changes.join(f.broadcast(ends), "topic")
        .groupBy(*_PARTITION)
        .agg(
            f.min(
                f.when(
                    (f.col("partition_epoch") == 0) & (f.col("t_us") > f.col("deleted_us")),
                    f.col("t_us"),
                )
            ).alias("anew_us")
        )
        .select(*_PARTITION, f.coalesce("anew_us", f.lit(_NEVER)).alias("until_us"))
    )


def removed_with_topic(
    client_batches: DataFrame, ended: DataFrame, leadership: DataFrame
) -> DataFrame:
    """Acknowledged records of deleted topics that no election had lost before.

    Args:
        client_batches: Trace table.
        ended: Rows of :func:`deleted`.
        leadership: Trace table.

    Returns:
        As :func:`lawful`.
    """
    keys = [*_PARTITION, "producer_index"]
    before = leadership.join(f.broadcast(ended), _PARTITION).where(
        f.col("t_us") < f.col("until_us")
    )
    taken = f.coalesce(taken_from(), f.lit(_NEVER)) - f.col("base_offset")
    length = f.when(f.col("base_offset") < 0, f.col("record_count")).otherwise(
        f.least("record_count", taken)
    )
    return (
        client_batches.where(f.col("outcome") == "ok")
        .join(f.broadcast(ended), _PARTITION)
        .where(f.col("t_us") < f.col("until_us"))
        .join(f.broadcast(elections(before)), _PARTITION, "left")
        .withColumn("length", length)
        .where(f.col("length") > 0)
        .select(*keys, "first_record", f.col("length").alias("record_count"))
    )


def lawful(
    client_batches: DataFrame, expired: DataFrame, leadership: DataFrame, runs: DataFrame
) -> DataFrame:
    """Acknowledged records that policy would have removed by now, as ranges of numbers.

    Args:
        client_batches: Trace table.
        expired: Rows of :func:`expiry`.
        leadership: Trace table.
        runs: Records in the final leaders' logs.

    Returns:
        ``DataFrame[topic, partition, producer_index, first_record, record_count]``.
    """
    keys = [*_PARTITION, "producer_index"]
    acked = (
        client_batches.where(f.col("outcome") == "ok")
        .select(*keys, "first_record", "record_count", "base_offset", "answered_by", "t_us")
        .join(f.broadcast(expired), _PARTITION)
    )
    placed = acked.where(f.col("base_offset") >= 0).join(
        f.broadcast(elections(leadership)), _PARTITION, "left"
    )
    end = f.least(f.col("below"), f.coalesce(taken_from(), f.lit(_NEVER)))
    known = placed.select(
        *keys, "first_record", f.least("record_count", end - f.col("base_offset")).alias("count")
    )
    lowest = runs.groupBy(*keys).agg(f.min("first_record").alias("lowest"))
    unplaced = (
        acked.where(f.col("base_offset") < 0)
        .join(lowest, keys, "left")
        .withColumn("lowest", f.coalesce("lowest", f.lit(_NEVER)))
        .select(
            *keys,
            "first_record",
            f.least("record_count", f.col("lowest") - f.col("first_record")).alias("count"),
        )
    )
    return (
        known.unionByName(unplaced)
        .where(f.col("count") > 0)
        .select(*keys, "first_record", f.col("count").alias("record_count"))
    )


def elections(leadership: DataFrame) -> DataFrame:
    """``DataFrame[topic, partition, elections]``: instants and log ends of elections."""
    led = leadership.where(f.col("role") == "leader")
    first = led.groupBy(*_PARTITION, "broker", "leader_epoch").agg(
        f.min("t_us").alias("t_us"), f.min("log_end_offset").alias("log_end")
    )
    row = f.struct("broker", "leader_epoch", "t_us", "log_end")
    return first.groupBy(*_PARTITION).agg(f.collect_list(row).alias("elections"))


def taken_from() -> Column:
    """The lowest log end of the leaders after the acknowledging one; null if there were none."""
    mine = f.filter(
        "elections",
        lambda e: (e["broker"] == f.col("answered_by")) & (e["t_us"] <= f.col("t_us")),
    )
    epoch = f.array_max(f.transform(mine, lambda e: e["leader_epoch"]))
    later = f.filter("elections", lambda e: e["leader_epoch"] > epoch)
    return f.array_min(f.transform(later, lambda e: e["log_end"]))
