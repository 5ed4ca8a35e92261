"""KIP-848: a consumer group is rebalanced by its coordinator, with one request, the heartbeat.

Each member moves to the target assignment by its own steps: it gives up what it loses, and gets a
partition when nobody else has it. Who keeps what it has does not stop.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group import consumer_groups
from sim.protocol.coordinator.group.consumer_group_records import MemberState
from sim.protocol.coordinator.group.context import GroupConfig, ModernGroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from sim.protocol.coordinator.log import PartitionElected
from sim.protocol.events import TimerFired
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.group import JoinGroupRequest
from sim.trace.rows.clients import Assignments, GroupMembers, Groups
from sim.units import MINUTE, MS, SECOND
from tests.kips.table import HOME, Table, places, settled_pair
from tests.protocol.coordinator.group_bench import Bench


def test_a_partition_is_handed_over_in_kafkas_steps():
    """Section 10 of the rules, from group epoch 1 instead of 5."""
    table = Table()
    alone = table.join("a")
    assert (alone.member_epoch, alone.assignment) == (1, places(0, 1, 2))
    newcomer = table.join("b")
    assert (newcomer.member_epoch, newcomer.assignment) == (2, ())
    assert table.group.members["b"].state is MemberState.UNRELEASED_PARTITIONS
    told = table.beat("a", 1)
    assert (told.member_epoch, told.assignment) == (1, places(0, 1))
    assert table.group.members["a"].state is MemberState.UNREVOKED_PARTITIONS
    assert table.beat("b", 2).assignment is None
    assert table.beat("a", 1).assignment is None, "it has not said that it has given up"
    done = table.beat("a", 1, places(0, 1))
    assert (done.member_epoch, done.assignment) == (2, None)
    given = table.beat("b", 2)
    assert (given.member_epoch, given.assignment) == (2, places(2))
    assert table.group.state.value == "Stable"


def test_a_new_member_waits_while_its_partition_is_not_given_up():
    table = Table()
    table.join("a")
    table.join("b")
    for _ in range(5):
        table.beat("a", 1, places(0, 1, 2))
        assert table.beat("b", 2).assignment is None


def test_who_does_not_give_up_in_time_is_fenced_and_its_partitions_are_free():
    table = Table()
    table.join("a", rebalance_timeout_us=20 * SECOND)
    table.join("b")
    table.beat("a", 1)
    table.give(TimerFired("revoke/g/a"), 20 * SECOND)
    assert table.beat("a", 1).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.beat("b", 2).assignment == places(0, 1, 2)


def test_who_has_given_up_in_time_is_not_fenced():
    table = settled_pair()
    table.give(TimerFired("revoke/g/a"), 20 * SECOND)
    assert sorted(table.group.members) == ["a", "b"]


def test_epochs_that_are_not_the_members_are_fenced():
    table = settled_pair()
    assert table.beat("a", 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert table.beat("b", 1).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert table.beat("c", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    other = ConsumerGroupHeartbeatRequest("unknown", "c", 2)
    assert table.ask(other).error in {ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR}


def test_an_answer_that_was_lost_is_made_up_for():
    """The epoch before, with nothing that is not the member's: it may not know of the new one."""
    table = settled_pair()
    assert table.beat("a", 1, places(0)).error is ErrorCode.NONE
    assert table.beat("a", 1, places(0, 2)).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert table.beat("a", 1).error is ErrorCode.FENCED_MEMBER_EPOCH, "it does not say what it has"


def test_a_member_that_joins_again_is_told_what_it_has():
    table = settled_pair()
    again = table.join("a")
    assert (again.error, again.member_epoch, again.assignment) == (
        ErrorCode.NONE, 2, places(0, 1),
    )  # fmt: skip


def test_commits_are_taken_for_the_members_epoch_only():
    table = settled_pair()
    assert table.commit("a", 2) is ErrorCode.NONE
    assert table.commit("a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert table.commit("a", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert table.commit("c", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    table.beat("a", -1)
    table.beat("b", -1)
    assert table.commit("", -1) is ErrorCode.NONE, "an administrator, for an empty group"


def test_a_topic_that_grows_makes_a_new_epoch_at_the_next_heartbeat():
    table = settled_pair()
    table.image.partition_counts["t"] = 5
    assert table.group.epoch == 2
    assert table.beat("b", 2).assignment == places(2, 3, 4)
    assert table.group.epoch == 3
    told = table.beat("a", 2)
    assert (told.member_epoch, told.assignment) == (3, None)


def test_nothing_is_answered_before_it_is_committed():
    table = Table()
    table.holds_writes = True
    assert table.join("a") is None
    assert table.beat("a", 1) is None, "not even what writes nothing: it shows what is not certain"
    table.settle(0)
    assert [answer.member_epoch for answer in table.answers.values()] == [1, 1]


def test_what_could_not_be_written_is_taken_back():
    table = settled_pair()
    table.error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert table.join("c").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert table.beat("a", -1).error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    table.error = ErrorCode.NONE
    assert sorted(table.group.members) == ["a", "b"]
    assert table.group.epoch == 2
    assert table.beat("a", 2).error is ErrorCode.NONE
    assert table.join("c").member_epoch == 3


def test_what_took_too_long_to_be_committed_stands_in_the_log():
    table = settled_pair()
    table.error = ErrorCode.REQUEST_TIMED_OUT
    assert table.join("c").error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert sorted(table.group.members) == ["a", "b", "c"]
    assert table.beat("c", 3).error is ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_another_coordinator_finds_epochs_targets_and_what_is_to_be_given_up():
    table = Table()
    table.join("a")
    table.join("b")
    table.beat("a", 1)
    second = Table()
    second.give(PartitionElected(HOME + 1, 0, ()), 0)
    second.machine = GroupCoordinator(2, 1, GroupConfig(append_linger_us=0), lambda: table.image)
    second.give(PartitionElected(HOME, 1, tuple(table.log)), 0)
    assert second.group == table.group
    assert second.beat("b", 2).assignment is None
    assert second.beat("a", 1, places(0, 1)).member_epoch == 2
    assert second.beat("b", 2).assignment == places(2)


def test_the_last_member_leaves_an_empty_group():
    table = settled_pair()
    assert table.beat("a", -1).member_epoch == -1
    assert table.beat("b", -1).member_epoch == -1
    assert (table.group.state.value, table.group.target, table.group.epoch) == ("Empty", {}, 4)


def test_the_assignor_that_most_members_want_is_used():
    table = Table(4)
    table.join("a", server_assignor="range")
    assert table.join("b", server_assignor="nearest").error is ErrorCode.UNSUPPORTED_ASSIGNOR
    table.join("b")
    table.beat("a", 1)
    table.beat("a", 1, places(0, 1))
    assert table.beat("b", 2).assignment == places(2, 3)
    assert table.group.assignor(("uniform",)) == "range"


def test_a_group_takes_no_more_members_than_it_may():
    table = Table(consumer=ModernGroupConfig(max_size=1))
    table.join("a")
    assert table.join("b").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert table.join("a").error is ErrorCode.NONE


def test_a_group_changes_its_protocol_only_if_the_policy_has_it():
    """``group.consumer.migration.policy``; all steps: ``test_group_migration.py``."""
    said = ("z", Subscription(("t",)), ("range",), 45 * SECOND, 5 * MINUTE)
    for policy, error in (
        (MigrationPolicy.BIDIRECTIONAL, ErrorCode.NONE),
        (MigrationPolicy.DISABLED, ErrorCode.GROUP_ID_NOT_FOUND),
    ):
        table = Table(migration=policy)
        given = table.ask(JoinGroupRequest("g", "", *said)).member_id
        table.ask(JoinGroupRequest("g", given, *said))
        table.give(TimerFired("join/g"), 3 * SECOND)
        table.give(TimerFired("join/g"), 6 * SECOND)
        assert table.machine.group("g").generation == 1
        assert table.join("a", now=6 * SECOND).error is error


# -- conversations --------------------------------------------------------------------------------


class Watched(Bench):
    """After every event no two living members read the same partition."""

    def give(self, party, event):
        super().give(party, event)
        shares = [p.machine.assignment() for p in self.consumers.values() if not p.dead]
        taken = [place for share in shares for place in share]
        assert len(taken) == len(set(taken)), f"at {self.now}: {self.shares()}"


def watched(consumers, partitions=12, **more):
    bench = Watched({"orders": partitions})
    for name in consumers:
        bench.consumer(name, start_at=100 * MS, group_protocol="consumer", **more)
    bench.elect(1)
    return bench


def complete(bench, partitions=12):
    held = sorted(place for share in bench.shares().values() for place in share)
    return held == [TopicPartition("orders", n) for n in range(partitions)]


def test_three_members_share_twelve_partitions_within_two_heartbeats():
    bench = watched(["a", "b", "c"])
    bench.run(11 * SECOND)
    assert complete(bench)
    assert {len(share) for share in bench.shares().values()} == {4}


def test_a_newcomer_leaves_the_others_what_they_keep():
    """Nobody but the newcomer ever begins to read a partition, and nobody stops reading all."""
    bench = watched(["a", "b"])
    bench.run(20 * SECOND)
    before = bench.shares()
    bench.consumer("c", start_at=21 * SECOND, group_protocol="consumer")
    bench.run(40 * SECOND)
    after = bench.shares()
    assert complete(bench)
    assert set(after["a"]) < set(before["a"])
    assert set(after["b"]) < set(before["b"])
    held = [
        row[Assignments.PARTITIONS]
        for row in bench.table("assignments")
        if row[Assignments.T_US] > 21 * SECOND and row[Assignments.CONSUMER] != "c"
    ]
    assert held
    assert all(len(text.split(",")) == 4 for text in held)


def test_a_dead_member_is_missed_after_the_coordinators_session_and_not_before():
    bench = watched(["a", "b", "c"])
    bench.run(20 * SECOND)
    bench.kill("c")
    bench.run(59 * SECOND)
    assert not complete(bench)
    bench.run(72 * SECOND)
    assert complete(bench)


def test_who_leaves_is_replaced_when_the_others_send_their_next_heartbeat():
    bench = watched(["a", "b", "c"])
    bench.run(20 * SECOND)
    bench.close("c")
    bench.run(26 * SECOND)
    assert bench.stopped == {"c": ErrorCode.NONE}
    assert complete(bench)


def test_positions_are_committed_before_a_partition_goes_to_another_member():
    bench = watched(["a"], partitions=2, auto_offset_reset="earliest")
    orders = [TopicPartition("orders", n) for n in range(2)]
    for place in orders:
        bench.produce(place, 10)
    bench.run(2 * SECOND)
    assert len(bench.delivered) == 2
    bench.consumer("b", start_at=3 * SECOND, group_protocol="consumer")
    bench.run(16 * SECOND)
    assert complete(bench, 2)
    for place in orders:
        bench.produce(place, 5)
    bench.run(30 * SECOND)
    got = [(d.partition, d.base_offset, d.last_offset) for _, _, d in bench.delivered]
    assert sorted(got) == [(p, *span) for p in orders for span in ((0, 9), (10, 14))]


def test_a_coordinator_that_dies_is_found_again_and_members_keep_what_they_have():
    bench = watched(["a", "b"])
    bench.run(20 * SECOND)
    before = bench.shares()
    bench.brokers[1].dead = True
    bench.elect(2)
    bench.run(60 * SECOND)
    assert bench.shares() == before
    told = [row for row in bench.table("groups") if row[Groups.BROKER] == 2]
    assert {row[Groups.GENERATION] for row in told} == {2}, "no other epoch"
    assert bench.brokers[2].machine.consumer_group("g").state.value == "Stable"


def test_a_coordinator_that_dies_in_the_middle_of_a_handover_is_replaced_by_one_that_ends_it():
    bench = watched(["a", "b"])
    bench.run(20 * SECOND)
    bench.consumer("c", start_at=21 * SECOND, group_protocol="consumer")
    bench.run(21_100 * MS)
    while not any(
        row[GroupMembers.T_US] > 21 * SECOND and row[GroupMembers.STATE] == "UNREVOKED_PARTITIONS"
        for row in bench.table("group_members")
    ):
        bench.run(bench.now + MS)
        assert bench.now < 27 * SECOND
    bench.brokers[1].dead = True
    bench.elect(2)
    bench.run(60 * SECOND)
    assert complete(bench)
    assert {len(share) for share in bench.shares().values()} == {4}


def test_a_member_that_polls_too_rarely_leaves_and_joins_at_its_next_poll():
    bench = watched(
        ["a", "b"],
        partitions=2,
        auto_offset_reset="earliest",
        poll_interval_us_max=30 * SECOND,
        processing_us=4 * SECOND,
    )
    bench.run(20 * SECOND)
    (slow,) = [n for n, share in bench.shares().items() if TopicPartition("orders", 0) in share]
    bench.produce(TopicPartition("orders", 0), 10)
    bench.run(52 * SECOND)
    assert bench.shares()[slow] == ()
    bench.run(75 * SECOND)
    epochs = [getattr(r, "member_epoch", None) for _, n, r in bench.requests if n == slow]
    assert (epochs.count(-1), epochs.count(0)) == (1, 2), "it has left once and joined again"


def test_members_join_although_nothing_could_be_written_at_first():
    bench = watched(["a", "b"])
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.run(2 * SECOND)
    assert bench.table("assignments") == []
    bench.commit_error = ErrorCode.NONE
    bench.run(13 * SECOND)
    assert complete(bench)


STEPS = st.lists(
    st.tuples(st.sampled_from(["add", "kill", "close", "move", "fail writes"]), st.integers(1, 40)),
    min_size=1,
    max_size=6,
)


def tell(bench, story):
    """Play a story of comings and goings."""
    now, number = 0, 0
    for what, seconds in story:
        alive = [name for name, party in bench.consumers.items() if not party.dead]
        if what == "add" or not alive:
            number += 1
            bench.consumer(f"n{number}", start_at=now, group_protocol="consumer")
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


@pytest.mark.slow
@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_no_two_members_ever_have_a_partition_and_a_group_at_rest_is_complete(story):
    bench = watched(["first"], 5)
    now = tell(bench, story)
    bench.run(now + 120 * SECOND)
    if any(not party.dead for party in bench.consumers.values()):
        assert complete(bench, 5)
    epochs = [
        row[Groups.GENERATION]
        for row in bench.table("groups")
        if row[Groups.REASON] == "assignment committed"
    ]
    assert epochs == sorted(epochs)


def test_no_two_members_ever_have_a_partition_in_a_story_with_everything():
    bench = watched(["first"], 5)
    story = ("add", 2), ("add", 11), ("move", 1), ("fail writes", 3), ("close", 6), ("kill", 50)
    now = tell(bench, story)
    bench.run(now + 20 * SECOND)
    assert complete(bench, 5)


def test_planted_a_coordinator_that_does_not_wait_for_what_is_given_up_is_caught(monkeypatch):
    real = consumer_groups.reconcile

    def hasty(member, epoch, target, owners, owned):
        return real(member, epoch, target, {}, owned)

    monkeypatch.setattr(consumer_groups, "reconcile", hasty)
    bench = watched(["a", "b"], 5)
    with pytest.raises(AssertionError, match="orders"):
        bench.run(20 * SECOND)
