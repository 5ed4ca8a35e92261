"""Durability: acknowledgements from the trace against survivors from the files.

Sent, acknowledged and surviving records are ranges of numbers per (topic, partition, producer), so
their unions and differences are taken on the ends of ranges, in one sorted pass, and records are
never listed one by one. Definitions, for records of producers only:

* ``sent``: of every batch with an outcome at its producer, unknown ones included.
* ``acked``, ``failed``, ``unknown``: by that outcome (``ok``, ``failed``, ``unknown``).
* the *final leader*: of the partition's last committed state that had a leader; if there is none,
  the replica with the largest leader epoch, then the longest log.
* ``survived``: in the final leader's log, at or above its log start, in a batch with a right
  checksum. ``removed``: acknowledged, not survived, and removed by policy
  (:mod:`analysis.verify.policy`), or by a cleaner (:mod:`analysis.verify.compaction`).
* ``lost_acked``: acknowledged, neither survived nor removed; ``early_tombstones``: those of them
  that are tombstones which a cleaner removed too early.
  ``unacked_present``: survived, not acknowledged.
* ``duplicated``: copies in the final leader's log beyond the first.
* ``reordered``: records whose number is smaller than the largest one before them of the same
  producer, first copies only.
* ``divergent``: offsets at which the logs of two replicas, below the smallest end and at or above
  the largest log start of the partition's non-empty logs, differ by (leader epoch, CRC). A hole
  that a lost segment left counts, at the start of a log, too; retention moves the log start.

In a partition with cleanings, batches of one origin may have different bytes: there
single records are compared, by (leader epoch, producer, number).

:mod:`analysis.verify.transactions` defines the state of records of transactions.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analysis.verify import compaction, policy, transactions
from analysis.verify.run_data import RunData
from analysis.verify.segments import OK

KEYS: Final = ("topic", "partition", "producer_index")
"""Scope of record numbers: each producer counts those of each partition from 0."""

COUNTS: Final = (
    "sent",
    "acked",
    "failed",
    "unknown",
    "survived",
    "lost_acked",
    "removed",
    "early_tombstones",
    "aborted",
    "aborted_visible",
    "aborted_read",
    "undecided",
    "torn_transactions",
    "unacked_present",
    "duplicated",
    "reordered",
    "divergent",
)
"""The numbers of a verdict, in its order."""

_PARTITION: Final = ["topic", "partition"]
_FIRST: Final = Window.unboundedPreceding


def leader_runs(data: RunData) -> DataFrame:
    """The readable records of producers in the final leaders' logs, as rows of survivors.

    A run that begins below its log's start is cut there, as the rest is unreadable. Records under
    abort markers are left out.
    """
    found = _all_leader_runs(data)
    if data.transactions is None:
        return found
    return found.where(f.col("fate").isNull() | (f.col("fate") != "aborted"))


def _all_leader_runs(data: RunData) -> DataFrame:
    skipped = f.greatest(f.coalesce("start", f.lit(0)) - f.col("base_offset"), f.lit(0))
    log = (
        data.survivors.where(f.col("status") == OK)
        .join(f.broadcast(data.leaders), _PARTITION)
        .where(f.col("broker") == f.col("leader"))
    )
    if data.transactions is not None:
        log = transactions.decided(log)
    return (
        log.where(f.col("producer_index") >= 0)
        .join(f.broadcast(data.starts), ["broker", *_PARTITION], "left")
        .withColumn("skipped", skipped)
        .where(f.col("skipped") < f.col("record_count"))
        .withColumn("base_offset", f.col("base_offset") + f.col("skipped"))
        .withColumn("first_record", f.col("first_record") + f.col("skipped"))
        .withColumn("record_count", (f.col("record_count") - f.col("skipped")).cast("int"))
        .drop("leader", "start", "skipped")
    )


def stretches(data: RunData) -> DataFrame:
    """Ranges of record numbers within which nothing changes, with the batches that hold each.

    Returns:
        ``DataFrame[topic, partition, producer_index, first_record, record_count, acked, failed,
        unknown, present, expired, early]``; the last six count batches that hold the range: of each
        outcome, in the final leader's log, of those that policy would have removed, and of
        tombstones that a cleaner removed too early; and :data:`analysis.verify.transactions.KINDS`.
    """
    kinds = ("acked", "failed", "unknown", "present", "expired", "early", *transactions.KINDS)
    runs = leader_runs(data)
    batches, leadership, yes = data.client_batches, data.leadership, f.expr("true")
    counted = kinds[:4]
    rest = [f.lit(0).cast("long").alias(kind) for kind in kinds[4:]]
    parts = [data.counted.select(*KEYS, "first_record", "record_count", *counted, *rest)]
    if data.expired is not None:
        below = policy.lawful(batches, data.expired, leadership, runs)
        parts.append(ranges(below, kinds, {"expired": yes}))
    if data.ended is not None:
        with_topic = policy.removed_with_topic(batches, data.ended, leadership)
        parts.append(ranges(with_topic, kinds, {"expired": yes}))
    visited, keys, contents = data.visited, data.record_keys, data.contents
    if visited is not None and keys is not None and contents is not None:
        taken = compaction.taken(batches, keys, visited, contents, leadership, runs)
        parts.append(ranges(taken, kinds, {"expired": f.col("lawful"), "early": f.col("early")}))
    if data.transactions is not None:
        parts.append(ranges(runs, kinds, {"present": yes}))
        every = transactions.ranges(_all_leader_runs(data), data.transactions)
        parts += [ranges(frame, kinds, {kind: mark}) for frame, kind, mark in every]
    return swept(parts, kinds) if len(parts) > 1 else parts[0]


def swept(parts: Sequence[DataFrame], kinds: Sequence[str]) -> DataFrame:
    """Ranges within which nothing changes, with the given ones of each kind that hold them.

    Args:
        parts: Of :func:`ranges`; they may overlap.
        kinds: Columns of each, 0 or 1.
    """
    end = f.col("first_record") + f.col("record_count")
    edges = (
        reduce(DataFrame.unionByName, parts)
        .where(f.col("record_count") > 0)
        .select(*KEYS, *kinds, f.explode(_two(f.col("first_record"), end)).alias("edge"))
        .select(*KEYS, "edge.at", *((f.col(k) * f.col("edge.sign")).alias(k) for k in kinds))
        .groupBy(*KEYS, "at")
        .agg(*(f.sum(kind).alias(kind) for kind in kinds))
    )
    order = Window.partitionBy(*KEYS).orderBy("at")
    upwards = order.rowsBetween(_FIRST, Window.currentRow)
    return edges.select(
        *KEYS,
        f.col("at").alias("first_record"),
        (f.lead("at").over(order) - f.col("at")).alias("record_count"),
        *(f.sum(kind).over(upwards).alias(kind) for kind in kinds),
    ).where(f.col("record_count") > 0)


def ranges(rows: DataFrame, kinds: Sequence[str], marked: Mapping[str, Column]) -> DataFrame:
    """Ranges of record numbers, each marked with the kinds that it is of."""
    marks = [
        marked[name].cast("int").alias(name) if name in marked else f.lit(0).alias(name)
        for name in kinds
    ]
    return rows.select(*KEYS, "first_record", "record_count", *marks)


def _two(start: Column, end: Column) -> Column:
    return f.array(
        f.struct(start.alias("at"), f.lit(1).alias("sign")),
        f.struct(end.alias("at"), f.lit(-1).alias("sign")),
    )


def is_lost() -> Column:
    """Of a stretch: acknowledged, promised, not in the final leader's log, not removed lawfully."""
    return _is_missing() & (f.col("expired") == 0)


def is_removed() -> Column:
    """Of a stretch: acknowledged, promised, and removed lawfully."""
    return _is_missing() & (f.col("expired") > 0)


def _is_missing() -> Column:
    return (f.col("acked") > 0) & (f.col("present") == 0) & transactions.is_promised()


def is_unasked() -> Column:
    """Of a stretch: in the final leader's log and not acknowledged."""
    return (f.col("acked") == 0) & (f.col("present") > 0)


def is_duplicated() -> Column:
    """Of a stretch: more than once in the final leader's log."""
    return f.col("present") > 1


def counts(found: DataFrame) -> DataFrame:
    """Numbers per topic from :func:`stretches`.

    Returns:
        ``DataFrame[topic, sent, acked, failed, unknown, survived, lost_acked, removed,
        early_tombstones, aborted, aborted_visible, aborted_read, undecided, unacked_present,
        duplicated]``.
    """
    records = f.col("record_count")
    has_outcome = (f.col("acked") > 0) | (f.col("failed") > 0) | (f.col("unknown") > 0)
    picked = {
        "sent": f.when(has_outcome, records),
        "acked": f.when(f.col("acked") > 0, records),
        "failed": f.when(f.col("failed") > 0, records),
        "unknown": f.when(f.col("unknown") > 0, records),
        "survived": f.when(f.col("present") > 0, records),
        "lost_acked": f.when(is_lost(), records),
        "removed": f.when(is_removed(), records),
        "early_tombstones": f.when(is_lost() & (f.col("early") > 0), records),
        "aborted": f.when(has_outcome & transactions.is_aborted(), records),
        "aborted_visible": f.when(
            (f.col("client_aborted") > 0) & (f.col("log_committed") > 0), records
        ),
        "aborted_read": f.when(transactions.is_aborted() & (f.col("committed_read") > 0), records),
        "undecided": f.when(f.col("log_undecided") > 0, records),
        "unacked_present": f.when(is_unasked(), records),
        "duplicated": f.when(is_duplicated(), records * (f.col("present") - 1)),
    }
    return found.groupBy("topic").agg(
        *(f.coalesce(f.sum(value), f.lit(0)).alias(name) for name, value in picked.items())
    )


def out_of_order(leader: DataFrame) -> DataFrame:
    """Logs of producers in which some batch begins below the numbers before it.

    Args:
        leader: Rows of :func:`leader_runs`.

    Returns:
        ``DataFrame[topic, partition, producer_index, from, to]``; no number outside of ``[from,
        to]`` is behind a larger one.
    """
    behind = f.least(_last(), f.col("highest_before") - 1)
    return (
        _with_highest(leader)
        .where(f.col("first_record") < f.col("highest_before"))
        .groupBy(*KEYS)
        .agg(f.min("first_record").alias("from"), f.max(behind).alias("to"))
    )


def reordered(leader: DataFrame, odd: DataFrame) -> DataFrame:
    """Records behind a later one of the same producer in the final leader's log.

    Args:
        leader: Rows of :func:`leader_runs`.
        odd: Rows of :func:`out_of_order`: only these logs' numbers within the bounds are listed.

    Returns:
        ``DataFrame[topic, partition, producer_index, number, offset, highest_before]``.
    """
    low, high = f.greatest("first_record", "from"), f.least(_last(), f.col("to"))
    first = f.struct("offset", "highest_before")
    return (
        _with_highest(leader)
        .join(f.broadcast(odd), list(KEYS))
        .where(low <= high)
        .select(
            *KEYS,
            (f.col("base_offset") - f.col("first_record")).alias("shift"),
            "highest_before",
            f.explode(f.sequence(low, high)).alias("number"),
        )
        .withColumn("offset", f.col("number") + f.col("shift"))
        .groupBy(*KEYS, "number")
        .agg(f.min(first).alias("first"))  # further copies are duplicates, not out of order
        .select(*KEYS, "number", "first.*")
        .where(f.col("number") < f.col("highest_before"))
    )


def _with_highest(leader: DataFrame) -> DataFrame:
    """Batches of each producer's log with the largest number in front of them.

    Within a batch numbers rise: none of its records is behind another one of it.
    """
    before = Window.partitionBy(*KEYS).orderBy("base_offset").rowsBetween(_FIRST, -1)
    batches = leader.select(*KEYS, "base_offset", "first_record", "record_count")
    return batches.withColumn("highest_before", f.max(_last()).over(before))


def _last() -> Column:
    return f.col("first_record") + f.col("record_count") - 1


def divergent(
    survivors: DataFrame, starts: DataFrame, visited: DataFrame | None = None
) -> DataFrame:
    """Offsets at which the logs of two replicas differ.

    A batch counts by its header; one whose bytes were changed later has the old checksum there and
    shows in :func:`unreadable`, not here.

    Args:
        survivors: Rows of :data:`analysis.verify.survivors.SCHEMA`.
        starts: Rows of :func:`analysis.verify.policy.starts`.
        visited: Rows of :func:`analysis.verify.compaction.cleaned`, if there are any.

    Returns:
        ``DataFrame[topic, partition, offset]``, one row per offset.
    """
    batches = (
        survivors.where(f.col("base_offset") >= 0)
        .join(f.broadcast(starts), ["broker", *_PARTITION], "left")
        .withColumn("start", f.coalesce("start", f.lit(0)))
        .where(f.col("last_offset") >= f.col("start"))
        .select("broker", *_PARTITION, "base_offset", "last_offset", "leader_epoch", "crc", "start")
    )
    ends = batches.groupBy("broker", *_PARTITION).agg(
        f.max("start").alias("start"),
        (f.max("last_offset") + 1).alias("end"),
    )
    common = ends.groupBy(*_PARTITION).agg(
        f.max("start").alias("from"), f.min("end").alias("to"), f.count("broker").alias("logs")
    )
    identity = [*_PARTITION, "base_offset", "last_offset", "leader_epoch", "crc"]
    plain = batches
    if visited is not None:
        plain = batches.join(f.broadcast(visited), _PARTITION, "left_anti")
    odd = (
        plain.groupBy(*identity)
        .agg(f.count("broker").alias("same"))
        .join(f.broadcast(common), _PARTITION)
        .where((f.col("same") < f.col("logs")) & (f.col("from") < f.col("to")))
        .where((f.col("last_offset") >= f.col("from")) & (f.col("base_offset") < f.col("to")))
    )
    clipped = f.sequence(
        f.greatest("base_offset", "from"), f.least(f.col("last_offset"), f.col("to") - 1)
    )
    found = odd.select(*_PARTITION, f.explode(clipped).alias("offset")).distinct()
    if visited is None:
        return found
    readable = survivors.where(f.col("status") == OK).join(
        f.broadcast(visited), _PARTITION, "left_semi"
    )
    return found.unionByName(compaction.divergent(readable, common))
