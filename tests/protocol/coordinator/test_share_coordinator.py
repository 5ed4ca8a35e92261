"""The share coordinator, share groups at their coordinator, and the bytes of both (KIP-932)."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import SHARE_STATE_TOPIC, TopicPartition, uuid_text
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.assignors.registry import TopicDescription
from sim.protocol.coordinator.group.assignors.simple import simple_assignor
from sim.protocol.coordinator.group.consumer_group_records import (
    SharedTopic,
    ShareStatePartitionsRecord,
)
from sim.protocol.coordinator.group.context import (
    GroupConfig,
    ModernGroupConfig,
    ShareStatesConfig,
)
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.coordinator.share.coordinator import ShareCoordinator, ShareCoordinatorConfig
from sim.protocol.coordinator.share.records import ShareSnapshotRecord, ShareUpdateRecord
from sim.protocol.effects import Emit, Reply, Send, SetTimer
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.share import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ShareGroupHeartbeatRequest,
    WriteShareGroupStateRequest,
)
from sim.protocol.messages.share_records import RecordState, ShareKey, StateBatch
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.records import consumer_offsets as group_coordinator
from sim.records import share_group_state as share_state_codec
from sim.units import SECOND

KEY = ShareKey("workers", uuid_text("jobs"), 0)
DONE = StateBatch(0, 9, RecordState.ACKNOWLEDGED, 1)
LATER = StateBatch(10, 19, RecordState.AVAILABLE, 2)


def image():
    """Two partitions of jobs; broker 9 leads all of the share coordinators' topic."""
    found = MetadataImage()
    found.topic_ids = {"jobs": uuid_text("jobs")}
    found.topic_names = {uuid_text("jobs"): "jobs"}
    found.partition_counts = {"jobs": 2, SHARE_STATE_TOPIC: 1}
    keeps = PartitionRegistration("s", (9,), (9,), 9, 0, 0)
    found.partitions = {TopicPartition(SHARE_STATE_TOPIC, 0): keeps}
    found.brokers = {
        9: BrokerRegistration(9, 1, "i", "", fenced=False, in_controlled_shutdown=False)
    }
    return found


class Table:
    """One coordinator, whose writes are committed at once unless it is set otherwise."""

    def __init__(self, machine, home, records=()):
        self.machine = machine
        self.log, self.rows, self.answers, self.open = list(records), [], {}, []
        self.timers = {}
        self.holds_writes = False
        self.holds_states, self.asked, self.now = False, [], 0
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
            elif isinstance(effect, Send):
                self.asked.append(effect)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at
        while self.open and not self.holds_writes:
            self.settle(now)
        while self.asked and not self.holds_states:
            self.made(now)

    def made(self, now, error=ErrorCode.NONE):
        """A share coordinator answers the request that was sent first."""
        sent = self.asked.pop(0)
        assert isinstance(sent.request, InitializeShareGroupStateRequest)
        response = InitializeShareGroupStateResponse(error)
        self.give(ResponseReceived(sent.to, sent.correlation, response), now)

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


def bare(records=(), **config):
    """A coordinator that has only these records."""
    settings = ShareCoordinatorConfig(append_linger_us=0, **config)
    return Table(ShareCoordinator(1, settings, image), HOME, records)


INITIAL = ShareSnapshotRecord(KEY, 0, 3, -1, -1, (), 5)
"""As the group coordinator has made it, at epoch 3."""


def keeper(records=(INITIAL,), **config):
    return bare(records, **config)


def write(table, *batches, start=0, leader=1, state=3):
    return table.ask(WriteShareGroupStateRequest(KEY, state, leader, start, batches))


def read(table, leader=1):
    return table.ask(ReadShareGroupStateRequest(KEY, leader))


def test_the_first_leader_finds_nothing_and_leaves_its_epoch():
    table = keeper()
    answer = read(table)
    assert (answer.error, answer.state_epoch) == (ErrorCode.NONE, 3)
    assert (answer.start_offset, answer.batches) == (-1, ())
    assert table.log == [INITIAL, ShareUpdateRecord(KEY, 0, 1, -1, ())]
    read(table)
    assert len(table.log) == 2


def initialize(table, state=3):
    return table.ask(InitializeShareGroupStateRequest(KEY, state))


def test_a_share_partition_without_a_state_is_neither_read_nor_written():
    table = bare()
    assert read(table).error is ErrorCode.INVALID_REQUEST
    assert write(table, DONE).error is ErrorCode.INVALID_REQUEST
    assert table.log == []
    assert initialize(table).error is ErrorCode.NONE
    assert table.log[0].state_epoch == 3
    assert read(table).error is ErrorCode.NONE


def test_a_state_that_is_made_again_has_no_records_and_keeps_its_fences():
    table = keeper()
    read(table, leader=2)
    write(table, DONE, leader=2)
    assert initialize(table, state=2).error is ErrorCode.FENCED_STATE_EPOCH
    assert initialize(table, state=4).error is ErrorCode.NONE
    snapshot = table.log[-1]
    assert (snapshot.snapshot_epoch, snapshot.state_epoch, snapshot.leader_epoch) == (1, 4, -1)
    assert (snapshot.start_offset, snapshot.batches) == (-1, ())
    assert read(table, leader=1).error is ErrorCode.FENCED_LEADER_EPOCH
    assert write(table, DONE, leader=2, state=3).error is ErrorCode.FENCED_STATE_EPOCH


def test_what_was_written_the_next_leader_reads_at_the_next_coordinator():
    table = keeper()
    read(table)
    write(table, DONE)
    write(table, LATER, start=10)
    assert [type(record) for record in table.log[1:]] == [ShareUpdateRecord] * 3
    batch = share_state_codec.batch_for(table.log, 1_000)
    after = keeper(share_state_codec.records_in([batch]))
    answer = read(after, leader=2)
    assert (answer.start_offset, answer.batches) == (10, (LATER,))


def test_after_so_many_updates_comes_a_snapshot_of_everything():
    table = keeper(updates_per_snapshot=1)
    write(table, DONE)
    write(table, LATER)
    write(table, StateBatch(20, 20, RecordState.ARCHIVED, 1))
    kinds = [ShareSnapshotRecord, ShareUpdateRecord, ShareSnapshotRecord, ShareUpdateRecord]
    assert [type(record) for record in table.log] == kinds
    snapshot = table.log[2]
    assert (snapshot.snapshot_epoch, snapshot.state_epoch) == (1, 3)
    assert snapshot.batches == (DONE, LATER)


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
    answer = table.ask(InitializeShareGroupStateRequest(other, 1))
    assert answer.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- groups ---------------------------------------------------------------------------------------

GROUP_HOME = partition_for_group("workers")


def group_table(records=(), **states):
    config = GroupConfig(
        append_linger_us=0,
        share=ModernGroupConfig(max_size=3),
        share_states=ShareStatesConfig(**states),
    )
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
    assert join(table, "a").assignment == ()
    assert beat(table, "a", 1).assignment == jobs(0, 1)
    answers = [join(table, "b"), join(table, "c")]
    assert all(len(each.assignment) == 1 for each in answers[1:])
    kept = beat(table, "a", 2)
    assert (kept.error, kept.member_epoch) == (ErrorCode.NONE, 4)
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
    assert any(isinstance(record, ShareStatePartitionsRecord) for record in read_back)
    after = group_table(read_back)
    assert after.machine.share_group("workers") == table.machine.share_group("workers")
    assert after.machine.consumer_group("workers") is None


# -- states of share partitions --------------------------------------------------------------------

BOTH = (SharedTopic(uuid_text("jobs"), "jobs", (0, 1)),)


def states(table):
    """What the log says last of the group's share partitions."""
    found = [r for r in table.log if isinstance(r, ShareStatePartitionsRecord)]
    return found[-1].initializing, found[-1].initialized


def reasons(table):
    return [row[-1] for row in table.rows if row[0] == "groups"]


def waiting():
    """A group whose member waits until share coordinators answer."""
    table = group_table()
    table.holds_states = True
    assert join(table, "a").assignment == ()
    return table


def test_a_member_gets_a_partition_only_when_it_has_a_state():
    table = waiting()
    assert states(table) == (BOTH, ())
    asked = [(send.to, send.request) for send in table.asked]
    keys = [ShareKey("workers", uuid_text("jobs"), number) for number in (0, 1)]
    assert asked == [(9, InitializeShareGroupStateRequest(key, 1, -1)) for key in keys]
    assert beat(table, "a", 1, now=5 * SECOND).assignment is None
    table.made(6 * SECOND)
    assert states(table) == (BOTH, ())  # the other one is still without an answer
    table.made(7 * SECOND)
    assert states(table) == ((), BOTH)
    assert reasons(table)[-1] == "share partitions initialized"
    given = beat(table, "a", 1, now=10 * SECOND)
    assert (given.assignment, given.member_epoch) == (jobs(0, 1), 2)
    assert beat(table, "a", 2, now=15 * SECOND).assignment is None
    assert table.machine.share_group("workers").epoch == 2


def test_nothing_is_asked_before_the_note_of_it_is_committed():
    table = group_table()
    table.holds_writes = table.holds_states = True
    join(table, "a")
    assert table.asked == []
    table.settle(0)
    assert len(table.asked) == 2
    failed = group_table()
    failed.holds_writes = failed.holds_states = True
    join(failed, "a")
    failed.settle(0, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert failed.asked == []


def test_after_an_error_the_next_heartbeat_asks_again_for_all_of_them():
    table = waiting()
    table.made(0)
    table.made(0, ErrorCode.FENCED_STATE_EPOCH)
    assert states(table) == ((), ())
    assert reasons(table)[-1] == "share partitions not initialized: FENCED_STATE_EPOCH"
    assert table.asked == []
    beat(table, "a", 1, now=5 * SECOND)
    assert states(table) == (BOTH, ())
    assert len(table.asked) == 2


def test_without_an_answer_a_heartbeat_asks_again_after_the_interval():
    table = waiting()
    for at in (5, 10, 29):
        beat(table, "a", 1, now=at * SECOND)
    assert len(table.asked) == 2
    beat(table, "a", 1, now=30 * SECOND)
    assert len(table.asked) == 4
    quick = group_table(retry_us=10 * SECOND)
    quick.holds_states = True
    join(quick, "a")
    beat(quick, "a", 1, now=9 * SECOND)
    assert len(quick.asked) == 2
    beat(quick, "a", 1, now=10 * SECOND)
    assert len(quick.asked) == 4


def test_a_share_coordinator_that_is_loading_is_asked_five_times_with_longer_waits():
    table = waiting()
    (first, other) = table.asked
    table.asked = [first]
    table.made(0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    waits, now = [], 0
    for _ in range(4):
        name, at = next((n, at) for n, at in table.timers.items() if n.startswith("share-state"))
        waits.append(at - now)
        del table.timers[name]
        now = at
        table.give(TimerFired(name), now)
        sent = table.asked.pop()
        table.give(RequestFailed(9, sent.correlation, ErrorCode.REQUEST_TIMED_OUT), now)
    assert [round(wait / SECOND) for wait in waits] == [1, 2, 4, 8]
    table.give(ResponseReceived(9, other.correlation, InitializeShareGroupStateResponse(
        ErrorCode.NONE)), now)  # fmt: skip
    assert states(table) == ((), ())
    assert reasons(table)[-1].startswith("share partitions not initialized")


def test_the_next_coordinator_asks_again_an_interval_after_its_beginning():
    table = waiting()
    batch = group_coordinator.batch_for(table.log, 1_000)
    after = Table(
        GroupCoordinator(2, 1, GroupConfig(append_linger_us=0), image), GROUP_HOME + 1, ()
    )
    after.holds_states = True
    loaded = PartitionElected(GROUP_HOME, 1, group_coordinator.records_in([batch]))
    after.give(loaded, 100 * SECOND)
    beat(after, "a", 1, now=129 * SECOND)
    assert after.asked == []
    beat(after, "a", 1, now=130 * SECOND)
    assert len(after.asked) == 2


@pytest.mark.parametrize(("of_subscribed", "epochs"), [(True, [3, 3, 3]), (False, [4, 5, 6])])
def test_until_4_1_a_topic_without_subscribers_began_an_epoch_with_each_heartbeat(
    of_subscribed, epochs
):
    table = group_table(of_subscribed=of_subscribed, waits_for_target=False)
    join(table, "a")
    beat(table, "a", 1)
    beat(table, "a", 2, topics=())
    seen = []
    for _ in range(3):
        epoch = table.machine.share_group("workers").epoch
        seen.append(beat(table, "a", epoch).member_epoch)
    assert seen == epochs


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
