"""KIP-966, part 1: a replica that leaves the ISR at min.insync.replicas stays eligible to lead.

Below the minimum nothing is committed, so it has all that is. An eligible replica (ELR) is elected
when the ISR has nobody alive; one that came back from an unclean shutdown is eligible no more.
"""

import pytest

from sim.ids import NO_LEADER
from sim.protocol.controller.elections import ElectionKind, PartitionChange
from sim.protocol.metadata.image import PartitionRegistration, merged


def partition(in_sync, leader, *, replicas=(1, 2, 3), eligible=(), last=(), epoch=0):
    return PartitionRegistration(
        "t", replicas, in_sync, leader, epoch, epoch, eligible=eligible, last_known_eligible=last
    )


def change(registration, target, *, live, elr=True, minimum=2, lost=(), kind=ElectionKind.ONLINE):
    record = PartitionChange(
        registration, live.__contains__, minimum, elr, target, kind, lost
    ).record(0)
    return registration if record is None else merged(registration, record)


def test_fencing_the_leader_elects_the_next_in_sync_replica():
    after = change(partition((2, 3), 2), (3,), live={1, 3}, elr=False)
    assert (after.leader, after.in_sync, after.leader_epoch, after.partition_epoch) == (
        3,
        (3,),
        1,
        1,
    )
    assert after.eligible == ()


def test_with_elr_the_fenced_leader_stays_eligible():
    after = change(partition((2, 3), 2), (3,), live={1, 3})
    assert (after.leader, after.in_sync, after.eligible) == (3, (3,), (2,))


def test_without_elr_the_last_replica_standing_stays_in_the_isr():
    after = change(partition((3,), 3), (), live={1}, elr=False)
    assert (after.leader, after.in_sync) == (NO_LEADER, (3,))


def test_with_elr_the_isr_may_be_empty_and_the_last_leader_is_remembered():
    after = change(partition((3,), 3, eligible=(2,)), (), live={1})
    assert (after.leader, after.in_sync) == (NO_LEADER, ())
    assert sorted(after.eligible) == [2, 3]
    assert after.last_known_eligible == (3,)


def test_without_elr_a_former_member_is_not_elected_when_it_returns():
    after = change(partition((3,), NO_LEADER), (3,), live={1, 2}, elr=False)
    assert after.leader == NO_LEADER


def test_with_elr_an_eligible_replica_is_elected_when_it_returns():
    before = partition((), NO_LEADER, eligible=(2, 3), last=(3,))
    after = change(before, (), live={1, 2})
    assert (after.leader, after.in_sync, after.eligible) == (2, (2,), (3,))
    assert after.last_known_eligible == ()
    assert not after.recovering


def test_an_eligible_replica_that_came_back_uncleanly_is_eligible_no_more():
    before = partition((), NO_LEADER, eligible=(2, 3), last=(3,))
    after = change(before, (), live={1}, lost=(2,))
    assert after.eligible == (3,)
    assert change(after, (), live={1, 2}).leader == NO_LEADER
    assert change(after, (), live={1, 3}).leader == 3


def test_with_isr_and_elr_lost_the_last_known_leader_is_elected_and_flagged_unclean():
    before = partition((), NO_LEADER, eligible=(2, 3), last=(3,))
    after = change(change(before, (), live=set(), lost=(2,)), (), live={2}, lost=(3,))
    assert (after.leader, after.eligible) == (NO_LEADER, ())
    elected = change(after, (), live={2, 3})
    assert (elected.leader, elected.in_sync, elected.recovering) == (3, (3,), True)
    assert elected.last_known_eligible == ()


def test_an_isr_at_the_minimum_clears_the_elr():
    after = change(partition((3,), 3, eligible=(2,)), (3, 1), live={1, 3})
    assert (after.in_sync, after.eligible) == ((3, 1), ())


def test_an_unclean_election_takes_any_live_replica_and_marks_recovery():
    before = partition((3,), NO_LEADER)
    after = change(before, (3,), live={1, 2}, elr=False, kind=ElectionKind.UNCLEAN)
    assert (after.leader, after.in_sync, after.recovering) == (1, (1,), True)


def test_an_unclean_election_prefers_a_clean_one():
    before = partition((3,), NO_LEADER)
    after = change(before, (3,), live={1, 3}, elr=False, kind=ElectionKind.UNCLEAN)
    assert (after.leader, after.recovering) == (3, False)


def test_the_preferred_leader_is_elected_only_if_it_is_in_sync():
    ready = change(partition((1, 2), 2), (1, 2), live={1, 2}, kind=ElectionKind.PREFERRED)
    assert ready.leader == 1
    behind = change(partition((2, 3), 2), (2, 3), live={1, 2, 3}, kind=ElectionKind.PREFERRED)
    assert (behind.leader, behind.leader_epoch, behind.partition_epoch) == (2, 0, 0)


def test_an_isr_change_alone_keeps_the_leader_epoch():
    after = change(partition((1, 2, 3), 1), (1, 2), live={1, 2, 3})
    assert (after.leader_epoch, after.partition_epoch) == (0, 1)


@pytest.mark.parametrize("elr", [False, True])
def test_nothing_to_change_makes_no_record(elr):
    before = partition((1, 2, 3), 1)
    record = PartitionChange(before, {1, 2, 3}.__contains__, 2, elr, (1, 2, 3)).record(0)
    assert record is None
