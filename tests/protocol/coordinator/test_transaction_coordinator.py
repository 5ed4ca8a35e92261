"""The transaction coordinator: states, fencing, timeouts, markers, and a change of coordinator."""

from itertools import pairwise, product

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import OFFSETS_TOPIC, TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.transaction.records import (
    TransactionState,
    TransactionTombstone,
)
from sim.protocol.coordinator.transaction.state import LARGEST_EPOCH, VALID_PREVIOUS
from sim.units import HOUR, MINUTE, SECOND
from tests.protocol.coordinator.transaction_bench import P0, P1, Desk, T, record

VERSIONS = pytest.mark.parametrize("version", [0, 2])


# -- the ordinary life ----------------------------------------------------------------------------


@pytest.mark.parametrize(("version", "epochs"), [(0, [0, 0, 0, 0]), (2, [0, 0, 1, 1])])
@pytest.mark.parametrize(("committed", "name"), [(True, "Commit"), (False, "Abort")])
def test_a_transaction_passes_through_kafkas_states(version, epochs, committed, name):
    desk = Desk(version)
    ids = desk.begun()
    answer = desk.end(ids, committed=committed)
    assert answer.error is E.NONE
    markers = desk.answer_markers()
    names = ["Empty", "Ongoing", f"Prepare{name}", f"Complete{name}"]
    assert desk.states() == list(zip(names, epochs, [0, 2, 2, 0], strict=True))
    assert [r.state.value for r in desk.log] == names
    for marker, place in zip(markers, (P0, P1), strict=True):
        assert marker.partitions == (place,)
        assert (marker.producer_epoch, marker.committed) == (epochs[2], committed)
        assert marker.coordinator_epoch == 3


@VERSIONS
def test_whoever_comes_while_the_markers_are_written_is_to_come_again(version):
    desk = Desk(version)
    ids = desk.begun()
    after = desk.end(ids)
    ids = (ids[0], after.producer_epoch if version else ids[1])
    assert desk.add(ids).error is E.CONCURRENT_TRANSACTIONS
    assert desk.end(ids).error is E.CONCURRENT_TRANSACTIONS
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.answer_markers()
    assert desk.add(ids).error is E.NONE


@VERSIONS
def test_a_change_on_its_way_keeps_everybody_else_out(version):
    desk = Desk(version)
    ids = desk.ids(desk.init())
    desk.holds = True
    desk.add(ids)
    assert desk.add(ids, P1).error is E.CONCURRENT_TRANSACTIONS
    assert desk.end(ids).error is E.CONCURRENT_TRANSACTIONS
    assert desk.init().error is E.CONCURRENT_TRANSACTIONS
    desk.release()
    assert desk.add(ids, P1) is None  # written, not yet committed
    assert desk.state == "Ongoing"


def test_partitions_that_are_in_it_are_not_written_again():
    desk = Desk()
    ids = desk.begun(P0)
    written = len(desk.log)
    assert desk.add(ids, P0).error is E.NONE
    assert len(desk.log) == written
    assert desk.add(ids, P0, P1).error is E.NONE
    assert desk.log[-1].partitions == (P0, P1)


def test_offsets_add_the_groups_partition_of_the_offsets_topic():
    desk = Desk(0)
    ids = desk.ids(desk.init())
    assert desk.add_offsets(ids, "billing").error is E.NONE
    place = TopicPartition(OFFSETS_TOPIC, partition_for_group("billing"))
    assert desk.log[-1].partitions == (place,)


def test_the_start_of_a_transaction_is_that_of_its_first_partition():
    desk = Desk()
    ids = desk.begun(P0)
    start = desk.log[-1].start_ms
    desk.now += 5 * SECOND
    desk.add(ids, P1)
    assert (desk.log[-1].start_ms, desk.log[-1].last_update_ms) == (start, start + 5_000)


# -- who may --------------------------------------------------------------------------------------


def test_another_producer_id_or_epoch_is_not_the_producer():
    desk = Desk()
    pid, epoch = desk.begun()
    for ask in (desk.add, desk.end):
        assert ask((pid + 1, epoch)).error is E.INVALID_PRODUCER_ID_MAPPING
        assert ask((pid, epoch + 1)).error is E.PRODUCER_FENCED
        assert ask((pid, epoch - 1)).error is E.PRODUCER_FENCED


def test_an_id_that_nobody_has_used_is_nobodys():
    desk = Desk()
    assert desk.add((1, 0)).error is E.INVALID_PRODUCER_ID_MAPPING
    assert desk.end((1, 0)).error is E.INVALID_PRODUCER_ID_MAPPING
    assert desk.init(name="").error is E.INVALID_REQUEST


@pytest.mark.parametrize(
    ("timeout", "fine"), [(15 * MINUTE, True), (15 * MINUTE + 1, False), (0, False)]
)
def test_a_timeout_is_positive_and_not_above_the_largest(timeout, fine):
    error = E.NONE if fine else E.INVALID_TRANSACTION_TIMEOUT
    assert Desk().init(timeout=timeout).error is error


# -- retries of EndTxn ----------------------------------------------------------------------------

COMMIT, ABORT = True, False
S = TransactionState


@pytest.mark.parametrize(
    ("state", "commits", "error"),
    [
        (S.COMPLETE_COMMIT, COMMIT, E.NONE),
        (S.COMPLETE_COMMIT, ABORT, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, ABORT, E.NONE),
        (S.COMPLETE_ABORT, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, COMMIT, E.INVALID_TXN_STATE),
        (S.EMPTY, ABORT, E.INVALID_TXN_STATE),
    ],
)
def test_without_bumps_a_retry_is_known_by_the_state(state, commits, error):
    desk = Desk(0, records=[record(state, version=0)])
    assert desk.end((7, 5), committed=commits).error is error


# -- epochs run out -------------------------------------------------------------------------------


def test_an_exhausted_id_makes_way_for_a_new_one_when_its_transaction_ends():
    desk = Desk(2, records=[record(S.ONGOING, epoch=LARGEST_EPOCH - 1, partitions=(P0,))])
    answer = desk.end((7, LARGEST_EPOCH - 1))
    assert (answer.producer_id, answer.producer_epoch) == (1_000, 0)
    assert desk.log[-1].next_producer_id == 1_000
    (marker,) = desk.answer_markers()
    assert (marker.producer_id, marker.producer_epoch) == (7, LARGEST_EPOCH)
    assert desk.states()[-1] == ("CompleteCommit", 0, 0)
    # The answer was lost, and the producer still knows its old id.
    again = desk.end((7, LARGEST_EPOCH - 1))
    assert (again.error, again.producer_id, again.producer_epoch) == (E.NONE, 1_000, 0)
    assert desk.add((7, LARGEST_EPOCH - 1)).error is E.INVALID_PRODUCER_ID_MAPPING


def test_an_exhausted_id_makes_way_for_a_new_one_when_a_producer_comes():
    desk = Desk(0, records=[record(S.EMPTY, epoch=LARGEST_EPOCH - 1, version=0)])
    assert desk.ids(desk.init()) == (1_000, 0)
    assert desk.machine.transaction(T).previous_producer_id == 7


def test_fencing_never_goes_beyond_the_largest_epoch():
    desk = Desk(2, records=[record(S.ONGOING, epoch=LARGEST_EPOCH - 1, partitions=(P0,))])
    desk.init()
    (marker,) = desk.answer_markers()
    assert marker.producer_epoch == LARGEST_EPOCH
    assert desk.ids(desk.init()) == (1_000, 0)


# -- time -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 2])
def test_a_transaction_that_takes_too_long_is_aborted_within_ten_seconds(version):
    desk = Desk(version)
    ids = desk.ids(desk.init(timeout=15 * SECOND))
    desk.now = 1 * SECOND
    desk.add(ids)
    desk.pass_time(16 * SECOND)
    assert desk.state == "Ongoing"
    desk.pass_time(20 * SECOND)
    assert desk.states()[-1] == ("PrepareAbort", 1, 1)
    assert desk.rows[-1][-1] == "timed out"
    desk.answer_markers()
    assert desk.add(ids).error is E.PRODUCER_FENCED


def test_the_time_is_counted_from_the_first_partition():
    desk = Desk()
    ids = desk.ids(desk.init(timeout=15 * SECOND))
    desk.pass_time(100 * SECOND)
    desk.add(ids)
    desk.pass_time(115 * SECOND)
    assert desk.state == "Ongoing"


def test_an_id_that_nobody_uses_is_forgotten_after_seven_days():
    desk = Desk()
    desk.init()
    desk.pass_time(7 * 24 * HOUR - SECOND)
    assert desk.machine.transaction(T) is not None
    desk.pass_time(7 * 24 * HOUR + HOUR)
    assert desk.machine.transaction(T) is None
    assert desk.log[-1] == TransactionTombstone(T)


def test_an_open_transaction_is_not_forgotten():
    desk = Desk(records=[record(S.PREPARE_COMMIT, partitions=(P0,))])
    desk.pass_time(10 * 24 * HOUR)
    assert desk.state == "PrepareCommit"


# -- verification ---------------------------------------------------------------------------------


# -- all of it ------------------------------------------------------------------------------------


@VERSIONS
def test_every_order_of_four_requests_keeps_to_the_valid_transitions(version):
    actions = ("init", "add", "commit", "abort", "markers", "time")
    for order in product(actions, repeat=4):
        desk = Desk(version)
        ids = (-1, -1)
        for action in order:
            if action == "init":
                answer = desk.init()
                if answer.error is E.NONE:
                    ids = desk.ids(answer)
            elif action == "add":
                desk.add(ids)
            elif action == "markers":
                desk.answer_markers()
            elif action == "time":
                desk.pass_time(desk.now + 70 * SECOND)
            else:
                answer = desk.end(ids, committed=action == "commit")
                if answer.error is E.NONE and version:
                    ids = desk.ids(answer)
        seen = [TransactionState(state) for state, _, _ in desk.states()]
        for before, after in pairwise(seen):
            assert before in VALID_PREVIOUS[after], order
        epochs = [epoch for _, epoch, _ in desk.states()]
        assert epochs == sorted(epochs), order
