"""What a process with a transactional producer tells of its transactions in the trace."""

from sim.protocol.producer_events import TransactionDone
from sim.trace.writer import Trace
from sim.units import Micros


class TransactionRows:
    """Rows of ``transaction_outcomes`` and ``transaction_records`` of one producer.

    Args:
        trace: Where they go.
        name: The producer's.
        index: Its number, as in record values.
        topic: Where its records go.
    """

    def __init__(self, trace: Trace, name: str, index: int, topic: str) -> None:
        self._name = name
        self._index = index
        self._topic = topic
        self._ended = trace.table("transaction_outcomes")
        self._held_records = trace.table("transaction_records")

    def add(self, now: Micros, transactional_id: str, done: TransactionDone) -> None:
        """A transaction has ended."""
        who = (self._name, transactional_id, done.transaction)
        for partition, first, last in done.records:
            self._held_records.add((now, *who, self._index, self._topic, partition, first, last))
        self._ended.add(
            (
                now,
                *who,
                done.producer_id,
                done.producer_epoch,
                done.begun_us,
                done.outcome,
                done.error,
                sum(last - first + 1 for _, first, last in done.records),
            )
        )
