"""Acknowledgements by both sides: what brokers say they gave, and what producers say they got.

From tables of the trace alone. A row of ``acknowledgements`` has offsets of the leader's log, and
``appends`` says whose records that broker wrote there last before it answered; of a batch that came
twice the broker acknowledges the first one's offsets (KIP-98). It is the one place where Spark asks
``appends``: a batch that was acknowledged may be in no file any more. Counts are those of the
checker's :mod:`sim.checking.outcomes.verdict`:

* ``ok_unanswered``: a producer counts them as acknowledged, at an offset that it was told, and no
  broker acknowledged them.
* ``answered_untold``: a broker acknowledged them, and their producer counts them neither as
  acknowledged nor as unknown, which a lost answer makes of them.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from analysis.verify import durability

COUNTS: Final = ("ok_unanswered", "answered_untold")
"""The numbers of the verdict, in its order."""

_KINDS: Final = ("acked", "told", "unknown", "answered")
_PLACE: Final = ("broker", "topic", "partition", "base_offset")


def counts(
    client_batches: DataFrame, acknowledgements: DataFrame, appends: DataFrame
) -> Mapping[str, int]:
    """Records on which the two sides differ, by :data:`COUNTS`, from three trace tables."""
    outcome, yes = f.col("outcome"), f.lit(1) > f.lit(0)
    told = {
        "acked": outcome == "ok",
        "told": (outcome == "ok") & (f.col("base_offset") >= 0),
        "unknown": outcome == "unknown",
    }
    given = answered(acknowledgements, appends)
    found = durability.swept(
        [
            durability.ranges(client_batches, _KINDS, told),
            durability.ranges(given, _KINDS, {"answered": yes}),
        ],
        _KINDS,
    )
    is_told, is_answered = f.col("told") > 0, f.col("answered") > 0
    is_known = (f.col("acked") > 0) | (f.col("unknown") > 0)
    picked = {
        "ok_unanswered": is_told & ~is_answered,
        "answered_untold": is_answered & ~is_known,
    }
    records = f.col("record_count")
    sums = [f.coalesce(f.sum(f.when(which, records)), f.lit(0)) for which in picked.values()]
    row = found.agg(*(number.alias(name) for name, number in zip(picked, sums, strict=True)))
    [numbers] = row.collect()
    return {name: int(numbers[name]) for name in COUNTS}


def answered(acknowledgements: DataFrame, appends: DataFrame) -> DataFrame:
    """Records of producers that brokers acknowledged.

    Returns:
        ``DataFrame[topic, partition, producer_index, first_record, record_count]``; ranges may
        repeat.
    """
    given = acknowledgements.where((f.col("error") == "NONE") & (f.col("base_offset") >= 0)).select(
        *_PLACE, f.col("t_us").alias("answered_us")
    )
    records = f.struct("producer_index", "first_record", "record_count")
    written = appends.select(*_PLACE, "t_us", records.alias("records"))
    return (
        given.join(written, list(_PLACE))
        .where(f.col("t_us") <= f.col("answered_us"))
        .groupBy(*_PLACE, "answered_us")
        .agg(f.max_by("records", "t_us").alias("records"))
        .select("topic", "partition", "records.*")
        .where(f.col("producer_index") >= 0)
    )
