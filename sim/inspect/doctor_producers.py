"""The doctor's view of producers: snapshots against the batches below them, replayed.

Source: ``ProducerStateManager``.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from sim.ids import Offset, ProducerId
from sim.inspect.finding import Finding
from sim.log.producers.snapshot import MalformedSnapshot, ProducerEntry, decode_snapshot
from sim.log.producers.state import ProducerStates
from sim.wire.record_batch import RecordBatch

_EXPIRATION_MS = 24 * 3_600_000
"""``producer.id.expiration.ms``, by default."""


class ProducerReplay:
    """Follows the producers of one log, batch by batch, and compares at each snapshot's offset.

    A log that has lost its head is followed from its first good snapshot on.
    """

    def __init__(self, directory: Path, clean_below: Offset) -> None:
        """Reads the snapshots of a partition's directory.

        Args:
            directory: The partition's directory.
            clean_below: Below it, batches may have been compacted away.
        """
        self.findings: list[Finding] = []
        """Findings so far."""
        self._clean_below = clean_below
        self._waiting: list[tuple[Offset, Path, dict[ProducerId, ProducerEntry]]] = []
        for path in sorted(directory.glob("*.snapshot")):
            try:
                entries = dict(decode_snapshot(path.read_bytes()))
            except MalformedSnapshot as error:
                self.findings.append(Finding(path, "warning", str(error)))
                continue
            self._waiting.append((int(path.name[:20]), path, entries))
        self._states = ProducerStates()
        self._whole = True
        self._begun = False
        self._latest_ms = -1

    def add(self, batch: RecordBatch) -> None:
        """The log's next batch."""
        if not self._begun:
            self._begun = True
            self._whole = batch.base_offset == 0
        while self._waiting and self._waiting[0][0] <= batch.base_offset:
            self._compare(*self._waiting.pop(0))
        self._latest_ms = max(self._latest_ms, batch.max_timestamp_ms)
        if batch.producer_id >= 0 and self._whole:
            self._states.update(batch)

    def finish(self, end: Offset) -> None:
        """Ends the log at the offset: the snapshots left are of its end, or of deleted offsets."""
        for offset, path, entries in self._waiting:
            if offset <= end:
                self._compare(offset, path, entries)
            else:
                message = f"a snapshot of offset {offset} found, the log ends at {end}"
                self.findings.append(Finding(path, "warning", message))

    def _compare(self, offset: Offset, path: Path, found: dict[ProducerId, ProducerEntry]) -> None:
        if not self._whole:
            self._states.load_snapshot(path.read_bytes(), offset)
            self._whole = True
            return
        for message in self._differences(found, self._states.entries):
            self.findings.append(Finding(path, "error", message))

    def _differences(
        self, found: Mapping[ProducerId, ProducerEntry], right: Mapping[ProducerId, ProducerEntry]
    ) -> Iterator[str]:
        for producer, entry in right.items():
            known = found.get(producer)
            if self._may_be_compacted(entry) and (known is None or self._may_be_compacted(known)):
                continue
            if known is None:
                if self._latest_ms - entry.timestamp_ms <= _EXPIRATION_MS:
                    yield f"producer {producer}: nothing found, {_shown(entry)} expected"
            elif _shown(known) != _shown(entry):
                yield f"producer {producer}: {_shown(known)} found, {_shown(entry)} expected"
        if self._clean_below:
            return  # batches of others may have been compacted away
        for producer, entry in found.items():
            if producer not in right:
                yield f"producer {producer}: {_shown(entry)} found, nothing expected"

    def _may_be_compacted(self, entry: ProducerEntry) -> bool:
        """True if the producer's last batch may have been compacted away."""
        last = [batch.last_offset for batch in entry.batches][-1:]
        return bool(self._clean_below) and (not last or last[0] < self._clean_below)


def _shown(entry: ProducerEntry) -> str:
    text = f"epoch {entry.epoch}"
    for batch in list(entry.batches)[-1:]:
        text += (
            f", last sequence {batch.last_sequence}, last offset {batch.last_offset}, "
            f"offset delta {batch.offset_delta}"
        )
    if entry.transaction_start >= 0:
        text += f", transaction open since {entry.transaction_start}"
    if entry.coordinator_epoch >= 0:
        text += f", coordinator epoch {entry.coordinator_epoch}"
    return f"{text}, timestamp {entry.timestamp_ms}"
