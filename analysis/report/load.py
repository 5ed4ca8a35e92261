"""Load of servers, and lag of consumers."""

import numpy as np
import pandas as pd

from sim.units import Micros


def servers(load: pd.DataFrame, width_us: Micros) -> pd.DataFrame:
    """Loads of each server, averaged over the bins of a time axis.

    Args:
        load: Trace table.
        width_us: Width of a bin.

    Returns:
        ``[node, bin, network_threads, request_handlers, disk, disk_written_bytes, dirty_bytes,
        sent_bytes, requests]``, ordered; the first three are shares from 0 to 1, the last four
        averages of the seconds.
    """
    ratios = {f"{name}_ratio": name for name in ("network_threads", "request_handlers", "disk")}
    amounts = ["disk_written_bytes", "dirty_bytes", "sent_bytes", "requests"]
    binned = load.assign(bin=_bins(load["t_us"] - 1, width_us))
    found = binned.groupby(["node", "bin"], as_index=False)[[*ratios, *amounts]].mean()
    return found.assign(**{name: found[name] / 1000 for name in ratios}).rename(columns=ratios)


def consumers(lag: pd.DataFrame, width_us: Micros) -> pd.DataFrame:
    """Records that a group has not yet read, and has not yet committed, over all its partitions.

    A partition without an owner at a sample counts from its committed offset, or from its start
    without one. The largest sample represents a bin.

    Args:
        lag: Trace table.
        width_us: Width of a bin.

    Returns:
        ``[group, bin, lag, uncommitted, lag_max]``, ordered; ``lag_max`` is of one partition.
    """
    committed = lag["committed"].clip(lower=0)
    position = lag["position"].where(lag["position"] >= 0, committed)
    behind = (lag["high_watermark"] - position).clip(lower=0)
    uncommitted = (lag["high_watermark"] - committed).clip(lower=0)
    sampled = (
        lag.assign(behind=behind, uncommitted=uncommitted)
        .groupby(["group", "t_us"], as_index=False)
        .agg(lag=("behind", "sum"), uncommitted=("uncommitted", "sum"), lag_max=("behind", "max"))
    )
    binned = sampled.assign(bin=_bins(sampled["t_us"], width_us))
    return binned.groupby(["group", "bin"], as_index=False)[["lag", "uncommitted", "lag_max"]].max()


def _bins(instants: "pd.Series[int]", width_us: Micros) -> "pd.Series[int]":
    """As :func:`analysis.report.latency.bin_of`."""
    return (instants // width_us).astype(np.int32)
