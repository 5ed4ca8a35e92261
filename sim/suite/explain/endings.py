"""Ends of transactions: the coordinator's decision, its instant, and its reason.

Source: the trace tables ``transactions``, ``markers``, ``transaction_outcomes`` and
``transaction_records``; ``TransactionCoordinator.endTransaction`` of Kafka for the waits.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sim.suite.explain.run_facts import OUTAGE_US, Row, RunFacts, Story
from sim.units import Micros

_REQUESTED = "EndTxn"
"""Reason of a decision that the producer requested; others are time-outs and fences."""


@dataclass(frozen=True, slots=True)
class Ending:
    """One transaction and its coordinator's steps."""

    outcome: Row
    """Of ``transaction_outcomes``."""
    steps: tuple[Row, ...]
    """Of ``transactions``, from its ``Ongoing`` to its completion."""
    answered_us: Micros
    """Instant at which the last of its records was acknowledged or given up."""

    @property
    def decision(self) -> Row | None:
        """The step with which the coordinator decided."""
        return next((row for row in self.steps if row["state"].startswith("Prepare")), None)

    @property
    def name(self) -> str:
        """As people read it."""
        return f"transaction {self.outcome['transaction']} of {self.outcome['transactional_id']}"

    @property
    def by_end_txn(self) -> bool:
        """True if the producer's request decided."""
        return self.decision is not None and self.decision["reason"] == _REQUESTED

    @property
    def waited_us(self) -> Micros:
        """Between the last answer to its records and the decision; 0 without one."""
        return 0 if self.decision is None else int(self.decision["t_us"]) - self.answered_us


def ending_of(facts: RunFacts, outcome: Row) -> Ending:
    """The steps of one transaction.

    Args:
        facts: The run.
        outcome: Its row of ``transaction_outcomes``.
    """
    steps: list[Row] = []
    for row in facts.rows("transactions"):
        if row["transactional_id"] != outcome["transactional_id"]:
            continue
        # The end of the transaction before may be written after the producer has begun this one.
        if row["t_us"] < outcome["begun_us"] or (not steps and row["state"] != "Ongoing"):
            continue
        steps.append(row)
        if row["state"].startswith("Complete") or row["state"] == "Dead":
            break
    parts = [
        part
        for part in facts.rows("transaction_records")
        if all(part[name] == outcome[name] for name in ("producer", "transaction"))
    ]
    answers = [row["t_us"] for row in facts.rows("client_batches") if _is_in(row, parts)]
    return Ending(outcome, tuple(steps), max(answers, default=outcome["begun_us"]))


def late_endings(story: Story) -> Iterator[tuple[Ending, Row]]:
    """Transactions whose end was late, each with the batch that shows it.

    A producer that has requested the end of a transaction sends nothing until the coordinator has
    decided: a batch that was meant for that time and left after it is the proof. An application
    that rests before it commits leaves none.
    """
    low, high = story.window
    outcomes = {
        (row["producer"], row["transaction"]): row
        for row in story.facts.rows("transaction_outcomes")
        if row["t_us"] >= low and row["begun_us"] <= high
    }
    batches = story.facts.rows("client_batches", story.subject) if outcomes else []
    for outcome in outcomes.values():
        ending = ending_of(story.facts, outcome)
        decision = ending.decision
        if decision is None or ending.waited_us < OUTAGE_US:
            continue
        if story.subject.kind != "outage" and outcome != story.transaction:
            continue
        for row in batches:
            meant = row["t_us"] - max(row["latency_us"], default=0)
            is_held = meant < decision["t_us"] <= row["first_sent_us"]
            if row["producer"] == outcome["producer"] and is_held:
                yield ending, row
                break


def _is_in(batch: Row, parts: list[Row]) -> bool:
    last = batch["first_record"] + batch["record_count"] - 1
    return any(
        all(batch[name] == part[name] for name in ("producer", "topic", "partition"))
        and batch["first_record"] <= part["last_record"]
        and part["first_record"] <= last
        for part in parts
    )
