"""Acknowledgements by both sides: as sent by brokers, and as received by producers.

From tables of the trace alone. A row of ``acknowledgements`` has offsets of the leader's log, and
``appends`` the records that the broker wrote there last before its response; of a batch that came
twice the broker acknowledges the first one's offsets (KIP-98). Only here Spark reads ``appends``:
an acknowledged batch may no longer be in any file. Counts are those of the checker's
:mod:`sim.checking.outcomes.verdict`:

* ``ok_unanswered``: a producer counts them as acknowledged, at a known offset, and no broker
  acknowledged them.
* ``answered_untold``: a broker acknowledged them, and their producer counts them neither as
  acknowledged nor as unknown, as after a lost response.
"""

from collections.abc import Mapping
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from analysis.verify import durability

COUNTS: Final = ("ok_unanswered", "answered_untold")
"""The numbers of the verdict, in its order."""

_KINDS: Final = ("acked", "placed", "unknown", "answered")
_PLACE: Final = ("broker", "topic", "partition", "base_offset")


def counts(
    client_batches: DataFrame, acknowledgements: DataFrame, appends: DataFrame
) -> Mapping[str, int]:
    """Records on which the two sides differ, by :data:`COUNTS`, from three trace tables."""
    outcome, yes = f.col("outcome"), f.lit(1) > f.lit(0)
    kinds = {
        "acked": outcome == "ok",
        "placed": (outcome == "ok") & (f.col("base_offset") >= 0),
        "unknown": outcome == "unknown",
    }
    given = answered(acknowledgements, appends)
    found = durability.swept(
        [
            durability.ranges(client_batches, _KINDS, kinds),
            durability.ranges(given, _KINDS, {"answered": yes}),
        ],
        _KINDS,
    )
    is_placed, is_answered = f.col("placed") > 0, f.col("answered") > 0
    is_known = (f.col("acked") > 0) | (f.col("unknown") > 0)
    picked = {
        "ok_unanswered": is_placed & ~is_answered,
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
