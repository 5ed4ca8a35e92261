"""Percentiles of millions of values through log-scaled buckets.

Whole microseconds up to :data:`EXACT_UP_TO` have a bucket each; above, a bucket's bounds differ by
one percent, and its middle represents it. So a percentile is at most :data:`RELATIVE_ERROR` away
from the exact one (nearest rank), and the largest value is exact: every bucket keeps its own.

Source: Masson, Rim, Lee, "DDSketch" (VLDB 2019), with fixed bounds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

EXACT_UP_TO: Final = 100
"""Values up to here, in microseconds, are counted one by one."""

GROWTH: Final = 1.01
"""Ratio of a bucket's upper bound to its lower one."""

RELATIVE_ERROR: Final = 0.01
"""Error of a percentile: half a bucket, and the rounding to whole microseconds."""

QUANTILES: Final[Mapping[str, float]] = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}
"""The percentiles of every summary; ``max`` is added to them."""

_LOG_GROWTH: Final = math.log(GROWTH)
_EDGE: Final = 1e-9


def bucket_of(value: Column) -> Column:
    """The bucket of a value in microseconds; negative values count as 0."""
    above = f.ceil(f.log(value / EXACT_UP_TO) / _LOG_GROWTH - _EDGE) + EXACT_UP_TO
    plain = f.greatest(value, f.lit(0)).cast("int")
    return f.when(value <= EXACT_UP_TO, plain).otherwise(above.cast("int"))


def middle_of(bucket: Column) -> Column:
    """The value in microseconds that represents a bucket."""
    upper = f.pow(f.lit(GROWTH), bucket - EXACT_UP_TO) * EXACT_UP_TO
    middle = f.round(upper * 2 / (1 + GROWTH)).cast("long")
    return f.when(bucket <= EXACT_UP_TO, bucket.cast("long")).otherwise(middle)


def count(values: DataFrame, by: Sequence[str], value: str) -> DataFrame:
    """Counts values into buckets.

    Args:
        values: Rows with the columns of ``by`` and the value, in microseconds.
        by: Columns to group by.
        value: Name of the value's column.

    Returns:
        ``DataFrame[*by, bucket, records, top_us, sum_us]``; ``top_us`` is the largest value.
    """
    column = f.col(value)
    return (
        values.withColumn("bucket", bucket_of(column))
        .groupBy(*by, "bucket")
        .agg(
            f.count(f.lit(1)).alias("records"),
            f.max(column).cast("long").alias("top_us"),
            f.sum(column.cast("long")).alias("sum_us"),
        )
    )


def percentiles(counted: DataFrame, by: Sequence[str]) -> DataFrame:
    """Percentiles of the counts of :func:`count`, for coarser groups if need be.

    Returns:
        ``DataFrame[*by, records, p50, p90, p99, p999, max, mean]`` in microseconds.
    """
    merged = counted.groupBy(*by, "bucket").agg(
        f.sum("records").alias("records"),
        f.max("top_us").alias("top_us"),
        f.sum("sum_us").alias("sum_us"),
    )
    group = Window.partitionBy(*by)
    upwards = group.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    ranked = merged.select(
        "*",
        f.sum("records").over(upwards).alias("up_to"),
        f.sum("records").over(group).alias("total"),
        f.max("top_us").over(group).alias("top"),
    )
    found = [
        f.min(
            f.when(
                f.col("up_to") >= f.ceil(f.col("total") * share - _EDGE),
                f.least(middle_of(f.col("bucket")), f.col("top")),
            )
        ).alias(name)
        for name, share in QUANTILES.items()
    ]
    return ranked.groupBy(*by).agg(
        f.sum("records").alias("records"),
        *found,
        f.max("top_us").alias("max"),
        (f.sum("sum_us") / f.sum("records")).alias("mean"),
    )
