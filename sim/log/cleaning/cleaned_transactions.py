"""Transactions as a cleaner follows them through a log from its start.

Data of an aborted transaction is removed at once. A marker may follow when no data of its
transaction is left in front of it; until then an aborted one is entered into the new index.

Source: ``CleanedTransactionMetadata``, ``UnifiedLog.collectAbortedTransactions``; KIP-98.
"""

from collections.abc import Sequence

from sim.ids import Offset, ProducerId
from sim.log.partition.log import PartitionLog
from sim.log.producers.transaction_index import AbortedTxn, decode_aborted
from sim.wire.control_batch import read_marker
from sim.wire.record_batch import RecordBatch

TRANSACTION_INDEX = ".txnindex"
"""Suffix of a segment's index of aborted transactions."""


class CleanedTransactions:
    """Transactions that are open at the point that the cleaner has reached."""

    __slots__ = ("_aborted", "_ahead", "_committed", "_seen", "kept")

    def __init__(self) -> None:
        self._ahead: list[AbortedTxn] = []
        self._aborted: dict[ProducerId, AbortedTxn] = {}
        self._seen: dict[ProducerId, None] = {}
        self._committed: dict[ProducerId, None] = {}
        self.kept: list[AbortedTxn] = []
        """Aborted transactions whose markers stay, for the cleaned segment's index."""

    def add(self, aborted: Sequence[AbortedTxn]) -> None:
        """Adds aborted transactions of the part read next; some may be known already."""
        self._ahead.extend(aborted)
        self._ahead.sort(key=_first_offset)

    def data_read(self, batch: RecordBatch) -> bool:
        """Handles a data batch; returns True if its transaction was aborted."""
        self._reach(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer = batch.producer_id
        if producer in self._aborted:
            self._seen[producer] = None
            return True
        self._committed[producer] = None
        return False

    def marker_read(self, batch: RecordBatch) -> bool:
        """Handles a control batch; returns True if it may be removed."""
        self._reach(batch.last_offset)
        producer = batch.producer_id
        marker = read_marker(batch)
        if marker is None:
            # A marker without its record has been cleaned; other control records stay.
            return batch.record_count == 0
        if marker.commit:
            return not _taken(self._committed, producer)
        aborted = self._aborted.pop(producer, None)
        if aborted is not None and _taken(self._seen, producer):
            self.kept.append(aborted)
            return False
        return True

    def _reach(self, offset: Offset) -> None:
        while self._ahead and self._ahead[0].first_offset <= offset:
            aborted = self._ahead.pop(0)
            if aborted.producer_id not in self._aborted:
                self._aborted[aborted.producer_id] = aborted


def aborted_between(log: PartitionLog, start: Offset, end: Offset) -> list[AbortedTxn]:
    """Aborted transactions that have records in [start, end), from the indexes of the segments.

    Raises:
        DiskFailed: If the disk has failed.
    """
    found: list[AbortedTxn] = []
    following = [segment.base_offset for segment in log.segments[1:]]
    for segment, next_base in zip(log.segments, [*following, log.log_end_offset], strict=True):
        if next_base <= start and next_base < log.log_end_offset:
            continue
        name = f"{log.directory}/{segment.base_offset:020d}{TRANSACTION_INDEX}"
        for aborted in decode_aborted(log.store.read_whole(name) or b""):
            if aborted.last_offset >= start and aborted.first_offset < end:
                found.append(aborted)
            if aborted.last_stable_offset >= end:
                return found
    return found


def _first_offset(aborted: AbortedTxn) -> Offset:
    return aborted.first_offset


def _taken(known: dict[ProducerId, None], producer: ProducerId) -> bool:
    if producer not in known:
        return False
    del known[producer]
    return True
