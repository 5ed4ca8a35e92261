"""The metadata log as real files, and the small file that holds a member's vote.

Source: ``org.apache.kafka.raft.internals.KafkaRaftLog``, ``FileQuorumStateStore`` (4.1).
"""

import json
from collections.abc import Sequence
from typing import cast

from sim.error_codes import ErrorCode
from sim.ids import METADATA_PARTITION, LeaderEpoch, NodeId, Offset
from sim.log.config import LogConfig
from sim.log.files import FileStore
from sim.log.manager import LogManager
from sim.log.partition_log import PartitionLog
from sim.nodes.metadata_codec import build_metadata_batch, records_of
from sim.protocol.metadata_records import MetadataRecord
from sim.protocol.ports import Batch, EpochEnd
from sim.protocol.quorum_log import LoggedRecord
from sim.protocol.quorum_state import QuorumState
from sim.units import GIB, MIB, Bytes
from sim.wire.record_batch import RecordBatch

METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
"""The id that the metadata topic has in every cluster."""

METADATA_LOG_CONFIG = LogConfig(segment_bytes=GIB, max_message_bytes=8 * MIB)
"""``metadata.log.segment.bytes``; the largest batch is a constant in Kafka."""

QUORUM_STATE = f"{METADATA_PARTITION}/quorum-state"
"""The vote file, in the metadata log's directory."""


class FileMetadataLog:
    """A metadata log with real bytes. Satisfies :class:`~sim.protocol.quorum_log.MetadataLog`."""

    def __init__(self, log: PartitionLog) -> None:
        self.log = log

    @classmethod
    def open(cls, manager: LogManager) -> "FileMetadataLog":
        """The metadata log among a process's loaded logs; a new one in the first log directory.

        Raises:
            DiskFailed: If the first log directory has failed.
        """
        log = manager.get(METADATA_PARTITION)
        if log is None:
            log = manager.create(METADATA_PARTITION, METADATA_TOPIC_ID, directory=0)
        return cls(log)

    @property
    def log_end_offset(self) -> Offset:
        """Offset the next record will get."""
        return self.log.log_end_offset

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last batch; 0 for an empty log."""
        return max(self.log.latest_epoch, 0)

    def append_records(
        self, records: Sequence[MetadataRecord], epoch: LeaderEpoch, now_ms: int
    ) -> Offset:
        """Write one batch as leader of the epoch; returns the log end offset after it.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        log = self.log
        batch = build_metadata_batch(records, log.log_end_offset, epoch, now_ms)
        appended = log.append_as_leader(batch, epoch, now_ms)
        assert appended.error is ErrorCode.NONE, f"the metadata log refused {batch!r}: {appended}"
        return log.log_end_offset

    def append_batches(self, batches: Sequence[Batch]) -> None:
        """Write a leader's batches as they are.

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
            batches = self.log.read(position, end, METADATA_LOG_CONFIG.max_message_bytes)
            assert batches, f"no metadata at {position}, log end {self.log.log_end_offset}"
            for batch in batches:
                found.extend(self._records_of(batch, start, end))
            position = batches[-1].last_offset + 1
        return tuple(found)

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the one asked and where it ends; (-1, -1) if there is none."""
        return EpochEnd(*self.log.end_offset_for_epoch(epoch))

    def truncate_to(self, offset: Offset) -> None:
        """Drop everything at and above the offset."""
        self.log.truncate_to(offset)

    def _records_of(self, batch: RecordBatch, start: Offset, end: Offset) -> list[LoggedRecord]:
        return [
            LoggedRecord(offset, batch.leader_epoch, record)
            for offset, record in enumerate(records_of(batch), batch.base_offset)
            if start <= offset < end
        ]


def write_quorum_state(store: FileStore, state: QuorumState, voters: tuple[NodeId, ...]) -> Bytes:
    """Replace the vote file, durably; returns its size.

    Raises:
        DiskFailed: If the disk has failed or is full.
    """
    fields = {
        "clusterId": "",
        "leaderId": state.leader,
        "leaderEpoch": state.epoch,
        "votedId": state.voted_for,
        "appliedOffset": 0,
        "currentVoters": [{"voterId": voter} for voter in voters],
        "data_version": 0,
    }
    data = json.dumps(fields, separators=(",", ":")).encode()
    store.replace(QUORUM_STATE, data)
    return len(data)


def read_quorum_state(store: FileStore) -> QuorumState:
    """What was last written; a member without the file has never voted.

    Raises:
        DiskFailed: If the disk has failed.
        ValueError: If the file is not what was written, which is fatal in Kafka, too.
    """
    data = store.read_whole(QUORUM_STATE)
    if data is None:
        return QuorumState()
    fields: dict[str, int] = json.loads(data)
    return QuorumState(fields["leaderEpoch"], fields["leaderId"], fields["votedId"])
