"""What the controller of Raft groups writes: who leads, as told; never who should."""

from dataclasses import replace

from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.controller_raft import new_leaders, without_election
from sim.protocol.messages_raft import RaftLeader, RaftLeadersRequest
from sim.protocol.metadata import MetadataImage, PartitionRegistration
from sim.protocol.metadata_records import (
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
