"""Groups that change their protocol while they have members (KIP-848).

The first member of the consumer protocol upgrades a classic group, whose members go on with the
requests that they know; the last one that leaves downgrades it.

Source: ``GroupMetadataManager``: ``convertToConsumerGroup``, ``convertToClassicGroup``, and
``classicGroup...ToConsumerGroup`` of each request.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.classic_state import GroupState
from sim.protocol.coordinator.group.consumer_group_records import MemberState
from sim.protocol.coordinator.group.context import GroupConfig, ModernGroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from sim.protocol.coordinator.log import PartitionElected, PartitionResigned
from sim.protocol.events import TimerFired
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from sim.units import MINUTE, SECOND
from tests.kips.table import HOME, Table, places

SESSION_US = 10 * SECOND
T0 = places(0)[0]


def by_id(*numbers):
    return tuple(TopicPartition(uuid_text("t"), number) for number in numbers)


class Mixed(Table):
    """A coordinator with members of either protocol."""

    def subscribe(self, member, owned=(), now=0, instance="", protocols=("range",), topics=("t",)):
        said = Subscription(topics, owned, instance_id=instance)
        request = JoinGroupRequest("g", member, "app", said, protocols, SESSION_US, 5 * MINUTE)
        return self.ask(request, now)

    def sync(self, member, generation, shares=None, now=0, instance="", protocol="range"):
        request = SyncGroupRequest("g", member, generation, shares or {}, instance, protocol)
        return self.ask(request, now)

    def alive(self, member, generation, now=0, instance=""):
        return self.ask(HeartbeatRequest("g", member, generation, instance), now).error

    def leave(self, member, now=0):
        return self.ask(LeaveGroupRequest("g", member), now).error

    @property
    def classic(self):
        return self.machine.group("g")


def classic_pair(**config):
    """Members a and b of a classic group in generation 1: a has 0 and 1, b has 2."""
    table = Mixed(initial_rebalance_delay_us=0, **config)
    a, b = (table.subscribe("").member_id for _ in range(2))
    table.subscribe(a)
    table.subscribe(b)
    table.give(TimerFired("join/g"), 0)
    table.give(TimerFired("join/g"), 0)  # b has extended the delay
    table.sync(a, 1, {a: places(0, 1), b: places(2)})
    table.sync(b, 1)
    assert table.classic.state is GroupState.STABLE
    return table, a, b


def mixed_trio(**config):
    """As above, and member n of the consumer protocol in epoch 2: a has 0, b has 2, n has 1."""
    table, a, b = classic_pair(**config)
    table.join("n")
    for member in (a, b):
        assert table.alive(member, 1) is ErrorCode.REBALANCE_IN_PROGRESS
        table.subscribe(member)
        table.sync(member, 2)
    table.beat("n", 2, ())
    assert table.group.state.value == "Stable"
    return table, a, b


def held(table):
    return {name: len(member.assigned) for name, member in table.group.members.items()}


def kinds(records):
    return [(type(record).__name__, getattr(record, "key_type", "")) for record in records]


# -- upgrade --------------------------------------------------------------------------------------


def test_the_first_member_of_the_consumer_protocol_upgrades_the_group_in_one_write():
    table, a, b = classic_pair()
    written = len(table.log)
    table.holds_writes = True
    assert table.join("n") is None, "it is answered when the change is committed"
    assert len(table.open) == 1
    table.holds_writes = False
    table.settle(0)
    assert kinds(table.log[written:]) == [
        ("GroupTombstone", ""),
        ("ConsumerGroupMemberRecord", ""),
        ("ConsumerGroupMemberRecord", ""),
        ("ConsumerGroupEpochRecord", ""),
        ("TargetAssignmentMemberRecord", ""),
        ("TargetAssignmentMemberRecord", ""),
        ("TargetAssignmentEpochRecord", ""),
        ("CurrentMemberAssignmentRecord", ""),
        ("CurrentMemberAssignmentRecord", ""),
        ("ConsumerGroupMemberRecord", ""),
        ("ConsumerGroupEpochRecord", ""),
        ("TargetAssignmentMemberRecord", ""),
        ("TargetAssignmentMemberRecord", ""),
        ("TargetAssignmentEpochRecord", ""),
        ("CurrentMemberAssignmentRecord", ""),
    ]
    group = table.group
    assert [*group.members] == [a, b, "n"]
    assert group.members[a].assigned == by_id(0, 1)
    assert (group.members[a].epoch, group.epoch) == (1, 2), "the generation is the epoch"
    assert group.members[a].classic.session_timeout_us == SESSION_US
    assert group.members["n"].classic is None
    assert not table.classic.members


def test_an_upgrade_keeps_the_offsets_also_for_the_next_coordinator():
    table, a, _ = classic_pair()
    offsets = ((T0, 7, 0),)
    assert table.ask(OffsetCommitRequest("g", a, 1, offsets)).error is ErrorCode.NONE
    table.join("n")
    assert table.machine.committed("g", T0) == 7
    other = Mixed()
    other.machine = GroupCoordinator(2, 1, GroupConfig(append_linger_us=0), lambda: table.image)
    other.give(PartitionElected(HOME, 1, tuple(table.log)), 0)
    assert other.machine.committed("g", T0) == 7
    assert other.group.members == table.group.members
    assert table.commit(a, 1) is ErrorCode.NONE
    assert table.machine.committed("g", T0) == 5


def test_requests_that_wait_for_a_classic_rebalance_have_to_join_again():
    table, a, b = classic_pair()
    table.subscribe(a)  # the leader's rejoin: a rebalance that waits for b
    parked = table._token
    assert parked not in table.answers
    table.join("n")
    assert table.answers[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert table.alive(b, 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_classic_members_take_their_steps_with_join_sync_and_heartbeat():
    table, a, b = classic_pair()
    assert table.join("n").assignment == ()
    assert table.alive(a, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    joined = table.subscribe(a)  # eager: it has revoked everything
    assert (joined.error, joined.generation, joined.protocol) == (ErrorCode.NONE, 2, "range")
    assert (joined.leader, joined.members) == ("", ()), "nobody leads"
    assert table.sync(a, 2).assignment == places(0)
    assert table.beat("n", 2, ()).assignment == places(1)
    assert table.alive(a, 2) is ErrorCode.NONE
    table.subscribe(b)
    assert table.sync(b, 2).assignment == places(2)
    assert held(table) == {a: 1, b: 1, "n": 1}


def test_a_cooperative_member_revokes_what_it_loses_in_a_step_of_its_own():
    table = Mixed(initial_rebalance_delay_us=0)
    a = table.subscribe("", protocols=("cooperative-sticky",)).member_id
    table.subscribe(a, protocols=("cooperative-sticky",))
    table.give(TimerFired("join/g"), 0)
    table.sync(a, 1, {a: places(0, 1, 2)}, protocol="cooperative-sticky")
    table.join("n")
    said = {"protocols": ("cooperative-sticky",)}
    assert table.subscribe(a, places(0, 1, 2), **said).generation == 1
    member = table.group.members[a]
    assert member.state is MemberState.UNREVOKED_PARTITIONS
    kept = table.sync(a, 1, protocol="cooperative-sticky").assignment
    assert len(kept) == 2
    assert table.beat("n", 2, ()).assignment is None, "it has not given up yet"
    assert table.alive(a, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    assert table.subscribe(a, kept, **said).generation == 2
    assert len(table.beat("n", 2, ()).assignment) == 1


def test_a_member_that_waits_for_partitions_joins_again_when_they_are_free():
    table = Mixed()
    table.join("n")
    a = table.subscribe("").member_id
    assert table.subscribe(a).generation == 2
    assert table.sync(a, 2).assignment == ()
    assert table.group.members[a].state is MemberState.UNRELEASED_PARTITIONS
    assert table.alive(a, 2) is ErrorCode.NONE, "n has everything"
    kept = table.beat("n", 1, places(0, 1, 2)).assignment
    table.beat("n", 1, kept)
    assert table.alive(a, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    table.subscribe(a)
    assert len(table.sync(a, 2).assignment) == 1


def test_a_group_before_its_first_generation_cannot_be_upgraded():
    """``ConsumerGroup.fromClassicGroup`` reads the subscription of an assignor not chosen yet."""
    table = Mixed()
    a = table.subscribe("").member_id
    table.subscribe(a)
    parked = table._token
    assert table.join("n").error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert table.answers[parked].error is ErrorCode.REBALANCE_IN_PROGRESS
    assert table.classic.state is GroupState.PREPARING
    table.subscribe(a)
    table.give(TimerFired("join/g"), 3 * SECOND)
    table.give(TimerFired("join/g"), 6 * SECOND)
    assert table.classic.generation == 1


@pytest.mark.parametrize("policy", [MigrationPolicy.DOWNGRADE, MigrationPolicy.DISABLED])
def test_without_the_policy_a_classic_group_is_not_found(policy):
    table, a, _ = classic_pair(migration=policy)
    written = len(table.log)
    assert table.join("n").error is ErrorCode.GROUP_ID_NOT_FOUND
    assert len(table.log) == written
    assert table.alive(a, 1) is ErrorCode.NONE, "nobody notices"


def test_a_group_that_is_too_large_for_the_consumer_protocol_is_not_upgraded():
    for most, error in ((1, ErrorCode.GROUP_ID_NOT_FOUND), (2, ErrorCode.GROUP_MAX_SIZE_REACHED)):
        table, _, _ = classic_pair(consumer=ModernGroupConfig(max_size=most))
        assert (table.join("n").error, table.group) == (error, None)


def test_a_heartbeat_of_an_epoch_upgrades_nothing():
    table, _, _ = classic_pair()
    assert table.beat("n", 3).error is ErrorCode.GROUP_ID_NOT_FOUND
    assert table.join("n", server_assignor="best").error is ErrorCode.UNSUPPORTED_ASSIGNOR
    assert table.group is None


def test_an_upgrade_that_is_not_written_has_not_happened():
    table, a, b = classic_pair()
    table.error = ErrorCode.KAFKA_STORAGE_ERROR
    assert table.join("n").error is not ErrorCode.NONE
    table.error = ErrorCode.NONE
    assert table.group is None
    assert (table.classic.state, table.classic.generation) == (GroupState.STABLE, 1)
    assert table.alive(a, 1) is table.alive(b, 1) is ErrorCode.NONE
    table.give(TimerFired(f"session/g/{b}"), SESSION_US)
    assert [*table.classic.members] == [a]
    assert not table.machine._consumer_groups.has("g"), "its offsets expire as those of any"


# -- classic members in a consumer group ----------------------------------------------------------


def test_classic_requests_are_refused_as_kafka_refuses_them():
    table, a, _ = mixed_trio()
    assert table.alive(a, 1) is ErrorCode.ILLEGAL_GENERATION
    assert table.sync(a, 1).error is ErrorCode.ILLEGAL_GENERATION
    assert table.sync(a, 2, protocol="sticky").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert table.alive("n", 2) is ErrorCode.UNKNOWN_MEMBER_ID, "it speaks the other protocol"
    assert table.sync("z", 2).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.commit(a, 1) is ErrorCode.ILLEGAL_GENERATION
    assert table.commit("n", 1) is ErrorCode.STALE_MEMBER_EPOCH
    refused = table.subscribe("", protocols=("sticky",))
    assert refused.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert table.subscribe("", protocols=("sticky", "range")).error is ErrorCode.MEMBER_ID_REQUIRED


def test_a_full_consumer_group_takes_no_classic_member():
    table, a, _ = mixed_trio(consumer=ModernGroupConfig(max_size=3))
    assert table.subscribe("").error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert table.subscribe(a).error is ErrorCode.NONE


def test_a_sync_of_an_old_step_has_to_join_again():
    table, a, _ = mixed_trio()
    table.subscribe(a)
    table.join("m")
    assert table.sync(a, 2).error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_classic_member_is_missed_after_its_own_session():
    table, a, b = mixed_trio()
    table.alive(b, 2, now=8 * SECOND)
    table.give(TimerFired(f"session/g/{a}"), SESSION_US)
    assert [*table.group.members] == [b, "n"]
    assert table.group.epoch == 3


@pytest.mark.parametrize("alarm", ["rejoin", "missing-sync"])
def test_a_classic_member_that_does_not_follow_in_time_is_removed(alarm):
    table, a, _ = mixed_trio()
    table.join("m")
    assert table.alive(a, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    if alarm == "missing-sync":
        table.subscribe(a)
        table.give(TimerFired(f"rejoin/g/{a}"), 5 * MINUTE)
        assert a in table.group.members, "it has joined"
    table.give(TimerFired(f"{alarm}/g/{a}"), 5 * MINUTE)
    assert a not in table.group.members


def test_a_member_that_has_synced_is_not_missed():
    table, a, _ = mixed_trio()
    table.give(TimerFired(f"missing-sync/g/{a}"), 5 * MINUTE)
    table.give(TimerFired(f"rejoin/g/{a}"), 5 * MINUTE)
    assert a in table.group.members


def test_a_leave_group_removes_a_member_of_either_protocol():
    """``classicGroupLeaveToConsumerGroup``: an administrator may remove any member."""
    table, a, b = mixed_trio()
    assert table.leave("z") is ErrorCode.UNKNOWN_MEMBER_ID
    assert table.leave("n") is ErrorCode.NONE
    assert [*table.classic.members] == [a, b]


def test_a_classic_member_that_leaves_bumps_the_epoch():
    table, a, _ = mixed_trio()
    assert table.leave(a) is ErrorCode.NONE
    assert a not in table.group.members
    assert table.group.epoch == 3


# -- downgrade ------------------------------------------------------------------------------------


def test_the_last_member_of_the_consumer_protocol_that_leaves_downgrades_the_group():
    table, a, b = mixed_trio()
    written = len(table.log)
    left = table.beat("n", -1)
    assert (left.error, left.member_epoch) == (ErrorCode.NONE, -1)
    assert kinds(table.log[written:]) == [
        *[("MemberTombstone", 8)] * 3,
        *[("MemberTombstone", 7)] * 3,
        ("GroupKeyTombstone", 6),
        *[("MemberTombstone", 5)] * 3,
        ("GroupKeyTombstone", 4),
        ("GroupKeyTombstone", 3),
        ("GroupMetadataRecord", ""),
    ]
    record = table.log[-1]
    assert (record.generation, record.protocol, record.leader) == (2, "range", a)
    assert [m.assignment for m in record.members] == [places(0), places(2)]
    assert table.group is None
    assert (table.classic.state, table.classic.generation) == (GroupState.PREPARING, 2)
    assert table.alive(a, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    for member in (a, b):
        table.subscribe(member)
    table.sync(a, 3, {a: places(0, 1), b: places(2)})
    assert table.sync(b, 3).assignment == places(2)
    assert table.commit(a, 3) is ErrorCode.NONE


def test_a_fenced_member_downgrades_it_too():
    table, a, b = mixed_trio()
    table.give(TimerFired("session/g/n"), 45 * SECOND)
    assert [*table.classic.members] == [a, b]
    assert table.beat("n", 2).error is ErrorCode.GROUP_ID_NOT_FOUND


def test_sessions_of_a_downgraded_group_are_those_of_its_members():
    table, a, b = mixed_trio()
    table.beat("n", -1, now=SECOND)
    assert table.classic.members[a].session_ends_at == SECOND + SESSION_US
    table.give(TimerFired(f"session/g/{b}"), SECOND + SESSION_US)
    assert [*table.classic.members] == [a]


UPGRADES_ONLY = {"migration": MigrationPolicy.UPGRADE}
NEVER = {"migration": MigrationPolicy.DISABLED}


@pytest.mark.parametrize("config", [UPGRADES_ONLY, NEVER, {"size_max": 1}])
def test_without_the_policy_or_too_large_it_stays_a_consumer_group(config):
    table = Mixed(**config)
    table.join("n")
    a, b = (table.subscribe("").member_id for _ in range(2))
    for member in (a, b):
        assert table.subscribe(member).error is ErrorCode.NONE, "whatever the policy is"
    table.beat("n", -1)
    assert [*table.group.members] == [a, b]
    assert table.classic is None
    for member in (a, b, a):
        epoch = table.subscribe(member).generation
        table.sync(member, epoch)
    assert (table.group.state.value, sum(held(table).values())) == ("Stable", 3)


def test_a_group_of_which_nobody_is_left_is_not_downgraded():
    table = Mixed()
    table.join("n")
    table.beat("n", -1)
    assert table.group.state.value == "Empty"


def test_a_downgrade_that_is_not_written_has_not_happened():
    table, a, b = mixed_trio()
    table.error = ErrorCode.KAFKA_STORAGE_ERROR
    assert table.beat("n", -1).error is not ErrorCode.NONE
    table.error = ErrorCode.NONE
    assert [*table.group.members] == [a, b, "n"]
    assert not table.classic.members
    assert table.alive(a, 2) is ErrorCode.NONE


def test_the_next_coordinator_finds_the_downgraded_group():
    table, a, b = mixed_trio()
    assert table.commit(a, 2) is ErrorCode.NONE
    table.beat("n", -1)
    other = Mixed()
    other.machine = GroupCoordinator(2, 1, GroupConfig(append_linger_us=0), lambda: table.image)
    other.give(PartitionElected(HOME, 1, tuple(table.log)), 0)
    assert other.group is None
    assert [*other.classic.members] == [a, b]
    assert (other.classic.state, other.classic.generation) == (GroupState.STABLE, 2)
    assert other.machine.committed("g", T0) == 5
    assert other.alive(a, 2) is ErrorCode.NONE


def test_a_coordinator_that_resigns_before_the_change_is_committed_forgets_both():
    table, a, _ = mixed_trio()
    table.holds_writes = True
    table.beat("n", -1)
    table.give(PartitionResigned(HOME), 0)
    assert table.group is None
    assert table.classic is None
    assert table.alive(a, 2) is ErrorCode.NOT_COORDINATOR


def test_a_group_may_change_to_and_fro_before_anything_is_committed():
    table, a, b = classic_pair()
    table.holds_writes = True
    table.join("n")
    table.beat("n", -1)
    table.join("m")
    table.holds_writes = False
    while table.open:
        table.settle(0)
    assert [*table.group.members] == [a, b, "m"]
    assert table.classic is None


# -- empty groups and static members --------------------------------------------------------------


def test_a_classic_member_takes_the_name_of_an_empty_consumer_group():
    table = Mixed(initial_rebalance_delay_us=0)
    table.join("n")
    table.beat("n", 1, places(0, 1, 2))
    assert table.commit("n", 1) is ErrorCode.NONE
    table.beat("n", -1)
    written = len(table.log)
    a = table.subscribe("").member_id
    assert kinds(table.log[written:])[:3] == [("GroupKeyTombstone", key) for key in (6, 4, 3)]
    table.subscribe(a)
    table.give(TimerFired("join/g"), 0)
    table.sync(a, 1, {a: places(0, 1, 2)})
    assert table.group is None
    assert table.commit(a, 1, offset=9) is ErrorCode.NONE
    assert table.machine.committed("g", T0) == 9


def test_a_static_member_comes_back_in_the_consumer_protocol_and_keeps_its_place():
    table = Mixed(initial_rebalance_delay_us=0)
    table.subscribe("", instance="i")
    table.give(TimerFired("join/g"), 0)
    (a,) = table.classic.members
    table.sync(a, 1, {a: places(0, 1, 2)}, instance="i")
    back = table.join("n", instance_id="i")
    assert (back.error, back.assignment) == (ErrorCode.NONE, places(0, 1, 2))
    assert [*table.group.members] == ["n"]
    assert table.group.members["n"].classic is None
    assert table.alive(a, 1, instance="i") is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_comes_back_in_the_classic_protocol_downgrades_without_a_rebalance():
    table = Mixed()
    table.join("n", instance_id="i")
    written = len(table.log)
    joined = table.subscribe("", instance="i")
    assert (joined.error, joined.generation) == (ErrorCode.NONE, 1)
    assert table.group is None
    assert (table.classic.state, table.classic.generation) == (GroupState.STABLE, 1)
    assert kinds(table.log[written:])[-1] == ("GroupMetadataRecord", "")
    assert table.sync(joined.member_id, 1, instance="i").assignment == places(0, 1, 2)


def test_a_static_member_with_another_subscription_downgrades_with_a_rebalance():
    table = Mixed()
    table.join("n", instance_id="i")
    table.subscribe("", instance="i", topics=("t", "u"))
    assert table.classic.state is GroupState.PREPARING
