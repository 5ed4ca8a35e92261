"""Metadata records as Kafka's bytes, and the log that holds them."""

import pytest

from sim.ids import METADATA_PARTITION, uuid_text
from sim.log.directory.manager import LogManager
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import FileMetadataLog, read_quorum_state, write_quorum_state
from sim.protocol.kraft.types import QuorumState
from sim.protocol.metadata import records as mr
from sim.protocol.ports import NO_EPOCH_END, EpochEnd
from sim.records import metadata as metadata_codec
from sim.records.metadata import (
    CACHE_MAX,
    build_metadata_batch,
    decode_record,
    encode_record,
    records_of,
)
from sim.units import EPOCH_MS
from sim.wire.record_batch import RecordBatch

A, B = uuid_text("a"), uuid_text("b")
RECORDS = [
    mr.RegisterBrokerRecord(1, A, 13, "rack", fenced=True, directories=(A, B)),
    mr.RegisterBrokerRecord(1, A, 13, "", fenced=False, in_controlled_shutdown=True),
    mr.UnregisterBrokerRecord(1, 13),
    mr.TopicRecord("t", A),
    mr.RemoveTopicRecord(A),
    mr.PartitionRecord(
        0, A, (1, 2), (1, 2), 1, 3, 4, (A, B), (1,), (2,), (2,), (1,), recovering=True
    ),
    mr.PartitionRecord(0, A, (1, 2), (), -1),
    mr.PartitionChangeRecord(
        0, A, in_sync=(), leader=-1, eligible=(1, 2), last_known_eligible=(2,)
    ),
    mr.PartitionChangeRecord(0, A, leader=2, recovering=True, eligible=()),
    mr.PartitionChangeRecord(
        0, A, recovering=False, directories=(A,), replicas=(1,), adding=(), removing=()
    ),
    mr.PartitionChangeRecord(0, A),
    mr.ClientQuotaRecord((("user", "ann"), ("client-id", None)), "request_percentage", 12.5),
    mr.ClientQuotaRecord((("client-id", "shop"),), "producer_byte_rate", None),
    mr.ConfigRecord(mr.TOPIC_RESOURCE, "t", "retention.ms", "-1"),
    mr.ConfigRecord(mr.BROKER_RESOURCE, "", "min.insync.replicas", None),
    mr.BrokerRegistrationChangeRecord(1, 13, fenced=mr.UNFENCE),
    mr.BrokerRegistrationChangeRecord(
        1, 13, fenced=mr.FENCE, in_controlled_shutdown=1, directories=(B,)
    ),
    mr.ProducerIdsRecord(1, 13, 1000),
    mr.FeatureLevelRecord("metadata.version", 25),
    mr.ZkMigrationStateRecord(),
    mr.NoOpRecord(),
    mr.BeginTransactionRecord("Bootstrap records"),
    mr.EndTransactionRecord(),
    mr.RegisterControllerRecord(3001, A),
]


@pytest.mark.parametrize("record", RECORDS, ids=lambda r: type(r).__name__)
def test_a_record_comes_back_from_its_bytes(record):
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (mr.NoOpRecord(), "01140000"),
        (mr.ZkMigrationStateRecord(), "0115000000"),
        (
            mr.FeatureLevelRecord("metadata.version", 25),
            "010c00116d657461646174612e76657273696f6e001900",
        ),
        (mr.ProducerIdsRecord(1, 13, 1000), "010f0000000001000000000000000d00000000000003e800"),
    ],
)
def test_bytes_are_kafkas(record, expected):
    assert encode_record(record).hex() == expected


def test_a_leader_change_is_a_control_batch_that_comes_back():
    change = mr.LeaderChangeMessage(1, (1, 2, 3), (1, 2))
    batch = build_metadata_batch([change], 5, 2, EPOCH_MS)
    assert batch.is_control
    metadata_codec._known.clear()
    assert records_of(RecordBatch.parse(batch.data)) == (change,)


def test_a_batch_is_decoded_once_and_the_memory_is_bounded(monkeypatch):
    batch = build_metadata_batch([mr.NoOpRecord()], 0, 1, EPOCH_MS)
    monkeypatch.setattr(metadata_codec, "decode", None)
    assert records_of(RecordBatch.parse(batch.data)) == (mr.NoOpRecord(),)
    for offset in range(CACHE_MAX + 10):
        build_metadata_batch([mr.NoOpRecord()], offset, 1, EPOCH_MS)
    assert len(metadata_codec._known) == CACHE_MAX


def opened(root):
    manager = LogManager((FileStore(root),), 3001, uuid_text("c"), (A,))
    manager.load()
    return manager, FileMetadataLog.open(manager)


def test_a_log_gives_back_what_was_appended_also_after_a_restart(tmp_path):
    manager, log = opened(tmp_path)
    assert (log.log_end_offset, log.latest_epoch) == (0, 0)
    assert log.end_offset_for_epoch(1) == NO_EPOCH_END
    log.append_records([mr.LeaderChangeMessage(3001, (3001,), (3001,))], 1, EPOCH_MS)
    log.append_records([mr.TopicRecord("t", A), mr.NoOpRecord()], 1, EPOCH_MS)
    log.append_records([mr.LeaderChangeMessage(3001, (3001,), (3001,))], 4, EPOCH_MS)
    assert log.log_end_offset == 4
    assert log.end_offset_for_epoch(2) == EpochEnd(1, 3)
    records = log.records_between(0, 4)
    assert [(r.offset, r.epoch) for r in records] == [(0, 1), (1, 1), (2, 1), (3, 4)]
    assert records[1].record == mr.TopicRecord("t", A)
    manager.finish()
    metadata_codec._known.clear()
    _, again = opened(tmp_path)
    assert again.records_between(0, 4) == records
    assert (again.latest_epoch, again.log_end_offset) == (4, 4)


def test_a_follower_writes_the_same_bytes_and_can_truncate_them(tmp_path):
    _, leader = opened(tmp_path / "a")
    _, follower = opened(tmp_path / "b")
    for _ in range(3):
        leader.append_records([mr.NoOpRecord()], 1, EPOCH_MS)
    follower.append_batches(leader.read(0, 1 << 20))
    theirs, ours = ([b.data for b in log.log.batches()] for log in (leader, follower))
    assert theirs == ours
    follower.truncate_to(1)
    assert follower.log_end_offset == 1
    assert [b.base_offset for b in leader.read(1, 1 << 20)] == [1, 2]


def test_the_vote_file_is_kafkas_and_survives(tmp_path):
    manager, _ = opened(tmp_path)
    store = manager.directories[0]
    assert read_quorum_state(store) == QuorumState()
    write_quorum_state(store, QuorumState(2, 3001, -1), (3001,))
    text = (tmp_path / str(METADATA_PARTITION) / "quorum-state").read_text()
    assert text == (
        '{"clusterId":"","leaderId":3001,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":3001}],"data_version":0}'
    )
    assert read_quorum_state(FileStore(tmp_path)) == QuorumState(2, 3001, -1)


def test_the_vote_file_of_a_dynamic_quorum_names_the_disk_that_was_voted_for(tmp_path):
    manager, _ = opened(tmp_path)
    store = manager.directories[0]
    vote = QuorumState(2, -1, 3001, "HXLo1d4PFXMT1RNvWDGfHQ")
    write_quorum_state(store, vote, (), kraft_version=1)
    text = (tmp_path / str(METADATA_PARTITION) / "quorum-state").read_text()
    assert text == (
        '{"leaderId":-1,"leaderEpoch":2,"votedId":3001,'
        '"votedDirectoryId":"HXLo1d4PFXMT1RNvWDGfHQ","data_version":1}'
    )
    assert read_quorum_state(FileStore(tmp_path)) == vote
    write_quorum_state(store, QuorumState(3, 3001, -1), (), kraft_version=1)
    assert read_quorum_state(FileStore(tmp_path)) == QuorumState(3, 3001, -1)
