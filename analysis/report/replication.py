"""Leadership and in-sync replicas over time, as the controller committed them.

Left out: the brokers' view (table ``leadership``), which can be late.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd

from sim.units import Micros

_PARTITION: Final = ["topic", "partition"]


def spans(
    partition_changes: pd.DataFrame, min_in_sync: Mapping[tuple[str, int], int], end_us: Micros
) -> pd.DataFrame:
    """Intervals within which a partition's state does not change.

    Args:
        partition_changes: Trace table.
        min_in_sync: The effective ``min.insync.replicas`` of partitions, see :func:`minima`.
        end_us: End of the last interval of each partition.

    Returns:
        ``[topic, partition, from_us, to_us, leader, leader_epoch, partition_epoch, in_sync,
        in_sync_count, replicas, replica_count, unclean, min_in_sync, is_under_min]``, ordered by
        partition and time. ``min_in_sync`` is 0 where no leader's row has it, and nothing is
        under it then.
    """
    ordered = partition_changes.sort_values(
        [*_PARTITION, "t_us", "partition_epoch"], kind="stable", ignore_index=True
    )
    after = ordered.groupby(_PARTITION)["t_us"].shift(-1)
    until = after.where(after.notna(), ordered["t_us"].clip(lower=end_us)).astype(np.int64)
    places = zip(ordered["topic"], ordered["partition"], strict=True)
    least = np.array([min_in_sync.get(place, 0) for place in places], np.int32)
    count = _members(ordered["in_sync"])
    return pd.DataFrame(
        {
            "topic": ordered["topic"],
            "partition": ordered["partition"],
            "from_us": ordered["t_us"],
            "to_us": until,
            "leader": ordered["leader"],
            "leader_epoch": ordered["leader_epoch"],
            "partition_epoch": ordered["partition_epoch"],
            "in_sync": ordered["in_sync"],
            "in_sync_count": count,
            "replicas": ordered["replicas"],
            "replica_count": _members(ordered["replicas"]),
            "unclean": ordered["unclean"],
            "min_in_sync": least,
            "is_under_min": count < least,
        }
    )


def minima(most: pd.DataFrame) -> dict[tuple[str, int], int]:
    """The effective ``min.insync.replicas`` of each partition.

    Args:
        most: ``[topic, partition, min_in_sync]``: the largest of leaders' rows.
    """
    numbers = most["min_in_sync"].tolist()
    return dict(zip(zip(most["topic"], most["partition"], strict=True), numbers, strict=True))


def totals(found: pd.DataFrame) -> pd.DataFrame:
    """Time of each partition without a leader, and under its minimum ISR.

    Args:
        found: Rows of :func:`spans`.

    Returns:
        ``[topic, partition, leaderless_us, under_min_us, elections, unclean_elections]``, ordered;
        the first leader of a partition is no election.
    """
    took = found["to_us"] - found["from_us"]
    counted = found.assign(
        leaderless_us=took.where(found["leader"] < 0, 0),
        under_min_us=took.where(found["is_under_min"], 0),
        unclean=found["unclean"].astype(np.int64),
    )
    summed = counted.groupby(_PARTITION, as_index=False).agg(
        leaderless_us=("leaderless_us", "sum"),
        under_min_us=("under_min_us", "sum"),
        elections=("leader_epoch", "nunique"),
        unclean_elections=("unclean", "sum"),
    )
    return summed.assign(elections=summed["elections"] - 1)


def _members(joined: "pd.Series[str]") -> "pd.Series[int]":
    """Numbers of brokers in lists such as ``1,2,3``."""
    return (joined.str.count(",") + (joined != "")).astype(np.int32)
