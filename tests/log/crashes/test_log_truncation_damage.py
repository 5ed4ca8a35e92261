"""Damaged headers that a log meets when it reads its own files: while it is cut, rolled, loaded.

Source: ``UnifiedLog.truncateTo``, ``LogSegment.shouldRoll``, ``LogManager.loadLogs``.
"""

import pytest

from sim.errors import CorruptRecord
from sim.log.config import LogConfig
from sim.log.partition.recovery import load_log
from sim.log.partition.truncation import damage_met_by
from sim.wire.primitives import MalformedBytes
from tests.log.log_kit import NOW, TP, batch, contents, new_log

SMALL = LogConfig(segment_bytes=1_000, index_interval_bytes=1_000_000)
ONE = LogConfig(index_interval_bytes=1_000_000)
PAGE = b"\xff" * 16


def filled(tmp_path, config, count=8):
    """Two records of producer 4 in each batch, a leader epoch for each two batches."""
    log = new_log(tmp_path, config)
    for number in range(count):
        each = batch(2 * number, 2, pid=4, at_ms=number)
        assert not log.append_as_leader(each, number // 2, NOW).error
    log.flush()
    return log


def damage(log, offset):
    """Overwrite the header of the batch that begins at the offset."""
    for segment in log.segments:
        for position, found in segment.batches(0):
            if found.base_offset == offset:
                log.store.overwrite(segment.log.name, position, PAGE)
                return
    raise AssertionError(f"no batch begins at {offset}")


def test_damage_in_front_of_the_offset_leaves_the_segment_as_it_is(tmp_path):
    log = filled(tmp_path, ONE)
    before = log.epochs
    damage(log, 4)
    with pytest.raises(CorruptRecord, match="orders-0: the batch at"):
        log.truncate_to(10)
    assert (log.log_end_offset, log.epochs) == (16, before)
    assert log.producers.end_offset == 16
    appended = log.append_as_leader(batch(50), 9, NOW)
    assert (appended.base_offset, log.log_end_offset) == (16, 17)


def test_segments_above_the_offset_are_gone_all_the_same(tmp_path):
    log = filled(tmp_path, SMALL)
    bases = [segment.base_offset for segment in log.segments]
    middle = bases[1]
    assert len(bases) > 2
    assert bases[2] > middle + 2, "its segment has two batches at least"
    damage(log, middle)
    with pytest.raises(CorruptRecord):
        log.truncate_to(middle + 2)
    assert log.log_end_offset == log.producers.end_offset == bases[2]
    assert [segment.base_offset for segment in log.segments] == bases[:2]
    assert all(start < bases[2] for _, start in log.epochs)
    assert log.recovery_point <= bases[2]


def test_damage_that_only_the_producers_reading_meets_leaves_a_log_cut_where_it_was_asked(tmp_path):
    log = filled(tmp_path, SMALL)
    bases = [segment.base_offset for segment in log.segments]
    for name in log.store.names(str(TP)):
        if name.endswith(".snapshot"):
            log.store.delete(f"{TP}/{name}")
    damage(log, 0)
    wanted = bases[-1] + 2
    with pytest.raises(CorruptRecord):
        log.truncate_to(wanted)
    assert log.log_end_offset == log.producers.end_offset == wanted
    assert log.epochs[-1][1] < wanted
    follows = batch(60, 1, pid=4, epoch=1, sequence=0)
    assert log.append_as_leader(follows, 9, NOW).base_offset == wanted


def test_a_cut_that_meets_no_damage_knows_its_producers_and_largest_timestamp(tmp_path):
    log = filled(tmp_path, SMALL)
    kept = contents(log)[:5]
    log.truncate_to(10)
    assert contents(log) == kept
    assert log.segments[-1].max_timestamp_ms == NOW + 4
    assert log.append_as_leader(batch(8, 2, pid=4, at_ms=4), 9, NOW).duplicate


def test_all_is_read_that_can_be_and_the_first_damage_is_named():
    seen = []

    def read(name, error):
        seen.append(name)
        if error:
            raise MalformedBytes(name)

    first = damage_met_by(lambda: read("a", 0), lambda: read("b", 1), lambda: read("c", 1))
    assert (first, seen) == ("b", ["a", "b", "c"])
    assert damage_met_by() == ""


def test_a_segment_whose_first_timestamp_cannot_be_read_takes_no_record(tmp_path):
    config = LogConfig(index_interval_bytes=200)
    log = filled(tmp_path, config)
    log.close()
    log.store.write_back_all()
    damage(log, 0)
    again, _ = load_log(log.store, str(TP), TP, config, clean=True, recovery_point=16)
    assert again.log_end_offset == 16, "after a clean stop only its end is read"
    with pytest.raises(CorruptRecord):
        again.append_as_leader(batch(50), 9, NOW)
    assert again.log_end_offset == 16


def test_damage_where_loading_checks_nothing_is_corruption_and_not_a_failed_disk(tmp_path):
    """Kafka's broker ends then, each time: only what the disk throws takes a directory offline."""
    config = LogConfig(index_interval_bytes=200)
    log = filled(tmp_path, config)
    log.close()
    log.store.write_back_all()
    for name in log.store.names(str(TP)):
        if name.endswith(".snapshot"):
            log.store.delete(f"{TP}/{name}")
    damage(log, 2)
    with pytest.raises(CorruptRecord, match=f"{TP}: the batch at"):
        load_log(log.store, str(TP), TP, config, clean=True, recovery_point=16)
