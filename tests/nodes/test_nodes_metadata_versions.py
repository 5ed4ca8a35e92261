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
from sim.wire.primitives import MalformedBytes
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


FENCING = (
    (mr.BrokerRegistrationChangeRecord(1, 5, fenced=mr.FENCE), "FenceBrokerRecord"),
    (mr.BrokerRegistrationChangeRecord(1, 5, fenced=mr.UNFENCE), "UnfenceBrokerRecord"),
)


@pytest.mark.parametrize(("record", "name"), FENCING)
def test_below_3_3_iv2_a_registration_is_fenced_and_unfenced_by_records_of_their_own(record, name):
    """Source: ``MetadataVersion.isBrokerRegistrationChangeRecordSupported`` (3.3)."""
    for level in range(9):
        data = encode_record(record, RecordForm(level))
        found = decode(data)
        own = (name, {"id": 1, "epoch": 5})
        assert ((found.name, found.values) == own) is (level < 6), level
        assert decode_record(data) == record


def test_what_those_records_cannot_say_stays_a_change_of_the_registration():
    for record in (
        mr.BrokerRegistrationChangeRecord(1, 5, in_controlled_shutdown=1),
        mr.BrokerRegistrationChangeRecord(1, 5, fenced=mr.FENCE, in_controlled_shutdown=1),
        mr.BrokerRegistrationChangeRecord(1, 5, fenced=mr.FENCE, directories=(HOME,)),
    ):
        data = encode_record(record, RecordForm(0))
        assert decode(data).name == "BrokerRegistrationChangeRecord"
        assert decode_record(data) == record


def test_registrations_say_whether_a_broker_shuts_down_since_3_3_iv3():
    assert [version_of(REGISTRATION, level) for level in (1, 3, 6, 7)] == [0, 0, 0, 1]
    stops = replace(REGISTRATION, in_controlled_shutdown=True)
    assert version_of(stops, 3) == 1
    assert decode_record(encode_record(stops, RecordForm(3))) == stops


QUOTA = mr.ClientQuotaRecord((("user", "a"), ("client-id", None)), "producer_byte_rate", 2.5)
OF_2_8 = (
    (REGISTRATION, "RegisterBrokerRecord"),
    (mr.UnregisterBrokerRecord(1, 5), "UnregisterBrokerRecord"),
    (mr.TopicRecord("orders", ID), "TopicRecord"),
    (mr.RemoveTopicRecord(ID), "RemoveTopicRecord"),
    (PARTITION, "PartitionRecord"),
    (CHANGE, "PartitionChangeRecord"),
    (mr.PartitionChangeRecord(0, ID, leader=-1), "PartitionChangeRecord"),
    (mr.ConfigRecord(2, "orders", "retention.ms", "5"), "ConfigRecord"),
    (QUOTA, "QuotaRecord"),
    (replace(QUOTA, value=None), "QuotaRecord"),
    *FENCING,
)


@pytest.mark.parametrize(("record", "name"), OF_2_8)
def test_2_8_has_a_frame_and_forms_of_its_own(record, name):
    data = encode_record(record, RecordForm(0))
    assert data[0] == 0
    found = decode(data)
    assert (found.name, found.version) == (name, 0)
    assert decode_record(data) == record
    assert encode_record(record, RecordForm(1))[0] == 1


def test_2_8_writes_lengths_in_full_and_null_for_no_replicas_that_come_or_go():
    data = encode_record(mr.TopicRecord("t", ID), RecordForm(0))
    assert data == bytes((0, 2, 0)) + b"\x00\x01t" + bytes(15) + b"\x02"
    found = decode(encode_record(PARTITION, RecordForm(0))).values
    assert (found["removingReplicas"], found["addingReplicas"]) == (None, None)
    moving = replace(PARTITION, adding=(3,))
    found = decode(encode_record(moving, RecordForm(0))).values
    assert (found["removingReplicas"], found["addingReplicas"]) == (None, [3])


@pytest.mark.parametrize(
    "record",
    [
        mr.ProducerIdsRecord(1, 5, 1000),
        mr.ConfigRecord(2, "orders", "retention.ms", None),
        replace(CHANGE, replicas=(2, 3), adding=(3,)),
        replace(CHANGE, recovering=True),
        replace(PARTITION, recovering=True),
        replace(REGISTRATION, fenced=False),
        replace(REGISTRATION, directories=(HOME,)),
        mr.NoOpRecord(),
        mr.FeatureLevelRecord("metadata.version", 7),
    ],
)
def test_what_2_8_cannot_say_is_in_the_form_of_the_first_release_that_can(record):
    data = encode_record(record, RecordForm(0))
    assert data[0] == 1
    assert decode_record(data) == record


@pytest.mark.parametrize(
    "data", [bytes((0, 15, 0)), bytes((0, 7, 1)), bytes((0, 7, 0, 0)), b"\x02"]
)
def test_a_frame_that_no_release_has_is_damage(data):
    with pytest.raises(MalformedBytes):
        decode(data)


def test_a_log_of_a_release_without_levels_is_written_as_that_release_does(tmp_path):
    store = FileStore(tmp_path)
    manager = LogManager([store], cluster_id=ID, node_id=1, directory_ids=(HOME,))
    manager.load()
    config = MetadataLogConfig(features=(("metadata.version", 0),), supported=())
    log = FileMetadataLog.open(manager, config)
    log.append_records([REGISTRATION, FENCING[1][0]], 1, 0)
    assert [each.record for each in log.records_between(0, 2)] == [REGISTRATION, FENCING[1][0]]
    [batch] = log.read(0, 1_000)
    values = [record.value for record in RecordBatch.parse(batch.data).records()]
    assert [(value[0], decode(value).name) for value in values] == [
        (0, "RegisterBrokerRecord"), (0, "UnfenceBrokerRecord"),
    ]  # fmt: skip


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
