"""Outcomes of transactions, by clients and by markers in the files.

In the files, the next marker of a record's producer id behind it commits or aborts it; clients have
the outcomes of their transactions. The resulting state of a record is defined as in
:mod:`sim.checking.outcomes.transactions`, which uses the trace's markers instead.

Source: KIP-98; ``CompletedFetch.nextFetchedRecord``.
"""

from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from analysis.verify.segments import ABORT, COMMIT, TRANSACTIONAL

KINDS: Final = (
    "log_committed",
    "log_aborted",
    "log_undecided",
    "client_committed",
    "client_aborted",
    "client_unknown",
    "committed_read",
)
"""Marks of a range of records: by markers in the log, by its client, and by committed readers."""

_PARTITION: Final = ["topic", "partition"]
_KEYS: Final = [*_PARTITION, "producer_index"]


@dataclass(frozen=True, slots=True)
class TransactionTables:
    """Trace tables; only of a run in which some producer had transactions."""

    records: DataFrame
    outcomes: DataFrame
    reads: DataFrame
    committed_readers: DataFrame


def decided(log: DataFrame) -> DataFrame:
    """Readable runs of the final leaders' logs, with their state by markers.

    Args:
        log: Rows of survivors, markers among them.

    Returns:
        The same rows with ``fate``: ``committed``, ``aborted`` or ``undecided`` for records of
        transactions; null for others.
    """
    behind = (
        Window.partitionBy(*_PARTITION, "producer_id")
        .orderBy("base_offset")
        .rowsBetween(1, Window.unboundedFollowing)
    )
    is_marker = f.col("kind").isin(COMMIT, ABORT)
    marker = f.first(f.when(is_marker, f.col("kind")), ignorenulls=True).over(behind)
    fate = f.when(
        f.col("kind") == TRANSACTIONAL,
        f.when(f.col("marker") == COMMIT, "committed")
        .when(f.col("marker") == ABORT, "aborted")
        .otherwise("undecided"),
    )
    return log.withColumn("marker", marker).withColumn("fate", fate).drop("marker")


def ranges(runs: DataFrame, transactions: TransactionTables) -> list[tuple[DataFrame, str, Column]]:
    """Ranges of record numbers of each kind: a frame, the kind, and the condition of its rows.

    Args:
        runs: Rows of :func:`decided` with records of producers.
        transactions: The run's.
    """
    parts = client_outcomes(transactions)
    name = f.col("consumer")
    readers = transactions.committed_readers.select(name).distinct()
    read = transactions.reads.where(f.col("producer_index") >= 0).join(
        f.broadcast(readers), "consumer", "left_semi"
    )
    outcome, fate = f.col("outcome"), f.col("fate")
    return [
        (runs.where(fate == "committed"), "log_committed", f.expr("true")),
        (runs.where(fate == "aborted"), "log_aborted", f.expr("true")),
        (runs.where(fate == "undecided"), "log_undecided", f.expr("true")),
        (parts.where(outcome == "committed"), "client_committed", f.expr("true")),
        (parts.where(outcome.isin("aborted", "fenced")), "client_aborted", f.expr("true")),
        (parts.where(outcome == "unknown"), "client_unknown", f.expr("true")),
        (read, "committed_read", f.expr("true")),
    ]


def client_outcomes(transactions: TransactionTables) -> DataFrame:
    """Parts of transactions with their outcomes; without one it is ``unknown``.

    Returns:
        ``DataFrame[topic, partition, producer_index, first_record, record_count, producer,
        transaction, outcome]``.
    """
    name = ["producer", "transaction"]
    return transactions.records.join(
        transactions.outcomes.select(*name, "outcome"), name, "left"
    ).select(
        *_KEYS,
        "first_record",
        (f.col("last_record") - f.col("first_record") + 1).cast("int").alias("record_count"),
        *name,
        f.coalesce("outcome", f.lit("unknown")).alias("outcome"),
    )


def is_aborted() -> Column:
    """Of a stretch: aborted by its client's outcome, or by a marker and no other outcome."""
    covered = (f.col("log_aborted") > 0) & (f.col("client_committed") == 0)
    return (f.col("client_aborted") > 0) | covered


def is_promised() -> Column:
    """Of a stretch: neither aborted nor of a transaction without an outcome at its client."""
    return ~is_aborted() & (f.col("client_unknown") == 0)


def torn(stretches: DataFrame, transactions: TransactionTables) -> DataFrame:
    """Transactions of which some acknowledged records are visible and others are not.

    Args:
        stretches: Rows of :func:`analysis.verify.durability.stretches`.
        transactions: The run's.

    Returns:
        ``DataFrame[topic, producer, transaction]``.
    """
    parts = client_outcomes(transactions).select(
        *_KEYS,
        f.col("first_record").alias("from"),
        (f.col("first_record") + f.col("record_count")).alias("to"),
        "producer",
        "transaction",
    )
    missing = (f.col("acked") > 0) & (f.col("present") == 0) & (f.col("expired") == 0)
    within = (f.col("first_record") >= f.col("from")) & (f.col("first_record") < f.col("to"))
    return (
        stretches.join(parts, _KEYS)
        .where(within)
        .groupBy("topic", "producer", "transaction")
        .agg(
            f.max((f.col("log_committed") > 0).cast("int")).alias("seen"),
            f.max(missing.cast("int")).alias("missing"),
        )
        .where((f.col("seen") > 0) & (f.col("missing") > 0))
        .select("topic", "producer", "transaction")
    )
