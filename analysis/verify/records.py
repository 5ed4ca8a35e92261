"""Numbers of records by their fate, by topic, with examples of what should not be."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pandas as pd
from pyspark import StorageLevel
from pyspark.sql import DataFrame

from analysis.verify import durability, transactions
from analysis.verify.run_data import RunData

EXAMPLES: Final = 10
"""Most examples of each kind of violation."""

Held = Callable[[DataFrame], DataFrame]
"""Computes a small frame once, see :func:`analysis.spark.tables.held`."""


@dataclass(frozen=True, slots=True)
class Records:
    """The verdict on a run's records."""

    topics: dict[str, dict[str, int]]
    """By topic, the numbers of :data:`analysis.verify.durability.COUNTS`."""
    examples: dict[str, list[dict[str, object]]]
    unreadable: pd.DataFrame
    """``[broker, topic, partition, status, batches, size_bytes]``."""


def judged(data: RunData, held: Held) -> Records:
    """Compares acknowledgements with survivors.

    Args:
        data: The run's.
        held: Keeps a small frame in the plans that use it.
    """
    stretches = durability.stretches(data).persist(StorageLevel.MEMORY_AND_DISK)
    counted = durability.counts(stretches).orderBy("topic").toPandas()
    topics = {
        str(row["topic"]): {name: int(row.get(name, 0)) for name in durability.COUNTS}
        for row in counted.to_dict("records")
    }
    if data.transactions is not None:
        _add(topics, "torn_transactions", transactions.torn(stretches, data.transactions))
    found: dict[str, DataFrame] = {}
    if data.may_be_reordered:
        leader = durability.leader_runs(data)
        found["reordered"] = durability.reordered(leader, held(durability.out_of_order(leader)))
    if data.may_differ:
        found["divergent"] = durability.divergent(data.survivors, data.starts, data.visited)
    for name, frame in found.items():
        _add(topics, name, frame)
    result = Records(
        topics,
        _examples(topics, stretches, found),
        data.unreadable,
    )
    stretches.unpersist()
    return result


def _add(topics: dict[str, dict[str, int]], name: str, frame: DataFrame) -> None:
    for row in frame.groupBy("topic").count().toPandas().to_dict("records"):
        _put(topics, name, row["topic"], row["count"])


def _put(topics: dict[str, dict[str, int]], name: str, topic: str, number: int) -> None:
    """Notes a number of a topic; one that no producer wrote to is not judged."""
    if topic in topics:
        topics[topic][name] = int(number)


def _examples(
    topics: dict[str, dict[str, int]], stretches: DataFrame, others: dict[str, DataFrame]
) -> dict[str, list[dict[str, object]]]:
    ranges = [*durability.KEYS, "first_record", "record_count"]
    sources = {
        "lost_acked": stretches.where(durability.is_lost()).select(*ranges),
        "unacked_present": stretches.where(durability.is_unasked()).select(*ranges),
        "duplicated": stretches.where(durability.is_duplicated()).select(*ranges, "present"),
        **others,
    }
    examples: dict[str, list[dict[str, object]]] = {}
    for name, frame in sources.items():
        if any(numbers[name] for numbers in topics.values()):
            first = frame.orderBy(*frame.columns[:4]).limit(EXAMPLES)
            examples[name] = [row.asDict() for row in first.collect()]
    return examples
