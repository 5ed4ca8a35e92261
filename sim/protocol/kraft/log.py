"""Port of the quorum's log: the metadata partition as records and as batches.

Two logs satisfy :class:`MetadataLog`: a list of batches in the tests, for speed and search, and
``sim.nodes.storage.metadata_log.FileMetadataLog``, with real bytes.

Source: ``org.apache.kafka.raft.ReplicatedLog``.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sim.ids import LeaderEpoch, Offset, SnapshotId
from sim.protocol.metadata.records import MetadataRecord, Voter
from sim.protocol.ports import Batch, EpochEnd
from sim.units import Bytes


class LoggedRecord(NamedTuple):
    """A record with its offset and epoch."""

    offset: Offset
    epoch: LeaderEpoch
    record: MetadataRecord


class SnapshotPart(NamedTuple):
    """A slice of a snapshot's file."""

    size: Bytes
    """Bytes of the whole file."""
    data: bytes


class MetadataLog(Protocol):
    """One member's metadata log: synchronous; its time is paid by the process."""

    @property
    def log_start_offset(self) -> Offset:
        """First offset in it; above 0 only if a snapshot holds the state below."""

    @property
    def log_end_offset(self) -> Offset:
        """Log end offset: that of the next record."""

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last batch, or of the snapshot that an empty log starts at; else 0.

        Source: ``KafkaRaftLog.lastFetchedEpoch``.
        """

    def append_records(
        self, records: Sequence[MetadataRecord], epoch: LeaderEpoch, now_ms: int
    ) -> Offset:
        """Writes one batch as leader of the epoch.

        Returns:
            The log end offset after it.
        """

    def records_bytes(self, records: Sequence[MetadataRecord]) -> Bytes:
        """Bytes that the records take in a batch."""

    def append_batches(self, batches: Sequence[Batch]) -> None:
        """Writes a leader's batches as they are.

        Raises:
            AssertionError: If the first does not start at the log end offset.
        """

    def read(self, start: Offset, max_bytes: Bytes) -> tuple[Batch, ...]:
        """Whole batches from the one that begins at ``start`` to the log end; at least one."""

    def records_between(self, start: Offset, end: Offset) -> tuple[LoggedRecord, ...]:
        """The records in [start, end), control records included."""

    def bytes_between(self, start: Offset, end: Offset) -> Bytes:
        """Bytes of the batches in [start, end)."""

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one, and its end; (-1, -1) if there is none."""

    def truncate_to(self, offset: Offset) -> None:
        """Drops everything at and above the offset."""

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The oldest snapshot that is kept."""

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot."""

    def snapshot_records(self, snapshot: SnapshotId) -> tuple[MetadataRecord, ...]:
        """State in a snapshot, as records; without control records."""

    def snapshot_voters(self, snapshot: SnapshotId) -> tuple[Voter, ...]:
        """Voters in a snapshot of a dynamic quorum; none in a static one."""

    def snapshot_part(
        self, snapshot: SnapshotId, position: Bytes, max_bytes: Bytes
    ) -> SnapshotPart | None:
        """A slice of a snapshot's file; ``None`` if the snapshot is not kept (any more)."""

    def install_snapshot(self, snapshot: SnapshotId, data: bytes) -> bool:
        """Keeps a snapshot fetched from the leader; a log that ends below is restarted at it.

        Returns:
            True if the log was restarted.
        """

    def clean(self, now_ms: int) -> None:
        """Deletes old snapshots, and the log below the oldest one that is kept."""
