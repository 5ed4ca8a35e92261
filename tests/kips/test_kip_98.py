"""KIP-98: a leader appends each batch of a producer once, and a transaction is visible as a whole.

Sequences of a producer id and epoch follow each other: a batch that comes again is answered and not
appended, one that leaves a gap is refused. A coordinator decides once, durably, and has markers
written to every partition; a later producer with the same transactional id fences the earlier one.
"""

import pytest

from sim.error_codes import ErrorCode as E
from tests.log.log_kit import NOW, batch, new_log
from tests.protocol.coordinator.transaction_bench import Desk


def test_a_later_producer_fences_an_earlier_one():
    desk = Desk()
    first = desk.ids(desk.init())
    second = desk.ids(desk.init())
    assert second == (first[0], first[1] + 1)
    assert desk.add(first).error is E.PRODUCER_FENCED
    assert desk.add(second).error is E.NONE


@pytest.mark.parametrize(("version", "refusal"), [(0, E.PRODUCER_FENCED), (2, E.INVALID_TXN_STATE)])
def test_a_later_producer_ends_the_transaction_of_an_earlier_one_first(version, refusal):
    """With version 2 an epoch that is one behind may be a retry: of another decision (4.1)."""
    desk, epoch = Desk(version), 1
    ids = desk.begun()
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    assert desk.state == "PrepareAbort"
    assert desk.end(ids).error in (E.CONCURRENT_TRANSACTIONS, E.PRODUCER_FENCED)
    markers = desk.answer_markers()
    assert {m.producer_epoch for m in markers} == {epoch}
    assert not any(m.committed for m in markers)
    assert desk.end(ids).error is refusal
    assert desk.ids(desk.init()) == (ids[0], epoch + 1)
    assert desk.end(ids).error is E.PRODUCER_FENCED


def test_the_client_hears_of_the_decision_before_the_markers_are_written():
    desk = Desk()
    assert desk.end(desk.begun()).error is E.NONE
    assert desk.state == "PrepareCommit"
    assert len(desk.sent) == 2


def test_nobody_hears_of_a_decision_that_is_not_durable():
    desk = Desk()
    ids = desk.begun()
    desk.holds = True
    assert desk.end(ids) is None
    assert (desk.sent, desk.state) == ([], "Ongoing")
    desk.release()
    assert desk.replies[desk.token].error is E.NONE


def test_the_transaction_completes_when_the_last_marker_is_written():
    desk = Desk()
    desk.end(desk.begun())
    first, second = desk.sent
    desk.sent = [first]
    desk.answer_markers()
    assert desk.state == "PrepareCommit"
    desk.sent = [second]
    desk.answer_markers()
    assert desk.state == "CompleteCommit"


# -- idempotence, at a leader's log ----------------------------------------------------------------


def append(log, sequence, count=1, *, epoch=0):
    made = batch(0, count, pid=7, epoch=epoch, sequence=sequence)
    answer = log.append_as_leader(made, 0, NOW)
    return answer.error, answer.base_offset


def test_a_batch_that_comes_again_is_answered_as_before_and_not_appended(tmp_path):
    log = new_log(tmp_path)
    assert append(log, 0, 2) == (E.NONE, 0)
    assert append(log, 2, 3) == (E.NONE, 2)
    assert append(log, 0, 2) == (E.NONE, 0)
    assert log.log_end_offset == 5


def test_a_gap_in_the_sequence_is_refused(tmp_path):
    log = new_log(tmp_path)
    append(log, 0, 2)
    assert append(log, 3) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert append(log, 2) == (E.NONE, 2)


def test_only_the_last_five_batches_are_known_again(tmp_path):
    log = new_log(tmp_path)
    for sequence in range(6):
        append(log, sequence)
    assert append(log, 1) == (E.NONE, 1)
    assert append(log, 0) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_a_later_epoch_begins_at_0_and_fences_the_one_before(tmp_path):
    log = new_log(tmp_path)
    append(log, 0)
    assert append(log, 1, epoch=1) == (E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert append(log, 0, epoch=1) == (E.NONE, 1)
    assert append(log, 1, epoch=0) == (E.INVALID_PRODUCER_EPOCH, -1)
