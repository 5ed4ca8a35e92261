"""Checks that connectors delivered every record once, from the bytes of the segment files.

A record of a source has its external record's identity in its value; here that is read from the
final leaders' files. Of sinks the records are taken from the files; the rows of external systems,
which are no part of Kafka, from the trace. Counts are defined as in
:mod:`sim.checking.outcomes.connecting`, which uses the tasks' trace rows instead.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

COUNTS: Final = ("missing", "duplicated", "orphaned")
"""The numbers of the verdict, in its order."""

_ROW: Final = ["connector", "topic", "producer_index", "partition", "record"]


def counts(
    tasks: DataFrame, logs: DataFrame, writes: DataFrame, visible: DataFrame, named: DataFrame
) -> dict[str, int]:
    """The numbers of all connectors together.

    Args:
        tasks: Trace table ``connector_tasks``.
        logs: Trace table ``external_logs``.
        writes: Trace table ``external_writes``.
        visible: Rows of :func:`analysis.verify.durability.leader_runs`.
        named: Rows of :data:`analysis.verify.processing.ORIGINS`, of the topics of sources.
    """
    both = _of_sources(tasks, logs, visible, named).unionByName(_of_sinks(tasks, writes, visible))
    expected, present = f.coalesce("expected", f.lit(0)), f.coalesce("present", f.lit(0))
    row = both.agg(
        f.sum(f.greatest(expected - present, f.lit(0))).alias("missing"),
        f.sum(f.when(expected > 0, f.greatest(present - expected, f.lit(0)))).alias("duplicated"),
        f.sum(f.when(expected == 0, present)).alias("orphaned"),
    ).first()
    assert row is not None, "an aggregate has a row"
    return {name: int(row[name] or 0) for name in COUNTS}


def _of_sources(
    tasks: DataFrame, logs: DataFrame, visible: DataFrame, named: DataFrame
) -> DataFrame:
    """``[expected, present]`` of each external record."""
    source = tasks.where("kind = 'source'")
    record = ["connector", "input_partition", "input_record"]
    expected = (
        logs.where("records > 0")
        .join(source.select("connector").distinct(), "connector", "left_semi")
        .select(
            "connector",
            f.col("source_partition").alias("input_partition"),
            f.explode(f.sequence(f.lit(0).cast("bigint"), f.col("records") - 1)).alias(
                "input_record"
            ),
        )
        .groupBy(*record)
        .agg(f.count(f.lit(1)).alias("expected"))
    )
    own = source.select("connector", f.col("topics").alias("topic"), "producer_index").distinct()
    end = f.col("base_offset") + f.col("record_count") - 1
    present = (
        visible.join(f.broadcast(own), ["topic", "producer_index"])
        .select(
            "connector",
            "broker",
            "topic",
            "partition",
            f.explode(f.sequence("base_offset", end)).alias("offset"),
        )
        .join(named, ["broker", "topic", "partition", "offset"], "left")
        .groupBy(*record)
        .agg(f.count(f.lit(1)).alias("present"))
    )
    return expected.join(present, record, "full").select("expected", "present")


def _of_sinks(tasks: DataFrame, writes: DataFrame, visible: DataFrame) -> DataFrame:
    """``[expected, present]`` of each record."""
    read = tasks.where("kind = 'sink'").select(
        "connector", f.explode(f.split("topics", ",")).alias("topic")
    )
    expected = visible.join(f.broadcast(read.distinct()), "topic")
    counted = [
        runs.select(
            "connector",
            "topic",
            "producer_index",
            "partition",
            f.explode(
                f.sequence("first_record", f.col("first_record") + f.col("record_count") - 1)
            ).alias("record"),
        )
        .groupBy(*_ROW)
        .agg(f.count(f.lit(1)).alias(name))
        for runs, name in ((expected, "expected"), (writes, "present"))
    ]
    return counted[0].join(counted[1], _ROW, "full").select("expected", "present")
