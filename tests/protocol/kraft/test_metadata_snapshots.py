"""Snapshots of the metadata: what they hold, when they are due, how a member gets one (KIP-630)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import SnapshotId, TopicPartition
from sim.protocol.acls import Acl
from sim.protocol.kraft.log import SnapshotPart
from sim.protocol.kraft.metadata_snapshot import (
    SnapshotConfig,
    SnapshotGenerator,
    WriteSnapshot,
    image_records,
)
from sim.protocol.kraft.types import Committed, SnapshotLoaded
from sim.protocol.messages.quorum import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
)
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.image import MetadataImage
from sim.scenario.settings.facts import supported_features
from tests.protocol.kraft.quorum_kit import SECOND, B, fetch, follower, leader

RECORDS = (
    mr.FeatureLevelRecord("group.version", 1),
    mr.FeatureLevelRecord("metadata.version", 25),
    mr.RegisterBrokerRecord(2, "i2", 3, "b", fenced=True, directories=("d2",)),
    mr.RegisterBrokerRecord(1, "i1", 2, "a", fenced=True, directories=("d1",)),
    mr.BrokerRegistrationChangeRecord(1, 2, fenced=mr.UNFENCE),
    mr.TopicRecord("t", "id-t"),
    mr.ConfigRecord(mr.TOPIC_RESOURCE, "t", "min.insync.replicas", "2"),
    mr.PartitionRecord(0, "id-t", (1, 2), (1, 2), 1, directories=("d1", "d2")),
    mr.PartitionRecord(1, "id-t", (2, 1), (2, 1), 2, directories=("d2", "d1")),
    mr.PartitionChangeRecord(0, "id-t", in_sync=(1,), eligible=(2,), leader=1),
    mr.ConfigRecord(mr.BROKER_RESOURCE, "", "min.insync.replicas", "1"),
    mr.ProducerIdsRecord(1, 2, 3_000),
    mr.TopicRecord("gone", "id-g"),
    mr.RemoveTopicRecord("id-g"),
    mr.NoOpRecord(),
)


def replayed(records=RECORDS):
    image = MetadataImage()
    for record in records:
        image.replay(image.offset, 4, record)
    image.changed.clear()
    return image


# -- what a snapshot holds ------------------------------------------------------------------------


def test_loading_a_snapshots_records_gives_the_image_that_it_was_taken_of():
    image = replayed()
    again = MetadataImage()
    again.load(image.offset, image.epoch, image_records(image))
    # A registration counts from the snapshot's last record, as ClusterControlManager has it.
    assert {r.registered_at for r in again.brokers.values()} == {image.offset - 1}
    for name in image.__slots__:
        if name not in {"brokers", "changed", "reconfigured"}:
            assert getattr(again, name) == getattr(image, name), name
    assert [(r.broker, r.epoch, r.fenced) for r in again.brokers.values()] == [
        (1, 2, False),
        (2, 3, True),
    ]


def test_the_metadata_version_comes_first_and_deleted_topics_are_not_in_it():
    records = list(image_records(replayed()))
    assert records[0] == mr.FeatureLevelRecord("metadata.version", 25)
    assert [r.name for r in records if isinstance(r, mr.TopicRecord)] == ["t"]
    kinds = list(dict.fromkeys(type(record) for record in records))
    assert kinds == [
        mr.FeatureLevelRecord, mr.RegisterBrokerRecord, mr.TopicRecord, mr.PartitionRecord,
        mr.ConfigRecord, mr.ProducerIdsRecord,
    ]  # fmt: skip


RIGHT = Acl("topic", "t", "literal", "User:a", "*", "Read", "allow")
EVERY_PART = (
    mr.DelegationTokenRecord("User:a", "User:a", (), 1, 2, 3, "t-1"),
    mr.AccessControlEntryRecord("acl-1", RIGHT),
    mr.ClientQuotaRecord((("user", "a"),), "producer_byte_rate", 1.0),
    mr.ConfigRecord(mr.GROUP_RESOURCE, "g", "consumer.session.timeout.ms", "50000"),
    mr.RegisterControllerRecord(3000, "i3000", ()),
)


def test_its_parts_come_in_the_order_in_which_kafka_writes_them():
    """``MetadataImage.write``, alike in 3.6, 3.9, 4.1 and 4.3; each part's own ``write``."""
    records = image_records(replayed((*EVERY_PART, *RECORDS)))
    assert list(dict.fromkeys(type(record) for record in records)) == [
        mr.FeatureLevelRecord,
        *(mr.RegisterBrokerRecord, mr.RegisterControllerRecord),
        *(mr.TopicRecord, mr.PartitionRecord),
        mr.ConfigRecord,
        mr.ClientQuotaRecord,
        mr.ProducerIdsRecord,
        mr.AccessControlEntryRecord,
        mr.DelegationTokenRecord,
    ]


@pytest.mark.parametrize(
    ("release", "level", "has_state"),
    [("3.3", 7, False), ("3.4", 8, True), ("3.9", 7, False), ("3.9", 21, True), ("4.0", 21, False)],
)
def test_only_servers_of_3_4_to_3_9_write_the_state_of_a_migration(release, level, has_state):
    """A 4.0 server writes none while metadata.version is still that of 3.9."""
    image = replayed((*RECORDS, mr.FeatureLevelRecord("metadata.version", level)))
    records = list(image_records(image, supported_features(release)))
    assert records[:2] == [
        mr.FeatureLevelRecord("metadata.version", level), mr.FeatureLevelRecord("group.version", 1)
    ]  # fmt: skip
    assert (records[2] == mr.ZkMigrationStateRecord(0)) == has_state
    assert records.count(mr.ZkMigrationStateRecord(0)) == has_state


def test_loading_over_another_state_tells_what_is_gone_new_or_different_and_nothing_else():
    image = replayed(RECORDS[:9])
    image.load(20, 5, image_records(replayed()))
    assert image.take_changed() == (TopicPartition("t", 0),)
    image.load(30, 6, ())
    assert image.take_changed() == (TopicPartition("t", 0), TopicPartition("t", 1))
    assert (image.offset, image.epoch, image.brokers) == (30, 6, {})


def test_loading_tells_which_topics_have_other_settings_than_before():
    image = replayed()
    image.take_reconfigured()
    image.load(20, 5, image_records(replayed()))
    assert image.take_reconfigured() == ()
    change = mr.ConfigRecord(mr.TOPIC_RESOURCE, "t", "min.insync.replicas", "3")
    image.load(30, 5, image_records(replayed((*RECORDS, change))))
    assert image.take_reconfigured() == ("t",)


# -- when one is due ------------------------------------------------------------------------------


def generator(image=None, **config):
    image = image or replayed()
    config = SnapshotConfig(**{"bytes_between": 1_000, "interval_us": 60 * SECOND} | config)
    return SnapshotGenerator(lambda: image, config, now=0)


def told(machine, size, now=0):
    return machine.handle(Committed(0, 15, (), size), now)


def test_a_snapshot_is_due_after_so_many_bytes_and_counting_begins_anew():
    machine = generator()
    assert told(machine, 999) == []
    (effect,) = told(machine, 1)
    assert isinstance(effect, WriteSnapshot)
    assert effect.snapshot == SnapshotId(15, 4)
    assert effect.records == tuple(image_records(replayed()))
    assert told(machine, 999) == []


def test_a_snapshot_is_due_after_so_much_time_but_only_when_records_come():
    machine = generator()
    assert told(machine, 1, now=59 * SECOND) == []
    assert len(told(machine, 1, now=60 * SECOND)) == 1
    assert told(machine, 1, now=119 * SECOND) == []
    assert len(told(machine, 1, now=200 * SECOND)) == 1


def test_without_an_interval_only_bytes_count():
    machine = generator(interval_us=0)
    assert told(machine, 1, now=10**12) == []


def test_a_snapshot_that_was_loaded_counts_as_the_last_one():
    machine = generator()
    told(machine, 999)
    assert machine.handle(SnapshotLoaded(SnapshotId(15, 4), ()), 59 * SECOND) == []
    assert told(machine, 999, now=61 * SECOND) == []


# -- who must fetch one ---------------------------------------------------------------------------

OLD, NEW = SnapshotId(2, 1), SnapshotId(3, 1)
DATA = bytes(range(200)) * 100


class Headless:
    """Makes a kit's log one that begins at offset 2 and has two snapshots."""

    def __init__(self, member):
        log = self.log = member.log
        log.log_start_offset = 2
        log.earliest_snapshot, log.latest_snapshot = OLD, NEW
        log.snapshot_part = lambda snapshot, position, max_bytes: (
            SnapshotPart(len(DATA), DATA[position : position + max_bytes])
            if snapshot in (OLD, NEW)
            else None
        )
        log.snapshot_records = lambda snapshot: ()


def headless_leader():
    member = leader(1, 1, 1, 1)
    Headless(member)
    return member, member.quorum.epoch


@pytest.mark.parametrize(
    ("offset", "last_epoch", "snapshot"),
    [
        pytest.param(0, 0, NEW, id="nothing at all: the newest, although the log could do"),
        pytest.param(1, 1, NEW, id="ends below the log start"),
        pytest.param(2, 0, NEW, id="at the log start, of an epoch from before the snapshot"),
        pytest.param(2, 1, None, id="at the log start, and it matches the oldest snapshot"),
        pytest.param(3, 1, None, id="above"),
    ],
)
def test_a_fetch_that_the_log_cannot_serve_is_pointed_to_the_newest_snapshot(
    offset, last_epoch, snapshot
):
    member, epoch = headless_leader()
    response = member.ask(fetch(B, epoch, offset, last_epoch))
    assert response.error is E.NONE
    assert response.snapshot == snapshot
    assert bool(response.batches) is (snapshot is None)


def test_a_leader_with_its_whole_log_and_no_snapshot_points_nobody_to_one():
    member = leader(1, 1)
    response = member.ask(fetch(B, member.quorum.epoch, 0, 0))
    assert response.snapshot is None
    assert response.batches


def test_a_snapshot_is_served_in_slices_and_counts_as_contact():
    member, epoch = headless_leader()
    first = member.ask(FetchSnapshotRequest(B, epoch, NEW, 0, 15_000))
    rest = member.ask(FetchSnapshotRequest(B, epoch, NEW, 15_000, 15_000))
    assert first.data + rest.data == DATA
    assert {first.size, rest.size} == {len(DATA)}
    assert (first.position, rest.position) == (0, 15_000)
    # One other voter's request is a majority of three: the leader stays one for longer.
    assert member.timers["role"] == member.now + member.quorum.config.check_quorum_us


@pytest.mark.parametrize(
    ("snapshot", "position", "off", "error"),
    [
        (SnapshotId(1, 1), 0, 0, E.SNAPSHOT_NOT_FOUND),
        (NEW, len(DATA), 0, E.POSITION_OUT_OF_RANGE),
        (NEW, -1, 0, E.POSITION_OUT_OF_RANGE),
        (NEW, 0, -1, E.FENCED_LEADER_EPOCH),
        (NEW, 0, 1, E.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_request_for_what_is_not_there_or_from_another_epoch_is_refused(
    snapshot, position, off, error
):
    member, epoch = headless_leader()
    response = member.ask(FetchSnapshotRequest(B, epoch + off, snapshot, position, 100))
    assert response.error is error
    assert response.data == b""


# -- fetching one ---------------------------------------------------------------------------------


def behind():
    """A follower whose leader has pointed it to a snapshot, and what it installs."""
    member = follower(1, epoch=5)
    installed = []

    def install(snapshot, data):
        installed.append((snapshot, data))
        log = member.log
        log.log_start_offset = snapshot.offset
        log.entries = [(snapshot.epoch, mr.NoOpRecord())] * snapshot.offset
        log.earliest_snapshot = log.latest_snapshot = snapshot
        log.snapshot_records = lambda _: RECORDS
        return True

    member.log.install_snapshot = install
    points = QuorumFetchResponse(E.NONE, B, 5, 40, snapshot=SnapshotId(40, 4))
    member.answer(B, points, QuorumFetchRequest)
    return member, installed


def slice_of(position, data):
    return FetchSnapshotResponse(E.NONE, B, 5, SnapshotId(40, 4), len(DATA), position, data)


def test_slices_are_asked_for_one_after_the_other_put_together_and_told_once():
    member, installed = behind()
    request = member.sent[-1].request
    assert (request.snapshot, request.position) == (SnapshotId(40, 4), 0)
    member.answer(B, slice_of(0, DATA[:12_000]), FetchSnapshotRequest)
    assert (installed, member.of(SnapshotLoaded)) == ([], [])
    assert member.sent[-1].request.position == 12_000
    member.answer(B, slice_of(12_000, DATA[12_000:]), FetchSnapshotRequest)
    assert installed == [(SnapshotId(40, 4), DATA)]
    assert member.of(SnapshotLoaded) == [SnapshotLoaded(SnapshotId(40, 4), RECORDS)]
    following = member.sent[-1].request
    assert isinstance(following, QuorumFetchRequest)
    assert (following.fetch_offset, following.last_fetched_epoch) == (40, 4)
    assert following.high_watermark == 40


@pytest.mark.parametrize("error", [E.SNAPSHOT_NOT_FOUND, E.POSITION_OUT_OF_RANGE])
def test_a_snapshot_that_is_gone_meanwhile_is_forgotten_and_the_leader_asked_anew(error):
    member, installed = behind()
    member.answer(B, slice_of(0, DATA[:12_000]), FetchSnapshotRequest)
    member.answer(B, FetchSnapshotResponse(error, B, 5), FetchSnapshotRequest)
    assert isinstance(member.sent[-1].request, QuorumFetchRequest)
    assert installed == []


def test_what_was_fetched_of_a_snapshot_is_forgotten_with_the_leader():
    member, installed = behind()
    member.answer(B, slice_of(0, DATA[:12_000]), FetchSnapshotRequest)
    member.fire()  # the fetch timeout: the follower stands for election
    assert member.sent[-1].request.epoch == 5
    assert not isinstance(member.sent[-1].request, FetchSnapshotRequest)
    assert installed == []


def test_a_process_that_has_a_snapshot_begins_with_it_and_goes_on_with_the_log():
    member = follower(*[4] * 45, epoch=5)
    member.log.log_start_offset = 30
    member.log.earliest_snapshot = member.log.latest_snapshot = SnapshotId(40, 4)
    member.log.snapshot_records = lambda _: RECORDS
    nothing_known = QuorumFetchResponse(E.NONE, B, 5, -1)
    member.answer(B, nothing_known, QuorumFetchRequest)
    assert member.of(SnapshotLoaded) == []
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 44), QuorumFetchRequest)
    loaded, committed = [e for e in member.out if isinstance(e, SnapshotLoaded | Committed)]
    assert loaded.snapshot == SnapshotId(40, 4)
    assert (committed.base_offset, committed.end_offset) == (40, 44)


def test_the_log_is_cleaned_every_minute():
    member = follower(1)
    cleaned = []
    member.log.clean = cleaned.append
    assert member.timers["clean"] == 60 * SECOND
    member.fire("clean")
    assert len(cleaned) == 1
    assert member.timers["clean"] == 120 * SECOND


def test_a_snapshot_has_the_settings_of_groups():
    own = mr.ConfigRecord(mr.GROUP_RESOURCE, "work", "share.delivery.count.limit", "3")
    image = replayed((*RECORDS, own))
    assert own in list(image_records(image))
    again = MetadataImage()
    again.load(image.offset, image.epoch, image_records(image))
    assert again.group_configs == {"work": {"share.delivery.count.limit": "3"}}
    assert image.copy().group_configs == again.group_configs
