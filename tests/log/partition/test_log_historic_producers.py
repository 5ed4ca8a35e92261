"""Producers as logs knew them until 2.5: gone with their records, or although a marker is new."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.log.config import LogConfig
from sim.log.partition.recovery import load_log
from sim.log.producers.state import ProducerStates
from sim.log.producers.transactions import UNCHECKED_GUARD
from sim.wire.record_batch import NewRecord, build_batch
from tests.log.log_kit import NOW, TP, batch, new_log

SIZE = batch(pid=1).size_bytes
WITH_RECORDS = LogConfig(segment_bytes=SIZE, producers_leave_with_records=True)
UNTIL_EXPIRY = LogConfig(segment_bytes=SIZE)
BOTH = pytest.mark.parametrize("config", [WITH_RECORDS, UNTIL_EXPIRY])
HOUR_MS = 3_600_000


def appended(log, first, pid=1, **more):
    return log.append_as_leader(batch(first, pid=pid, **more), 0, NOW).error


def shortened(tmp_path, config):
    """Producer 1 wrote 0 to 2 and producer 2 wrote 3; the log starts at 3 now."""
    log = new_log(tmp_path, config)
    for first in range(3):
        assert appended(log, first) is E.NONE
    assert appended(log, 0, pid=2) is E.NONE
    log.raise_log_start(3)
    return log


def test_a_producer_leaves_with_its_last_record_and_is_unknown_when_it_goes_on(tmp_path):
    log = shortened(tmp_path, WITH_RECORDS)
    assert list(log.producers.entries) == [2]
    assert appended(log, 3) is E.UNKNOWN_PRODUCER_ID
    assert appended(log, 1, pid=2) is E.NONE
    assert appended(log, 0, epoch=1) is E.NONE  # who begins anew is welcome


def test_today_it_is_known_until_it_expires(tmp_path):
    log = shortened(tmp_path, UNTIL_EXPIRY)
    assert type(log.producers) is ProducerStates
    assert appended(log, 2) is E.NONE  # a retry, answered with where it lies
    assert log.log_end_offset == 4
    assert appended(log, 3) is E.NONE


@BOTH
def test_a_load_finds_the_same_producers(tmp_path, config):
    log = shortened(tmp_path, config)
    known = list(log.producers.entries)
    log.close()
    again, _ = load_log(
        log.store, log.directory, TP, config, clean=True, recovery_point=0, log_start_offset=3
    )
    assert list(again.producers.entries) == known


def data(at_ms, sequence=0):
    return build_batch(
        [NewRecord(NOW + at_ms, None, b"v")], producer_id=1, producer_epoch=0,
        base_sequence=sequence, transactional=True,
    )  # fmt: skip


def ended(tmp_path, **settings):
    """Data of hour 0, whose transaction was ended at hour 10 by the coordinator of epoch 5."""
    log = new_log(tmp_path, LogConfig(producer_id_expiration_ms=11 * HOUR_MS, **settings))
    log.append_as_leader(data(0), 0, NOW, UNCHECKED_GUARD)
    log.append_marker(1, 0, 5, 0, NOW + 10 * HOUR_MS, committed=True)
    return log


def stale_marker(log):
    return log.append_marker(1, 0, 4, 0, NOW + 12 * HOUR_MS, committed=False).error


def test_a_marker_keeps_its_producer_and_with_it_the_epoch_of_its_coordinator(tmp_path):
    log = ended(tmp_path)
    assert log.expire_producers(NOW + 12 * HOUR_MS) == 0
    assert stale_marker(log) is E.TRANSACTION_COORDINATOR_FENCED
    assert log.expire_producers(NOW + 21 * HOUR_MS) == 1


def test_where_only_data_count_a_former_coordinator_ends_the_next_transaction(tmp_path):
    log = ended(tmp_path, markers_renew_producers=False)
    assert stale_marker(log) is E.TRANSACTION_COORDINATOR_FENCED  # as long as it is known
    assert log.expire_producers(NOW + 12 * HOUR_MS) == 1
    log.append_as_leader(data(12 * HOUR_MS, 1), 0, NOW, UNCHECKED_GUARD)
    assert stale_marker(log) is E.NONE
    assert log.transactions.last_stable_offset(log.log_end_offset) == log.log_end_offset


def test_a_producer_of_whom_only_a_marker_is_left_is_unknown(tmp_path):
    log = new_log(tmp_path, WITH_RECORDS)
    log.append_marker(1, 0, 0, 0, NOW, committed=True)
    late = log.append_as_leader(data(0, 7), 0, NOW, UNCHECKED_GUARD)
    assert late.error is E.UNKNOWN_PRODUCER_ID
    today = new_log(tmp_path / "today", UNTIL_EXPIRY)
    today.append_marker(1, 0, 0, 0, NOW, committed=True)
    late = today.append_as_leader(data(0, 7), 0, NOW, UNCHECKED_GUARD)
    assert late.error is E.OUT_OF_ORDER_SEQUENCE_NUMBER
