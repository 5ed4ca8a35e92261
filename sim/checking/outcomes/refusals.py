"""Errors that applications got: of failed records by topic, and those that ended consumers.

Failed as in the table ``client_batches``: certainly not written. The error is that
of the batch's last attempt, ``TRANSACTION_ABORTED`` of one that was dropped unsent with its
transaction, ``NEVER_SENT`` of one whose producer ended with it in its buffer, or
``BUFFER_EXHAUSTED`` where ``send()`` threw.
"""

from typing import TypedDict

from sim.trace.rows.clients import ConsumerErrors, ConsumerErrorsRow
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.units import Micros


class EndedConsumers(TypedDict):
    """Consumers of one group that ended with one error."""

    group: str
    """Empty for none."""
    error: str
    """Kafka's name."""
    consumers: list[str]
    """Printed names, in order of their first end."""
    from_us: Micros
    """Instant of the first."""


class Refusals:
    """Failed records, counted by topic and error."""

    def __init__(self) -> None:
        self._topics: dict[str, dict[str, int]] = {}

    def batch(self, row: ClientBatchesRow) -> None:
        """Counts the outcome of a producer's batch."""
        if row[ClientBatches.OUTCOME] != "failed":
            return
        topic, error = row[ClientBatches.TOPIC], row[ClientBatches.ERROR]
        errors = self._topics.get(topic)
        if errors is None:
            errors = self._topics[topic] = {}
        errors[error] = errors.get(error, 0) + row[ClientBatches.RECORD_COUNT]

    def report(self) -> dict[str, dict[str, int]]:
        """Failed records by topic and by Kafka's name of the error, both in alphabetical order."""
        return {
            topic: {error: errors[error] for error in sorted(errors)}
            for topic, errors in sorted(self._topics.items())
        }


class RaisedErrors:
    """Errors that ended consumers, by group."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], EndedConsumers] = {}

    def raised(self, row: ConsumerErrorsRow) -> None:
        """Counts a consumer that ended with an error."""
        group, error = row[ConsumerErrors.GROUP], row[ConsumerErrors.ERROR]
        known = self._found.get((group, error))
        if known is None:
            known = self._found[group, error] = EndedConsumers(
                group=group, error=error, consumers=[], from_us=row[ConsumerErrors.T_US]
            )
        if row[ConsumerErrors.CONSUMER] not in known["consumers"]:
            known["consumers"].append(row[ConsumerErrors.CONSUMER])

    def report(self) -> dict[str, object]:
        """``consumer_errors`` of the verdict: how many consumers ended, and which with what."""
        ended = list(self._found.values())
        return {
            "consumers": len({name for each in ended for name in each["consumers"]}),
            "ended": ended,
        }
