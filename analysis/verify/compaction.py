"""Removals of cleaners: from acknowledged offsets, keys, cleaners' visits, and the files.

Of each key of a compacted topic the last record has to stay. Here the records of a key are those in
the final leader's log, and those acknowledged ones that it no longer has, below the offset to which
any cleaner came and below the end of every later leader's log at its election. A missing one was
removed lawfully if another of its key is behind it, or if it is a tombstone that the cleaner of
some replica removed after its time: ``delete.retention.ms`` after the beginning of the first
cleaning that reached it. No file has the time of the removal: for tombstones that nothing replaced,
and for them alone, the rows of cleaners are used.

Source: ``Cleaner.shouldRetainRecord``; KAFKA-8522 for tombstones.
"""

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analysis.verify.policy import elections, taken_from

CLOCK_GRAIN_US: Final = 2_000
"""Horizons are whole milliseconds, rounded when they are set and when they are read."""

_PARTITION: Final = ["topic", "partition"]
_RECORD: Final = [*_PARTITION, "producer_index", "number"]
_NEVER: Final = (1 << 62) - 1


def cleaned(log_contents: DataFrame) -> DataFrame:
    """Partitions with cleanings: their ends, and all visits.

    Returns:
        ``DataFrame[topic, partition, cleaned_below, visits]``; ``visits`` are structures of
        ``end``, ``at`` and ``due_us``: time from which tombstones below ``end`` may be removed.
    """
    own = log_contents.where(f.col("how") != "fetched")
    visit = f.struct(
        (f.col("last_offset") + 1).alias("end"),
        f.col("t_us").alias("at"),
        (f.col("started_us") + f.col("delete_retention_ms") * 1000).alias("due_us"),
    )
    return own.groupBy(*_PARTITION).agg(
        (f.max("last_offset") + 1).alias("cleaned_below"), f.collect_list(visit).alias("visits")
    )


def taken(
    client_batches: DataFrame,
    record_keys: DataFrame,
    visited: DataFrame,
    log_contents: DataFrame,
    leadership: DataFrame,
    runs: DataFrame,
) -> DataFrame:
    """Acknowledged records that cleaners removed: lawfully, or a tombstone too early.

    Args:
        client_batches: Trace table.
        record_keys: Trace table.
        visited: Rows of :func:`cleaned`.
        log_contents: Trace table.
        leadership: Trace table.
        runs: Records in the final leaders' logs.

    Returns:
        ``DataFrame[topic, partition, producer_index, first_record, record_count, lawful, early]``;
        the last two are booleans of which one is true.
    """
    keys = _keys(record_keys.join(f.broadcast(visited.select(*_PARTITION)), _PARTITION))
    present = _records(runs.join(f.broadcast(visited.select(*_PARTITION)), _PARTITION)).join(
        keys, _RECORD
    )
    acked = client_batches.where(f.col("outcome") == "ok").join(f.broadcast(visited), _PARTITION)
    with_ends = acked.join(f.broadcast(elections(leadership)), _PARTITION, "left").withColumn(
        "below", f.least("cleaned_below", f.coalesce(taken_from(), f.lit(_NEVER)))
    )
    missing = (
        _records(with_ends, "below", "visits")
        .join(present.select(*_RECORD), _RECORD, "left_anti")
        .join(keys, _RECORD)
    )
    placed = missing.where((f.col("offset") >= 0) & (f.col("offset") < f.col("below")))
    columns = [*_RECORD, "key", "offset", "is_tombstone", "visits"]
    nothing = present.withColumn("visits", f.lit(None))
    both = (
        placed.select(*columns)
        .withColumn("is_lost", f.lit(1))
        .unionByName(nothing.select(*columns).withColumn("is_lost", f.lit(0)))
    )
    last = f.max("offset").over(Window.partitionBy(*_PARTITION, "key"))
    replaced = f.col("offset") < f.col("last")
    dead = both.withColumn("last", last).where(f.col("is_lost") == 1).withColumn("is_old", replaced)
    alone = dead.where(f.col("is_tombstone") & ~f.col("is_old"))
    judged = (
        dead.join(_moments(alone, log_contents), _RECORD, "left")
        .withColumn("lawful", f.col("is_old") | (f.col("is_tombstone") & _is_due()))
        .withColumn("early", ~f.col("lawful") & f.col("is_tombstone"))
    )
    # A record without an offset has no place among those of its key: any that is left will do.
    unplaced = missing.where(f.col("offset") < 0).join(
        present.select(*_PARTITION, "key").distinct(), [*_PARTITION, "key"], "left_semi"
    )
    named = (
        *(f.col(name) for name in (*_PARTITION, "producer_index")),
        f.col("number").alias("first_record"),
        f.lit(1).alias("record_count"),
    )
    return (
        judged.select(*named, "lawful", "early")
        .unionByName(
            unplaced.select(*named, f.expr("true").alias("lawful"), f.expr("false").alias("early"))
        )
        .where(f.col("lawful") | f.col("early"))
    )


def divergent(found: DataFrame, common: DataFrame) -> DataFrame:
    """Offsets at which two cleaned logs hold different records.

    Args:
        found: Readable records of the partitions concerned, as rows of survivors.
        common: ``DataFrame[topic, partition, from, to]``: offsets that all logs have.

    Returns:
        ``DataFrame[topic, partition, offset]``.
    """
    identity = f.struct("leader_epoch", "producer_index", "number")
    return (
        _records(found.where(f.col("producer_index") >= 0), "leader_epoch")
        .join(f.broadcast(common), _PARTITION)
        .where((f.col("offset") >= f.col("from")) & (f.col("offset") < f.col("to")))
        .groupBy(*_PARTITION, "offset")
        .agg(f.count_distinct(identity).alias("different"))
        .where(f.col("different") > 1)
        .select(*_PARTITION, "offset")
    )


def _keys(record_keys: DataFrame) -> DataFrame:
    """``DataFrame[topic, partition, producer_index, number, key, is_tombstone]``, once each."""
    place = f.posexplode("keys")
    return (
        record_keys.select(
            *_PARTITION, "producer_index", "first_record", "tombstones", place.alias("nth", "key")
        )
        .select(
            *_PARTITION,
            "producer_index",
            (f.col("first_record") + f.col("nth")).alias("number"),
            "key",
            f.array_contains("tombstones", f.col("nth")).alias("is_tombstone"),
        )
        .dropDuplicates(_RECORD)
    )


def _records(ranges: DataFrame, *more: str) -> DataFrame:
    """Single records of ranges: number and offset; the offset is -1 where there is none."""
    nth = f.explode(f.sequence(f.lit(0), f.col("record_count") - 1)).alias("nth")
    offset = f.when(f.col("base_offset") >= 0, f.col("base_offset") + f.col("nth")).otherwise(-1)
    return (
        ranges.where(f.col("record_count") > 0)
        .select(*_PARTITION, "producer_index", "first_record", "base_offset", *more, nth)
        .select(
            *_PARTITION,
            "producer_index",
            (f.col("first_record") + f.col("nth")).alias("number"),
            offset.alias("offset"),
            *more,
        )
    )


def _moments(tombstones: DataFrame, log_contents: DataFrame) -> DataFrame:
    """Last removal of each by any cleaner: ``DataFrame[topic, …, number, taken_us]``."""
    place = (f.col("offset") - f.col("base_offset")).cast("int")
    own = log_contents.where(f.col("how") != "fetched").select(
        *_PARTITION, "broker", "t_us", "base_offset", "last_offset", "kept"
    )
    return (
        tombstones.select(*_RECORD, "offset")
        .join(own, _PARTITION)
        .where(f.col("offset").between(f.col("base_offset"), f.col("last_offset")))
        .where(~f.array_contains("kept", place))
        .groupBy(*_RECORD, "broker")
        .agg(f.min("t_us").alias("taken_us"))
        .groupBy(*_RECORD)
        .agg(f.max("taken_us").alias("taken_us"))
    )


def _is_due() -> Column:
    """True if some replica's cleaner removed a tombstone after its time."""
    mine = f.filter("visits", lambda visit: visit["end"] > f.col("offset"))
    due = f.array_min(f.transform(mine, lambda visit: visit["due_us"]))
    return f.coalesce(f.col("taken_us") + CLOCK_GRAIN_US >= due, f.expr("false"))
