"""Static membership (KIP-345): a member that comes back within its session changes nothing."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, RecordsAppended
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from sim.trace.rows.clients import Groups
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

SESSION = 10 * SECOND
SETTINGS = {"session_timeout_us": SESSION, "auto_offset_reset": "earliest"}


def static(*names, **settings):
    bench = Bench({"orders": 6})
    for name in names:
        bench.consumer(
            name, start_at=100 * MS, group_instance_id=f"i-{name}", **SETTINGS, **settings
        )
    bench.elect(1)
    bench.run(8 * SECOND)
    return bench


def restart(bench, name, at, process, **settings):
    """Another process with the instance id of the first one, which is dead."""
    bench.kill(name)
    bench.consumer(process, start_at=at, group_instance_id=f"i-{name}", **SETTINGS, **settings)


def generations(bench):
    return [
        row[Groups.GENERATION]
        for row in bench.table("groups")
        if row[Groups.STATE] == "Stable" and "back" not in row[Groups.REASON]
    ]


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_restart_within_the_session_keeps_the_assignment_without_a_rebalance(name):
    """One of the two leads the group, whose restart is told to skip the assignment (KIP-814)."""
    bench = static("a", "b")
    before = bench.shares()[name]
    restart(bench, name, 10 * SECOND, "again")
    bench.run(40 * SECOND)
    assert bench.shares()["again"] == before
    assert generations(bench) == [1]


def test_after_the_end_of_the_session_the_others_take_over():
    """The twin: static members are expired as others are."""
    bench = static("a", "b")
    restart(bench, "a", 30 * SECOND, "again")
    bench.run(25 * SECOND)
    assert len(bench.shares()["b"]) == 6
    bench.run(60 * SECOND)
    assert sorted(map(len, bench.shares().values())) == [3, 3]
    assert generations(bench) == [1, 2, 3]


def test_a_dynamic_member_that_restarts_makes_the_group_rebalance():
    """The limit: the same restart without instance ids."""
    bench = Bench({"orders": 6})
    for name in ("a", "b"):
        bench.consumer(name, start_at=100 * MS, **SETTINGS)
    bench.elect(1)
    bench.run(8 * SECOND)
    bench.kill("a")
    bench.consumer("again", start_at=10 * SECOND, **SETTINGS)
    bench.run(40 * SECOND)
    assert len(generations(bench)) > 1


def test_a_static_member_does_not_say_that_it_leaves():
    bench = static("a", "b")
    bench.close("a")
    bench.run(9 * SECOND)
    assert bench.stopped == {"a": ErrorCode.NONE}
    assert not [r for _, _, r in bench.requests if isinstance(r, LeaveGroupRequest)]
    assert len(bench.shares()["b"]) == 3


def test_two_processes_under_one_instance_id_fence_the_earlier_one():
    bench = static("a", "b")
    bench.consumer("thief", start_at=10 * SECOND, group_instance_id="i-a", **SETTINGS)
    before = bench.shares()["a"]
    bench.run(40 * SECOND)
    assert bench.stopped == {"a": ErrorCode.FENCED_INSTANCE_ID}
    assert bench.shares()["thief"] == before


def test_a_takeover_of_the_coordinator_keeps_instance_ids():
    bench = static("a", "b")
    before = bench.shares()["b"]
    bench.elect(2)
    bench.run(9 * SECOND)
    restart(bench, "b", 10 * SECOND, "again")
    bench.run(40 * SECOND)
    assert bench.shares()["again"] == before


def test_records_read_by_the_process_before_are_not_read_again_from_the_start():
    bench = static("a", auto_commit_interval_us=1 * SECOND)
    bench.produce(TopicPartition("orders", 0), 5)
    bench.run(12 * SECOND)
    restart(bench, "a", 13 * SECOND, "again")
    bench.run(25 * SECOND)
    assert [name for _, name, _ in bench.delivered] == ["a"]


# -- the coordinator alone ------------------------------------------------------------------------


def machine_with(*instances, **config):
    """A coordinator of a stable group of these static members; ids by instance."""
    machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=0, **config))
    machine.handle(PartitionElected(3, 0, ()), 0)
    for instance in instances:
        tell(machine, ask(instance))
    machine.handle(TimerFired("join/g"), 3 * SECOND)
    machine.handle(TimerFired("join/g"), 6 * SECOND)
    machine.handle(TimerFired("join/g"), 9 * SECOND)
    ids = dict(machine.group("g").static)
    for member in ids.values():
        tell(machine, SyncGroupRequest("g", member, 1, {}))
    return machine, ids


def ask(instance="", member="", **changes):
    request = JoinGroupRequest(
        "g",
        member,
        "c",
        Subscription(("orders",), instance_id=instance),
        ("range",),
        SESSION,
        60 * SECOND,
    )
    return replace(request, **changes)


def tell(machine, request, now=9 * SECOND, error=ErrorCode.NONE):
    """All answers that follow, the writes being committed or failing."""
    answers = []
    events = [RequestReceived(1, "c", request)]
    while events:
        for effect in machine.handle(events.pop(0), now):
            if isinstance(effect, AppendRecords):
                events.append(RecordsAppended(effect.token, error))
            elif hasattr(effect, "response"):
                answers.append(effect.response)
    return answers


def test_a_leader_that_is_back_is_told_to_skip_the_assignment_and_who_is_there():
    machine, _ = machine_with("one", "two")
    (answer,) = tell(machine, ask("one"))
    assert answer.skip_assignment
    assert [said.instance_id for _, said in answer.members] == ["two", "one"]
    assert answer.generation == 1
    (answer,) = tell(machine, ask("two"))
    assert (answer.skip_assignment, answer.members) == (False, ())


@pytest.mark.parametrize(
    "request_of",
    [
        lambda member: HeartbeatRequest("g", member, 1, "one"),
        lambda member: SyncGroupRequest("g", member, 1, {}, "one"),
        lambda member: OffsetCommitRequest("g", member, 1, (), "one"),
        lambda member: LeaveGroupRequest("g", member, "one"),
        lambda member: ask("one", member),
    ],
)
def test_the_id_of_before_is_fenced_everywhere(request_of):
    machine, ids = machine_with("one", "two")
    tell(machine, ask("one"))
    (answer,) = tell(machine, request_of(ids["one"]))
    assert answer.error is ErrorCode.FENCED_INSTANCE_ID


def test_a_replacement_that_could_not_be_written_is_taken_back():
    machine, ids = machine_with("one", "two")
    (answer,) = tell(machine, ask("one"), error=ErrorCode.NOT_ENOUGH_REPLICAS)
    assert answer.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert machine.group("g").static == ids
    assert tell(machine, HeartbeatRequest("g", ids["one"], 1, "one"))[0].error is ErrorCode.NONE


def test_another_choice_of_assignors_makes_the_group_rebalance():
    machine, _ = machine_with("one")
    assert tell(machine, ask("one", protocols=("roundrobin", "range")))[0].generation == 2


def test_static_members_that_do_not_rejoin_stay_and_others_are_left_out():
    machine, ids = machine_with("one", "two")
    (first,) = tell(machine, ask())
    tell(machine, ask(member=first.member_id))
    machine.handle(TimerFired("join/g"), 70 * SECOND)
    group = machine.group("g")
    assert group.generation == 2
    assert dict(group.static) == ids
    assert group.leader == first.member_id, "who is there leads"


def test_an_administrator_takes_a_static_member_out_by_its_instance_id():
    machine, _ = machine_with("one", "two")
    assert tell(machine, LeaveGroupRequest("g", "", "two"))[0].error is ErrorCode.NONE
    assert list(machine.group("g").static) == ["one"]
    assert tell(machine, LeaveGroupRequest("g", "", "x"))[0].error is ErrorCode.UNKNOWN_MEMBER_ID


# -- the size of a group (KIP-389) ----------------------------------------------------------------


def test_a_full_group_turns_newcomers_away_and_one_that_is_not_full_does_not():
    machine, _ = machine_with("one", "two", size_max=2)
    (answer,) = tell(machine, ask("three"))
    assert answer == JoinGroupResponse(ErrorCode.GROUP_MAX_SIZE_REACHED)
    machine, _ = machine_with("one", "two", size_max=3)
    assert tell(machine, ask("three"))[:1] != [answer]


def test_a_consumer_that_finds_its_group_full_raises():
    bench = Bench({"orders": 6}, config=GroupConfig(size_max=1))
    bench.consumer("a", start_at=100 * MS)
    bench.consumer("b", start_at=6 * SECOND)
    bench.elect(1)
    bench.run(20 * SECOND)
    assert bench.stopped == {"b": ErrorCode.GROUP_MAX_SIZE_REACHED}
    assert len(bench.shares()["a"]) == 6
