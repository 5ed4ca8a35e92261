"""The metadata log as real files, and the file of a member's vote.

Source: ``org.apache.kafka.raft.internals.KafkaRaftLog``, ``FileQuorumStateStore`` (4.1).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import cast

from sim.error_codes import ErrorCode
from sim.ids import METADATA_PARTITION, LeaderEpoch, NodeId, Offset, SnapshotId
from sim.log.config import LogConfig
from sim.log.directory.manager import LogManager
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.retention import delete_old_segments
from sim.log.store.checkpoints import META_PROPERTIES
from sim.log.store.files import DiskFailed, FileStore
from sim.nodes.storage.snapshot_files import (
    BOOTSTRAP_CHECKPOINT,
    SnapshotFiles,
    build_bootstrap,
    build_initial_voters,
    build_snapshot,
    contained_timestamp_ms,
    file_name,
    snapshot_records,
    snapshot_voters,
)
from sim.protocol.kraft.log import LoggedRecord, SnapshotPart
from sim.protocol.kraft.metadata_snapshot import SnapshotConfig
from sim.protocol.kraft.types import QuorumState
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY, MetadataRecord, Voter
from sim.protocol.metadata.versions import (
    DIRECTORY_ASSIGNMENT,
    FEATURE,
    METADATA_VERSION,
    SUPPORTED,
    SupportedFeatures,
    finalized,
)
from sim.protocol.ports import Batch, EpochEnd
from sim.records.metadata import (
    build_metadata_batch,
    encode_record,
    records_of,
)
from sim.records.metadata_versions import RecordForm
from sim.units import GIB, MIB, Bytes
from sim.wire.record_batch import RecordBatch

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""Topic id of the metadata topic in every cluster."""

_BATCH_MAX: Bytes = 8 * MIB
"""The largest batch; a constant in Kafka."""

NO_DIRECTORY = UNASSIGNED_DIRECTORY
"""The vote file's value for no known directory: the id of zeros."""

QUORUM_STATE = f"{METADATA_PARTITION}/quorum-state"
"""The vote file, in the metadata log's directory."""


@dataclass(frozen=True, slots=True)
class MetadataLogConfig:
    """Settings of the metadata log in a process, with Kafka's defaults."""

    segment_bytes: Bytes = GIB
    """``metadata.log.segment.bytes``."""
    segment_ms: int = 7 * 24 * 3_600_000
    """``metadata.log.segment.ms``."""
    retention_bytes: Bytes = 100 * MIB
    """``metadata.max.retention.bytes``, of the log and its snapshots together; -1: no limit."""
    retention_ms: int = 7 * 24 * 3_600_000
    """``metadata.max.retention.ms``, of a snapshot that is not the newest; -1: no limit."""
    snapshots: SnapshotConfig = field(default_factory=SnapshotConfig)
    features: tuple[tuple[str, int], ...] = ((FEATURE, METADATA_VERSION),)
    """Feature levels with which log directories are formatted, or what a release implies."""
    supported: SupportedFeatures = SUPPORTED
    """Features that a registration names."""

    @property
    def knows_directories(self) -> bool:
        """True if the release assigns replicas to log directories: since 3.7 (KIP-858)."""
        return any(name == FEATURE and n >= DIRECTORY_ASSIGNMENT for name, _, n in self.supported)

    @property
    def form(self) -> RecordForm:
        """Form of the records of a new cluster."""
        return RecordForm(dict(self.features)[FEATURE])

    @property
    def log(self) -> LogConfig:
        """Settings of the partition's log."""
        return LogConfig(
            segment_bytes=self.segment_bytes,
            segment_ms=self.segment_ms,
            max_message_bytes=_BATCH_MAX,
            retention_ms=-1,
        )


_DEFAULTS = MetadataLogConfig()


class FileMetadataLog:
    """A metadata log with real bytes. Satisfies :class:`~sim.protocol.kraft.log.MetadataLog`."""

    def __init__(self, log: PartitionLog, config: MetadataLogConfig) -> None:
        """Takes over a loaded log with the snapshots beside it.

        Snapshots from below the log start are deleted. A log that ends below the newest one is
        restarted at it: the process ended between storing a fetched snapshot and truncating the
        log, or lost what it had not synced.

        Raises:
            DiskFailed: If the log has no beginning: it starts above 0, and no snapshot holds the
                state below. Kafka does not start then.
        """
        self.log = log
        self.config = config
        self._form = config.form
        """By what has been read, or written since: a process reads all that is committed before it
        writes, and a controller decides by its own records before they are committed."""
        self._read_form = self._form
        """By what has been read."""
        self._doomed: list[str] = []
        """Renamed files that wait to be unlinked."""
        self._snapshots = SnapshotFiles(log.store, log.directory, log.log_start_offset)
        if log.log_start_offset > 0 and self._snapshots.latest is None:
            raise DiskFailed(
                f"{log.store.root / log.directory}: the log begins at {log.log_start_offset}, and "
                "no snapshot holds what lay below"
            )
        self._truncate_to_latest_snapshot()

    @classmethod
    def open(
        cls,
        manager: LogManager,
        config: MetadataLogConfig = _DEFAULTS,
        initial_voters: tuple[Voter, ...] = (),
    ) -> "FileMetadataLog":
        """The metadata log of a process's loaded logs; if missing, created in the first directory.

        A new one of a controller that was formatted with ``--initial-controllers`` begins with a
        checkpoint that holds the voters.

        Raises:
            DiskFailed: If the first log directory has failed, or its log has no beginning.
        """
        log = manager.get(METADATA_PARTITION)
        if log is None:
            log = manager.create(METADATA_PARTITION, METADATA_TOPIC_ID, directory=0)
            if initial_voters:
                name = f"{log.directory}/{file_name(SnapshotId(0, 0))}"
                log.store.replace(name, build_initial_voters(initial_voters, now_ms=0))
        return cls(log, config)

    @property
    def log_start_offset(self) -> Offset:
        """First offset it has."""
        return self.log.log_start_offset

    @property
    def log_end_offset(self) -> Offset:
        """Offset the next record will get."""
        return self.log.log_end_offset

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last batch, or of the snapshot that an empty log starts at; else 0."""
        latest = self._snapshots.latest
        if self.log.latest_epoch < 0 and latest is not None:
            return latest.epoch
        return max(self.log.latest_epoch, 0)

    def append_records(
        self, records: Sequence[MetadataRecord], epoch: LeaderEpoch, now_ms: int
    ) -> Offset:
        """Writes one batch as leader of the epoch; returns the log end offset after it.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        log = self.log
        batch = build_metadata_batch(records, log.log_end_offset, epoch, now_ms, self._form)
        appended = log.append_as_leader(batch, epoch, now_ms)
        assert appended.error is ErrorCode.NONE, f"the metadata log refused {batch!r}: {appended}"
        self._form = self._form.at(records)
        return log.log_end_offset

    def records_bytes(self, records: Sequence[MetadataRecord]) -> Bytes:
        """Estimate of the records' bytes in a batch: at most a few too low for each."""
        return sum(len(encode_record(record, self._form)) for record in records)

    def append_batches(self, batches: Sequence[Batch]) -> None:
        """Appends a leader's batches as they are.

        Raises:
            AssertionError: If the first does not start at the log end offset.
            DiskFailed: If the disk has failed or is full.
        """
        self.log.append_as_follower(batches)

    def read(self, start: Offset, max_bytes: Bytes) -> tuple[Batch, ...]:
        """Whole batches from ``start`` to the log end; at least one if there is one."""
        log = self.log
        return cast("tuple[Batch, ...]", log.read(start, log.log_end_offset, max_bytes))

    def records_between(self, start: Offset, end: Offset) -> tuple[LoggedRecord, ...]:
        """The records in [start, end), control records included."""
        found: list[LoggedRecord] = []
        position = start
        while position < end:
            batches = self.log.read(position, end, _BATCH_MAX)
            assert batches, f"no metadata at {position}, log end {self.log.log_end_offset}"
            for batch in batches:
                found.extend(self._records_of(batch, start, end))
            position = batches[-1].last_offset + 1
        self._read_form = self._read_form.at([each.record for each in found])
        self._form = self._form.at([each.record for each in found])
        return tuple(found)

    def bytes_between(self, start: Offset, end: Offset) -> Bytes:
        """Bytes of the batches in [start, end); below the tail in memory, to 4 KiB and a batch."""
        return self.log.bytes_between(start, end)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one, and its end; (-1, -1) if there is none.

        An epoch that ends where the oldest snapshot does is that snapshot's: epochs below it are
        unknown.
        """
        end = EpochEnd(*self.log.end_offset_for_epoch(epoch))
        earliest = self._snapshots.earliest
        if earliest is not None and end == EpochEnd(epoch, earliest.offset):
            return EpochEnd(earliest.epoch, earliest.offset)
        return end

    def truncate_to(self, offset: Offset) -> None:
        """Drops everything at and above the offset."""
        self.log.truncate_to(offset)
        self._form = self._read_form

    # -- snapshots --------------------------------------------------------------------------------

    @property
    def earliest_snapshot(self) -> SnapshotId | None:
        """The oldest snapshot that is kept."""
        return self._snapshots.earliest

    @property
    def latest_snapshot(self) -> SnapshotId | None:
        """The newest snapshot."""
        return self._snapshots.latest

    def snapshot_records(self, snapshot: SnapshotId) -> tuple[MetadataRecord, ...]:
        """State in a snapshot, as records.

        Raises:
            DiskFailed: If the disk has failed.
            MalformedBytes: If the file is damaged, which is fatal in Kafka, too.
        """
        records = snapshot_records(self._snapshots.read(snapshot))
        self._form = self._read_form = self._form.at(records)
        return records

    def snapshot_voters(self, snapshot: SnapshotId) -> tuple[Voter, ...]:
        """Voters in a snapshot of a dynamic quorum; none in a static one.

        Raises:
            DiskFailed: If the disk has failed.
            MalformedBytes: If the file is damaged.
        """
        return snapshot_voters(self._snapshots.read(snapshot))

    def snapshot_part(
        self, snapshot: SnapshotId, position: Bytes, max_bytes: Bytes
    ) -> SnapshotPart | None:
        """A slice of a snapshot's file; ``None`` if the snapshot is not kept (any more)."""
        if snapshot not in self._snapshots.ids:
            return None
        data = self._snapshots.read(snapshot)
        return SnapshotPart(len(data), data[max(position, 0) : max(position, 0) + max_bytes])

    def install_snapshot(self, snapshot: SnapshotId, data: bytes) -> bool:
        """Keeps a snapshot fetched from the leader; a log that ends below is restarted at it.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self._snapshots.keep(snapshot, data)
        return self._truncate_to_latest_snapshot()

    def snapshot_bytes(
        self,
        snapshot: SnapshotId,
        records: Sequence[MetadataRecord],
        now_ms: int,
        voters: tuple[Voter, ...] = (),
    ) -> bytes | None:
        """A snapshot of this log as a file; ``None`` if there is one, or it is out of date.

        Source: ``KafkaRaftLog.createNewSnapshot``.
        """
        known = snapshot in self._snapshots.ids
        if known or snapshot.offset < self.log.log_start_offset:
            return None
        last = self.log.read(snapshot.offset - 1, snapshot.offset, 1)
        contained_ms = last[0].max_timestamp_ms if last else 0
        form = self._form.at(records)
        return build_snapshot(snapshot, records, now_ms, contained_ms, voters, form)

    def keep_snapshot(self, snapshot: SnapshotId, data: bytes) -> None:
        """Keeps a snapshot that this process took of its log.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        if snapshot.offset >= self.log.log_start_offset:
            self._snapshots.keep(snapshot, data)

    def clean(self, now_ms: int) -> None:
        """Deletes old snapshots, and the log below the oldest one that is kept, by size and by age.

        The newest snapshot stays. Files are renamed now, and unlinked by the next cleaning, which
        is a minute later as in Kafka.

        Raises:
            DiskFailed: If the disk has failed.

        Source: ``KafkaRaftLog.maybeClean``.
        """
        unlink(self.log.store, self._doomed)
        self._doomed.clear()
        ids = list(self._snapshots.ids)
        limit = self.config.retention_bytes
        taken = self._snapshots.total_bytes if limit >= 0 else 0
        for old, following in pairwise(ids):
            if limit < 0 or self.log.size_bytes + taken <= limit:
                break
            taken -= self._snapshots.size_of(old)
            if not self._delete_before(following):
                break
        ids = list(self._snapshots.ids)
        for old, following in pairwise(ids):
            age_ms = now_ms - contained_timestamp_ms(self._snapshots.read(old))
            if self.config.retention_ms < 0 or age_ms <= self.config.retention_ms:
                break
            if not self._delete_before(following):
                break

    # -- internals ---------------------------------------------------------------------------------

    def _delete_before(self, snapshot: SnapshotId) -> bool:
        log = self.log
        if snapshot.offset <= log.log_start_offset:
            return False
        log.raise_log_start(snapshot.offset)
        self._doomed += delete_old_segments(log, log.log_end_offset, 0).doomed
        self._doomed += self._snapshots.forget_before(snapshot)
        return True

    def _truncate_to_latest_snapshot(self) -> bool:
        """Source: ``KafkaRaftLog.truncateToLatestSnapshot``."""
        latest, log = self._snapshots.latest, self.log
        if latest is None:
            return False
        epoch = max(log.latest_epoch, 0)
        if latest.epoch < epoch or (latest.epoch == epoch and latest.offset <= log.log_end_offset):
            return False
        log.truncate_fully_and_start_at(latest.offset)
        self._doomed += self._snapshots.forget_before(latest)
        return True

    def _records_of(self, batch: RecordBatch, start: Offset, end: Offset) -> list[LoggedRecord]:
        return [
            LoggedRecord(offset, batch.leader_epoch, record)
            for offset, record in enumerate(records_of(batch), batch.base_offset)
            if start <= offset < end
        ]


def format_directories(stores: Sequence[FileStore], config: MetadataLogConfig, now_ms: int) -> None:
    """Mounts replaced disks, and formats new log directories as ``kafka-storage format`` does.

    Except ``meta.properties``, the file that marks a directory as formatted: the log manager writes
    it. Before 3.3 there was nothing else to write (KIP-778).
    """
    has_bootstrap = bool(finalized(dict(config.features)))
    for store in stores:
        store.mount()
        is_new = not store.refuses_writes and not store.exists(META_PROPERTIES)
        if is_new and has_bootstrap:
            store.replace(BOOTSTRAP_CHECKPOINT, build_bootstrap(config.features, now_ms))


def write_quorum_state(
    store: FileStore,
    state: QuorumState,
    voters: tuple[NodeId, ...],
    name: str = QUORUM_STATE,
    kraft_version: int = 0,
    more: Mapping[str, object] = MappingProxyType({}),
) -> Bytes:
    """Replaces the vote file, durably; returns its size.

    ``kraft_version`` 1: the file names the disk that was voted for, and no voters (KIP-853).
    ``more``: other values, of these fields or of more.

    Raises:
        DiskFailed: If the disk has failed or is full.
    """
    fields: dict[str, object] = {
        "clusterId": "",
        "leaderId": state.leader,
        "leaderEpoch": state.epoch,
        "votedId": state.voted_for,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in voters],
        "data_version": 0,
    }
    if kraft_version:
        fields = {
            "leaderId": state.leader,
            "leaderEpoch": state.epoch,
            "votedId": state.voted_for,
            "votedDirectoryId": state.voted_directory or NO_DIRECTORY,
            "data_version": 1,
        }
    fields |= more
    data = json.dumps(fields, separators=(",", ":")).encode()
    store.replace(name, data)
    return len(data)


def read_quorum_state(store: FileStore, name: str = QUORUM_STATE) -> QuorumState:
    """Last written vote file; a member without the file has never voted.

    Raises:
        DiskFailed: If the disk has failed.
        ValueError: If the file is damaged, which is fatal in Kafka, too.
    """
    data = store.read_whole(name)
    if data is None:
        return QuorumState()
    fields: dict[str, int] = json.loads(data)
    voted = str(fields.get("votedDirectoryId", NO_DIRECTORY))
    return QuorumState(
        fields["leaderEpoch"],
        fields["leaderId"],
        fields["votedId"],
        "" if voted == NO_DIRECTORY else voted,
    )
