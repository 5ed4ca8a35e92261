"""Batches that the active controller has appended and the quorum's leader has not written yet.

A batch waits for more records: it is written, replicated and committed once the linger has passed
since the first append into an empty accumulator, or when it is full. Control records do not wait,
and flush the batches that do.

Left out: the memory pool, and its bound of ten full batches.

Source: ``org.apache.kafka.raft.internals.BatchAccumulator`` (3.9, 4.1); KIP-595.
"""

from dataclasses import dataclass, field

from sim.protocol.metadata.records import MetadataRecord
from sim.units import NEVER, Bytes, Micros


@dataclass(slots=True)
class WaitingBatch:
    """Records of a future batch."""

    created_us: Micros
    """Time of the first append: the batch's timestamp."""
    records: list[MetadataRecord] = field(default_factory=list)
    size_bytes: Bytes = 0


@dataclass(slots=True)
class BatchAccumulator:
    """Accumulator of one leadership."""

    linger_us: Micros
    """``controller.quorum.append.linger.ms``; 0: no linger."""
    batch_bytes_max: Bytes
    batches: list[WaitingBatch] = field(default_factory=list)
    due_at: Micros = NEVER
    """Time at which everything in it is written."""

    @property
    def record_count(self) -> int:
        """Records that wait."""
        return sum(len(batch.records) for batch in self.batches)

    def append(self, records: tuple[MetadataRecord, ...], size_bytes: Bytes, now: Micros) -> None:
        """Appends records of one batch; if they would overfill an open one, that one is due."""
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
        """Returns all batches in order, and empties the accumulator."""
        batches, self.batches = self.batches, []
        self.due_at = NEVER
        return batches
