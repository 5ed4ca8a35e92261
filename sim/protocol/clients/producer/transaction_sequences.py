"""Sequences of a transactional producer: unresolved ones make it abort.

Source: ``TransactionManager.{canRetry,handleFailedBatch,maybeResolveSequences}``,
``TxnPartitionEntry.adjustSequencesDueToFailedBatch``.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.protocol.clients.producer.batch import NO_SEQUENCE, ProducerBatch
from sim.protocol.clients.producer.sequences import ProducerSequences


class TransactionSequences(ProducerSequences):
    """As an idempotent producer's, but only the coordinator assigns epochs.

    Args:
        fail: Called with the error of each batch that failed.
        may_send: True if a partition is in the transaction.
    """

    def __init__(self, fail: Callable[[ErrorCode], None], may_send: Callable[[int], bool]) -> None:
        super().__init__()
        self._fail = fail
        self._may_send = may_send

    def reset(self) -> None:
        """A new epoch has begun: every partition starts from 0, resolved."""
        self._partitions.clear()
        self._doubtful.clear()

    def may_drain(self, batch: ProducerBatch) -> bool:
        """True if the head of its queue may be sent now."""
        return self._may_send(batch.partition) and super().may_drain(batch)

    def on_failed(self, batch: ProducerBatch, *, adjust: bool) -> None:
        """The batch failed for good; ``adjust``: later ones move up into its sequences."""
        self._fail(ErrorCode[batch.error])
        entry = self.of(batch.partition)
        entry.forget(batch)
        if not adjust or batch.base_sequence == NO_SEQUENCE:
            return
        entry.next_sequence -= batch.record_count
        for later in entry.in_flight:
            if later.base_sequence >= batch.base_sequence:
                sequence = later.base_sequence - batch.record_count
                later.give_sequence(later.producer_id, later.producer_epoch, sequence)
                later.sequence_reset = True

    def on_expired(self, batch: ProducerBatch) -> None:
        """The batch expired."""
        self._fail(ErrorCode.REQUEST_TIMED_OUT)
        super().on_expired(batch)

    def may_retry(self, batch: ProducerBatch, error: ErrorCode) -> bool:
        """True to send again after an error: a gap only if an earlier batch may yet fill it."""
        if error is not ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error.retriable
        entry = self.of(batch.partition)
        is_next = batch.base_sequence - entry.last_acked == 1
        return entry.unresolved is None and (batch.sequence_reset or not is_next)

    def request_bump(self, partition: int) -> None:  # noqa: ARG002 - of the transaction, not of it
        """A sequence cannot be resolved: the transaction must be aborted."""
        self._fail(ErrorCode.REQUEST_TIMED_OUT)
