"""Transactions in a log: what is open, what is stable, what was aborted, and what survives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.error_codes import ErrorCode as E
from sim.log.config import LogConfig
from sim.log.partition.deletion import doom_segments
from sim.log.partition.reading import read_transaction_index
from sim.log.partition.recovery import create_log, load_log
from sim.log.producers.transaction_index import ABORTED_ENTRY
from sim.log.producers.transactions import (
    NO_GUARD,
    UNCHECKED_GUARD,
    by_coordinator,
    is_by_coordinator,
)
from sim.log.store.files import DiskFailed, FileStore
from sim.protocol import ports
from sim.wire.record_batch import NewRecord, build_batch
from tests.log.log_kit import NOW, TP, new_log

CONFIG = LogConfig(segment_bytes=1 << 20)


def data(pid, sequence, count=1, *, epoch=0, transactional=True):
    return build_batch(
        [NewRecord(NOW, None, b"v")] * count, producer_id=pid, producer_epoch=epoch,
        base_sequence=sequence, transactional=transactional,
    )  # fmt: skip


def guard_of(log, batch, *, bumps):
    who = batch.producer_id, batch.producer_epoch, batch.base_sequence
    return log.transactions.verification_guard(*who, NOW, bumps=bumps)


def write(log, batch, *, epoch=0, bumps=True):
    guard = guard_of(log, batch, bumps=bumps)
    return log.append_as_leader(batch, epoch, NOW, guard)


def mark(log, pid, *, epoch=1, coordinator=0, committed=True, leader_epoch=0):
    return log.append_marker(pid, epoch, coordinator, leader_epoch, NOW, committed=committed)


def reopened(log, *, clean):
    if clean:
        log.close()
    return load_log(
        log.store, log.directory, TP, log.config, clean=clean, recovery_point=log.recovery_point
    )[0]


def stable(log, high_watermark=None):
    return log.transactions.last_stable_offset(
        log.log_end_offset if high_watermark is None else high_watermark
    )


def test_an_open_transaction_holds_the_last_stable_offset_at_its_first_record(tmp_path):
    log = new_log(tmp_path)
    log.append_as_leader(data(9, 0, 4, transactional=False), 0, NOW)
    assert not log.transactions.has_unstable
    assert stable(log) == 4
    write(log, data(1, 0, 3))
    write(log, data(2, 0, 2))
    assert (log.log_end_offset, stable(log), stable(log, 3)) == (9, 4, 3)


def test_a_decided_transaction_is_unstable_until_its_marker_is_committed(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0, 3))
    mark(log, 1)
    assert stable(log, 3) == 0
    assert stable(log, 4) == 4
    assert not log.transactions.has_unstable


def test_the_earliest_transaction_counts_whichever_ends_first(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0))
    write(log, data(2, 0))
    mark(log, 2)
    assert stable(log) == 0
    mark(log, 1, committed=False)
    assert stable(log) == 4
    # The index has what was open when the marker came.
    assert log.transactions.aborted_between(0, 10) == ((1, 0),)


def test_the_first_batch_of_a_transaction_needs_its_guard_and_the_later_ones_do_not(tmp_path):
    log = new_log(tmp_path)
    assert log.append_as_leader(data(1, 0), 0, NOW).error is E.INVALID_TXN_STATE
    guard = guard_of(log, data(1, 0), bumps=True)
    assert guard > 0
    assert log.append_as_leader(data(1, 0), 0, NOW, guard + 1).error is E.INVALID_TXN_STATE
    assert log.append_as_leader(data(1, 0), 0, NOW, guard).error is E.NONE
    assert guard_of(log, data(1, 1), bumps=True) == NO_GUARD
    assert log.append_as_leader(data(1, 1), 0, NOW).error is E.NONE


def test_a_marker_that_comes_first_makes_the_guard_useless(tmp_path):
    log = new_log(tmp_path)
    guard = guard_of(log, data(1, 0), bumps=False)
    mark(log, 1, epoch=0, committed=False)
    assert log.append_as_leader(data(1, 0), 0, NOW, guard).error is E.INVALID_TXN_STATE
    assert not log.transactions.has_unstable


@pytest.mark.parametrize(
    ("bumps", "marker_epoch", "admitted"), [(True, 1, True), (True, 0, False), (False, 1, False)]
)
def test_the_marker_of_the_transaction_before_leaves_the_next_one_s_guard_as_it_is(
    bumps, marker_epoch, admitted, tmp_path
):
    """With epochs of their own, the next transaction has that of the marker before it."""
    log = new_log(tmp_path)
    write(log, data(1, 0))
    following = data(1, 0, epoch=1)
    guard = guard_of(log, following, bumps=bumps)
    mark(log, 1, epoch=marker_epoch)
    error = log.append_as_leader(following, 0, NOW, guard).error
    assert error is (E.NONE if admitted else E.INVALID_TXN_STATE)


def test_a_restart_forgets_guards_and_keeps_open_transactions(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0))
    guard = guard_of(log, data(2, 0), bumps=True)
    log = reopened(log, clean=True)
    assert stable(log) == 0
    assert log.append_as_leader(data(1, 1), 0, NOW).error is E.NONE
    assert log.append_as_leader(data(2, 0), 0, NOW, guard).error is E.INVALID_TXN_STATE


def test_verification_can_be_switched_off(tmp_path):
    log = new_log(tmp_path)
    assert log.append_as_leader(data(1, 5), 0, NOW, UNCHECKED_GUARD).error is E.NONE


def test_a_coordinators_append_is_verified_and_its_sequence_is_not_checked(tmp_path):
    log = new_log(tmp_path)
    # Sequence 0 each time, as the group coordinator writes it.
    nobodys, own = by_coordinator(NO_GUARD), data(2, 0)
    assert log.append_as_leader(own, 0, NOW, nobodys).error is E.INVALID_TXN_STATE
    guard = by_coordinator(guard_of(log, own, bumps=True))
    for chosen in (guard, nobodys, nobodys):
        assert log.append_as_leader(own, 0, NOW, chosen).error is E.NONE
    mark(log, 2, epoch=1)
    unchecked = by_coordinator(UNCHECKED_GUARD)
    late = log.append_as_leader(own, 0, NOW, unchecked)
    assert late.error is E.INVALID_PRODUCER_EPOCH


def test_the_ports_and_the_log_speak_of_the_same_guards():
    for guard in (ports.UNCHECKED_GUARD, ports.NO_GUARD, 1, 7):
        assert by_coordinator(guard) == ports.by_coordinator(guard)
        assert is_by_coordinator(by_coordinator(guard))
        assert not is_by_coordinator(guard)
        assert by_coordinator(by_coordinator(guard)) == guard
    assert (ports.NO_GUARD, ports.UNCHECKED_GUARD) == (NO_GUARD, UNCHECKED_GUARD)


def test_a_write_outside_the_open_transaction_is_refused(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0))
    refused = log.append_as_leader(data(1, 1, transactional=False), 0, NOW)
    assert refused.error is E.INVALID_TXN_STATE
    mark(log, 1, epoch=0)
    assert log.append_as_leader(data(1, 1, transactional=False), 0, NOW).error is E.NONE


def test_a_retry_of_a_written_batch_is_a_duplicate_even_after_its_transaction(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0, 2))
    mark(log, 1, epoch=0)
    again = log.append_as_leader(data(1, 0, 2), 0, NOW)
    assert (again.error, again.duplicate, again.base_offset) == (E.NONE, True, 0)


def test_the_marker_of_a_bumped_epoch_fences_what_is_still_on_its_way(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0))
    mark(log, 1, epoch=1)
    late = data(1, 1)
    guard = guard_of(log, late, bumps=True)
    assert log.append_as_leader(late, 0, NOW, guard).error is E.INVALID_PRODUCER_EPOCH
    assert write(log, data(1, 0, epoch=1)).error is E.NONE


@pytest.mark.parametrize(
    ("epoch", "coordinator", "error"),
    [(1, 4, E.INVALID_PRODUCER_EPOCH), (2, 3, E.TRANSACTION_COORDINATOR_FENCED), (2, 4, E.NONE)],
)
def test_a_marker_of_a_former_epoch_or_coordinator_is_refused(tmp_path, epoch, coordinator, error):
    log = new_log(tmp_path)
    write(log, data(1, 0, epoch=2))
    mark(log, 1, epoch=2, coordinator=4)
    write(log, data(1, 1, epoch=2), bumps=False)
    end = log.log_end_offset
    assert mark(log, 1, epoch=epoch, coordinator=coordinator).error is error
    assert log.log_end_offset == end + (error is E.NONE)


@pytest.mark.parametrize(
    ("bumps", "error"), [(True, E.OUT_OF_ORDER_SEQUENCE_NUMBER), (False, E.NONE)]
)
def test_a_transaction_with_an_epoch_of_its_own_begins_with_sequence_zero(tmp_path, bumps, error):
    log = new_log(tmp_path)
    assert write(log, data(1, 7), bumps=bumps).error is error


def test_a_batch_behind_one_that_is_still_being_verified_is_out_of_order(tmp_path):
    log = new_log(tmp_path)
    guard = guard_of(log, data(1, 3), bumps=False)
    assert guard_of(log, data(1, 5), bumps=False) == guard
    ahead = log.append_as_leader(data(1, 5), 0, NOW, guard)
    assert ahead.error is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert log.append_as_leader(data(1, 3), 0, NOW, guard).error is E.NONE


def test_only_aborted_transactions_are_indexed_with_kafkas_bytes(tmp_path):
    log = new_log(tmp_path)
    log.append_as_leader(data(9, 0, 3, transactional=False), 0, NOW)
    write(log, data(0, 0, 2))
    mark(log, 0, committed=False)
    write(log, data(5, 0))
    mark(log, 5)
    log.close()
    raw = (tmp_path / str(TP) / f"{0:020d}.txnindex").read_bytes()
    assert raw.hex() == (
        "0000" "0000000000000000" "0000000000000003" "0000000000000005" "0000000000000006"
    )  # fmt: skip
    assert log.transactions.aborted_between(6, 8) == ()


def test_an_entry_stands_in_the_segment_of_its_marker_and_is_found_from_an_earlier_one(tmp_path):
    log = new_log(tmp_path, LogConfig(segment_bytes=200))
    write(log, data(1, 0, 2))
    for number in range(6):
        log.append_as_leader(data(9, number, transactional=False), 0, NOW)
    mark(log, 1, committed=False)
    log.close()
    last = log.segments[-1].base_offset
    assert last > 0
    assert [path.stem for path in tmp_path.rglob("*.txnindex")] == [f"{last:020d}"]
    assert log.transactions.aborted_between(0, 1) == ((1, 0),)


def test_a_follower_indexes_what_its_leader_did(tmp_path):
    leader, follower = new_log(tmp_path / "a"), new_log(tmp_path / "b")
    write(leader, data(1, 0, 2))
    write(leader, data(2, 0, 2))
    mark(leader, 1, committed=False)
    mark(leader, 2, committed=False)
    follower.append_as_follower(tuple(leader.batches()))
    for log in (leader, follower):
        log.close()
    name = f"{TP}/{0:020d}.txnindex"
    assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert [e.last_stable_offset for e in read_transaction_index(tmp_path / "a" / name)] == [2, 6]
    assert follower.transactions.aborted_between(0, 9) == ((1, 0), (2, 2))


def test_truncation_takes_entries_and_opens_what_their_markers_had_closed(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0, 2))
    mark(log, 1, committed=False)
    write(log, data(2, 0, 2))
    mark(log, 2, committed=False)
    log.truncate_to(5)
    assert stable(log) == 3
    assert log.transactions.aborted_between(0, 9) == ((1, 0),)
    log.truncate_to(2)
    assert stable(log) == 0
    assert log.transactions.aborted_between(0, 9) == ()


STEPS = st.lists(
    st.tuples(st.sampled_from(["write", "commit", "abort", "roll"]), st.integers(0, 3)), max_size=24
)


@given(STEPS, st.booleans())
def test_a_restart_clean_or_not_finds_the_same_transactions(tmp_path_factory, steps, clean):
    root = tmp_path_factory.mktemp("log")
    log = create_log(FileStore(root), str(TP), TP, LogConfig(segment_bytes=250))
    sequences = dict.fromkeys(range(4), 0)
    for kind, pid in steps:
        if kind == "write":
            write(log, data(pid, sequences[pid]), bumps=False)
            sequences[pid] += 1
        elif kind == "roll":
            log.append_as_leader(data(-1, -1, transactional=False), 0, NOW)
        else:
            mark(log, pid, epoch=0, committed=kind == "commit")
    end = log.log_end_offset
    told = log.transactions.aborted_between(0, end), stable(log)
    indexes = {s.base_offset: list(s.transaction_index.entries()) for s in log.segments}
    again = reopened(log, clean=clean)
    assert (again.transactions.aborted_between(0, end), stable(again)) == told
    assert {s.base_offset: list(s.transaction_index.entries()) for s in again.segments} == indexes


def test_a_partial_entry_is_not_read_and_is_cut_by_recovery(tmp_path):
    log = new_log(tmp_path)
    write(log, data(1, 0))
    mark(log, 1, committed=False)
    log.close()
    path = tmp_path / str(TP) / f"{0:020d}.txnindex"
    path.write_bytes(path.read_bytes()[:-1])
    fresh = load_log(
        FileStore(tmp_path), str(TP), TP, CONFIG, clean=False, recovery_point=0
    )[0]  # fmt: skip
    fresh.flush()
    assert path.stat().st_size == ABORTED_ENTRY.size
    assert fresh.transactions.aborted_between(0, 9) == ((1, 0),)


def test_an_index_leaves_the_log_with_its_segment(tmp_path):
    log = new_log(tmp_path, LogConfig(segment_bytes=200))
    write(log, data(1, 0))
    mark(log, 1, committed=False)
    for number in range(4):
        log.append_as_leader(data(9, number, transactional=False), 0, NOW)
    assert len(list(tmp_path.rglob("*.txnindex"))) == 1
    doom_segments(log.store, log.directory, log.segments[:1])
    assert list(tmp_path.rglob("*.txnindex")) == []
    assert len(list(tmp_path.rglob("*.txnindex.deleted"))) == 1


def test_a_marker_stays_in_the_log_although_the_file_of_aborted_transactions_cannot_be_made(
    tmp_path,
):
    log = new_log(tmp_path)
    write(log, data(9, 0, 3))
    log.store.has_descriptors = False
    with pytest.raises(DiskFailed, match="too many open files"):
        mark(log, 9, committed=False)
    assert log.log_end_offset == 4
    assert log.read(3, 4, 1)[0].is_control
    log.store.has_descriptors = True
    assert reopened(log, clean=False).log_end_offset == 4
