"""What leaves a log at its start: by its settings, never beyond the high watermark."""

import pytest

from sim.log.config import LogConfig
from sim.log.partition.deletion import unlink
from sim.log.partition.retention import BY_AGE, BY_SIZE, delete_old_segments
from sim.log.store import checkpoints
from sim.log.store.files import FileStore
from tests.log.log_kit import NOW, TOPIC_ID, TP, batch, contents, manager, new_log

SIZE = batch().size_bytes
DAY = 24 * 3_600_000


def filled(root, count: int = 9, **settings):
    """Three batches a segment, one record each, one second apart."""
    log = new_log(root, LogConfig(**{"segment_bytes": 3 * SIZE, **settings}))
    for i in range(count):
        log.append_as_leader(batch(i, at_ms=1_000 * i, pid=4), 0, NOW)
    return log


def remove(log, high_watermark: int | None = None, at_ms: int = 0, *, is_bounded: bool = True):
    end = log.log_end_offset if high_watermark is None else high_watermark
    return delete_old_segments(log, end, NOW + at_ms, is_bounded=is_bounded)


def bases(log) -> list[int]:
    return [segment.base_offset for segment in log.segments]


def test_a_log_keeps_at_least_retention_bytes(tmp_path) -> None:
    log = filled(tmp_path / "a", retention_bytes=6 * SIZE)
    removal = remove(log)
    assert [tuple(move) for move in removal.moves] == [(0, 3, BY_SIZE)]
    assert (bases(log), log.size_bytes) == ([3, 6], 6 * SIZE)
    tight = filled(tmp_path / "b", retention_bytes=6 * SIZE + 1)
    assert remove(tight).moves == ()
    assert bases(tight) == [0, 3, 6]


def test_a_segment_is_as_old_as_its_newest_record(tmp_path) -> None:
    log = filled(tmp_path, retention_ms=10_000)
    assert remove(log, at_ms=12_000).moves == ()
    assert [tuple(m) for m in remove(log, at_ms=12_001).moves] == [(0, 3, BY_AGE)]
    assert bases(log) == [3, 6]


def test_size_goes_before_age_and_each_move_has_its_reason(tmp_path) -> None:
    log = filled(tmp_path, retention_bytes=6 * SIZE, retention_ms=10_000)
    moves = remove(log, at_ms=15_001).moves
    assert [tuple(move) for move in moves] == [(0, 3, BY_SIZE), (3, 6, BY_AGE)]


def test_before_1_0_what_nobody_could_read_yet_went_as_well(tmp_path) -> None:
    """KAFKA-5634: the log starts beyond its high watermark."""
    log = filled(tmp_path, retention_ms=0)
    assert remove(log, 5, DAY, is_bounded=False).moves[0].after == 9
    assert log.log_start_offset == 9


def test_nothing_beyond_the_high_watermark_goes(tmp_path) -> None:
    log = filled(tmp_path, retention_ms=0)
    assert remove(log, 5, DAY).moves[0].after == 3
    assert bases(log) == [3, 6]
    assert remove(log, 5, DAY).moves == ()


def test_an_active_segment_with_records_is_rolled_and_goes(tmp_path) -> None:
    log = filled(tmp_path, retention_ms=0)
    assert remove(log, at_ms=DAY).moves[0].after == 9
    assert (bases(log), log.size_bytes, log.log_end_offset) == ([9], 0, 9)
    assert remove(log, at_ms=2 * DAY).moves == ()
    assert bases(log) == [9]


def test_without_limits_everything_stays(tmp_path) -> None:
    log = filled(tmp_path, retention_ms=-1, retention_bytes=-1)
    assert remove(log, at_ms=1_000 * DAY) == ((), ())


def test_what_lies_below_the_log_start_goes_whatever_the_policy(tmp_path) -> None:
    log = filled(tmp_path, delete=False, compact=True, retention_ms=0, retention_bytes=0)
    assert log.raise_log_start(7)
    assert remove(log, at_ms=DAY).moves == ()
    assert (bases(log), log.log_start_offset) == ([6], 7)
    assert not log.raise_log_start(7)


def test_the_active_segment_stays_though_all_of_it_lies_below_the_log_start(tmp_path) -> None:
    log = filled(tmp_path, retention_ms=-1)
    log.raise_log_start(9)
    remove(log)
    assert bases(log) == [6]


def test_files_are_renamed_at_once_and_unlinked_when_asked(tmp_path) -> None:
    log = filled(tmp_path, retention_bytes=6 * SIZE)
    before = {name for name in log.store.names(str(TP)) if name.startswith(f"{0:020d}")}
    doomed = remove(log).doomed
    assert {name.removeprefix(f"{TP}/").removesuffix(".deleted") for name in doomed} == before
    assert all(log.store.exists(name) for name in doomed)
    unlink(log.store, doomed)
    unlink(log.store, doomed)
    assert not any(log.store.exists(name) for name in doomed)


def test_the_snapshot_at_a_removed_segments_base_goes_with_it(tmp_path) -> None:
    log = filled(tmp_path, retention_bytes=3 * SIZE)
    doomed = remove(log).doomed
    assert f"{TP}/{3:020d}.snapshot.deleted" in doomed
    assert log.store.exists(f"{TP}/{6:020d}.snapshot")


def test_epochs_collapse_onto_the_new_log_start(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(segment_bytes=3 * SIZE, retention_bytes=3 * SIZE))
    for i in range(9):
        log.append_as_leader(batch(i), i // 2, NOW)
    assert remove(log).moves[0].after == 6
    assert log.epochs == ((3, 6), (4, 8))


def test_reading_goes_on_behind_the_new_log_start(tmp_path) -> None:
    log = filled(tmp_path, retention_bytes=3 * SIZE, tail_bytes=1, tail_batches=1)
    assert log.read(2, 3, 1)[0].base_offset == 2  # the next read has a hint into this segment
    remove(log)
    assert [b.base_offset for b in log.read(6, 9, 10_000)] == [6, 7, 8]
    assert log.bytes_between(6, 9) == 3 * SIZE


@pytest.mark.parametrize("clean", [True, False])
def test_a_restart_finds_the_moved_log_start_and_no_doomed_file(tmp_path, clean) -> None:
    config = LogConfig(segment_bytes=3 * SIZE, retention_bytes=6 * SIZE)
    logs = manager(FileStore(tmp_path), config=config)
    log = logs.create(TP, TOPIC_ID)
    for i in range(9):
        log.append_as_leader(batch(i), 0, NOW)
    remove(log)
    log.raise_log_start(4)
    kept = contents(log)
    if clean:
        logs.shutdown(1)
    else:
        logs.checkpoint_log_starts()
    logs.finish()
    store = FileStore(tmp_path)
    [loaded] = manager(store, config=config).load()
    assert loaded.log.log_start_offset == 4
    assert contents(loaded.log) == kept
    assert not [name for name in store.names(str(TP)) if name.endswith(".deleted")]


def test_a_log_start_that_was_not_checkpointed_falls_back_to_the_first_segment(tmp_path) -> None:
    config = LogConfig(segment_bytes=3 * SIZE)
    store = FileStore(tmp_path)
    logs = manager(store, config=config)
    log = logs.create(TP, TOPIC_ID)
    for i in range(9):
        log.append_as_leader(batch(i), 0, NOW)
    log.raise_log_start(4)
    [loaded] = manager(store, config=config).load()
    assert loaded.log.log_start_offset == 0


def test_only_starts_within_the_first_segment_are_checkpointed(tmp_path) -> None:
    store = FileStore(tmp_path)
    logs = manager(store, config=LogConfig(segment_bytes=3 * SIZE, retention_bytes=6 * SIZE))
    log = logs.create(TP, TOPIC_ID)
    for i in range(9):
        log.append_as_leader(batch(i), 0, NOW)
    remove(log)
    logs.checkpoint_log_starts()
    assert checkpoints.read_offsets(store, checkpoints.LOG_STARTS) == {}
    log.raise_log_start(4)
    logs.checkpoint_log_starts()
    assert checkpoints.read_offsets(store, checkpoints.LOG_STARTS) == {TP: 4}


def test_a_segment_rolls_earlier_by_what_was_drawn_for_it(tmp_path) -> None:
    log = new_log(tmp_path, LogConfig(segment_ms=1_000))
    log.draw_jitter_ms = lambda _: 400
    for at_ms in (0, 1_000, 1_001, 1_601, 1_602):
        log.append_as_leader(batch(at_ms=at_ms), 0, NOW + 10**9)
    assert bases(log) == [0, 2, 4]  # the first segment was made before anything was drawn
