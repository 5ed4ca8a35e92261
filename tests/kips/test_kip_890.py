"""KIP-890: nothing of an ended transaction gets into a later one.

Leaders have the coordinator confirm that a transaction is open, and with transaction version 2 they
add their partition to it; each transaction ends with another epoch: a late batch is refused.
"""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.coordinator.transaction.records import TransactionState
from tests.protocol.coordinator.transaction_bench import P0, P1, Desk, record

COMMIT, ABORT = True, False
S = TransactionState


def test_with_epoch_bumps_the_answer_has_the_next_epoch_and_without_it_has_none():
    desk = Desk(2)
    pid, epoch = desk.begun()
    answer = desk.end((pid, epoch))
    assert (answer.producer_id, answer.producer_epoch) == (pid, epoch + 1)
    old = Desk(0)
    answer = old.end(old.begun())
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


@pytest.mark.parametrize(
    ("state", "behind", "commits", "error"),
    [
        (S.COMPLETE_COMMIT, 1, COMMIT, E.NONE),
        (S.COMPLETE_COMMIT, 1, ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, 0, COMMIT, E.INVALID_TXN_STATE),
        (S.COMPLETE_COMMIT, 0, ABORT, None),
        (S.COMPLETE_ABORT, 1, ABORT, E.NONE),
        (S.COMPLETE_ABORT, 1, COMMIT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, 0, COMMIT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, 0, ABORT, None),
        (S.COMPLETE_ABORT, 2, ABORT, E.PRODUCER_FENCED),
        (S.EMPTY, 0, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, 0, ABORT, None),
        (S.EMPTY, 1, ABORT, E.PRODUCER_FENCED),
        (S.ONGOING, 1, COMMIT, E.PRODUCER_FENCED),
    ],
)
def test_with_bumps_a_retry_is_known_by_an_epoch_one_behind(state, behind, commits, error):
    desk = Desk(2, records=[record(state)])
    answer = desk.end((7, 5 - behind), committed=commits)
    if error is None:
        # Nothing was added, but the epoch is bumped all the same.
        assert (answer.error, answer.producer_epoch) == (E.NONE, 6)
        assert desk.states() == [("PrepareAbort", 6, 0), ("CompleteAbort", 6, 0)]
    else:
        assert answer.error is error
        assert desk.log == []
    if error is E.NONE:
        assert (answer.producer_id, answer.producer_epoch) == (7, 5)


def test_a_leader_asks_whether_a_partition_is_in_the_transaction():
    desk = Desk(0)
    ids = desk.begun(P0)
    assert desk.add(ids, P0, verify=True).error is E.NONE
    assert desk.add(ids, P1, verify=True).error is E.TRANSACTION_ABORTABLE
    assert desk.add((ids[0], ids[1] + 1), P0, verify=True).error is E.PRODUCER_FENCED
    assert desk.add((ids[0] + 1, ids[1]), P0, verify=True).error is E.INVALID_PRODUCER_ID_MAPPING
    desk.end(ids)
    assert desk.add(ids, P0, verify=True).error is E.CONCURRENT_TRANSACTIONS
    desk.answer_markers()
    assert desk.add(ids, P0, verify=True).error is E.TRANSACTION_ABORTABLE


def test_a_leader_adds_its_partition_with_version_2_and_only_asks_with_version_0():
    new, old = Desk(2), Desk(0)
    ids = new.ids(new.init())
    assert new.add(ids, P0).error is E.NONE
    assert new.state == "Ongoing"
    ids = old.ids(old.init())
    assert old.add(ids, P0, verify=True).error is E.TRANSACTION_ABORTABLE
    assert old.state == "Empty"


def test_a_late_batch_of_an_ended_transaction_is_not_added_to_the_next():
    desk = Desk(2)
    pid, epoch = desk.begun(P0)
    desk.end((pid, epoch))
    desk.answer_markers()
    assert desk.add((pid, epoch), P0).error is E.PRODUCER_FENCED
    assert desk.add((pid, epoch + 1), P0).error is E.NONE


def test_before_it_a_late_request_was_taken_for_the_next_transaction():
    desk = Desk(0)
    ids = desk.begun(P0)
    desk.end(ids)
    desk.answer_markers()
    assert desk.add(ids, P0).error is E.NONE
    assert desk.state == "Ongoing"
