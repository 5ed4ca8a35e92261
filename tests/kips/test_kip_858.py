"""KIP-858: the controller knows in which log directory of a broker each replica lies.

Brokers say it, so that the failure of one directory takes the leaderships of its replicas alone.
"""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.directories.assignments import (
    ITEMS_MAX,
    TIMER,
    DirectoryAssignments,
)
from sim.protocol.controller.log_dirs import assign_replicas
from sim.protocol.messages.cluster import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryAssignment,
)
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY as NOWHERE

MS = 1_000
T = "t" * 22
P = TopicPartition("orders", 0)
ITEM = DirectoryAssignment(P, T, "dir-b")


def image():
    made = MetadataImage()
    for broker in (1, 2):
        made.brokers[broker] = BrokerRegistration(
            broker, 10 + broker, "i", "", fenced=False, in_controlled_shutdown=False,
            directories=("dir-a", "dir-b"),
        )  # fmt: skip
    made.topic_ids["orders"], made.topic_names[T] = T, "orders"
    made.partitions[P] = PartitionRegistration(T, (1, 2), (1, 2), 1, 0, 0, (NOWHERE, NOWHERE))
    made.partition_counts["orders"] = 1
    return made


def ask(broker=1, epoch=None, **item):
    request = AssignReplicasToDirsRequest(
        broker, 10 + broker if epoch is None else epoch, (replace(ITEM, **item),)
    )
    return assign_replicas(image(), request)


def test_an_assignment_changes_the_brokers_own_entry_alone():
    decision = ask(broker=2)
    assert [record.directories for record in decision.records] == [(NOWHERE, "dir-b")]
    assert decision.response == AssignReplicasToDirsResponse(E.NONE, ((P, E.NONE),))


def test_what_is_known_is_not_written_again():
    known = image()
    known.partitions[P] = replace(known.partitions[P], directories=("dir-b", NOWHERE))
    request = AssignReplicasToDirsRequest(1, 11, (ITEM,))
    assert assign_replicas(known, request).records == ()
    assert assign_replicas(image(), request).records


def test_a_replica_in_a_directory_that_is_not_online_leaves_the_isr_and_the_leadership():
    placed, moved = ask(directory="dir-x").records
    assert placed.directories == ("dir-x", NOWHERE)
    assert (moved.in_sync, moved.leader) == ((2,), 2)


@pytest.mark.parametrize(
    ("asked", "top", "error"),
    [
        ({"epoch": 7}, E.STALE_BROKER_EPOCH, None),
        ({"broker": 3}, E.BROKER_ID_NOT_REGISTERED, None),
        ({"topic_id": "u" * 22}, E.NONE, E.UNKNOWN_TOPIC_ID),
        ({"partition": TopicPartition("orders", 9)}, E.NONE, E.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_what_is_wrong_is_refused_and_changes_nothing(asked, top, error):
    decision = ask(**asked)
    assert decision.records == ()
    assert decision.response.error is top
    assert [e for _, e in decision.response.results] == ([] if error is None else [error])


def sent(assignments, now=0, correlation=5):
    out = []
    if assignments.may_send(3001):
        assignments.send(1, 11, 3001, correlation, now, out)
    return out


def test_one_request_is_in_flight_and_holds_no_more_than_2250():
    assignments = DirectoryAssignments()
    for number in range(ITEMS_MAX + 3):
        assignments.add(replace(ITEM, partition=TopicPartition("orders", number)))
    (first,) = sent(assignments)
    assert len(first.request.items) == 2_250
    assert sent(assignments) == []
    assignments.answered(5, AssignReplicasToDirsResponse(E.NONE), 0)
    (second,) = sent(assignments)
    assert len(second.request.items) == 3


def test_refusals_are_tried_again_after_100_ms_doubling_to_10_s():
    assignments = DirectoryAssignments()
    assignments.add(ITEM)
    now, waits = 0, []
    for _ in range(9):
        (send,) = sent(assignments, now)
        assert isinstance(send, fx.Send)
        assignments.answered(5, AssignReplicasToDirsResponse(E.STALE_BROKER_EPOCH), now)
        (timer,) = sent(assignments, now)
        assert timer.name == TIMER
        waits.append((timer.at - now) // MS)
        now = timer.at
    assert waits == [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000]


def test_a_newer_place_is_not_overwritten_by_the_retry_of_an_older_one():
    assignments = DirectoryAssignments()
    assignments.add(ITEM)
    sent(assignments)
    newer = replace(ITEM, directory="dir-a")
    assignments.add(newer)
    assignments.answered(5, AssignReplicasToDirsResponse(E.STALE_BROKER_EPOCH), 0)
    (send,) = sent(assignments, now=100 * MS)
    assert send.request.items == (newer,)


def test_without_a_controller_nothing_is_sent():
    assignments = DirectoryAssignments()
    assignments.add(ITEM)
    assert not assignments.may_send(-1)
    assert assignments.may_send(3001)
