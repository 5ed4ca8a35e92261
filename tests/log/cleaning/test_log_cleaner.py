"""Compaction of one log: which records stay, as what batches, in which segments."""

from dataclasses import replace

import pytest

from sim.errors import CorruptRecord
from sim.log.cleaning.batch_filter import delete_horizon_ms
from sim.log.cleaning.cleanable import bound_of, cleanable, cleaning_bound, last_stable_offset
from sim.log.cleaning.cleaner import Cleaning, group_segments
from sim.log.cleaning.offset_map import OffsetMap, capacity_of, segments_between
from sim.log.directory import cleaner_checkpoint
from sim.log.producers.transaction_index import AbortedTxn, encode_aborted
from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import HEADER_BYTES, NewRecord, build_batch
from tests.log.cleaning.cleaner_kit import (
    COMPACT,
    append,
    clean,
    compacted,
    keyed,
    last_values,
    pairs,
    records,
)
from tests.log.log_kit import NOW, TP, contents


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def rolled(log) -> None:
    """End the active segment, so that all that was appended may be cleaned."""
    log.roll()
    assert log.segments[-1].size == 0


def test_of_each_key_the_last_record_stays_at_its_offset(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(12):
        append(log, keyed((f"k{i % 3}", f"v{i}")))
    rolled(log)
    end, counts = clean(log)
    assert pairs(log) == [(9, "k0", "v9"), (10, "k1", "v10"), (11, "k2", "v11")]
    assert (end, log.log_end_offset, log.log_start_offset) == (12, 12, 0)
    assert (counts.records_before, counts.records_after) == (12, 3)


def test_the_active_segment_is_never_cleaned(tmp_path) -> None:
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=10_000))
    append(log, *[keyed(("k", f"v{i}")) for i in range(5)])
    assert clean(log)[0] == 0
    assert len(pairs(log)) == 5


def test_a_dirty_record_outdoes_a_clean_one_and_clean_ones_are_not_read_for_keys(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "1")))
    rolled(log)
    end, _ = clean(log)
    append(log, keyed(("a", "2")))
    rolled(log)
    assert clean(log, checkpoint=end)[0] == 3
    assert pairs(log) == [(1, "b", "1"), (2, "a", "2")]


def test_a_record_without_a_key_goes_and_the_batch_keeps_its_offsets(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), (None, "x"), ("b", "1"), ("a", "2")))
    append(log, keyed(("z", "1")))
    rolled(log)
    [before, _] = log.batches()
    clean(log)
    [batch, _] = log.batches()
    assert pairs(log) == [(2, "b", "1"), (3, "a", "2"), (4, "z", "1")]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (0, 3, 2)
    assert batch.base_timestamp_ms == NOW + 2
    assert batch.max_timestamp_ms == NOW + 3
    assert batch.valid()
    assert batch.crc != before.crc


def test_a_batch_of_which_all_stays_is_copied_byte_for_byte(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1"), ("b", "1")), keyed(("c", "1"), ("d", "1")))
    rolled(log)
    before = contents(log)
    clean(log)
    assert contents(log) == before


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_rebuilt_batch_keeps_its_codec_headers_and_identity(tmp_path, codec) -> None:
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=2_000))
    many = [NewRecord(NOW + i, b"k%d" % (i % 4), b"v" * 50 + b"%d" % i) for i in range(9)]
    append(log, build_batch(many, codec=codec, producer_id=7, producer_epoch=2, base_sequence=0))
    append(log, keyed(("z", "1")))
    rolled(log)
    clean(log)
    [batch, _] = log.batches()
    assert (batch.codec, batch.producer_id, batch.producer_epoch) == (codec, 7, 2)
    assert (batch.base_sequence, batch.last_offset_delta, batch.record_count) == (0, 8, 4)
    assert [r.offset for r in batch.records()] == [5, 6, 7, 8]
    assert [r.timestamp_ms for r in batch.records()] == [NOW + i for i in (5, 6, 7, 8)]


def test_a_tombstone_gets_a_horizon_and_goes_after_it(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed(("a", None)), keyed(("b", "1")))
    rolled(log)
    end, counts = clean(log, at_ms=50)
    assert pairs(log) == [(1, "a", None), (2, "b", "1")]
    assert counts.tombstones_removed == 0
    [first, _] = log.batches()
    assert delete_horizon_ms(first) == NOW + 50 + 1_000
    assert first.max_timestamp_ms == NOW
    assert [r.timestamp_ms for r in first.records()] == [NOW]
    for at_ms, left in ((1_049, 2), (1_050, 1)):
        append(log, keyed(("c", str(at_ms))))
        rolled(log)
        end, counts = clean(log, checkpoint=end, at_ms=at_ms)
        assert sum(key in "ab" for _, key, _ in pairs(log)) == left
        assert counts.tombstones_removed == 2 - left


def test_a_horizon_once_set_stays_whatever_else_leaves_the_batch(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", None), ("b", "1")), keyed(("x", "1")))
    rolled(log)
    end, _ = clean(log, at_ms=50)
    append(log, keyed(("b", "2")))
    rolled(log)
    clean(log, checkpoint=end, at_ms=500)
    [first, *_] = log.batches()
    assert (first.record_count, delete_horizon_ms(first)) == (1, NOW + 1_050)


def test_the_last_batch_of_a_live_producer_stays_as_an_empty_shell(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(3):
        append(log, keyed(("k", f"v{i}"), producer_id=4, producer_epoch=0, base_sequence=i))
    append(log, keyed(("k", "other"), producer_id=5, producer_epoch=0, base_sequence=0))
    append(log, keyed(("k", "last")))
    rolled(log)
    clean(log)
    found = [(b.base_offset, b.producer_id, b.record_count, b.size_bytes) for b in log.batches()]
    assert found[:2] == [(2, 4, 0, HEADER_BYTES), (3, 5, 0, HEADER_BYTES)]
    shell = next(iter(log.batches()))
    assert (shell.base_timestamp_ms, shell.max_timestamp_ms) == (-1, NOW)
    assert (shell.base_sequence, shell.codec) == (2, "none")
    log.rebuild_producers()
    retry = keyed(("k", "v2"), producer_id=4, producer_epoch=0, base_sequence=2)
    assert log.append_as_leader(retry, 0, NOW).duplicate
    # The producer is forgotten: its shell goes with the next cleaning.
    log.expire_producers(NOW + 10**9)
    append(log, keyed(("k", "later")))
    rolled(log)
    clean(log, at_ms=10**9)
    assert [b.producer_id for b in log.batches()] == [-1]


def test_the_last_batch_of_a_round_stays_if_need_be_empty(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), keyed((None, "x")))
    rolled(log)
    append(log, keyed(("b", "1")))
    clean(log)
    found = [(b.base_offset, b.record_count) for b in log.batches()]
    assert found == [(0, 1), (1, 0), (2, 1)]


def test_small_segments_are_cleaned_into_one(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(20):
        append(log, keyed((f"k{i % 2}", f"v{i}")))
    rolled(log)
    assert len(bases(log)) > 4
    for _ in range(3):
        clean(log)
    assert bases(log) == [0, 20]
    names = {name.partition(".")[0] for name in log.store.names(str(TP)) if ".log" in name}
    assert names == {f"{0:020d}", f"{20:020d}"}
    assert not [
        n for n in log.store.names(str(TP)) if n.endswith((".cleaned", ".swap", ".deleted"))
    ]


def test_groups_fit_into_a_segment_together(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(20):
        append(log, keyed((f"k{i}", f"v{i}")))
    segments = list(log.segments)
    sizes = [segment.size for segment in segments]
    groups = group_segments(segments, replace(COMPACT, segment_bytes=2 * max(sizes)), 20)
    assert [segment for group in groups for segment in group] == segments
    assert all(sum(s.size for s in group) <= 2 * max(sizes) for group in groups)
    assert max(map(len, groups)) == 2
    by_index = group_segments(
        segments, replace(COMPACT, segment_bytes=10**6, segment_index_bytes=1), 20
    )
    assert max(map(len, by_index)) == 1
    far = group_segments(segments, replace(COMPACT, segment_bytes=10**6), 1 << 40)
    assert (len(far), len(far[1])) == (2, 1)


def test_snapshots_go_with_the_bases_that_are_gone(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(8):
        append(
            log, keyed((f"k{i % 2}", "v" * 40), producer_id=4, producer_epoch=0, base_sequence=i)
        )
    rolled(log)
    before = [n for n in log.store.names(str(TP)) if n.endswith(".snapshot")]
    for _ in range(3):
        clean(log)
    after = [n for n in log.store.names(str(TP)) if n.endswith(".snapshot")]
    assert after == [f"{8:020d}.snapshot"]
    assert set(after) < set(before)


def test_the_indexes_of_a_cleaned_segment_follow_the_rule_of_every_segment(tmp_path) -> None:
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=9_000))
    for i in range(60):
        if i == 30:
            rolled(log)
        append(log, keyed((f"k{i % 30}", "v" * 30), at_ms=i))
    rolled(log)
    clean(log)
    [cleaned, _] = log.segments
    index, times = cleaned.index.file, cleaned.time_index.file
    kept = (index.read(0, index.size), times.read(0, times.size))
    positions = dict(cleaned.batches(0))
    cleaned.reset()
    for position, batch in positions.items():
        cleaned.index_batch(position, batch)
    cleaned.close_out()
    assert (index.read(0, index.size), times.read(0, times.size)) == kept
    assert index.size > 0


def test_readers_at_the_tail_see_what_is_left(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed(("k", f"v{i}")) for i in range(6)])
    rolled(log)
    append(log, keyed(("k", "new")))
    assert len(log.read(0, 7, 10_000)) == 7
    clean(log)
    assert [b.base_offset for b in log.read(0, 7, 10_000)] == [5]
    assert [b.base_offset for b in log.read(6, 7, 10_000)] == [6]
    assert log.read(2, 7, 1)[0].base_offset == 5


# -- transactions ---------------------------------------------------------------------------------


def transactional(*found, pid: int = 4, sequence: int = 0):
    return keyed(
        *found, producer_id=pid, producer_epoch=0, base_sequence=sequence, transactional=True
    )


def marker(commit: bool, pid: int = 4):
    return end_transaction_marker(Marker(commit, pid, 0, 0), NOW)


def test_aborted_data_goes_at_once_and_its_marker_after_it(tmp_path) -> None:
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=10_000))
    append(log, keyed(("a", "1")), transactional(("a", "2")), marker(False), keyed(("b", "1")))
    append(log, keyed(("c", "1"), producer_id=4, producer_epoch=1, base_sequence=0))
    assert list(log.segments[0].transaction_index.entries()) == [AbortedTxn(4, 1, 2, 3)]
    rolled(log)
    end, _ = clean(log)
    assert [(o, k) for o, k, _ in pairs(log) if k in ("a", "b", "c")] == [
        (0, "a"),
        (3, "b"),
        (4, "c"),
    ]
    control = [b for b in log.batches() if b.is_control]
    assert [(b.base_offset, delete_horizon_ms(b)) for b in control] == [(2, -1)]
    assert log.store.read_whole(f"{TP}/{0:020d}.txnindex") == encode_aborted(
        [AbortedTxn(4, 1, 2, 3)]
    )
    append(log, keyed(("d", "1")))
    rolled(log)
    end, _ = clean(log, checkpoint=end, at_ms=100)
    control = [b for b in log.batches() if b.is_control]
    assert [delete_horizon_ms(b) for b in control] == [NOW + 1_100]
    append(log, keyed(("e", "1")))
    rolled(log)
    clean(log, checkpoint=end, at_ms=1_100)
    assert not [b for b in log.batches() if b.is_control]


def test_a_commit_marker_stays_while_data_of_its_transaction_does(tmp_path) -> None:
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=10_000))
    append(log, transactional(("a", "1")), marker(True), keyed(("x", "1")))
    rolled(log)
    end = None
    for at_ms in (0, 2_000, 4_000):
        end, _ = clean(log, checkpoint=0, at_ms=at_ms)
        assert [delete_horizon_ms(b) for b in log.batches() if b.is_control] == [-1]
    assert end == 3


def test_without_the_index_an_aborted_value_would_win(tmp_path) -> None:
    """The twin: it is the index that tells the cleaner, nothing else."""
    log = compacted(tmp_path, replace(COMPACT, segment_bytes=10_000))
    append(log, keyed(("a", "1")), transactional(("a", "2")), marker(False), keyed(("b", "1")))
    log.segments[0].transaction_index.delete()
    rolled(log)
    clean(log)
    assert (1, "a", "2") in pairs(log)


# -- how far, and whether -------------------------------------------------------------------------


def test_the_bound_is_the_lower_of_high_watermark_and_last_stable_offset(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, keyed(("a", "1")), transactional(("a", "2")), keyed(("a", "3")))
    assert last_stable_offset(log, 3) == 1
    assert (cleaning_bound(3, 1), cleaning_bound(2, 9)) == (1, 2)
    append(log, marker(True))
    assert last_stable_offset(log, 4) == 4


def test_before_3_1_only_an_open_transaction_stopped_a_cleaner(tmp_path) -> None:
    """KAFKA-13194: an uncommitted value of a key takes the place of the committed one."""
    log = compacted(tmp_path)
    append(log, keyed(("k", "v" * 200)), keyed(("k", "w" * 200)), keyed(("z", "1" * 200)))
    assert bound_of(log, 1, by_high_watermark=True) == 1
    assert bound_of(log, 1, by_high_watermark=False) == 3
    clean(log, bound=bound_of(log, 1, by_high_watermark=True))
    assert [offset for offset, _, _ in pairs(log)] == [0, 1, 2]
    clean(log, bound=bound_of(log, 1, by_high_watermark=False))
    assert [offset for offset, _, _ in pairs(log)] == [1, 2]
    append(log, transactional(("a", "2")))
    assert bound_of(log, 1, by_high_watermark=False) == 3


def test_whole_segments_below_the_bound_are_cleaned_and_no_more(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed(("k", "v" * 20)) for _ in range(12)])
    segments = bases(log)
    bound = segments[2] + 1
    end, _ = clean(log, bound=bound)
    assert end == segments[2]
    assert [o for o, _, _ in pairs(log)][:2] == [segments[2] - 1, segments[2]]


def test_a_log_is_due_when_more_than_the_ratio_is_dirty(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(6):
        append(log, keyed((f"k{i}", "v" * 30)))
    rolled(log)
    sizes = [segment.size for segment in log.segments]
    middle = log.segments[2].base_offset
    target = cleanable(log, middle, 6, NOW)
    assert target.ratio == sum(sizes[2:]) / sum(sizes)
    log.config = replace(COMPACT, min_cleanable_dirty_ratio=target.ratio)
    assert not cleanable(log, middle, 6, NOW).is_due
    log.config = replace(COMPACT, min_cleanable_dirty_ratio=target.ratio - 0.01)
    assert cleanable(log, middle, 6, NOW).is_due


def test_young_segments_wait_and_old_ones_are_overdue(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(6):
        append(log, keyed((f"k{i}", "v" * 30), at_ms=1_000 * i))
    rolled(log)
    segments = bases(log)
    log.config = replace(COMPACT, min_compaction_lag_ms=10_000)
    young = next(s for s in log.segments if s.largest_timestamp_ms() > NOW + 2_000)
    assert cleanable(log, None, 6, NOW + 12_000).first_uncleanable_offset == young.base_offset
    log.config = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=5_000)
    assert not cleanable(log, None, 6, NOW + 5_000).is_due
    assert cleanable(log, None, 6, NOW + 5_001).is_due
    assert cleanable(log, segments[-1], 6, NOW + 50_000).is_overdue is False


def test_a_checkpoint_that_cannot_be_starts_over_at_the_log_start(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i}", "v" * 30)) for i in range(6)])
    log.raise_log_start(2)
    for checkpoint, first in ((None, 2), (1, 2), (7, 2), (4, 4), (6, 6)):
        assert cleanable(log, checkpoint, 6, NOW).first_dirty_offset == first


def test_a_truncation_takes_the_checkpoint_with_it(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i}", "v" * 30)) for i in range(8)])
    cleaner_checkpoint.write_cleaned(log, 6, [TP])
    assert cleaner_checkpoint.read_cleaned(log, [TP]) == 6
    log.truncate_to(4)
    append(log, *[keyed((f"n{i}", "v" * 30)) for i in range(8)])
    assert cleaner_checkpoint.read_cleaned(log, [TP]) == 4
    assert cleaner_checkpoint.read_cleaned(log, [TP]) == 4
    cleaner_checkpoint.write_cleaned(log, 5, [])
    assert cleaner_checkpoint.read_cleaned(log, [TP]) == 5


def test_a_map_that_is_full_ends_the_round_with_the_last_whole_batch(tmp_path) -> None:
    log = compacted(tmp_path)
    for i in range(12):
        append(log, keyed((f"k{i}", "1"), (f"k{i}", "2")))
    rolled(log)
    end, _ = clean(log, capacity=5)
    assert end == 8, "no record is looked at when the map is full, not even of a key that it has"
    assert [v for o, _, v in pairs(log) if o < 8] == ["2"] * 4
    assert len([v for o, _, v in pairs(log) if o >= 8]) == 16
    before = last_values(pairs(log))
    while end < 24:
        end, _ = clean(log, checkpoint=end, capacity=5)
    assert last_values(pairs(log)) == before
    assert [v for _, _, v in pairs(log)] == ["2"] * 12


def test_the_map_holds_as_many_keys_as_kafkas() -> None:
    assert capacity_of(134_217_728, 0.9) == 5_033_164
    full = OffsetMap(1)
    assert full.put(b"a", 1)
    assert not full.put(b"b", 2)
    assert (full.get(b"a"), full.get(b"b")) == (1, -1)


def test_a_log_that_changes_under_the_cleaner_keeps_what_it_has(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i % 2}", "v" * 30)) for i in range(8)])
    rolled(log)
    cleaning = Cleaning(cleanable(log, None, 8, NOW), 100, NOW, lambda: None)
    assert cleaning.write_group() is not None
    log.truncate_to(1)
    before = contents(log)
    assert cleaning.swap() is None
    assert contents(log) == before
    assert not [n for n in log.store.names(str(TP)) if n.endswith(".cleaned")]


def test_a_damaged_batch_stops_the_cleaning_before_it_can_be_given_a_new_checksum(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i % 2}", "v" * 30), (f"x{i}", "y")) for i in range(8)])
    rolled(log)
    log.store.flip_bit(f"{TP}/{0:020d}.log", 100, 3)
    with pytest.raises(CorruptRecord):
        clean(log)


def test_an_offset_beyond_its_segment_stops_the_cleaning(tmp_path) -> None:
    """No checksum covers a batch's offset: the map would end beyond what may be cleaned."""
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i % 2}", "v" * 30), (f"x{i}", "y")) for i in range(8)])
    rolled(log)
    log.store.flip_bit(f"{TP}/{0:020d}.log", 0, 5)
    with pytest.raises(CorruptRecord, match="is not below"):
        clean(log)


def test_segments_between_begins_with_the_one_that_would_hold_the_start(tmp_path) -> None:
    log = compacted(tmp_path)
    append(log, *[keyed((f"k{i}", "v" * 30)) for i in range(12)])
    known = bases(log)
    assert [s.base_offset for s in segments_between(log, known[1] + 1, known[3])] == known[1:3]
    assert segments_between(log, 5, 5) == []
    assert len(records(log)) == 12
