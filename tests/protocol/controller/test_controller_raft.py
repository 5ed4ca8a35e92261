"""What the controller of Raft groups writes: who leads, as told; never who should."""

from dataclasses import replace

import pytest

from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.controller.raft_groups import group_change, new_leaders, without_election
from sim.protocol.controller.reassignment import ReassignmentRefused
from sim.protocol.messages.raft_groups import RaftLeader, RaftLeadersRequest
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import (
    FENCE,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
)

P = TopicPartition("orders", 0)


def image(epoch=3):
    known = MetadataImage()
    known.partitions[P] = PartitionRegistration("id", (1, 2, 3), (1, 2, 3), 1, epoch, 7)
    known.topic_names["id"] = "orders"
    return known


def told(broker, term):
    return RaftLeadersRequest(broker, 1, (RaftLeader(P, term),))


def test_terms_that_nobody_told_of_are_written_without_a_leader_so_that_the_epoch_is_the_term():
    assert new_leaders(image(), told(2, 4)) == (PartitionChangeRecord(0, "id", leader=2),)
    known = image()
    records = new_leaders(known, told(2, 6))
    assert [record.leader for record in records] == [NO_LEADER, NO_LEADER, 2]
    for record in records:
        known.replay(known.offset, 0, record)
    state = known.partitions[P]
    assert (state.leader, state.leader_epoch, state.partition_epoch) == (2, 6, 10)


def test_old_news_and_strangers_change_nothing():
    assert new_leaders(image(), told(2, 3)) == ()
    assert new_leaders(image(), told(2, 1)) == ()
    assert new_leaders(image(), told(9, 8)) == ()


def test_a_broker_that_goes_changes_no_partition_but_is_fenced():
    election = PartitionChangeRecord(0, "id", in_sync=(2, 3), leader=2)
    fenced = BrokerRegistrationChangeRecord(1, 5, fenced=FENCE)
    assert without_election(election) is None
    assert without_election(fenced) is fenced


def test_a_new_directory_is_written_without_the_election_beside_it():
    change = PartitionChangeRecord(0, "id", leader=2, directories=("a", "b", "c"))
    assert without_election(change) == replace(change, leader=None)


def test_a_new_partition_has_no_leader_until_its_group_has_elected_one():
    record = PartitionRecord(0, "id", (1, 2, 3), (1, 2, 3), leader=1)
    kept = without_election(record)
    assert isinstance(kept, PartitionRecord)
    assert (kept.leader, kept.replicas) == (NO_LEADER, (1, 2, 3))


def test_no_election_ends_a_move_whatever_the_isr_says():
    ended = PartitionChangeRecord(0, "id", replicas=(1,), removing=(), directories=("a",))
    assert without_election(ended) is None


# -- moves ----------------------------------------------------------------------------------------


def changed(known, wanted):
    record = group_change(known, P, known.partitions[P], wanted)
    if record is not None:
        known.replay(known.offset, 0, record)
    return known.partitions[P]


def brokers(known, *ids):
    for broker in ids:
        known.brokers[broker] = BrokerRegistration(
            broker, 1, "", "", fenced=False, in_controlled_shutdown=False
        )
    return known


def test_a_move_keeps_old_and_new_replicas_until_the_group_has_moved():
    known = brokers(image(), 1, 2, 3, 4)
    state = changed(known, (2, 3, 4))
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 4, 1), (4,), (1,))
    assert new_leaders(known, arrived(2, 3, (2, 3))) == (), "not all that are wanted"
    for record in new_leaders(known, arrived(2, 3, (2, 3, 4))):
        known.replay(known.offset, 0, record)
    state = known.partitions[P]
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 4), (), ())
    assert (state.in_sync, state.leader_epoch) == ((2, 3, 4), 3)


def arrived(broker, term, voters):
    return RaftLeadersRequest(broker, 1, (RaftLeader(P, term, voters, has_arrived=True),))


def test_a_move_that_is_called_off_is_a_move_back():
    known = brokers(image(), 1, 2, 3, 4)
    changed(known, (2, 3, 4))
    state = changed(known, None)
    assert (state.replicas, state.adding, state.removing) == ((2, 3, 1, 4), (), (4,))
    with pytest.raises(ReassignmentRefused):
        changed(known, None)


def test_who_votes_is_written_with_who_leads_and_a_leader_that_has_to_go_is_among_them():
    told_voters = RaftLeadersRequest(1, 1, (RaftLeader(P, 4, (2, 3)),))
    (record,) = new_leaders(image(), told_voters)
    assert (record.leader, record.in_sync) == (1, None), "the same three as before"
    shrunk = RaftLeadersRequest(2, 1, (RaftLeader(P, 4, (2, 3)),))
    assert new_leaders(image(), shrunk)[0].in_sync == (2, 3)


def test_a_group_that_moved_where_nobody_wants_it_any_more_ends_nothing():
    known = brokers(image(), 1, 2, 3, 4)
    assert new_leaders(known, arrived(2, 3, (1, 2, 3))) == ()
    changed(known, (2, 3, 4))
    changed(known, (1, 2))
    assert new_leaders(known, arrived(2, 3, (2, 3, 4))) == ()
