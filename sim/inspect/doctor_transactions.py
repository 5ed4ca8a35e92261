"""The doctor's view of transactions: markers against the index of aborted transactions.

Source: ``ProducerAppendInfo.appendEndTxnMarker``, ``TransactionIndex``.
"""

from collections.abc import Iterator
from pathlib import Path

from sim.ids import Offset, ProducerId
from sim.inspect.finding import Finding
from sim.log.partition.reading import read_transaction_index
from sim.log.producers.transaction_index import ABORTED_ENTRY, AbortedTxn
from sim.wire.control_batch import read_marker
from sim.wire.record_batch import RecordBatch

_UNKNOWN: Offset = -1
"""The transaction may have begun before the log, or its data was compacted away."""


class TransactionReplay:
    """Follows the transactions of one log, batch by batch, and derives its expected index."""

    def __init__(self, clean_below: Offset) -> None:
        """Begins at the first batch of the log.

        Args:
            clean_below: Below it, data and markers may have been compacted away.
        """
        self._clean_below = clean_below
        self._log_start: Offset | None = None
        self._open: dict[ProducerId, Offset] = {}
        self._expected: dict[Offset, AbortedTxn] = {}

    def add(self, batch: RecordBatch) -> None:
        """The log's next batch.

        Raises:
            MalformedBytes: If it claims to be a marker and its record is cut short.
        """
        if self._log_start is None:
            self._log_start = batch.base_offset
        if not batch.is_transactional:
            return
        if not batch.is_control:
            self._open.setdefault(batch.producer_id, batch.base_offset)
            return
        first = self._open.pop(batch.producer_id, None)
        marker = read_marker(batch)
        if marker is not None and not marker.commit:
            self._abort(batch.producer_id, first, batch.last_offset)

    def check(self, path: Path) -> Iterator[Finding]:
        """The index of the segment whose batches were added last."""
        expected, self._expected = self._expected, {}
        entries = read_transaction_index(path) if path.is_file() else []
        if path.is_file() and path.stat().st_size % ABORTED_ENTRY.size:
            yield Finding(path, "warning", "ends within an entry")
        previous = -1
        for number, entry in enumerate(entries):
            where = f"entry at position {number * ABORTED_ENTRY.size}"
            if entry.last_offset <= previous:
                message = f"{where}: last offset {entry.last_offset} follows {previous}"
                yield Finding(path, "error", message)
            previous = entry.last_offset
            expected_entry = expected.pop(entry.last_offset, None)
            if expected_entry is None or expected_entry.producer_id != entry.producer_id:
                if entry.last_offset >= self._clean_below:
                    message = f"no marker at {entry.last_offset} aborts producer"
                    yield Finding(path, "error", f"{message} {entry.producer_id}")
            else:
                yield from self._compare(path, where, entry, expected_entry)
        for entry in expected.values():
            if entry.first_offset != _UNKNOWN:
                message = f"the abort of producer {entry.producer_id} at {entry.last_offset}"
                yield Finding(path, "error", f"{message} has no entry")

    def _abort(self, producer: ProducerId, first: Offset | None, marker: Offset) -> None:
        """Expects no entry for an empty transaction, and none if its data may have been deleted."""
        whole = self._log_start == 0 and self._clean_below == 0
        if first is None and whole:
            return
        stable = min(self._open.values(), default=marker + 1)
        begun = first if first is not None and whole else _UNKNOWN
        self._expected[marker] = AbortedTxn(producer, begun, marker, stable)

    def _compare(
        self, path: Path, where: str, entry: AbortedTxn, expected_entry: AbortedTxn
    ) -> Iterator[Finding]:
        if expected_entry.first_offset == _UNKNOWN:
            return
        for name, found, right in (
            ("first offset", entry.first_offset, expected_entry.first_offset),
            ("last stable offset", entry.last_stable_offset, expected_entry.last_stable_offset),
        ):
            if found != right:
                yield Finding(path, "error", f"{where}: {name} {found} found, {right} expected")
