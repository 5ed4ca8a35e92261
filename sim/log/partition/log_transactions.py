"""Transactions of one log, for its leader and for readers of committed data.

Source: ``UnifiedLog``'s last stable offset, ``maybeStartTransactionVerification`` and
``collectAbortedTransactions``; KIP-98, KIP-890.
"""

from collections.abc import Callable

from sim.ids import Offset, ProducerId
from sim.log.partition.segment import Segment
from sim.log.producers.state import ProducerStates
from sim.log.producers.transaction_index import AbortedTxn
from sim.log.producers.transactions import NO_GUARD, CompletedTransaction


class LogTransactions:
    """The transactions of one log. Satisfies ``sim.protocol.ports.TransactionView``.

    Args:
        producers: The log's producers, which change as it is written.
        segments_from: The log's segments from the one that holds an offset on.
    """

    __slots__ = ("_producers", "_segments_from")

    def __init__(
        self, producers: ProducerStates, segments_from: Callable[[Offset], list[Segment]]
    ) -> None:
        self._producers = producers
        self._segments_from = segments_from

    @property
    def has_unstable(self) -> bool:
        """True if a transaction may keep the last stable offset below the high watermark."""
        return not self._producers.transactions.is_idle

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Last stable offset: below it every transaction is decided, its marker committed."""
        unstable = self._producers.transactions.first_unstable(high_watermark)
        return high_watermark if unstable is None else min(unstable, high_watermark)

    def verification_guard(
        self, producer: ProducerId, epoch: int, sequence: int, now_ms: int, *, bumps: bool
    ) -> int:
        """Guard with which a batch must be appended after verification (KIP-890).

        NO_GUARD: no verification is needed, the transaction is open here.

        Args:
            producer: Of the transaction.
            epoch: The producer's.
            sequence: Of the batch's first record.
            now_ms: Milliseconds since 1970.
            bumps: Whether each transaction has an epoch of its own (transaction version 2).
        """
        states = self._producers
        if states.is_ongoing(producer, epoch):
            return NO_GUARD
        return states.verifications.begin(producer, epoch, sequence, now_ms, bumps=bumps)

    def aborted_between(self, start: Offset, end: Offset) -> tuple[tuple[ProducerId, Offset], ...]:
        """Aborted transactions with data in [start, end): producer and first offset.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``LocalLog.collectAbortedTransactions``, ``TransactionIndex.collectAbortedTxns``.
        """
        found = []
        for segment in self._segments_from(start):
            for entry in segment.transaction_index.entries(start):
                if entry.first_offset < end:
                    found.append((entry.producer_id, entry.first_offset))
                if entry.last_stable_offset >= end:
                    return tuple(found)
        return tuple(found)

    def complete(self, completed: CompletedTransaction, segment: Segment) -> None:
        """Handles a marker written to the segment: indexes an aborted transaction there.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        stable = self._producers.complete(completed)
        if completed.aborted:
            producer, first, last, _ = completed
            segment.transaction_index.append(AbortedTxn(producer, first, last, stable))
