"""Outcomes of records that share groups acquired, from the last trace row of each.

Counts are defined as in :mod:`sim.checking.outcomes.sharing`.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

COUNTS: Final = ("accepted", "rejected", "archived", "unfinished")
"""The numbers of the verdict, in its order."""

_BY_REASON: Final = {
    "accept": "accepted",
    "reject": "rejected",
    "limit": "archived",
    "gap": "",
    "removed from the log": "",
}
_FOUND: Final = {
    "found accepted": "accepted",
    "found rejected": "rejected",
    "found at the limit": "archived",
}


def counts(states: DataFrame) -> dict[str, int]:
    """The numbers of all share groups together; empty where there are none.

    Args:
        states: The trace table ``share_states``, in the order in which it was written.
    """
    records = states.withColumn("place", f.monotonically_increasing_id()).select(
        "group",
        "topic",
        "partition",
        f.explode(f.sequence("first_offset", "last_offset")).alias("offset"),
        f.struct("t_us", "place").alias("at"),
        "reason",
    )
    is_own = ~f.col("reason").isin(*_FOUND)
    ends = (
        records.groupBy("group", "topic", "partition", "offset")
        .agg(
            f.max_by("reason", "at").alias("last"),
            f.max_by(f.when(is_own, f.col("reason")), f.when(is_own, f.col("at"))).alias("own"),
        )
        .groupBy("last", "own")
        .count()
        .collect()
    )
    if not ends:
        return {}
    totals = dict.fromkeys(COUNTS, 0)
    for row in ends:
        name = _BY_REASON.get(row["own"])
        if name is None:
            name = _FOUND.get(row["last"], "unfinished")
        if name:
            totals[name] += int(row["count"])
    return totals
