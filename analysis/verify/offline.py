"""Times without a leader in service: none was committed, or the committed one could not serve.

A broker is in service while its process runs and is not paused, and its registration is unfenced
since the process was started. Definitions as in the simulator's checker, found here from the
finished tables: intervals of leaders against intervals of brokers out of service.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pandas as pd
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from sim.units import Micros

_PARTITION: Final = ["topic", "partition"]
_NAME: Final = r"^broker-(\d+)$"
_DOWN: Final = ("crashed", "powered_off", "stopped", "failed")
_DELETED: Final = -2
"""Leader of a partition whose topic is deleted: it does not count as offline."""
_LAST: Final = (1 << 31) - 1


def frame(
    table: Callable[[str], DataFrame], card: Mapping[str, object], end_us: Micros
) -> pd.DataFrame:
    """Rows of :func:`totals` for a run, by partition.

    Args:
        table: A trace table by its name.
        card: The run card, which has the end of the run.
        end_us: End of the run if the card does not have it.
    """
    measured_us = card.get("simulated_us")
    found = stretches(
        table("partition_changes"),
        table("topic_deletions"),
        table("node_states"),
        table("broker_states"),
        measured_us if isinstance(measured_us, int) else end_us,
    )
    return totals(found).orderBy(*_PARTITION).toPandas()


def stretches(
    partition_changes: DataFrame,
    topic_deletions: DataFrame,
    node_states: DataFrame,
    broker_states: DataFrame,
    end_us: Micros,
) -> DataFrame:
    """Stretches of the run in which partitions were offline, each of greatest length.

    Args:
        partition_changes: Trace table.
        topic_deletions: Trace table.
        node_states: Trace table.
        broker_states: Trace table.
        end_us: End of the run.

    Returns:
        ``DataFrame[topic, partition, from_us, to_us]``.
    """
    led = _led(partition_changes, topic_deletions, end_us)
    away = out_of_service(node_states, broker_states, end_us).select(
        f.col("broker").alias("leader"), f.col("from_us").alias("since"), f.col("to_us").alias("to")
    )
    leaderless = led.where(f.col("leader") == -1).select(*_PARTITION, "from_us", "to_us")
    dead = led.join(f.broadcast(away), "leader").select(
        *_PARTITION,
        f.greatest("from_us", "since").alias("from_us"),
        f.least("to_us", "to").alias("to_us"),
    )
    within = leaderless.unionByName(dead).select(
        *_PARTITION,
        f.greatest("from_us", f.lit(0)).alias("from_us"),
        f.least("to_us", f.lit(end_us)).alias("to_us"),
    )
    return _joined(within.where(f.col("from_us") < f.col("to_us")))


def totals(found: DataFrame) -> DataFrame:
    """For each partition that was offline, its longest stretch and the sum of all.

    Args:
        found: Rows of :func:`stretches`.

    Returns:
        ``DataFrame[topic, partition, max_us, from_us, total_us]``; of equal stretches the earliest.
    """
    took = f.col("to_us") - f.col("from_us")
    return found.groupBy(*_PARTITION).agg(
        f.max(took).alias("max_us"),
        f.max_by("from_us", f.struct(took, -f.col("from_us"))).alias("from_us"),
        f.sum(took).alias("total_us"),
    )


def out_of_service(node_states: DataFrame, broker_states: DataFrame, end_us: Micros) -> DataFrame:
    """Intervals in which brokers could not serve.

    Returns:
        ``DataFrame[broker, from_us, to_us]``; neighbours are not joined.
    """
    number = f.regexp_extract("node", _NAME, 1)
    state = f.col("state")
    nothing = f.lit(None).cast("boolean")
    processes = (
        node_states.withColumn("place", f.monotonically_increasing_id())
        .where(number != "")
        .select(
            number.cast("int").alias("broker"),
            "t_us",
            f.lit(0).alias("source"),
            "place",
            f.when(state == "started", _yes()).when(state.isin(*_DOWN), _no()).alias("up"),
            f.when(state == "paused", _yes())
            .when(state.isin("started", "resumed", *_DOWN), _no())
            .alias("still"),
            f.when(state == "started", _no()).alias("unfenced"),
        )
    )
    registrations = (
        broker_states.withColumn("place", f.monotonically_increasing_id())
        .where(state != "controlled_shutdown")
        .select(
            "broker",
            "t_us",
            f.lit(1).alias("source"),
            "place",
            nothing.alias("up"),
            nothing.alias("still"),
            (state == "unfenced").alias("unfenced"),
        )
    )
    order = Window.partitionBy("broker").orderBy("t_us", "source", "place")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    known = {
        name: f.coalesce(f.last(name, ignorenulls=True).over(so_far), f.lit(default))
        for name, default in (("up", True), ("still", False), ("unfenced", True))
    }
    serves = known["up"] & ~known["still"] & known["unfenced"]
    return (
        processes.unionByName(registrations)
        .select(
            "broker",
            f.col("t_us").alias("from_us"),
            f.coalesce(f.lead("t_us").over(order), f.lit(end_us)).alias("to_us"),
            serves.alias("serves"),
        )
        .where(~f.col("serves"))
        .select("broker", "from_us", "to_us")
    )


def _led(changes: DataFrame, deletions: DataFrame, end_us: Micros) -> DataFrame:
    """Intervals of leadership, as committed."""
    made = changes.select(*_PARTITION, "t_us", "partition_epoch", "leader")
    ends = deletions.select("topic", "t_us").join(changes.select(*_PARTITION).distinct(), "topic")
    ended = ends.select(
        *_PARTITION,
        "t_us",
        f.lit(_LAST).alias("partition_epoch"),
        f.lit(_DELETED).alias("leader"),
    )
    order = Window.partitionBy(*_PARTITION).orderBy("t_us", "partition_epoch")
    until = f.coalesce(f.lead("t_us").over(order), f.lit(end_us)).alias("to_us")
    return made.unionByName(ended).select(
        *_PARTITION, "leader", f.col("t_us").alias("from_us"), until
    )


def _joined(parts: DataFrame) -> DataFrame:
    """Stretches that touch or overlap, joined."""
    order = Window.partitionBy(*_PARTITION).orderBy("from_us", "to_us")
    before = f.max("to_us").over(order.rowsBetween(Window.unboundedPreceding, -1))
    begins = f.when(before >= f.col("from_us"), 0).otherwise(1)
    upwards = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    return (
        parts.withColumn("begins", begins)
        .withColumn("nth", f.sum("begins").over(upwards))
        .groupBy(*_PARTITION, "nth")
        .agg(f.min("from_us").alias("from_us"), f.max("to_us").alias("to_us"))
        .drop("nth")
    )


def _yes() -> Column:
    return f.lit(True)  # noqa: FBT003 - a literal column


def _no() -> Column:
    return f.lit(False)  # noqa: FBT003 - a literal column
