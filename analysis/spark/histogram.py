"""Percentiles of millions of values through log-scaled buckets.

Whole microseconds up to :data:`EXACT_UP_TO` have a bucket each; above, a bucket's bounds differ by
one percent, and its middle represents it. So a percentile is at most :data:`RELATIVE_ERROR` away
from the exact one (nearest rank), and the largest value is exact: every bucket keeps its own.

Source: Masson, Rim, Lee, "DDSketch" (VLDB 2019), with fixed bounds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

Counts = NDArray[np.int64]

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


def buckets_of(values: Counts) -> Counts:
    """The buckets of values in memory, as :func:`bucket_of`."""
    above = np.ceil(np.log(np.maximum(values, 1) / EXACT_UP_TO) / _LOG_GROWTH - _EDGE)
    plain = np.maximum(values, 0)
    return np.where(values <= EXACT_UP_TO, plain, above.astype(np.int64) + EXACT_UP_TO)


def middle_of(bucket: Counts) -> Counts:
    """The values in microseconds that represent buckets."""
    upper = np.power(GROWTH, (bucket - EXACT_UP_TO).astype(float)) * EXACT_UP_TO
    middle = np.floor(upper * 2 / (1 + GROWTH) + 0.5).astype(np.int64)
    return np.where(bucket <= EXACT_UP_TO, bucket, middle)


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


def percentiles(counted: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """Percentiles of the counts of :func:`count`, for coarser groups if need be.

    Args:
        counted: Its rows, in memory: there are no more than groups times buckets.
        by: Columns to group by; none for a single row of everything.

    Returns:
        ``DataFrame[*by, records, p50, p90, p99, p999, max, mean]`` in microseconds, in the order
        of ``by``; no row where nothing was counted.
    """
    keys = [*by, "bucket"]
    merged = counted.groupby(keys, as_index=False).agg(
        records=("records", "sum"), top_us=("top_us", "max"), sum_us=("sum_us", "sum")
    )
    names: list[str] | NDArray[np.int64] = list(by) or np.zeros(len(merged), np.int64)
    groups = merged.groupby(names)
    up_to = groups["records"].cumsum()
    total = groups["records"].transform("sum")
    top = groups["top_us"].transform("max")
    value = np.minimum(middle_of(merged["bucket"].to_numpy(np.int64)), top.to_numpy(np.int64))
    sums = groups.agg(records=("records", "sum"), sum_us=("sum_us", "sum"), max=("top_us", "max"))
    for name, share in QUANTILES.items():
        reached = (up_to >= np.ceil(total * share - _EDGE)).to_numpy(bool)
        sums[name] = (
            merged.assign(value=value)[reached]
            .groupby(names if by else names[reached])["value"]
            .min()
        )
    sums["mean"] = sums["sum_us"] / sums["records"]
    found = sums.reset_index(drop=not by)
    return found[[*by, "records", *QUANTILES, "max", "mean"]]
