"""Moving replicas: how a reassignment begins, ends and is called off, by Kafka's own vectors."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.controller.elections import Assignment, ElectionKind, PartitionChange
from sim.protocol.controller.partitions import alter_partition
from sim.protocol.controller.reassignment import alter_reassignments
from sim.protocol.messages.admin import AlterPartitionReassignmentsRequest
from sim.protocol.messages.cluster import AlterPartitionItem, AlterPartitionRequest, IsrMember
from sim.protocol.metadata.image import (
    BrokerRegistration,
    MetadataImage,
    PartitionRegistration,
    merged,
)

P0 = TopicPartition("orders", 0)


def image_with(registration, *, brokers=range(1, 7), fenced=(), unclean=False):
    image = MetadataImage()
    for broker in brokers:
        image.brokers[broker] = BrokerRegistration(
            broker, 100 + broker, "i", "", broker in fenced, False, (f"dir-{broker}",)
        )
    image.topic_ids["orders"] = "id"
    image.topic_names["id"] = "orders"
    image.partitions[P0] = registration
    image.partition_counts["orders"] = 1
    image.features["eligible.leader.replicas.version"] = 1
    image.cluster_configs["min.insync.replicas"] = "1"
    if unclean:
        image.cluster_configs["unclean.leader.election.enable"] = "true"
    return image


def registered(replicas, in_sync, leader, **more):
    directories = tuple(f"dir-{broker}" for broker in replicas)
    return PartitionRegistration("id", replicas, in_sync, leader, 5, 9, directories, **more)


def ask(image, replicas, *, factor=True):
    request = AlterPartitionReassignmentsRequest(((P0, replicas),), factor)
    decision = alter_reassignments(image, request)
    ((_, error),) = decision.response.errors
    for record in decision.records:
        image.partitions[P0] = merged(image.partitions[P0], record)
    return error


def grow_isr(image, in_sync):
    registration = image.partitions[P0]
    item = AlterPartitionItem(
        P0,
        registration.leader_epoch,
        registration.partition_epoch,
        tuple(IsrMember(broker, 100 + broker) for broker in in_sync),
    )
    leader = registration.leader
    decision = alter_partition(image, AlterPartitionRequest(leader, 100 + leader, (item,)))
    for record in decision.records:
        image.partitions[P0] = merged(registration, record)
    return decision.response.results[0].error


def test_new_replicas_are_added_at_once_and_the_isr_stays():
    image = image_with(registered((1, 2, 3), (1, 2, 3), 1))
    assert ask(image, (4, 5, 1)) is ErrorCode.NONE
    after = image.partitions[P0]
    assert after.replicas == (4, 5, 1, 2, 3)
    assert (after.adding, after.removing) == ((4, 5), (2, 3))
    assert (after.in_sync, after.leader, after.leader_epoch) == ((1, 2, 3), 1, 5)
    assert after.directories == ("dir-4", "dir-5", "dir-1", "dir-2", "dir-3")


def test_it_ends_when_every_wanted_replica_is_in_sync_and_not_before():
    image = image_with(registered((1, 2, 3), (1, 2, 3), 1))
    ask(image, (4, 5, 1))
    assert grow_isr(image, (1, 2, 3, 4)) is ErrorCode.NONE
    assert image.partitions[P0].adding == (4, 5)
    assert grow_isr(image, (1, 2, 3, 4, 5)) is ErrorCode.NONE
    after = image.partitions[P0]
    assert (after.replicas, after.in_sync) == ((4, 5, 1), (1, 4, 5))
    assert (after.adding, after.removing) == ((), ())
    assert (after.leader, after.leader_epoch) == (1, 6), "fewer replicas: a new epoch"
    assert after.directories == ("dir-4", "dir-5", "dir-1")


def test_a_leader_that_is_moved_away_hands_over_at_the_end_and_is_told():
    image = image_with(registered((1, 2), (1, 2), 1))
    ask(image, (3, 4))
    assert grow_isr(image, (1, 2, 3, 4)) is ErrorCode.NEW_LEADER_ELECTED
    after = image.partitions[P0]
    assert (after.replicas, after.leader, after.leader_epoch) == ((3, 4), 3, 6)


def test_nothing_to_add_ends_at_once():
    image = image_with(registered((1, 2, 3), (1, 2, 3), 1))
    assert ask(image, (1, 2)) is ErrorCode.NONE
    after = image.partitions[P0]
    assert (after.replicas, after.in_sync, after.leader_epoch) == ((1, 2), (1, 2), 6)


def test_another_order_changes_the_preferred_leader_alone():
    image = image_with(registered((1, 2, 3), (1, 2, 3), 1))
    assert ask(image, (3, 2, 1)) is ErrorCode.NONE
    after = image.partitions[P0]
    assert (after.replicas, after.leader, after.leader_epoch) == ((3, 2, 1), 1, 5)
    assert after.directories == ("dir-3", "dir-2", "dir-1")


def test_called_off_it_goes_back_to_the_replicas_before():
    image = image_with(registered((1, 2, 3), (1, 2, 3), 1))
    ask(image, (4, 5, 6))
    grow_isr(image, (1, 2, 3, 4))
    assert ask(image, None) is ErrorCode.NONE
    after = image.partitions[P0]
    assert (after.replicas, after.in_sync) == ((1, 2, 3), (1, 2, 3))
    assert (after.adding, after.removing, after.leader_epoch) == ((), (), 6)


def test_calling_off_into_an_unclean_election_needs_leave_for_it():
    moved = registered((4, 1, 2), (4,), 4, adding=(4,), removing=(2,))
    image = image_with(moved)
    assert ask(image, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert image.partitions[P0] == moved
    image = image_with(moved, unclean=True)
    assert ask(image, None) is ErrorCode.NONE
    after = image.partitions[P0]
    assert (after.replicas, after.in_sync, after.leader) == ((1, 2), (1,), 1)


def test_nothing_under_way_cannot_be_called_off():
    image = image_with(registered((1, 2), (1, 2), 1))
    assert ask(image, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


@pytest.mark.parametrize("replicas", [(), (1, 1), (1, 99)])
def test_replicas_that_cannot_be_are_refused(replicas):
    image = image_with(registered((1, 2), (1, 2), 1))
    assert ask(image, replicas) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_the_replication_factor_stays_where_it_may_not_change():
    image = image_with(registered((1, 2), (1, 2), 1))
    assert ask(image, (1, 2, 3), factor=False) is ErrorCode.INVALID_REPLICATION_FACTOR
    assert ask(image, (3, 4), factor=False) is ErrorCode.NONE


def test_a_fenced_wanted_replica_keeps_the_reassignment_open():
    image = image_with(registered((1, 2), (1, 2), 1), fenced=(4,))
    ask(image, (3, 4))
    assert grow_isr(image, (1, 2, 3, 4)) is ErrorCode.INELIGIBLE_REPLICA
    assert grow_isr(image, (1, 2, 3)) is ErrorCode.NONE
    assert image.partitions[P0].adding == (3, 4)


def test_kafkas_own_vector_of_an_isr_that_completes_a_reassignment():
    """``PartitionChangeBuilderTest.testIsrEnlargementCompletesReassignment``."""
    bar = PartitionRegistration(
        "bar", (1, 2, 3, 4), (1, 2, 3), 1, 100, 200,
        ("d1", "d2", "d3", "d4"), removing=(1,), adding=(4,),
    )  # fmt: skip
    record = PartitionChange(bar, lambda _b: True, 2, False, (1, 2, 3, 4)).record(0)
    assert record is not None
    assert (record.replicas, record.in_sync, record.leader) == ((2, 3, 4), (2, 3, 4), 2)
    assert (record.removing, record.adding) == ((), ())
    assert record.directories == ("d2", "d3", "d4")


def test_kafkas_own_vector_of_a_reassignment_called_off():
    """``PartitionChangeBuilderTest.testRevertReassignment``."""
    bar = PartitionRegistration(
        "bar", (1, 2, 3, 4), (1, 2, 3), 1, 100, 200,
        ("d1", "d2", "d3", "d4"), removing=(1,), adding=(4,),
    )  # fmt: skip
    record = PartitionChange(
        bar, lambda _b: True, 2, False, (1, 2, 3), ElectionKind.ONLINE,
        assignment=Assignment((1, 2, 3)),
    ).record(0)  # fmt: skip
    assert record is not None
    assert (record.replicas, record.in_sync, record.leader) == ((1, 2, 3), None, 1)
    assert (record.removing, record.adding) == ((), ())


def test_without_a_leader_it_still_ends_but_elects_nobody():
    """All wanted replicas in sync, none of them alive: the assignment ends, the leader is none."""
    moved = registered((2, 1), (2, 1), NO_LEADER, adding=(2,), removing=(1,))
    record = PartitionChange(moved, lambda _b: False, 1, False, (2, 1)).record(0)
    assert record is not None
    assert record.replicas == (2,)
    assert merged(moved, record).leader == NO_LEADER
