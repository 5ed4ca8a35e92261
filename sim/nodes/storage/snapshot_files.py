"""Snapshots of the metadata as files: their bytes, names and retention.

A snapshot is a file of record batches with offsets from 0 on: a control batch with the header, the
state as records, and a control batch with the footer. All have the snapshot's epoch. Files are
written whole and are durable at once; Kafka writes ``.part`` files, syncs and renames them.

Source: KIP-630; ``org.apache.kafka.snapshot.{RecordsSnapshotWriter,Snapshots}``,
``BatchFileWriter`` for ``bootstrap.checkpoint`` (4.1).
"""

import re
from collections.abc import Iterator, Sequence

from sim.ids import LeaderEpoch, SnapshotId
from sim.log.partition.deletion import doom_files
from sim.log.store.files import FileStore
from sim.protocol.kraft.metadata_snapshot import feature_records
from sim.protocol.metadata.records import (
    KRaftVersionRecord,
    MetadataRecord,
    Voter,
    VotersRecord,
)
from sim.records.metadata import (
    decode_record,
    encode_record,
    read_voters,
    record_key,
)
from sim.records.metadata_versions import FORM, RecordForm
from sim.units import MIB, Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import control_key, decode_control, encode

BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
"""In every log directory: the first records of a new cluster, from its formatting."""

_NAME = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_BATCH_MAX: Bytes = 8 * MIB
_RECORD_OVERHEAD: Bytes = 32
_UNFINISHED = (".checkpoint.part", ".checkpoint.deleted")


def file_name(snapshot: SnapshotId) -> str:
    """Name of the snapshot's file in the metadata log's directory."""
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}.checkpoint"


def snapshot_id(name: str) -> SnapshotId | None:
    """Id of the snapshot in a file; ``None`` for other files."""
    found = _NAME.fullmatch(name)
    return None if found is None else SnapshotId(int(found[1]), int(found[2]))


def build_snapshot(
    snapshot: SnapshotId,
    records: Sequence[MetadataRecord],
    now_ms: int,
    contained_ms: int,
    voters: tuple[Voter, ...] = (),
    form: RecordForm = FORM,
) -> bytes:
    """Builds a snapshot's file.

    Args:
        snapshot: Its id; all batches have its epoch.
        records: The state.
        now_ms: Timestamp of all batches.
        contained_ms: Timestamp of the last batch of the log that the snapshot holds.
        voters: Of a dynamic quorum, at the snapshot's end.
        form: How records are written.
    """
    return _framed(records, snapshot.epoch, now_ms, contained_ms, voters, form)


def build_initial_voters(voters: tuple[Voter, ...], now_ms: int) -> bytes:
    """Builds the first checkpoint, as ``format --initial-controllers`` does."""
    return _framed((), 0, now_ms, 0, voters)


def build_bootstrap(features: Sequence[tuple[str, int]], now_ms: int) -> bytes:
    """Builds ``bootstrap.checkpoint``: the feature levels of a new cluster."""
    return _framed(tuple(feature_records(dict(features))), 0, now_ms, 0)


def snapshot_voters(data: bytes) -> tuple[Voter, ...]:
    """Voters of a dynamic quorum in a snapshot's file; none in a static one.

    Raises:
        MalformedBytes: If a batch is damaged.
    """
    for record in next(_batches(data)).records():
        name, _, values = decode_control(record.key or b"", record.value or b"")
        if name == "VotersRecord":
            return read_voters(values)
    return ()


def snapshot_records(data: bytes) -> tuple[MetadataRecord, ...]:
    """The state in a snapshot's file.

    Raises:
        MalformedBytes: If a batch is damaged, or header or footer is missing.
        KeyError: If it holds records that this project does not model.
    """
    batches = list(_batches(data))
    controls = [
        decode_control(record.key or b"", record.value or b"").name
        for batch in batches
        if batch.is_control
        for record in batch.records()
    ]
    if controls[:1] != ["SnapshotHeaderRecord"] or controls[-1] != "SnapshotFooterRecord":
        raise MalformedBytes("a snapshot of the metadata without its header or footer")
    return tuple(
        decode_record(record.value or b"")
        for batch in batches
        if not batch.is_control
        for record in batch.records()
    )


def contained_timestamp_ms(data: bytes) -> int:
    """Timestamp of the last batch of the log that a snapshot holds, from its header."""
    header = next(iter(next(_batches(data)).records()))
    values = decode_control(header.key or b"", header.value or b"").values
    found = values["lastContainedLogTimestamp"]
    assert isinstance(found, int), "the schema says so"
    return found


class SnapshotFiles:
    """The snapshots beside a metadata log, oldest first."""

    def __init__(self, store: FileStore, directory: str, log_start: int) -> None:
        """Lists the directory; deletes unfinished files, and snapshots from below the log start.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.ids: dict[SnapshotId, None] = {}
        """Every snapshot that is kept. Not to be changed."""
        self._store = store
        self._directory = directory
        for name in store.names(directory):
            found = snapshot_id(name)
            if found is not None and found.offset >= log_start:
                self.ids[found] = None
            elif found is not None or name.endswith(_UNFINISHED):
                store.delete(f"{directory}/{name}")

    @property
    def earliest(self) -> SnapshotId | None:
        """The oldest one."""
        return next(iter(self.ids), None)

    @property
    def latest(self) -> SnapshotId | None:
        """The newest one."""
        return next(reversed(self.ids), None)

    @property
    def total_bytes(self) -> Bytes:
        """Bytes of all of them."""
        return sum([self.size_of(snapshot) for snapshot in self.ids])

    def size_of(self, snapshot: SnapshotId) -> Bytes:
        """Bytes of one of them."""
        file = self._store.open(self._path(snapshot))
        return 0 if file is None else file.size

    def read(self, snapshot: SnapshotId) -> bytes:
        """The file's contents.

        Raises:
            DiskFailed: If the disk has failed.
        """
        data = self._store.read_whole(self._path(snapshot))
        assert data is not None, f"{snapshot} is kept"
        return data

    def keep(self, snapshot: SnapshotId, data: bytes) -> None:
        """Writes a snapshot, durably.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self._store.replace(self._path(snapshot), data)
        self.ids = dict.fromkeys(sorted((*self.ids, snapshot)))

    def forget_before(self, snapshot: SnapshotId) -> list[str]:
        """Renames all older snapshots.

        Returns:
            Their new names, to be unlinked later.

        Raises:
            DiskFailed: If the disk has failed.
        """
        older = [known for known in self.ids if known < snapshot]
        for old in older:
            del self.ids[old]
        return doom_files(self._store, [self._path(old) for old in older])

    def _path(self, snapshot: SnapshotId) -> str:
        return f"{self._directory}/{file_name(snapshot)}"


def _framed(
    records: Sequence[MetadataRecord],
    epoch: LeaderEpoch,
    now_ms: int,
    contained_ms: int,
    voters: tuple[Voter, ...] = (),
    form: RecordForm = FORM,
) -> bytes:
    header = encode("SnapshotHeaderRecord", 0, {"lastContainedLogTimestamp": contained_ms})
    first = [NewRecord(now_ms, control_key("SnapshotHeaderRecord"), header)]
    if voters:
        electorate = (KRaftVersionRecord(1), VotersRecord(voters))
        first += [NewRecord(now_ms, record_key(r), encode_record(r)) for r in electorate]
    parts = [build_batch(first, base_offset=0, leader_epoch=epoch, control=True).data]
    offset = len(first)
    for group in _groups([encode_record(record, form) for record in records]):
        new = [NewRecord(now_ms, None, value) for value in group]
        parts.append(build_batch(new, base_offset=offset, leader_epoch=epoch).data)
        offset += len(group)
    last = control_key("SnapshotFooterRecord"), encode("SnapshotFooterRecord", 0, {})
    footer = [NewRecord(now_ms, *last)]
    parts.append(build_batch(footer, base_offset=offset, leader_epoch=epoch, control=True).data)
    return b"".join(parts)


def _groups(values: Sequence[bytes]) -> Iterator[list[bytes]]:
    """Groups values into batches of up to 8 MiB."""
    group: list[bytes] = []
    size = 0
    for value in values:
        if group and size + len(value) + _RECORD_OVERHEAD > _BATCH_MAX:
            yield group
            group, size = [], 0
        group.append(value)
        size += len(value) + _RECORD_OVERHEAD
    if group:
        yield group


def _batches(data: bytes) -> Iterator[RecordBatch]:
    position = 0
    while position < len(data):
        batch = RecordBatch.parse(data, position)
        if not batch.valid():
            raise MalformedBytes(f"a damaged batch at {position} of a snapshot of the metadata")
        yield batch
        position += batch.size_bytes
