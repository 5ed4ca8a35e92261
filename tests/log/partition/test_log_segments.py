"""When segments roll, what their indexes hold, what is flushed."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.log.config import LogConfig
from sim.log.producers.snapshot import (
    MalformedSnapshot,
    ProducerEntry,
    SeenBatch,
    decode_snapshot,
    encode_snapshot,
)
from tests.log.log_kit import NOW, batch, contents, new_log


def fill(log, count: int, **how) -> None:
    for i in range(count):
        log.append_as_leader(batch(i, at_ms=i, **how), 0, NOW)


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_segment_may_equal_its_limit_but_not_pass_it(tmp_path) -> None:
    size = batch().size_bytes
    log = new_log(tmp_path / "a", LogConfig(segment_bytes=3 * size))
    fill(log, 7)
    assert bases(log) == [0, 3, 6]
    tight = new_log(tmp_path / "b", LogConfig(segment_bytes=3 * size - 1))
    fill(tight, 4)
    assert bases(tight) == [0, 2]


def test_a_segment_rolls_by_the_age_of_its_records_not_by_the_clock(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(segment_ms=1_000))
    for at_ms in (0, 1_000, 1_001, 500):
        log.append_as_leader(batch(at_ms=at_ms), 0, NOW + 10**9)
    assert bases(log) == [0, 2]


def test_a_full_index_rolls_the_segment(tmp_path) -> None:
    log = new_log(tmp_path / "a", LogConfig(segment_index_bytes=16, index_interval_bytes=0))
    fill(log, 5)
    # Entries for the second and third batch fill the offset index; the time index is full sooner,
    # as one slot of it is kept free: 16 bytes hold one entry, so none may be added.
    assert bases(log) == [0, 1, 2, 3, 4]
    log = new_log(tmp_path / "b", LogConfig(segment_index_bytes=36, index_interval_bytes=0))
    fill(log, 6)
    assert bases(log) == [0, 3]


def test_offsets_too_far_from_the_base_roll_the_segment(tmp_path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower([batch().stamped(0, 0)])
    log.log_end_offset = 2**31
    log.append_as_follower([batch().stamped(2**31, 0)])
    assert bases(log) == [0, 2**31]


def test_a_fetched_set_rolls_once_for_the_whole_set(tmp_path) -> None:
    size = batch().size_bytes
    log = new_log(tmp_path, LogConfig(segment_bytes=4 * size))
    made = [batch(i).stamped(i, 0) for i in range(6)]
    log.append_as_follower(made[:3])
    log.append_as_follower(made[3:])
    assert bases(log) == [0, 3]


def test_index_entries_follow_kafkas_rule(tmp_path) -> None:
    # One batch is 3,691 bytes: after two of them more than 4,096 bytes passed, as in the reference.
    log = new_log(tmp_path)
    for i in range(5):
        log.append_as_leader(batch(i * 4, 4, size=896, at_ms=i), 0, NOW)
    size = batch(0, 4, size=896).size_bytes
    assert 2_048 < size < 4_096
    segment = log.segments[0]
    index = segment.index.file.read(0, 1000)
    assert list(struct.iter_unpack(">ii", index)) == [(11, 2 * size), (19, 4 * size)]
    times = segment.time_index.file.read(0, 1000)
    assert list(struct.iter_unpack(">qi", times)) == [(NOW + 2, 11), (NOW + 4, 19)]


def test_the_time_index_keeps_the_first_batch_that_reached_the_largest_time(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(index_interval_bytes=0))
    for at_ms in (0, 9, 3, 9, 4):
        log.append_as_leader(batch(at_ms=at_ms), 0, NOW)
    log.close()
    times = log.segments[0].time_index.file.read(0, 1000)
    assert list(struct.iter_unpack(">qi", times)) == [(NOW + 9, 1)]


def test_a_small_closed_segment_has_no_index_entry_and_one_time_entry(tmp_path) -> None:
    log = new_log(tmp_path)
    fill(log, 2)
    log.close()
    segment = log.segments[0]
    assert (segment.index.file.size, segment.time_index.file.size) == (0, 12)
    empty = new_log(tmp_path / "empty")
    empty.close()
    assert empty.segments[0].time_index.file.size == 0


def test_a_roll_schedules_a_flush_of_what_lies_before_it(tmp_path) -> None:
    size = batch().size_bytes
    log = new_log(tmp_path, LogConfig(segment_bytes=2 * size))
    fill(log, 2)
    assert log.take_rolled() is None
    fill(log, 1)
    rolled = log.take_rolled()
    assert rolled is not None
    assert rolled.up_to == 2
    assert rolled.bytes >= 2 * size
    assert log.take_rolled() is None
    assert log.recovery_point == 0
    assert log.flush(rolled.up_to) >= rolled.bytes
    assert log.recovery_point == 2
    assert log.segments[1].log.dirty_bytes == size
    assert log.store.exists("orders-0/00000000000000000002.snapshot")


def test_flush_messages_asks_for_an_fsync_and_flushing_satisfies_it(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(flush_messages=3))
    answers = [log.append_as_leader(batch(i), 0, NOW).flush_due for i in range(4)]
    assert answers == [False, False, True, True]
    assert log.flush_bytes() == log.flush() == 4 * batch().size_bytes
    assert not log.append_as_leader(batch(), 0, NOW).flush_due
    assert log.flush_bytes() == batch().size_bytes


def test_truncating_to_every_offset_leaves_a_log_that_goes_on_alike(tmp_path) -> None:
    config = LogConfig(segment_bytes=500, index_interval_bytes=100)
    for target in range(13):
        log = new_log(tmp_path / str(target), config)
        fill(log, 12, pid=3)
        whole = contents(log)
        log.truncate_to(target)
        assert contents(log) == whole[:target]
        assert log.log_end_offset == target
        for i in range(target, 12):
            assert log.append_as_leader(batch(i, at_ms=i, pid=3), 0, NOW).error.name == "NONE"
        assert contents(log) == whole
        log.store.close()


def test_truncation_within_a_batch_drops_the_whole_batch(tmp_path) -> None:
    log = new_log(tmp_path)
    log.append_as_leader(batch(0, 3), 0, NOW)
    log.append_as_leader(batch(3, 3), 0, NOW)
    log.truncate_to(5)
    assert log.log_end_offset == 3


def test_reading_catches_up_through_files_and_memory_without_gaps(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(segment_bytes=900, tail_bytes=400, tail_batches=1))
    fill(log, 40)
    log.store.write_back_all()
    found, at = [], 0
    while at < log.log_end_offset:
        read = log.read(at, log.log_end_offset, 350)
        found += [one.data for one in read]
        at = read[-1].last_offset + 1
    assert found == contents(log)


def test_real_snapshot_bytes_are_read_and_written_alike() -> None:
    raw = bytes.fromhex(
        "000158727ec300000001" "0000000000000001" "0000" "00000467" "0000000000000467" "00000003"
        "000001a1fb11422e" "ffffffff" "ffffffffffffffff"
    )  # fmt: skip
    ((producer, entry),) = decode_snapshot(raw)
    assert (producer, entry.epoch, entry.last_sequence) == (1, 0, 0x467)
    assert entry.batches[0].first_offset == 0x464
    assert encode_snapshot({producer: entry}) == raw
    assert encode_snapshot({}).hex() == "000148674bc700000000"


def test_a_damaged_snapshot_is_refused_at_every_byte() -> None:
    entry = ProducerEntry(2)
    entry.batches.append(SeenBatch(3, 5, 17, 2, NOW))
    raw = encode_snapshot({9: entry})
    for position in range(len(raw)):
        broken = bytearray(raw)
        broken[position] ^= 0x10
        with pytest.raises(MalformedSnapshot):
            decode_snapshot(bytes(broken))
        with pytest.raises(MalformedSnapshot):
            decode_snapshot(raw[:position])


@given(st.lists(st.integers(0, 2**40), unique=True, max_size=40))
def test_snapshots_list_producers_by_the_bucket_of_a_java_hash_map(producers) -> None:
    entries = {producer: ProducerEntry(0) for producer in producers}
    order = [producer for producer, _ in decode_snapshot(encode_snapshot(entries))]
    assert sorted(order) == sorted(producers)
    if producers and max(producers) < 12:
        assert order == sorted(producers)


def test_silent_producers_are_forgotten_and_busy_ones_are_not(tmp_path) -> None:
    log = new_log(tmp_path)
    log.append_as_leader(batch(pid=1, at_ms=0), 0, NOW)
    log.append_as_leader(batch(pid=2, at_ms=5), 0, NOW)
    day = 24 * 3_600_000
    assert log.expire_producers(NOW + day + 4) == 1
    assert list(log.producers.entries) == [2]
