"""Producer-state eviction before 2.5, and its error mapping.

Until 2.4 a producer was evicted with its last record in the log; its next sequence was then that of
an unknown producer. Until 2.5 only data kept a producer from expiring, not the marker that ended
its transaction.

Source: ``ProducerStateManager`` of 2.3 (``truncateHead``, ``isProducerRetained``),
``ProducerAppendInfo.checkSequence``; KAFKA-7190 and KIP-360, KAFKA-9144.
"""

from sim.error_codes import ErrorCode
from sim.ids import Offset
from sim.log.config import LogConfig
from sim.log.producers.snapshot import SeenBatch
from sim.log.producers.state import ProducerStates
from sim.log.producers.transactions import CompletedTransaction, is_by_coordinator
from sim.wire.record_batch import RecordBatch


class HistoricProducers(ProducerStates):
    """All producers of one log, as before 2.5.

    Args:
        leave_with_records: Forget a producer whose last record is below the log start.
        count_markers: Whether a marker counts as a sign of life.
    """

    __slots__ = ("_count_markers", "_leave_with_records")

    def __init__(self, *, leave_with_records: bool, count_markers: bool) -> None:
        super().__init__()
        self._leave_with_records = leave_with_records
        self._count_markers = count_markers

    def check(self, batch: RecordBatch) -> ErrorCode | SeenBatch:
        """Checks as the base does; UNKNOWN_PRODUCER_ID for sequences of evicted producers."""
        return self._unless_unknown(batch, super().check(batch))

    def check_transactional(self, batch: RecordBatch, guard: int) -> ErrorCode | SeenBatch:
        """Checks as the base does, except for unknown producers."""
        verdict = super().check_transactional(batch, guard)
        return verdict if is_by_coordinator(guard) else self._unless_unknown(batch, verdict)

    def _unless_unknown(
        self, batch: RecordBatch, verdict: ErrorCode | SeenBatch
    ) -> ErrorCode | SeenBatch:
        if not self._leave_with_records or batch.base_sequence == 0:
            return verdict
        entry = self._entries.get(batch.producer_id)
        if entry is None:
            return ErrorCode.UNKNOWN_PRODUCER_ID if verdict is ErrorCode.NONE else verdict
        # Only a marker is left of it, so the next sequence is unknown.
        is_bare = not entry.batches and entry.epoch == batch.producer_epoch
        if is_bare and verdict is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return ErrorCode.UNKNOWN_PRODUCER_ID
        return verdict

    def update(self, batch: RecordBatch) -> CompletedTransaction | None:
        """Updates as the base does; a marker leaves its producer's last activity as it was."""
        if self._count_markers or not batch.is_control:
            return super().update(batch)
        before = self._entries.get(batch.producer_id)
        last_active_ms = -1 if before is None else before.timestamp_ms
        completed = super().update(batch)
        entry = self._entries.get(batch.producer_id)
        if entry is not None:
            entry.timestamp_ms = last_active_ms
        return completed

    def evict_below(self, log_start: Offset) -> None:
        """Evicts producers without a record at or above the log start, unless in a transaction.

        An open transaction's producer is kept here, where Kafka dropped its transaction with it.
        """
        if not self._leave_with_records:
            return
        evicted = [
            producer
            for producer, entry in self._entries.items()
            if entry.transaction_start < 0
            and (not entry.batches or entry.batches[-1].last_offset < log_start)
        ]
        for producer in evicted:
            del self._entries[producer]


def producers_for(config: LogConfig) -> ProducerStates:
    """The producers of a new or loaded log, none yet, by its settings."""
    if config.producers_leave_with_records or not config.markers_renew_producers:
        return HistoricProducers(
            leave_with_records=config.producers_leave_with_records,
            count_markers=config.markers_renew_producers,
        )
    return ProducerStates()
