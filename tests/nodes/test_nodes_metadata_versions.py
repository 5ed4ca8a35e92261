"""Records of the metadata have the versions that the finalized ``metadata.version`` asks for."""

from dataclasses import replace

import pytest

from sim.ids import METADATA_PARTITION
from sim.log.directory.manager import LogManager
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import FileMetadataLog, MetadataLogConfig
from sim.nodes.storage.snapshot_files import build_snapshot, snapshot_records
from sim.protocol.kraft.types import SnapshotId
from sim.protocol.metadata import records as mr
from sim.records.metadata import build_metadata_batch, decode_record, encode_record
from sim.records.metadata_versions import FORM, RecordForm
from sim.scenario.settings.facts import features_of, supported_features
from sim.wire.record_batch import RecordBatch
from sim.wire.schemas import decode

ID = "AAAAAAAAAAAAAAAAAAAAAg"
HOME = "AAAAAAAAAAAAAAAAAAAABA"
REGISTRATION = mr.RegisterBrokerRecord(1, ID, 5, "a", fenced=True)
PARTITION = mr.PartitionRecord(0, ID, (1, 2), (1, 2), 1)
CHANGE = mr.PartitionChangeRecord(0, ID, in_sync=(1,), leader=1)


def version_of(record, level):
    return decode(encode_record(record, RecordForm(level))).version


@pytest.mark.parametrize(
    ("release", "registration", "partition"),
    [
        ("3.3", 1, 0), ("3.4", 2, 0), ("3.5", 2, 0), ("3.6", 2, 0), ("3.7", 3, 1), ("3.8", 3, 1),
        ("3.9", 3, 1), ("4.0", 3, 2), ("4.1", 3, 2), ("4.2", 3, 2), ("4.3", 4, 2),
    ],
)  # fmt: skip
def test_a_records_version_is_that_of_the_releases_metadata_version(
    release, registration, partition
):
    level = features_of(release)["metadata.version"]
    assert version_of(REGISTRATION, level) == registration
    assert version_of(PARTITION, level) == version_of(CHANGE, level) == partition
    for record in (REGISTRATION, PARTITION, CHANGE):
        assert decode_record(encode_record(record, RecordForm(level))) == record


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (mr.BrokerRegistrationChangeRecord(1, 5, fenced=mr.FENCE), 0),
        (mr.BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=1), 1),
        (mr.BrokerRegistrationChangeRecord(1, 5, directories=(HOME,)), 2),
    ],
)
def test_a_change_of_a_registration_has_the_lowest_version_that_can_say_it(record, version):
    assert version_of(record, 7) == version_of(record, 30) == version
    assert decode_record(encode_record(record)) == record


@pytest.mark.parametrize(
    ("record", "version"),
    [
        (mr.RegisterBrokerRecord(1, ID, 5, "", fenced=True, directories=(HOME,)), 3),
        (mr.PartitionRecord(0, ID, (1,), (1,), 1, directories=(HOME,)), 1),
        (mr.PartitionRecord(0, ID, (1, 2), (1,), 1, eligible=(2,)), 2),
        (mr.PartitionChangeRecord(0, ID, directories=(HOME,)), 1),
        (mr.PartitionChangeRecord(0, ID, eligible=()), 2),
    ],
)
def test_nothing_is_lost_of_a_record_with_a_field_of_a_later_level(record, version):
    assert version_of(record, 7) == version
    assert decode_record(encode_record(record, RecordForm(7))) == record


def test_a_registration_names_the_features_of_its_release():
    record = replace(REGISTRATION, features=supported_features("3.9"))
    assert decode_record(encode_record(record, RecordForm(21))) == record
    named = decode(encode_record(record, RecordForm(21))).values["features"]
    assert [tuple(feature.values()) for feature in named] == [
        ("kraft.version", 0, 1), ("metadata.version", 1, 21),
    ]  # fmt: skip


@pytest.fixture
def log(tmp_path):
    store = FileStore(tmp_path)
    manager = LogManager([store], cluster_id=ID, node_id=1, directory_ids=(HOME,))
    manager.load()
    return FileMetadataLog.open(manager, MetadataLogConfig(features=(("metadata.version", 7),)))


def written(log):
    return [
        decode(record.value or b"").version
        for batch in log.read(0, 1_000_000)
        for record in RecordBatch.parse(batch.data).records()
    ]


def test_a_log_is_written_at_the_level_that_was_last_written_to_it_or_read(log):
    log.append_records([PARTITION, mr.FeatureLevelRecord("metadata.version", 25)], 1, 0)
    log.append_records([PARTITION], 1, 0)
    log.records_between(0, log.log_end_offset)
    log.append_records([PARTITION], 1, 0)
    assert written(log) == [0, 0, 2, 2]
    assert log.log.partition == METADATA_PARTITION


def test_a_level_that_was_truncated_away_is_not_written_at(log):
    log.append_records([mr.NoOpRecord()], 1, 0)
    log.append_records([mr.FeatureLevelRecord("metadata.version", 25)], 1, 0)
    log.truncate_to(1)
    log.append_records([PARTITION], 2, 0)
    assert written(log) == [0, 0]


def test_planted_a_log_that_is_written_at_another_level_is_found(log):
    assert written(log) == []
    log.append_records([PARTITION], 1, 0)
    planted = build_metadata_batch([PARTITION], 0, 1, 0, FORM)
    [found] = [decode(record.value or b"").version for record in planted.records()]
    assert written(log) == [0] != [found]


def test_a_snapshot_has_the_level_that_it_holds():
    state = (mr.FeatureLevelRecord("metadata.version", 21), PARTITION)
    form = RecordForm(7).at(state)
    assert form == RecordForm(21)
    data = build_snapshot(SnapshotId(4, 1), state, 0, 0, form=form)
    assert snapshot_records(data) == state
    assert data != build_snapshot(SnapshotId(4, 1), state, 0, 0, form=RecordForm(7))
