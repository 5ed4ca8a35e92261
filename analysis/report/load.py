"""Load of servers, and lag of consumers."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from analysis.report.latency import bin_of
from sim.units import Micros


def servers(load: DataFrame, width_us: Micros) -> DataFrame:
    """Loads of each server, averaged over the bins of a time axis.

    Returns:
        ``DataFrame[node, bin, network_threads, request_handlers, disk, disk_written_bytes,
        dirty_bytes, sent_bytes, requests]``; the first three are shares from 0 to 1, the last four
        averages of the seconds.
    """
    ratios = ("network_threads", "request_handlers", "disk")
    amounts = ("disk_written_bytes", "dirty_bytes", "sent_bytes", "requests")
    return load.groupBy("node", bin_of(f.col("t_us") - 1, width_us).alias("bin")).agg(
        *((f.avg(f"{name}_ratio") / 1000).alias(name) for name in ratios),
        *(f.avg(name).alias(name) for name in amounts),
    )


def consumers(lag: DataFrame, width_us: Micros) -> DataFrame:
    """Records that a group has not yet read, and has not yet committed, over all its partitions.

    A partition without an owner at a sample counts from its committed offset, or from its start
    without one. The largest sample represents a bin.

    Returns:
        ``DataFrame[group, bin, lag, uncommitted, lag_max]``; ``lag_max`` is of one partition.
    """
    committed = f.greatest("committed", f.lit(0))
    position = f.when(f.col("position") >= 0, f.col("position")).otherwise(committed)
    behind = f.greatest(f.col("high_watermark") - position, f.lit(0))
    uncommitted = f.greatest(f.col("high_watermark") - committed, f.lit(0))
    sampled = lag.groupBy("group", "t_us").agg(
        f.sum(behind).alias("lag"),
        f.sum(uncommitted).alias("uncommitted"),
        f.max(behind).alias("lag_max"),
    )
    return sampled.groupBy("group", bin_of(f.col("t_us"), width_us).alias("bin")).agg(
        *(f.max(name).alias(name) for name in ("lag", "uncommitted", "lag_max"))
    )
