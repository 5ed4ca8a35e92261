"""Errors of failed records by topic: the last error of each failed batch.

Failed as in the table ``client_batches``: certainly not written. The error is that
of the batch's last attempt, ``TRANSACTION_ABORTED`` of one that was dropped unsent with its
transaction, ``NEVER_SENT`` of one whose producer ended with it in its buffer, or
``BUFFER_EXHAUSTED`` where ``send()`` threw.
"""

from sim.trace.rows.log import ClientBatches, ClientBatchesRow


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
