"""The share coordinator, share groups at their coordinator, and the bytes of both (KIP-932)."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.assignors import TopicDescription
from sim.protocol.coordinator.group.context import GroupConfig, ModernGroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.simple_assignor import simple_assignor
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.coordinator.share.coordinator import ShareCoordinator, ShareCoordinatorConfig
from sim.protocol.coordinator.share.records import ShareSnapshotRecord, ShareUpdateRecord
from sim.protocol.effects import Emit, Reply
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.share import (
    ReadShareGroupStateRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from sim.protocol.messages.share_records import RecordState, ShareKey, StateBatch
from sim.protocol.metadata.image import MetadataImage
from sim.records import consumer_offsets as group_coordinator
from sim.records import share_group_state as share_state_codec
from sim.units import SECOND

KEY = ShareKey("workers", uuid_text("jobs"), 0)
DONE = StateBatch(0, 9, RecordState.ACKNOWLEDGED, 1)
LATER = StateBatch(10, 19, RecordState.AVAILABLE, 2)


def image():
    found = MetadataImage()
    found.topic_ids = {"jobs": uuid_text("jobs")}
    found.topic_names = {uuid_text("jobs"): "jobs"}
    found.partition_counts = {"jobs": 2}
    return found


class Table:
    """One coordinator, whose writes are committed at once unless it is told otherwise."""

    def __init__(self, machine, home, records=()):
        self.machine = machine
        self.log, self.rows, self.answers, self.open = list(records), [], {}, []
        self.holds_writes = False
        self._token = 0
        self.give(PartitionElected(home, 0, tuple(records)), 0)

    def give(self, event, now):
        for effect in self.machine.handle(event, now):
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.response
            elif isinstance(effect, Emit):
                self.rows.append((effect.table, *effect.row))
            elif isinstance(effect, AppendRecords):
                self.open.append(effect)
        while self.open and not self.holds_writes:
            self.settle(now)

    def settle(self, now, error=ErrorCode.NONE):
        effect = self.open.pop(0)
        if error is ErrorCode.NONE:
            self.log += effect.records
        self.give(RecordsAppended(effect.token, error), now)

    def ask(self, request, now=0):
        self._token += 1
        self.give(RequestReceived(self._token, "client", request), now)
        return self.answers.get(self._token)


HOME = partition_for_group(KEY.text)


def keeper(records=(), **config):
    settings = ShareCoordinatorConfig(append_linger_us=0, **config)
    return Table(ShareCoordinator(1, settings, image), HOME, records)


def write(table, *batches, start=0, leader=1, state=0):
    return table.ask(WriteShareGroupStateRequest(KEY, state, leader, start, batches))


def read(table, leader=1):
    return table.ask(ReadShareGroupStateRequest(KEY, leader))


def test_the_first_leader_finds_nothing_and_leaves_its_epoch():
    table = keeper()
    told = read(table)
    assert (told.error, told.start_offset, told.batches) == (ErrorCode.NONE, -1, ())
    assert table.log == [ShareSnapshotRecord(KEY, 0, 0, 1, -1, (), table.log[0].timestamp_ms)]
    read(table)
    assert len(table.log) == 1


def test_what_was_written_the_next_leader_reads_at_the_next_coordinator():
    table = keeper()
    read(table)
    write(table, DONE)
    write(table, LATER, start=10)
    assert [type(record) for record in table.log[1:]] == [ShareUpdateRecord] * 2
    batch = share_state_codec.batch_for(table.log, 1_000)
    after = keeper(share_state_codec.records_in([batch]))
    told = read(after, leader=2)
    assert (told.start_offset, told.batches) == (10, (LATER,))


def test_after_so_many_updates_comes_a_snapshot_of_everything():
    table = keeper(updates_per_snapshot=1)
    write(table, DONE)
    write(table, LATER)
    write(table, StateBatch(20, 20, RecordState.ARCHIVED, 1))
    snapshot = table.log[-1]
    assert isinstance(snapshot, ShareSnapshotRecord)
    assert snapshot.snapshot_epoch == 1
    assert snapshot.batches == (DONE, LATER, StateBatch(20, 20, RecordState.ARCHIVED, 1))


def test_a_leader_that_was_deposed_is_fenced():
    table = keeper()
    read(table, leader=1)
    read(table, leader=2)
    assert write(table, DONE, leader=1).error is ErrorCode.FENCED_LEADER_EPOCH
    assert read(table, leader=1).error is ErrorCode.FENCED_LEADER_EPOCH
    assert write(table, DONE, leader=2).error is ErrorCode.NONE


def test_a_start_offset_that_comes_late_does_not_go_back():
    table = keeper()
    write(table, DONE, start=10)
    write(table, LATER, start=4)
    assert table.machine.state(KEY).start_offset == 10


def test_a_write_that_fails_is_forgotten_and_one_that_may_yet_be_committed_is_not():
    table = keeper()
    read(table)
    table.holds_writes = True
    write(table, DONE)
    table.settle(0, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert table.answers[2].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert table.machine.state(KEY).batches == ()
    write(table, DONE)
    table.settle(0, ErrorCode.REQUEST_TIMED_OUT)
    assert table.answers[3].error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert table.machine.state(KEY).batches == (DONE,)


def test_who_does_not_coordinate_says_so():
    table = keeper()
    table.give(PartitionResigned(HOME), 0)
    assert write(table, DONE).error is ErrorCode.NOT_COORDINATOR


def test_a_topic_that_is_gone_has_no_states():
    table = keeper()
    other = ShareKey("workers", uuid_text("gone"), 0)
    home = partition_for_group(other.text)
    table.give(PartitionElected(home, 0, ()), 0)
    told = table.ask(ReadShareGroupStateRequest(other, 1))
    assert told.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- groups ---------------------------------------------------------------------------------------

GROUP_HOME = partition_for_group("workers")


def group_table(records=()):
    config = GroupConfig(append_linger_us=0, share=ModernGroupConfig(max_size=3))
    machine = GroupCoordinator(1, 1, config, image)
    return Table(machine, GROUP_HOME, records)


def beat(table, member, epoch, topics=None, now=0):
    return table.ask(ShareGroupHeartbeatRequest("workers", member, epoch, topics), now)


def join(table, member, now=0):
    return beat(table, member, 0, ("jobs",), now)


def jobs(*numbers):
    return tuple(TopicPartition("jobs", number) for number in numbers)


def test_members_may_share_a_partition_and_nobody_waits():
    table = group_table()
    assert join(table, "a").assignment == jobs(0, 1)
    told = [join(table, "b"), join(table, "c")]
    assert all(len(each.assignment) == 1 for each in told[1:])
    kept = beat(table, "a", 1)
    assert (kept.error, kept.member_epoch) == (ErrorCode.NONE, 3)
    everybody = table.machine.share_group("workers").members.values()
    owned = sorted(place.partition for member in everybody for place in member.assigned)
    assert set(owned) == {0, 1}
    assert len(owned) >= 3
    assert join(table, "d").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def test_a_silent_member_goes_and_a_stale_epoch_is_fenced():
    table = group_table()
    join(table, "a")
    join(table, "b")
    assert beat(table, "b", 5).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert beat(table, "x", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    beat(table, "a", 1, now=44 * SECOND)
    table.give(TimerFired("session/workers/b"), 45 * SECOND)
    assert list(table.machine.share_group("workers").members) == ["a"]
    assert beat(table, "a", -1).error is ErrorCode.NONE
    assert table.machine.share_group("workers").members == {}


def test_another_coordinator_finds_the_group_in_kafkas_bytes():
    table = group_table()
    join(table, "a")
    join(table, "b")
    beat(table, "b", -1)
    batch = group_coordinator.batch_for(table.log, 1_000)
    read_back = group_coordinator.records_in([batch])
    assert read_back == tuple(table.log)
    after = group_table(read_back)
    assert after.machine.share_group("workers") == table.machine.share_group("workers")
    assert after.machine.consumer_group("workers") is None


# -- the assignor ---------------------------------------------------------------------------------


def deal(members, partitions, current=None):
    topics = {"jobs": TopicDescription("jobs", partitions)}
    wanted = dict.fromkeys(members, ("jobs",))
    return simple_assignor(wanted, current or {}, topics)


@pytest.mark.parametrize(
    ("members", "partitions", "sizes"),
    [("a", 3, [3]), ("ab", 3, [1, 2]), ("abc", 3, [1, 1, 1]), ("abcd", 2, [1, 1, 1, 1]),
     ("abc", 2, [1, 1, 2]), ("abcde", 1, [1, 1, 1, 1, 1])],
)  # fmt: skip
def test_every_partition_is_shared_as_often_and_everybody_has_something(members, partitions, sizes):
    shares = deal(members, partitions)
    assert sorted(map(len, shares.values())) == sizes
    often = [sum(TopicPartition("jobs", n) in share for share in shares.values())
             for n in range(partitions)]  # fmt: skip
    assert max(often) - min(often) == 0


def test_members_keep_what_they_have_where_they_can():
    before = deal("ab", 4)
    after = deal("abc", 4, before)
    assert all(set(after[member]) <= set(before[member]) for member in "ab")
    assert deal("abc", 4, after) == after


def test_each_topic_goes_to_those_who_want_it():
    topics = {name: TopicDescription(name, 2) for name in ("jobs", "bills")}
    shares = simple_assignor({"a": ("jobs",), "b": ("bills",), "c": ("jobs", "bills")}, {}, topics)
    assert {place.topic for place in shares["a"]} == {"jobs"}
    assert {place.topic for place in shares["b"]} == {"bills"}
    assert {place.topic for place in shares["c"]} == {"jobs", "bills"}
