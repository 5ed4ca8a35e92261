"""What the active controller has appended and its quorum's leader has not written yet.

A batch waits for others: it is written, replicated and committed once the linger has passed since
the first append into an empty accumulator, or when it is full. Control records do not wait, and
take along what waits.

Left out: the memory pool, and its bound of ten batches that are full.

Source: ``org.apache.kafka.raft.internals.BatchAccumulator`` (3.9, 4.1); KIP-595.
"""

from dataclasses import dataclass, field

from sim.protocol.metadata.records import MetadataRecord
from sim.units import NEVER, Bytes, Micros


@dataclass(slots=True)
class WaitingBatch:
    """Records that will be one batch."""

    created_us: Micros
    """When the first of them was appended: the batch's timestamp."""
    records: list[MetadataRecord] = field(default_factory=list)
    size_bytes: Bytes = 0


@dataclass(slots=True)
class BatchAccumulator:
    """The accumulator of one leadership, and ends with it."""

    linger_us: Micros
    """``controller.quorum.append.linger.ms``; 0: nothing waits."""
    batch_bytes_max: Bytes
    batches: list[WaitingBatch] = field(default_factory=list)
    due_at: Micros = NEVER
    """When everything in it is to be written."""

    @property
    def record_count(self) -> int:
        """Records that wait."""
        return sum(len(batch.records) for batch in self.batches)

    def append(self, records: tuple[MetadataRecord, ...], size_bytes: Bytes, now: Micros) -> None:
        """Take in records that belong into one batch; a batch that they would overfill is due."""
        if not self.batches:
            self.batches.append(WaitingBatch(now))
            self.due_at = now + self.linger_us
        last = self.batches[-1]
        if last.records and last.size_bytes + size_bytes > self.batch_bytes_max:
            last = WaitingBatch(now)
            self.batches.append(last)
            self.due_at = now
        last.records += records
        last.size_bytes += size_bytes

    def drain(self) -> list[WaitingBatch]:
        """Everything that waits, in its order; the accumulator is empty afterwards."""
        batches, self.batches = self.batches, []
        self.due_at = NEVER
        return batches
