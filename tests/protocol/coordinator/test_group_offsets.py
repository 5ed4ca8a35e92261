"""Committed offsets: who may commit, when it is answered, and what the next coordinator knows."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.ids import OFFSETS_TOPIC, TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group import context as group_desk
from sim.protocol.coordinator.group import coordinator as coordinators
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    GroupTombstone,
    OffsetCommitRecord,
    OffsetTombstone,
)
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.coordinator.lookup import find_coordinator
from sim.protocol.effects import Reply, SetTimer
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import (
    FindCoordinatorResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.units import MS, SECOND

PLACE = TopicPartition("orders", 0)
GROUPS_PARTITION = 3  # of "g" among 50


def coordinator(linger_us=0, **config):
    machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=linger_us, **config))
    machine.handle(PartitionElected(GROUPS_PARTITION, 0, ()), 0)
    return machine


def request(machine, body, token=1, now=0):
    return machine.handle(RequestReceived(token, "c", body), now)


def replies(effects):
    return [(e.token, e.response) for e in effects if isinstance(e, Reply)]


def errors(effects):
    return [(e.token, e.response.error) for e in effects if isinstance(e, Reply)]


def appends(effects):
    return [e for e in effects if isinstance(e, AppendRecords)]


def commit(offset=10, member="", generation=-1, group="g"):
    return OffsetCommitRequest(group, member, generation, ((PLACE, offset, 0),))


def settle(machine, effects, now=0):
    """Commit every append of these effects, and of what follows from them."""
    done = []
    for append in appends(effects):
        done += machine.handle(RecordsAppended(append.token, ErrorCode.NONE), now)
    return done


def join(machine, token=100):
    body = {
        "group": "g",
        "client_id": "c",
        "subscription": Subscription(("orders",)),
        "protocols": ("range",),
        "session_timeout_us": 10 * SECOND,
        "rebalance_timeout_us": 60 * SECOND,
    }
    effects = request(machine, JoinGroupRequest(member_id="", **body), token)
    settle(machine, effects)
    member = replies(effects)[0][1].member_id
    request(machine, JoinGroupRequest(member_id=member, **body), token + 1)
    return member


def stable(machine):
    member = join(machine)
    machine.handle(TimerFired("join/g"), 3 * SECOND)
    effects = request(machine, SyncGroupRequest("g", member, 1, {member: (PLACE,)}), 7)
    return member, settle(machine, effects)


# -- releasing ------------------------------------------------------------------------------------


def test_a_commit_is_answered_when_it_is_committed_and_visible_then():
    machine = coordinator()
    effects = request(machine, commit(10))
    assert replies(effects) == []
    assert machine.committed("g", PLACE) == -1
    (append,) = appends(effects)
    assert append.partition == GROUPS_PARTITION
    assert errors(settle(machine, effects)) == [(1, ErrorCode.NONE)]
    assert machine.committed("g", PLACE) == 10


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_commit_that_was_not_written_is_refused_and_not_visible(error, told):
    machine = coordinator()
    (append,) = appends(request(machine, commit(10)))
    assert errors(machine.handle(RecordsAppended(append.token, error), 0)) == [(1, told)]
    assert machine.committed("g", PLACE) == -1


@pytest.mark.parametrize(("new", "offset"), [(True, 10), (False, -1)])
def test_a_commit_that_timed_out_counts_when_the_watermark_passes_it_or_never(new, offset):
    machine = coordinator(follows_watermark=new)
    (first,) = appends(request(machine, commit(10), 1))
    assert first.follows_watermark is new
    late = machine.handle(RecordsAppended(first.token, ErrorCode.REQUEST_TIMED_OUT), 0)
    assert errors(late) == [(1, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert machine.committed("g", PLACE) == -1
    assert machine.handle(RecordsAppended(first.token, ErrorCode.NONE), 0) == []
    assert machine.committed("g", PLACE) == offset


def test_a_commit_that_timed_out_may_fail_after_that_and_is_answered_once():
    machine = coordinator()
    (first,) = appends(request(machine, commit(10)))
    machine.handle(RecordsAppended(first.token, ErrorCode.REQUEST_TIMED_OUT), 0)
    machine.handle(PartitionResigned(GROUPS_PARTITION), 0)
    moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert machine.handle(RecordsAppended(first.token, moved), 0) == []


STABLE = OffsetFetchRequest("g", (PLACE,), require_stable=True)


def fetched(effects):
    return [
        (e.response.error, [offset for _, offset, _ in e.response.offsets])
        for e in effects
        if isinstance(e, Reply) and e.token == 9
    ]


@pytest.mark.parametrize("linger", [0, 5 * MS])
def test_who_fetches_stable_offsets_waits_for_what_is_being_written(linger):
    machine = coordinator(linger)
    effects = request(machine, commit(10))
    assert fetched(request(machine, STABLE, 9)) == []
    if linger:
        effects = machine.handle(TimerFired(f"linger/{GROUPS_PARTITION}"), linger)
    assert fetched(settle(machine, effects)) == [(ErrorCode.NONE, [10])]
    assert fetched(request(machine, STABLE, 9)) == [(ErrorCode.NONE, [10])]


def test_who_fetches_any_offsets_is_told_what_is_committed():
    machine = coordinator()
    request(machine, commit(10))
    asked = OffsetFetchRequest("g", (PLACE,))
    assert fetched(request(machine, asked, 9)) == [(ErrorCode.NONE, [-1])]


def test_a_wait_for_stable_offsets_ends_with_its_time_or_with_the_leadership():
    for event in (TimerFired("after-writes/2"), PartitionResigned(GROUPS_PARTITION)):
        machine = coordinator()
        (append,) = appends(request(machine, commit(10)))
        waits = request(machine, STABLE, 9)
        assert [e.name for e in waits if isinstance(e, SetTimer)] == ["after-writes/2"]
        machine.handle(RecordsAppended(append.token, ErrorCode.REQUEST_TIMED_OUT), 5 * SECOND)
        told = machine.handle(event, 5 * SECOND)
        assert fetched(told) == [(ErrorCode.NOT_COORDINATOR, [])]
        assert fetched(machine.handle(RecordsAppended(append.token, ErrorCode.NONE), 6)) == []


def test_the_coordinator_before_kip_848_calls_an_offset_unstable_that_is_being_written():
    machine = coordinator(follows_watermark=False)
    (append,) = appends(request(machine, commit(10)))
    unstable = [(ErrorCode.UNSTABLE_OFFSET_COMMIT, [])]
    assert fetched(request(machine, STABLE, 9)) == unstable
    elsewhere = OffsetFetchRequest("g", (TopicPartition("orders", 1),), require_stable=True)
    assert fetched(request(machine, elsewhere, 9)) == [(ErrorCode.NONE, [-1])]
    machine.handle(RecordsAppended(append.token, ErrorCode.NONE), 0)
    assert fetched(request(machine, STABLE, 9)) == [(ErrorCode.NONE, [10])]


def test_writes_within_the_linger_share_one_append():
    machine = coordinator(5 * MS)
    assert appends(request(machine, commit(1), 1)) == []
    assert appends(request(machine, commit(2), 2, MS)) == []
    effects = machine.handle(TimerFired(f"linger/{GROUPS_PARTITION}"), 5 * MS)
    (append,) = appends(effects)
    assert [record.offset for record in append.records] == [1, 2]
    assert [token for token, _ in errors(settle(machine, effects))] == [1, 2]


class Audit:
    """Watches a coordinator: no success for a commit whose append has not come back."""

    def __init__(self, machine):
        self.machine = machine
        self.open = {}
        self.appended = set()
        self.breaches = []

    def ask(self, token, body):
        self._look(request(self.machine, body, token), token)

    def answer(self, append, error):
        if error is ErrorCode.NONE:
            self.appended |= {record.offset for record in append.records}
        self._look(self.machine.handle(RecordsAppended(append.token, error), 0))

    def _look(self, effects, token=None):
        for append in appends(effects):
            self.open[append.token] = append
        for number, error in errors(effects):
            if error is ErrorCode.NONE and number not in self.appended:
                self.breaches.append(number)


ANSWERS = st.lists(
    st.sampled_from(
        [None, ErrorCode.NONE, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT]
    ),
    min_size=1,
    max_size=12,
)


def play(answers):
    """Commit offset n under token n; ``None`` lets the append wait for the next answers."""
    audit = Audit(coordinator())
    for token, error in enumerate(answers, 1):
        audit.ask(token, commit(token))
        if error is not None:
            waiting, audit.open = audit.open, {}
            for append in waiting.values():
                audit.answer(append, error)
    return audit


@given(ANSWERS)
def test_no_commit_is_released_before_its_append_came_back(answers):
    assert play(answers).breaches == []


def test_planted_a_commit_released_before_its_append_is_caught(monkeypatch):
    write = group_desk.CoordinatorContext.write

    def hasty(self, partition, records, outcome, now):
        outcome(ErrorCode.NONE, now)
        write(self, partition, records, lambda _error, _now: None, now)

    monkeypatch.setattr(group_desk.CoordinatorContext, "write", hasty)
    assert play([ErrorCode.NONE]).breaches == [1]


# -- who may commit -------------------------------------------------------------------------------


def test_the_checks_of_a_commit_come_in_kafkas_order():
    machine = coordinator()
    member, _ = stable(machine)

    def told(**changes):
        return errors(request(machine, commit(5, **changes)))

    assert told(member=member, generation=1) == []  # accepted: waits for the append
    assert told(member="x", generation=9) == [(1, ErrorCode.UNKNOWN_MEMBER_ID)]
    assert told(member=member, generation=0) == [(1, ErrorCode.ILLEGAL_GENERATION)]
    assert told() == [(1, ErrorCode.UNKNOWN_MEMBER_ID)]  # -1 only where nobody is a member
    join(machine, 200)
    assert told(member=member, generation=1) == []  # while others are awaited it is accepted
    machine.handle(TimerFired("join/g"), 70 * SECOND)
    assert machine.group("g").state.value == "CompletingRebalance"
    newcomer = machine.group("g").leader
    assert told(member=newcomer, generation=2) == [(1, ErrorCode.REBALANCE_IN_PROGRESS)]
    assert told(member="x", generation=2) == [(1, ErrorCode.UNKNOWN_MEMBER_ID)]


def test_a_group_nobody_knows_takes_commits_of_no_generation_only():
    machine = coordinator()
    assert errors(request(machine, commit(5, member="m", generation=3))) == [
        (1, ErrorCode.GROUP_ID_NOT_FOUND)
    ]
    assert len(appends(request(machine, commit(5)))) == 1


def stale_commit_is_refused(machine):
    member, _ = stable(machine)
    effects = request(machine, commit(5, member=member, generation=0))
    return errors(effects) == [(1, ErrorCode.ILLEGAL_GENERATION)]


def test_a_commit_of_an_old_generation_is_refused():
    assert stale_commit_is_refused(coordinator())


def test_planted_a_commit_of_an_old_generation_is_caught(monkeypatch):
    monkeypatch.setattr(coordinators, "commit_error", lambda *_: ErrorCode.NONE)
    assert not stale_commit_is_refused(coordinator())


def test_a_commit_keeps_the_member_alive():
    machine = coordinator()
    member, _ = stable(machine)
    before = machine.group("g").members[member].session_ends_at
    request(machine, commit(5, member=member, generation=1), now=8 * SECOND)
    assert machine.group("g").members[member].session_ends_at == 18 * SECOND > before


# -- the next coordinator -------------------------------------------------------------------------


def test_a_partition_that_is_read_answers_nothing_but_heartbeats():
    machine = GroupCoordinator(1, 1)
    machine.handle(PartitionLoading(GROUPS_PARTITION, 4), 0)
    assert errors(request(machine, commit())) == [(1, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]
    assert errors(request(machine, HeartbeatRequest("g", "m", 1))) == [(1, ErrorCode.NONE)]


def test_a_partition_of_another_broker_is_refused():
    machine = GroupCoordinator(1, 1)
    assert errors(request(machine, HeartbeatRequest("g", "m", 1))) == [
        (1, ErrorCode.NOT_COORDINATOR)
    ]


def test_the_next_coordinator_knows_generation_members_assignments_and_offsets():
    machine = coordinator()
    log = []
    member = join(machine)
    machine.handle(TimerFired("join/g"), 3 * SECOND)
    for body in (
        SyncGroupRequest("g", member, 1, {member: (PLACE,)}),
        commit(42, member=member, generation=1),
    ):
        effects = request(machine, body, 7)
        log += [record for append in appends(effects) for record in append.records]
        settle(machine, effects)
    following = GroupCoordinator(2, 1)
    following.handle(PartitionElected(GROUPS_PARTITION, 1, tuple(log)), 20 * SECOND)
    group = following.group("g")
    assert (group.state.value, group.generation, group.leader) == ("Stable", 1, member)
    assert group.members[member].assignment == (PLACE,)
    assert group.members[member].session_ends_at == 30 * SECOND
    assert following.committed("g", PLACE) == 42
    assert errors(request(following, HeartbeatRequest("g", member, 1))) == [(1, ErrorCode.NONE)]


def test_a_deposed_coordinator_answers_all_that_waits_and_forgets():
    machine = coordinator()
    member, _ = stable(machine)
    (append,) = appends(request(machine, commit(5, member=member, generation=1), 31))
    effects = machine.handle(PartitionResigned(GROUPS_PARTITION), SECOND)
    assert errors(effects) == [(31, ErrorCode.NOT_COORDINATOR)]
    assert machine.group("g") is None
    assert machine.handle(RecordsAppended(append.token, ErrorCode.NONE), SECOND) == []
    assert machine.handle(TimerFired(f"session/g/{member}"), 20 * SECOND) == []


def test_what_is_read_for_a_leadership_that_ended_comes_too_late():
    machine = GroupCoordinator(1, 1)
    machine.handle(PartitionLoading(GROUPS_PARTITION, 4), 0)
    machine.handle(PartitionResigned(GROUPS_PARTITION), 0)
    machine.handle(PartitionElected(GROUPS_PARTITION, 4, ()), 0)
    assert machine.active_partitions() == ()
    machine.handle(PartitionElected(GROUPS_PARTITION, 6, ()), 0)
    assert machine.active_partitions() == (GROUPS_PARTITION,)


def test_tombstones_are_heeded_on_load():
    machine = GroupCoordinator(1, 1)
    records = (
        OffsetCommitRecord("g", PLACE, 7, 0, 0),
        OffsetTombstone("g", PLACE),
        GroupMetadataRecord("gone", 3, "", "", 0, ()),
        GroupTombstone("gone"),
    )
    machine.handle(PartitionElected(GROUPS_PARTITION, 0, records), 0)
    assert machine.committed("g", PLACE) == -1
    assert machine.group("gone") is None


def test_offsets_of_partitions_never_committed_are_minus_one():
    machine = coordinator()
    settle(machine, request(machine, commit(10)))
    other = TopicPartition("orders", 1)
    ((_, response),) = replies(request(machine, OffsetFetchRequest("g", (PLACE, other))))
    assert response.offsets == ((PLACE, 10, 0), (other, -1, -1))


# -- finding it -----------------------------------------------------------------------------------


def image(leader=2, *, fenced=False):
    found = MetadataImage()
    found.partition_counts[OFFSETS_TOPIC] = 50
    found.partitions[TopicPartition(OFFSETS_TOPIC, GROUPS_PARTITION)] = PartitionRegistration(
        "id", (1, 2), (1, 2), leader, 0, 0
    )
    found.brokers[2] = BrokerRegistration(2, 0, "i", "", fenced, False)
    return found


def test_the_coordinator_is_the_leader_of_the_groups_partition():
    assert find_coordinator(image(), "g") == FindCoordinatorResponse(ErrorCode.NONE, 2)


@pytest.mark.parametrize("without", [MetadataImage(), image(-1), image(fenced=True)])
def test_there_is_no_coordinator_without_a_live_leader(without):
    assert find_coordinator(without, "g").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
