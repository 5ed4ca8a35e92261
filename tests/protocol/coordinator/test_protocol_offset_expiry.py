"""Committed offsets are forgotten when their group has been empty for long enough (KIP-211)."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.expiry import expired
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, RecordsAppended
from sim.protocol.events import TimerFired
from sim.units import MINUTE, SECOND, timestamp_ms

P0, OTHER = TopicPartition("orders", 0), TopicPartition("refunds", 0)
RETENTION = 10 * MINUTE


def never(_partition):
    return False


def group(state, *commits, empty_since=0, topics=("orders",)):
    """A group that had members, with offsets committed at these minutes."""
    made = Group("g", 0, state=state, generation=1, empty_since_ms=timestamp_ms(empty_since))
    for partition, minute in commits:
        made.take_offset(OffsetCommitRecord("g", partition, 5, 0, timestamp_ms(minute * MINUTE)))
    if state is not GroupState.EMPTY:
        member = MemberRecord("m", "c", "/h", 1, 1, Subscription(topics), ())
        made.restore(GroupMetadataRecord("g", 1, "range", "m", 0, (member,)))
        made.move_to(state)
    return made


def told(made, at, *, pending=never, per_offset=False):
    return expired(made, pending, RETENTION, timestamp_ms(at), per_offset=per_offset)


def test_the_clock_starts_when_the_group_becomes_empty_and_not_with_the_commit():
    made = group(GroupState.EMPTY, (P0, 0), empty_since=30 * MINUTE)
    assert told(made, 40 * MINUTE - SECOND) == ()
    assert told(made, 40 * MINUTE) == (OffsetTombstone("g", P0), GroupTombstone("g"))


def test_it_started_with_the_commit_until_2_1_whoever_was_alive():
    made = group(GroupState.STABLE, (P0, 0), (OTHER, 9))
    assert told(made, 10 * MINUTE, per_offset=True) == (OffsetTombstone("g", P0),)
    assert told(made, 10 * MINUTE) == ()


@pytest.mark.parametrize("state", [GroupState.PREPARING, GroupState.COMPLETING])
def test_a_group_that_rebalances_forgets_nothing(state):
    assert told(group(state, (OTHER, 0)), 60 * MINUTE) == ()


def test_a_stable_group_forgets_topics_that_nobody_wants_any_more():
    made = group(GroupState.STABLE, (P0, 0), (OTHER, 0))
    assert told(made, 10 * MINUTE) == (OffsetTombstone("g", OTHER),)
    assert told(made, 9 * MINUTE) == ()


def test_an_offset_that_a_transaction_holds_is_not_forgotten_nor_is_its_group():
    made = group(GroupState.EMPTY, (P0, 0), (OTHER, 0))
    found = told(made, 60 * MINUTE, pending=lambda partition: partition == P0)
    assert found == (OffsetTombstone("g", OTHER),)


def test_consumers_that_only_keep_their_offsets_go_by_their_commits():
    made = group(GroupState.EMPTY, (P0, 0), (OTHER, 5), empty_since=50 * MINUTE)
    made.generation = 0
    assert told(made, 10 * MINUTE) == (OffsetTombstone("g", P0),)


def loaded(**config):
    """A coordinator that reads one empty group, whose offset was committed at 0."""
    machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=0, **config))
    records = (
        OffsetCommitRecord("g", P0, 5, 0, timestamp_ms(0)),
        GroupMetadataRecord("g", 3, "", "", timestamp_ms(MINUTE), ()),
    )
    machine.handle(PartitionElected(machine._partition_of("g"), 0, records), 0)
    return machine, machine._partition_of("g")


def check(machine, partition, at, error=ErrorCode.NONE):
    effects = machine.handle(TimerFired(f"expiry/{partition}"), at)
    appends = [effect for effect in effects if isinstance(effect, AppendRecords)]
    for append in appends:
        machine.handle(RecordsAppended(append.token, error), at)
    return [record for append in appends for record in append.records]


def test_the_coordinator_looks_at_its_groups_and_writes_what_they_forget():
    machine, partition = loaded(retention_us=RETENTION)
    assert check(machine, partition, 10 * MINUTE) == []
    assert machine.committed("g", P0) == 5
    assert len(check(machine, partition, 20 * MINUTE)) == 2
    assert machine.committed("g", P0) == -1
    assert machine.group("g") is None


def test_what_could_not_be_written_is_not_forgotten_and_written_at_the_next_look():
    machine, partition = loaded(retention_us=RETENTION)
    assert check(machine, partition, 20 * MINUTE, ErrorCode.NOT_ENOUGH_REPLICAS)
    assert machine.committed("g", P0) == 5
    assert check(machine, partition, 30 * MINUTE)
    assert machine.group("g") is None
