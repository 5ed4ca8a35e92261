"""Whole conversations of consumers with their coordinator, and what each generation promises."""

from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import ASSIGNORS
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
)
from sim.protocol.coordinator.log import (
    PartitionElected,
)
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.trace.rows.clients import Assignments, Groups
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench


def group_bench(consumers, partitions=12, **settings_of_consumers):
    bench = Bench({"orders": partitions})
    for name in consumers:
        bench.consumer(name, start_at=100 * MS, **settings_of_consumers)
    bench.elect(1)
    return bench


def disjoint_and_complete(bench, partitions=12):
    held = sorted(place for share in bench.shares().values() for place in share)
    return held == [TopicPartition("orders", n) for n in range(partitions)]


# -- golden conversations -------------------------------------------------------------------------


def test_three_members_share_twelve_partitions_after_the_initial_delay():
    bench = group_bench(["a", "b", "c"])
    bench.run(2_900 * MS)
    assert bench.table("assignments") == []
    bench.run(8 * SECOND)
    assert {name: len(share) for name, share in bench.shares().items()} == {"a": 4, "b": 4, "c": 4}
    assert bench.assigned_text()[1]["a"] == "orders-0,orders-1,orders-2,orders-3"
    assert [row[3:5] for row in bench.table("groups")] == [
        ("Empty", 0),
        ("PreparingRebalance", 0),
        ("CompletingRebalance", 1),
        ("Stable", 1),
    ]
    asked = [type(request).__name__ for _, name, request in bench.requests if name == "a"]
    assert asked.count("JoinGroupRequest") == 2  # first for an id, then with it
    assert asked.count("SyncGroupRequest") == 1


def test_the_initial_delay_is_extended_once_for_each_round_with_a_newcomer():
    bench = group_bench(["a"])
    bench.consumer("b", start_at=2 * SECOND)
    bench.run(5_900 * MS)
    assert bench.table("assignments") == []
    bench.run(7 * SECOND)
    assert set(bench.assigned_text()[1]) == {"a", "b"}


def test_the_initial_delay_is_not_extended_without_a_newcomer():
    bench = group_bench(["a"])
    bench.run(3_300 * MS)
    assert set(bench.assigned_text()[1]) == {"a"}


def test_a_dead_member_is_missed_after_its_session_and_not_before():
    bench = group_bench(["a", "b", "c"])
    bench.run(10 * SECOND)
    bench.kill("c")
    bench.run(49 * SECOND)
    assert not disjoint_and_complete(bench)
    bench.run(62 * SECOND)
    assert disjoint_and_complete(bench)
    assert max(bench.assigned_text()) == 2


def test_who_leaves_is_replaced_at_the_next_heartbeat():
    bench = group_bench(["a", "b", "c"])
    bench.run(10 * SECOND)
    bench.close("c")
    bench.run(14 * SECOND)
    assert bench.stopped == {"c": ErrorCode.NONE}
    bench.consumers["c"].dead = True
    assert disjoint_and_complete(bench)
    took = min(
        row[Assignments.T_US]
        for row in bench.table("assignments")
        if row[Assignments.GENERATION] == 2
    )
    assert 10 * SECOND < took <= 13_500 * MS


def test_five_members_of_three_partitions_leave_two_idle():
    bench = group_bench(["a", "b", "c", "d", "e"], partitions=3)
    bench.run(8 * SECOND)
    assert sorted(len(share) for share in bench.shares().values()) == [0, 0, 1, 1, 1]
    assert sorted(bench.assigned_text()[1].values()) == ["", "", "orders-0", "orders-1", "orders-2"]


def test_a_newcomer_makes_all_give_up_and_share_again():
    bench = group_bench(["a"])
    bench.run(6 * SECOND)
    bench.consumer("b", start_at=7 * SECOND)
    bench.run(12 * SECOND)
    assert disjoint_and_complete(bench)
    assert {name: len(share) for name, share in bench.shares().items()} == {"a": 6, "b": 6}


def test_the_last_member_leaves_an_empty_group_of_the_next_generation():
    bench = group_bench(["a"])
    bench.run(6 * SECOND)
    bench.close("a")
    bench.run(8 * SECOND)
    group = bench.brokers[1].machine.group("g")
    assert (group.state.value, group.generation, group.members) == ("Empty", 2, {})
    last = [r for r in bench.offsets_log[3] if isinstance(r, GroupMetadataRecord)][-1]
    assert (last.generation, last.members, last.protocol) == (2, (), "")


def test_a_coordinator_that_moves_keeps_generation_and_members():
    bench = group_bench(["a", "b", "c"])
    bench.run(10 * SECOND)
    shares = bench.shares()
    bench.elect(2)
    bench.run(30 * SECOND)
    group = bench.brokers[2].machine.group("g")
    assert (group.state.value, group.generation, len(group.members)) == ("Stable", 1, 3)
    assert bench.shares() == shares
    assert bench.brokers[1].machine.group("g") is None
    assert max(bench.assigned_text()) == 1


def test_a_coordinator_that_dies_is_found_again_and_sessions_start_anew():
    bench = group_bench(["a", "b"])
    bench.run(10 * SECOND)
    bench.brokers[1].dead = True
    bench.kill("b")
    bench.run(40 * SECOND)
    bench.elect(2)
    bench.run(80 * SECOND)
    assert (
        len(bench.brokers[2].machine.group("g").members) == 2
    )  # 45 s from the load, not the death
    bench.run(100 * SECOND)
    assert disjoint_and_complete(bench)


def test_a_topic_that_grows_makes_the_leader_rebalance():
    bench = group_bench(["a", "b"], metadata_age_us_max=10 * SECOND)
    bench.run(8 * SECOND)
    bench.topics["orders"] = 14
    bench.run(30 * SECOND)
    assert disjoint_and_complete(bench, 14)


def test_members_join_although_the_assignment_could_not_be_written_at_first():
    bench = group_bench(["a", "b"])
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.run(8 * SECOND)
    assert bench.table("assignments") == []
    bench.commit_error = ErrorCode.NONE
    bench.run(16 * SECOND)
    assert disjoint_and_complete(bench)


def test_a_consumer_that_polls_too_rarely_leaves_its_group():
    bench = group_bench(
        ["a", "b"], partitions=2, poll_interval_us_max=6 * SECOND, auto_offset_reset="earliest"
    )
    slow = bench.consumer(
        "z", poll_interval_us_max=6 * SECOND, auto_offset_reset="earliest", processing_us=SECOND
    )
    bench.topics["orders"] = 3
    bench.run(8 * SECOND)
    (mine,) = slow.machine.assignment()
    bench.produce(mine, 10)
    bench.run(17 * SECOND)
    assert len(bench.brokers[1].machine.group("g").members) == 2


# -- the coordinator alone ------------------------------------------------------------------------

ASK = {
    "client_id": "c",
    "subscription": Subscription(("orders",)),
    "protocols": ("range",),
    "session_timeout_us": 10 * SECOND,
    "rebalance_timeout_us": 60 * SECOND,
}


def coordinator(**config):
    machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=0, **config))
    machine.handle(PartitionElected(3, 0, ()), 0)
    return machine


def ask(machine, request, token=1, now=0):
    effects = machine.handle(RequestReceived(token, "c", request), now)
    return [
        e.response for e in effects if getattr(e, "token", None) == token and hasattr(e, "response")
    ]


def joined(machine, token=1, now=0, **changes):
    (first,) = ask(
        machine, JoinGroupRequest(**({"group": "g", "member_id": ""} | ASK | changes)), token, now
    )
    assert first.error is ErrorCode.MEMBER_ID_REQUIRED
    ask(
        machine,
        JoinGroupRequest(**({"group": "g", "member_id": first.member_id} | ASK | changes)),
        token,
        now,
    )
    return first.member_id


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"group": "other"}, ErrorCode.NOT_COORDINATOR),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_timeout_us": 5 * SECOND}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_joins_are_refused_for_a_reason(changes, error):
    (response,) = ask(
        coordinator(), JoinGroupRequest(**({"group": "g", "member_id": ""} | ASK | changes))
    )
    assert response.error is error


def test_a_member_without_a_common_protocol_is_not_let_in():
    machine = coordinator()
    joined(machine)
    (response,) = ask(
        machine,
        JoinGroupRequest(
            **({"group": "g", "member_id": ""} | ASK | {"protocols": ("roundrobin",)})
        ),
        2,
    )
    assert response.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_most_members_prefer_is_chosen_among_common_ones():
    machine = coordinator()
    joined(machine, 1, protocols=("range", "roundrobin"))
    joined(machine, 2, protocols=("roundrobin", "range"))
    joined(machine, 3, protocols=("roundrobin", "sticky", "range"))
    # Newcomers in the first round extend the delay once.
    machine.handle(TimerFired("join/g"), 3 * SECOND)
    effects = machine.handle(TimerFired("join/g"), 6 * SECOND)
    answers = [
        e.response for e in effects if isinstance(getattr(e, "response", None), JoinGroupResponse)
    ]
    assert [a.protocol for a in answers] == ["roundrobin"] * 3
    assert [len(a.members) for a in answers] == [3, 0, 0]


def test_an_id_that_is_not_used_lapses():
    machine = coordinator()
    (first,) = ask(machine, JoinGroupRequest(group="g", member_id="", **ASK))
    machine.handle(TimerFired(f"session/g/{first.member_id}"), 10 * SECOND)
    (again,) = ask(machine, JoinGroupRequest(group="g", member_id=first.member_id, **ASK))
    assert again.error is ErrorCode.UNKNOWN_MEMBER_ID


def stable(machine, now=0):
    member = joined(machine, 1, now)
    machine.handle(TimerFired("join/g"), now + 3 * SECOND)
    effects = machine.handle(
        RequestReceived(9, "c", SyncGroupRequest("g", member, 1, {})), now + 3 * SECOND
    )
    return member, effects


def test_heartbeats_tell_the_member_where_the_group_stands():
    machine = coordinator()
    member, _ = stable(machine)
    assert ask(machine, HeartbeatRequest("g", member, 1)) == [HeartbeatResponse(ErrorCode.NONE)]
    assert ask(machine, HeartbeatRequest("g", member, 0))[0].error is ErrorCode.ILLEGAL_GENERATION
    assert ask(machine, HeartbeatRequest("g", "x", 1))[0].error is ErrorCode.UNKNOWN_MEMBER_ID
    joined(machine, 2)
    assert (
        ask(machine, HeartbeatRequest("g", member, 1))[0].error is ErrorCode.REBALANCE_IN_PROGRESS
    )


def test_sync_before_the_group_completes_is_told_to_rejoin():
    machine = coordinator()
    member, _ = stable(machine)
    joined(machine, 2)
    (response,) = ask(machine, SyncGroupRequest("g", member, 1), 3)
    assert response == SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS)


def test_who_does_not_rejoin_in_time_is_left_out_of_the_generation():
    machine = coordinator()
    member, _ = stable(machine)
    joined(machine, 2, 5 * SECOND)
    machine.handle(TimerFired("join/g"), 65 * SECOND)
    assert member not in machine.group("g").members
    assert machine.group("g").generation == 2


def test_who_does_not_sync_in_time_is_removed():
    machine = coordinator()
    member = joined(machine)
    machine.handle(TimerFired("join/g"), 3 * SECOND)
    machine.handle(TimerFired("sync/g"), 63 * SECOND)
    assert member not in machine.group("g").members


def test_leaving_with_an_unknown_id_is_refused():
    assert ask(coordinator(), LeaveGroupRequest("g", "x"))[0].error is ErrorCode.UNKNOWN_MEMBER_ID


def test_member_ids_of_two_lives_of_a_broker_differ():
    lives = [GroupCoordinator(1, life, GroupConfig()) for life in (1, 2)]
    for machine in lives:
        machine.handle(PartitionElected(3, 0, ()), 0)
    first, second = (joined(machine) for machine in lives)
    assert first != second


# -- any story ------------------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "kill", "close", "move", "fail writes"]), st.integers(1, 40)),
    min_size=1,
    max_size=6,
)


def tell(bench, story):
    """Play a story of comings and goings; returns the names that should live at its end."""
    now, number = 0, 0
    for what, seconds in story:
        alive = [name for name, party in bench.consumers.items() if not party.dead]
        if what == "add" or not alive:
            number += 1
            bench.consumer(f"n{number}", start_at=now)
        elif what == "move":
            bench.elect(3 - bench.offsets_leader)
        elif what == "fail writes":
            bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
        else:
            if what == "close":
                bench.close(alive[0])
                bench.run(now + SECOND)
            bench.kill(alive[0])
        now += seconds * SECOND
        bench.run(now)
        bench.commit_error = ErrorCode.NONE
    return now


def overlapping(bench):
    """(generation, partition) that two consumers took over."""
    found = []
    for generation, shares in bench.assigned_text().items():
        taken = [p for text in shares.values() for p in text.split(",") if p]
        found += [(generation, p) for p in taken if taken.count(p) > 1]
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_each_generation_is_disjoint_and_a_group_at_rest_is_complete(story):
    bench = Bench({"orders": 5})
    bench.consumer("first")
    bench.elect(1)
    now = tell(bench, story)
    bench.run(now + 120 * SECOND)
    assert overlapping(bench) == []
    if any(not party.dead for party in bench.consumers.values()):
        assert disjoint_and_complete(bench, 5)
    generations = [
        row[Groups.GENERATION] for row in bench.table("groups") if row[Groups.STATE] == "Stable"
    ]
    assert generations == sorted(generations)


def test_planted_an_assignor_that_gives_a_partition_twice_is_caught(monkeypatch):
    def greedy(subscriptions, counts):
        everything = tuple(TopicPartition("orders", n) for n in range(len(counts["orders"])))
        return dict.fromkeys(subscriptions, everything)

    monkeypatch.setitem(ASSIGNORS, "range", greedy)
    bench = group_bench(["a", "b"], 5)
    bench.run(10 * SECOND)
    assert overlapping(bench)


@pytest.mark.parametrize("busy", [True, False])
def test_a_heartbeat_waits_for_a_poll_or_for_its_thread_to_look(busy):
    """The thread looks every ``retry.backoff.ms``; a poll wakes it, and a busy application does
    not poll."""
    bench = Bench({"orders": 1})
    more = {"poll_records_max": 1, "processing_us": 50 * SECOND} if busy else {}
    bench.consumer("a", auto_offset_reset="earliest", start_at=50 * MS, **more)
    bench.elect(1)
    bench.produce(TopicPartition("orders", 0), 2)
    bench.run(40 * SECOND)
    beats = [at for at, _, asked in bench.requests if isinstance(asked, HeartbeatRequest)]
    late = [after - before - 3 * SECOND for before, after in pairwise(beats)]
    assert len(late) >= 8
    # The bench draws the middle of everything.
    assert set(late) == {50 * MS if busy else 0}
