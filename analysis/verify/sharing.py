"""What became of records that share groups were given: the last that was told of each record.

Counts are defined as in :mod:`sim.checking.outcomes.sharing`.
"""

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

COUNTS: Final = ("accepted", "rejected", "archived", "unfinished")
"""The numbers of the verdict, in its order."""

_TOLD: Final = {
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
    is_told = ~f.col("reason").isin(*_FOUND)
    ends = (
        records.groupBy("group", "topic", "partition", "offset")
        .agg(
            f.max_by("reason", "at").alias("last"),
            f.max_by(f.when(is_told, f.col("reason")), f.when(is_told, f.col("at"))).alias("told"),
        )
        .groupBy("last", "told")
        .count()
        .collect()
    )
    if not ends:
        return {}
    totals = dict.fromkeys(COUNTS, 0)
    for row in ends:
        name = _TOLD.get(row["told"])
        if name is None:
            name = _FOUND.get(row["last"], "unfinished")
        if name:
            totals[name] += int(row["count"])
    return totals
