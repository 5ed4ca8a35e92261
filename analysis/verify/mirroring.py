"""Judges mirrors, from the bytes of the copies.

A copy has its record's identity in its value; here that is read from the final leaders' segment
files in the target cluster. Counts are defined as in :mod:`sim.checking.outcomes.mirroring`, which
uses the mirror's trace rows instead.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

COUNTS: Final = ("missing", "duplicated", "skipped", "reread")
"""The numbers of the verdict, in its order."""

_RECORD: Final = ["input_producer", "input_partition", "input_record"]


@dataclass(frozen=True, slots=True)
class Mirrored:
    """One mirror, with data of its two clusters."""

    source: str
    """Topic."""
    target: str
    """Its name in the target cluster."""
    producer_index: int
    """The mirror's number there."""
    groups: tuple[str, ...]
    """Groups whose offsets are translated."""
    batches: DataFrame
    """Trace table ``client_batches`` of the source cluster."""
    source_reads: DataFrame
    """Trace table."""
    target_reads: DataFrame
    """Trace table."""
    positions: DataFrame
    """Trace table of the target cluster."""
    visible: DataFrame
    """Of the target cluster, rows of :func:`analysis.verify.durability.leader_runs`."""
    named: DataFrame
    """Of the target cluster, rows of :data:`analysis.verify.processing.ORIGINS`."""


def counts(mirror: Mirrored) -> dict[str, int]:
    """The numbers of one mirror, of all its groups together."""
    placed = _placed(mirror).persist()
    is_acked = (f.col("topic") == mirror.source) & (f.col("outcome") == "ok")
    acked = _records(mirror.batches.where(is_acked)).distinct()
    copies = placed.count()
    found = {
        "missing": acked.join(placed, _RECORD, "left_anti").count(),
        "duplicated": copies - placed.select(*_RECORD).distinct().count(),
        "skipped": 0,
        "reread": 0,
    }
    for group in mirror.groups:
        got = _got(mirror, group, placed).persist()
        once = got.distinct().persist()
        passed = placed.join(_reached(mirror, group), "partition").where("offset < reached")
        missed = passed.select(*_RECORD).distinct().join(once, _RECORD, "left_anti")
        found["skipped"] += missed.count()
        found["reread"] += got.count() - once.count()
        got.unpersist()
        once.unpersist()
    placed.unpersist()
    return found


def _placed(mirror: Mirrored) -> DataFrame:
    """``[partition, offset, input_producer, input_partition, input_record]`` of each copy."""
    end = f.col("base_offset") + f.col("record_count") - 1
    own = (f.col("topic") == mirror.target) & (f.col("producer_index") == mirror.producer_index)
    return (
        mirror.visible.where(own)
        .select(
            "broker",
            "topic",
            "partition",
            f.explode(f.sequence("base_offset", end)).alias("offset"),
        )
        .join(mirror.named, ["broker", "topic", "partition", "offset"])
        .select("partition", "offset", *_RECORD)
    )


def _records(runs: DataFrame) -> DataFrame:
    """Single records of batches, or of parts of them, of the source cluster."""
    last = f.col("first_record") + f.col("record_count") - 1
    return runs.select(
        f.col("producer_index").alias("input_producer"),
        f.col("partition").alias("input_partition"),
        f.explode(f.sequence("first_record", last)).alias("input_record"),
    )


def _got(mirror: Mirrored, group: str, placed: DataFrame) -> DataFrame:
    """Every delivery of a record to the group, in both clusters."""
    there = mirror.source_reads.where((f.col("group") == group) & (f.col("topic") == mirror.source))
    here = mirror.target_reads.where(
        (f.col("group") == group)
        & (f.col("topic") == mirror.target)
        & (f.col("producer_index") == mirror.producer_index)
    ).select("partition", f.explode(f.sequence("base_offset", "last_offset")).alias("offset"))
    copies = here.join(placed, ["partition", "offset"]).select(*_RECORD)
    return _records(there).unionByName(copies)


def _reached(mirror: Mirrored, group: str) -> DataFrame:
    """``[partition, reached]``: the group's greatest position in the target cluster."""
    own = (f.col("group") == group) & (f.col("topic") == mirror.target)
    read = mirror.target_reads.where(own).select(
        "partition", (f.col("last_offset") + 1).alias("offset")
    )
    begun = mirror.positions.where(own).select("partition", "offset")
    return read.unionByName(begun).groupBy("partition").agg(f.max("offset").alias("reached"))
