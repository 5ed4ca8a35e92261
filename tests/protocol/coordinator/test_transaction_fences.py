"""Fences whose record cannot be written: how many epochs they take, and what comes of it."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.transaction.records import TransactionRecord
from sim.protocol.coordinator.transaction.records import TransactionState as S
from sim.protocol.coordinator.transaction.state import LARGEST_EPOCH
from sim.units import SECOND, timestamp_ms
from tests.protocol.coordinator.transaction_bench import P0, PLACE, Desk, T

FIRST, LATER = 0, LARGEST_EPOCH - 3
"""Epochs of the producer that is to be fenced."""

BEGAN = timestamp_ms(0)


def open_transaction(epoch, name=T):
    return TransactionRecord(name, 7, epoch, 60 * SECOND, S.ONGOING, (P0,), BEGAN, BEGAN, version=0)


def under_min_isr(epoch, *others, repeats):
    """A coordinator whose log takes no record, and a transaction that nobody has ended."""
    desk = Desk(0, records=[open_transaction(epoch), *others], repeats_fences=repeats)
    desk.append_error = E.NOT_ENOUGH_REPLICAS
    return desk


def epoch_of(desk):
    return desk.machine.transaction(T).producer_epoch


def test_every_attempt_takes_an_epoch_until_none_is_left_before_2_7():
    """Catalogue: txn-log-under-min-isr-exhausts-epochs."""
    desk = under_min_isr(LATER, repeats=True)
    for taken in (1, 2, 3):
        assert desk.init().error is E.COORDINATOR_NOT_AVAILABLE
        assert epoch_of(desk) == LATER + taken
    assert desk.init().error is E.UNKNOWN_SERVER_ERROR
    desk.append_error = E.NONE
    assert desk.init().error is E.UNKNOWN_SERVER_ERROR, "and it is not for want of a log"
    assert (desk.state, epoch_of(desk)) == ("Ongoing", LARGEST_EPOCH)


def test_all_attempts_together_take_one_epoch_since():
    desk = under_min_isr(FIRST, repeats=False)
    for _ in range(100):
        assert desk.init().error is E.COORDINATOR_NOT_AVAILABLE
    assert epoch_of(desk) == FIRST + 1
    desk.append_error = E.NONE
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.answer_markers()
    assert desk.ids(desk.init()) == (7, FIRST + 2)


def test_a_transaction_that_takes_too_long_costs_epochs_too_before_2_7():
    desk = under_min_isr(FIRST, repeats=True)
    desk.pass_time(100 * SECOND)
    assert epoch_of(desk) == FIRST + 4, "at 70, 80, 90 and 100 s"


def test_a_coordinator_that_moves_knows_only_the_epochs_that_were_written():
    desk = under_min_isr(LATER, repeats=True)
    for _ in range(4):
        desk.init()
    successor = Desk(0, records=[open_transaction(LATER)], repeats_fences=True)
    assert successor.init().error is E.CONCURRENT_TRANSACTIONS
    assert epoch_of(successor) == LATER + 1


def other_id():
    """One that the same partition of the log keeps, and that is read after ours."""
    numbers = (n for n in range(10_000) if partition_for_group(f"tx-{n}") == PLACE)
    return next(f"tx-{n}" for n in numbers if f"tx-{n}" != T)


@pytest.mark.parametrize(("epoch", "ended"), [(FIRST, True), (LARGEST_EPOCH, False)])
def test_the_look_for_transactions_that_take_too_long_ends_at_one_that_cannot_be_fenced(
    epoch, ended
):
    """An exception ends the task of that round, and it comes to the same one first in the next."""
    desk = under_min_isr(epoch, open_transaction(FIRST, other_id()), repeats=True)
    desk.append_error = E.NONE
    desk.pass_time(100 * SECOND)
    aborted = desk.machine.transaction(other_id()).state is S.PREPARE_ABORT
    assert aborted is ended


# -- transaction version 2 -------------------------------------------------------------------------


def fenced_by_a_successor(desk, _epoch):
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS


def fenced_by_time(desk, _epoch):
    desk.pass_time(120 * SECOND)


@pytest.mark.parametrize("fence", [fenced_by_a_successor, fenced_by_time])
@pytest.mark.parametrize(("bumps", "taken"), [(False, 1), (True, 2)])
def test_the_end_of_a_fenced_transaction_takes_one_epoch_and_took_two_in_4_0(fence, bumps, taken):
    """KAFKA-19367; the markers carry the epoch that the abort was written with."""
    desk = Desk(2, bumps_before_end=bumps)
    producer, epoch = desk.begun()
    fence(desk, epoch)
    (marker, _) = desk.answer_markers()
    assert (marker.producer_id, marker.producer_epoch) == (producer, epoch + taken)
    assert desk.state == "CompleteAbort"
    assert desk.ids(desk.init()) == (producer, epoch + taken + 1)


@pytest.mark.parametrize(("bumps", "kept"), [(False, 0), (True, 1)])
def test_a_fence_that_could_not_be_written_takes_no_epoch_and_took_one_in_4_0(bumps, kept):
    """KAFKA-19367 and its follow-up: nothing is changed before the abort is in the log."""
    desk = Desk(2, bumps_before_end=bumps)
    _, epoch = desk.begun()
    desk.append_error = E.NOT_ENOUGH_REPLICAS
    for _ in range(3):
        assert desk.init().error is E.COORDINATOR_NOT_AVAILABLE
        assert epoch_of(desk) == epoch + kept
    desk.append_error = E.NONE
    desk.init()
    (marker, _) = desk.answer_markers()
    assert marker.producer_epoch == epoch + kept + 1


def test_the_last_epoch_but_one_is_enough_for_a_fence_and_the_next_producer_gets_a_new_id():
    desk = Desk(2)
    producer, _ = desk.begun()
    transaction = desk.machine.transaction(T)
    transaction.producer_epoch = LARGEST_EPOCH - 1
    fenced_by_a_successor(desk, transaction.producer_epoch)
    (marker, _) = desk.answer_markers()
    assert marker.producer_epoch == LARGEST_EPOCH
    fresh, epoch = desk.ids(desk.init())
    assert fresh != producer
    assert epoch == 0
