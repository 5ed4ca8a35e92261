"""What a transaction coordinator does when leaders, its log, or it itself fail."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.coordinator.log import PartitionElected, PartitionLoading, PartitionResigned
from sim.protocol.coordinator.transaction.markers import RETRY_US
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    TransactionRecord,
    TransactionTombstone,
)
from sim.units import SECOND
from tests.protocol.coordinator.transaction_bench import P0, P1, PLACE, Desk, T

VERSIONS = pytest.mark.parametrize("version", [0, 2])


def record(state, *, epoch=5, pid=7, partitions=(), start=0, version=2, **more):
    return TransactionRecord(
        T, pid, epoch, 60 * SECOND, state, partitions, 0, start, version=version, **more
    )


# -- markers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_marker_that_could_not_be_written_is_sent_again(error):
    desk = Desk()
    desk.end(desk.begun(P0))
    for _ in range(3):
        desk.answer_markers(error)
        assert desk.sent == []
        desk.pass_time(desk.now + RETRY_US)
        assert [send.request.partitions for send in desk.sent] == [(P0,)]
    desk.answer_markers()
    assert desk.state == "CompleteCommit"


def test_a_marker_that_was_not_answered_is_sent_again_to_whoever_leads_then():
    desk = Desk()
    desk.end(desk.begun(P0))
    desk.lose_markers()
    desk.lead(P0, 2)
    desk.pass_time(desk.now + RETRY_US)
    assert [send.to for send in desk.sent] == [2]


def test_a_marker_waits_for_a_leader():
    desk = Desk()
    ids = desk.begun(P0)
    desk.lead(P0, -1)
    desk.end(ids)
    assert desk.sent == []
    desk.lead(P0, 2)
    desk.tell(MetadataPublished(desk.image))
    assert [send.to for send in desk.sent] == [2]


def test_a_partition_that_was_deleted_needs_no_marker():
    desk = Desk()
    ids = desk.begun(P0, P1)
    del desk.image.partitions[P1]
    desk.end(ids)
    desk.answer_markers()
    assert desk.state == "CompleteCommit"


@pytest.mark.parametrize("error", [E.TRANSACTION_COORDINATOR_FENCED, E.INVALID_PRODUCER_EPOCH])
def test_a_coordinator_that_is_fenced_leaves_the_rest_to_its_successor(error):
    desk = Desk()
    desk.end(desk.begun(P0))
    desk.answer_markers(error)
    desk.pass_time(desk.now + SECOND)
    assert (desk.sent, desk.state) == ([], "PrepareCommit")


def test_the_last_record_is_written_until_it_is_committed():
    desk = Desk()
    desk.end(desk.begun(P0))
    desk.append_error = E.REQUEST_TIMED_OUT
    desk.answer_markers()
    assert desk.state == "PrepareCommit"
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.append_error = E.NONE
    desk.pass_time(desk.now + RETRY_US)
    assert desk.state == "CompleteCommit"


# -- a failing log --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (E.NOT_ENOUGH_REPLICAS, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_ENOUGH_REPLICAS_AFTER_APPEND, E.COORDINATOR_NOT_AVAILABLE),
        (E.REQUEST_TIMED_OUT, E.COORDINATOR_NOT_AVAILABLE),
        (E.NOT_LEADER_OR_FOLLOWER, E.NOT_COORDINATOR),
        (E.KAFKA_STORAGE_ERROR, E.NOT_COORDINATOR),
        (E.MESSAGE_TOO_LARGE, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_what_could_not_be_written_has_not_happened(error, told):
    desk = Desk()
    ids = desk.begun(P0)
    desk.append_error = error
    assert desk.end(ids).error is told
    assert (desk.state, desk.sent) == ("Ongoing", [])
    desk.append_error = E.NONE
    assert desk.end(ids).error is E.NONE


# -- another coordinator --------------------------------------------------------------------------


def test_a_coordinator_that_loads_says_so_and_one_that_does_not_lead_says_that():
    desk = Desk(elected=False)
    assert desk.init().error is E.NOT_COORDINATOR
    desk.tell(PartitionLoading(PLACE, 4))
    assert desk.init().error is E.COORDINATOR_LOAD_IN_PROGRESS
    assert desk.add((1, 0)).error is E.COORDINATOR_LOAD_IN_PROGRESS
    desk.tell(PartitionElected(PLACE, 4, ()))
    assert desk.init().error is E.NONE
    desk.resign()
    assert desk.init().error is E.NOT_COORDINATOR


@VERSIONS
def test_the_next_coordinator_finds_every_id_as_it_was_written(version):
    before = Desk(version)
    ids = before.begun()
    after = Desk(version, records=before.log, epoch=4)
    assert after.add(ids).error is E.NONE
    assert after.end(ids).error is E.NONE
    assert {m.coordinator_epoch for m in after.answer_markers()} == {4}
    assert after.state == "CompleteCommit"


@pytest.mark.parametrize("committed", [True, False])
def test_the_next_coordinator_writes_the_markers_of_what_was_decided(committed):
    before = Desk()
    before.end(before.begun(), committed=committed)
    after = Desk(records=before.log, epoch=4)
    markers = after.answer_markers()
    assert [(m.partitions, m.committed, m.coordinator_epoch) for m in markers] == [
        ((P0,), committed, 4),
        ((P1,), committed, 4),
    ]
    assert after.state == ("CompleteCommit" if committed else "CompleteAbort")
    loaded = ("PrepareCommit" if committed else "PrepareAbort", 1, 2)
    assert after.states()[0] == loaded  # for those who never heard of it


def test_the_next_coordinator_writes_a_row_of_what_is_open():
    before = Desk()
    before.begun()
    after = Desk(records=before.log, epoch=4)
    assert after.states() == [("Ongoing", 0, 2)]
    assert after.answer_markers() == []


def test_a_tombstone_is_loaded_as_nothing():
    before = Desk()
    before.init()
    after = Desk(records=[*before.log, TransactionTombstone(T)])
    assert after.machine.transaction(T) is None


def test_a_coordinator_that_resigns_answers_what_was_on_its_way():
    desk = Desk()
    ids = desk.begun(P0)
    desk.holds = True
    desk.end(ids)
    desk.resign()
    assert desk.replies[desk.token].error is E.NOT_COORDINATOR
    desk.release()  # the log's answer comes too late
    assert desk.machine.transaction(T) is None
    assert desk.sent == []


def test_markers_of_a_coordinator_that_resigned_change_nothing():
    desk = Desk()
    desk.end(desk.begun(P0))
    desk.resign()
    written = len(desk.log)
    desk.answer_markers()
    desk.pass_time(desk.now + SECOND)
    assert len(desk.log) == written


def test_a_load_for_a_leadership_that_is_over_is_ignored():
    desk = Desk(elected=False)
    desk.tell(PartitionLoading(PLACE, 4))
    desk.tell(PartitionResigned(PLACE))
    desk.tell(PartitionElected(PLACE, 4, ()))
    assert desk.init().error is E.NOT_COORDINATOR
