"""KIP-1251: a commit of an older member epoch is taken for partitions that the member had then.

A member that the coordinator has moved to another epoch still commits what it read under the former
one. The coordinator remembers from which epoch on each partition is the member's, in the log, too.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition, uuid_text
from sim.protocol.coordinator.group.consumer_group_records import (
    CurrentMemberAssignmentRecord,
    MemberState,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroupMember
from sim.protocol.coordinator.group.reconciliation import drop_unsubscribed, with_epochs
from sim.protocol.coordinator.log import PartitionElected, PartitionResigned
from sim.protocol.messages.group import OffsetCommitRequest
from sim.records import consumer_offsets
from tests.kips.test_kip_848 import HOME, Table, places

TOPIC = uuid_text("t")


def by_id(*numbers):
    return tuple(TopicPartition(TOPIC, number) for number in numbers)


def two_members(**config):
    """``a`` has gone from epoch 1 to 2 and kept partitions 0 and 1; ``b`` has 2 since epoch 2."""
    table = Table(**config)
    table.join("a")
    table.beat("a", 1, places(0, 1, 2))
    table.join("b")
    table.beat("a", 1)
    table.beat("a", 1, places(0, 1))
    table.beat("b", 2)
    return table, places(0, 1)


def commit(table, member, epoch, *partitions):
    offsets = tuple((place, 5, 0) for place in partitions)
    return table.ask(OffsetCommitRequest("g", member, epoch, offsets)).error


def test_a_commit_of_an_older_epoch_is_taken_for_partitions_that_the_member_kept():
    table, kept = two_members(fences_by_assignment=True)
    assert table.group.members["a"].assigned_epochs == (1, 1)
    assert table.group.members["b"].assigned_epochs == (2,)
    assert commit(table, "a", 1, *kept) is ErrorCode.NONE


def test_before_4_3_it_is_stale():
    table, kept = two_members()
    assert commit(table, "a", 1, *kept) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(table, "a", 2, *kept) is ErrorCode.NONE


def test_it_is_stale_for_a_partition_that_the_member_lost_or_was_given_later():
    table, kept = two_members(fences_by_assignment=True)
    (lost,) = places(2)
    assert commit(table, "a", 1, *kept, lost) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(table, "b", 1, lost) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit(table, "b", 2, lost) is ErrorCode.NONE


def test_an_epoch_that_the_coordinator_does_not_know_yet_is_stale():
    table, kept = two_members(fences_by_assignment=True)
    assert commit(table, "a", 3, *kept) is ErrorCode.STALE_MEMBER_EPOCH


def test_the_log_keeps_the_epochs_and_the_next_coordinator_has_them():
    table, kept = two_members(fences_by_assignment=True)
    batch = consumer_offsets.batch_for(table.log, 0)
    records = consumer_offsets.records_in((batch,))
    assert records == tuple(table.log)
    other = Table(fences_by_assignment=True)
    other.give(PartitionResigned(HOME), 0)
    other.give(PartitionElected(HOME, 1, records), 0)
    assert commit(other, "a", 1, *kept) is ErrorCode.NONE


def test_a_member_of_a_log_without_epochs_has_its_partitions_since_its_own_epoch():
    member = ConsumerGroupMember("a", epoch=4, assigned=by_id(0), pending_revocation=by_id(1))
    assert member.assignment_epochs() == dict.fromkeys(by_id(0, 1), 4)
    after = ConsumerGroupMember("a", epoch=6, assigned=by_id(0, 2))
    assert with_epochs(member, after, 6).assigned_epochs == (4, 6)


@pytest.mark.parametrize("owned", [None, by_id(0), ()])
def test_a_member_of_a_new_subscription_gives_up_topics_before_it_has_a_new_target(owned):
    member = ConsumerGroupMember("a", epoch=4, assigned=by_id(0))
    after = drop_unsubscribed(member, (), owned)
    waits = owned != ()
    assert after.assigned == ()
    assert after.pending_revocation == (by_id(0) if waits else ())
    assert after.state is (MemberState.UNREVOKED_PARTITIONS if waits else MemberState.STABLE)
    assert drop_unsubscribed(member, (TOPIC,), owned) is member


def test_before_4_3_no_record_has_epochs():
    table, _ = two_members()
    current = [r for r in table.log if isinstance(r, CurrentMemberAssignmentRecord)]
    assert current
    assert not any(record.assigned_epochs or record.pending_epochs for record in current)
