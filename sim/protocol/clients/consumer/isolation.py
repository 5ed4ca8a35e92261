"""Filter of a reader of committed data: skips markers, and data of aborted transactions.

Source: ``CompletedFetch.{consumeAbortedTransactionsUpTo,isBatchAborted,containsAbortMarker}``;
KIP-98.
"""

from collections.abc import Sequence

from sim.ids import ProducerId
from sim.protocol.messages.data import AbortedTransaction
from sim.protocol.ports import Batch


class CommittedOnly:
    """Filter of one partition's part of one response; batches are passed in order."""

    __slots__ = ("_aborting", "_next", "_waiting")

    def __init__(self, aborted: Sequence[AbortedTransaction]) -> None:
        self._waiting = sorted(aborted, key=lambda each: each.first_offset)
        self._next = 0
        self._aborting: dict[ProducerId, None] = {}

    def hides(self, batch: Batch) -> bool:
        """True if the application does not get the batch; repeated calls are harmless."""
        producer = batch.producer_id
        if producer < 0:
            return batch.is_control
        waiting = self._waiting
        while self._next < len(waiting) and waiting[self._next].first_offset <= batch.last_offset:
            self._aborting[waiting[self._next].producer_id] = None
            self._next += 1
        if batch.is_control:
            if batch.is_abort_marker:
                self._aborting.pop(producer, None)
            return True
        return batch.is_transactional and producer in self._aborting
