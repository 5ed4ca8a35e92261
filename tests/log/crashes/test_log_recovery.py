"""What is left after a crash, a power loss, a cut file or a flipped bit."""

import shutil
from bisect import bisect_left
from itertools import accumulate

import numpy as np
import pytest

from sim.errors import CorruptRecord
from sim.ids import METADATA_PARTITION
from sim.log.config import LogConfig
from sim.log.partition.recovery import load_log
from sim.log.store.files import FileStore
from tests.log.log_kit import NOW, TP, batch, contents, new_log

CONFIG = LogConfig(segment_bytes=700, index_interval_bytes=100)
DIRECTORY = str(TP)


def written(root, count: int = 8, *, config: LogConfig = CONFIG, size: int = 100):
    log = new_log(root, config)
    for i in range(count):
        log.append_as_leader(batch(2 * i, 2, at_ms=i, pid=4, size=size), i // 3, NOW)
    return log


def reload(store, *, clean=False, recovery_point=0, config=CONFIG):
    return load_log(store, DIRECTORY, TP, config, clean=clean, recovery_point=recovery_point)


def side_files(root) -> dict[str, bytes]:
    """Indexes and epochs; not the logs."""
    found = sorted((root / DIRECTORY).iterdir())
    return {
        path.name: path.read_bytes() for path in found if path.suffix not in {".log", ".snapshot"}
    }


def test_a_killed_process_loses_nothing(tmp_path) -> None:
    log = written(tmp_path)
    before = contents(log)
    again, recovery = reload(log.store)
    assert contents(again) == before
    assert (again.log_end_offset, again.epochs) == (log.log_end_offset, log.epochs)
    assert (recovery.truncated_bytes, recovery.clean) == (0, False)
    assert recovery.scanned_bytes == sum(map(len, before))


def test_recovery_rebuilds_indexes_byte_for_byte(tmp_path) -> None:
    log = written(tmp_path)
    log.close()
    log.store.write_back_all()
    before = side_files(tmp_path)
    for path in (tmp_path / DIRECTORY).iterdir():
        if path.suffix in {".index", ".timeindex"}:
            path.write_bytes(b"garbage!" * 3)
    again, _ = reload(FileStore(tmp_path))
    again.store.write_back_all()
    assert side_files(tmp_path) == before


def test_a_cut_at_every_byte_of_the_last_three_batches_leaves_the_whole_batches(tmp_path) -> None:
    roomy = LogConfig(segment_bytes=2_000, index_interval_bytes=100)
    log = written(tmp_path / "whole", 5, config=roomy, size=24)
    log.close()
    log.store.write_back_all()
    log.store.close()
    whole = contents(log)
    last = log.segments[-1]
    name = f"{DIRECTORY}/{last.base_offset:020d}.log"
    sizes = [len(data) for data in whole[-3:]]
    ends = list(accumulate(reversed(sizes), initial=0))
    assert last.size >= sum(sizes)
    for missing in range(sum(sizes) + 1):
        root = tmp_path / "cut"
        shutil.copytree(tmp_path / "whole", root)
        store = FileStore(root)
        store.open(name).truncate(last.size - missing)
        again, recovery = reload(store, config=roomy)
        lost = bisect_left(ends, missing)
        assert contents(again) == whole[: len(whole) - lost]
        assert again.log_end_offset == log.log_end_offset - 2 * lost
        assert recovery.truncated_bytes == sum(sizes[3 - lost :]) - missing
        answer = again.append_as_leader(batch(again.log_end_offset, 2, at_ms=50, pid=4), 9, NOW)
        assert (answer.error.name, answer.duplicate) == ("NONE", False)
        store.close()
        shutil.rmtree(root)


def test_a_flipped_bit_anywhere_under_the_checksum_cuts_the_log_there(tmp_path) -> None:
    log = written(tmp_path / "whole", size=24)
    log.store.write_back_all()
    whole = contents(log)
    name = f"{DIRECTORY}/{0:020d}.log"
    size = len(whole[0])
    for position in range(size, 2 * size):
        root = tmp_path / "flipped"
        shutil.copytree(tmp_path / "whole", root)
        store = FileStore(root)
        store.flip_bit(name, position, position % 8)
        again, recovery = reload(store)
        if 12 <= position - size < 16:
            # The leader epoch is outside the checksum, as in Kafka: nothing can notice.
            assert recovery.truncated_bytes == 0
        elif position - size >= 8:
            assert contents(again) == whole[:1]
            assert recovery.truncated_bytes == sum(map(len, whole[1:]))
            assert len(again.segments) == 1
            assert again.epochs == ((0, 0),)
        store.close()
        shutil.rmtree(root)


def test_segments_below_the_recovery_point_are_trusted(tmp_path) -> None:
    log = written(tmp_path)
    log.store.write_back_all()
    second = log.segments[1].base_offset
    log.store.flip_bit(f"{DIRECTORY}/{0:020d}.log", 100, 3)
    again, recovery = reload(log.store, recovery_point=second)
    assert recovery.truncated_bytes == 0
    assert again.log_end_offset == log.log_end_offset
    again, recovery = reload(log.store, recovery_point=second - 1)
    assert again.log_end_offset == 0


def test_a_clean_shutdown_scans_nothing_and_keeps_everything(tmp_path) -> None:
    log = written(tmp_path)
    log.close()
    again, recovery = reload(log.store, clean=True)
    assert recovery.scanned_bytes == recovery.truncated_bytes == 0
    assert again.recovery_point == again.log_end_offset == log.log_end_offset
    assert contents(again) == contents(log)
    assert again.segments[-1].max_timestamp_ms == log.segments[-1].max_timestamp_ms


def test_a_lost_index_is_rebuilt_even_after_a_clean_shutdown(tmp_path) -> None:
    log = written(tmp_path)
    log.close()
    log.store.write_back_all()
    before = side_files(tmp_path)
    log.store.delete(f"{DIRECTORY}/{0:020d}.index")
    again, recovery = reload(log.store, clean=True)
    again.store.write_back_all()
    assert side_files(tmp_path) == before
    assert recovery.scanned_bytes == 0


def test_producers_are_known_again_after_recovery_but_only_their_last_batch(tmp_path) -> None:
    log = written(tmp_path)
    log.close()
    again, _ = reload(log.store, clean=True)
    last, before = batch(14, 2, pid=4), batch(12, 2, pid=4)
    assert again.append_as_leader(last, 2, NOW).duplicate
    assert again.append_as_leader(before, 2, NOW).error.name == "OUT_OF_ORDER_SEQUENCE_NUMBER"
    assert log.append_as_leader(before, 2, NOW).duplicate


def test_a_damaged_producer_snapshot_is_replaced_by_replay(tmp_path) -> None:
    log = written(tmp_path)
    log.close()
    log.store.write_back_all()
    names = [name for name in log.store.names(DIRECTORY) if name.endswith(".snapshot")]
    for name in names:
        log.store.flip_bit(f"{DIRECTORY}/{name}", 20, 0)
    again, _ = reload(log.store, clean=True)
    assert not [name for name in log.store.names(DIRECTORY) if name.endswith(".snapshot")]
    assert again.append_as_leader(batch(14, 2, pid=4), 2, NOW).duplicate


@pytest.mark.parametrize("seed", range(30))
def test_a_power_loss_leaves_what_was_flushed_and_prefixes_of_the_segments_behind(
    tmp_path, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    log = written(tmp_path, 20, config=LogConfig(segment_bytes=30_000, index_interval_bytes=100))
    for i in range(40):
        log.append_as_leader(batch(40 + 2 * i, 2, size=1_500, at_ms=20 + i, pid=4), 7, NOW)
        if i == 10:
            log.flush()
    point = log.recovery_point
    whole = contents(log)
    log.store.power_loss(lambda: float(draw.random()))
    again, recovery = reload(log.store, recovery_point=point, config=log.config)
    left, lost = contents(again), [n for hole in recovery.holes for n in range(*hole)]
    end = again.log_end_offset
    assert left == [whole[o // 2] for o in range(0, end, 2) if o not in lost]
    assert min(lost, default=end) >= point == 62
    assert recovery.truncated_bytes <= len(b"".join(whole)) - len(b"".join(left))
    if end - 1 not in lost:
        assert again.producers.entries[4].last_sequence == end - 1


def test_a_power_loss_without_any_flush_may_lose_everything(tmp_path) -> None:
    log = written(tmp_path)
    assert len(log.segments) > 2
    last = log.segments[-1].base_offset
    log.store.power_loss(lambda: 0.0)
    again, recovery = reload(log.store)
    assert contents(again) == []
    # Files were made though nothing was written into them: the last one says where the log ends.
    assert again.log_end_offset == last
    assert sum(end - begin for begin, end in recovery.holes) == last


def test_a_lying_disk_loses_what_lies_above_and_below_the_recovery_point(tmp_path) -> None:
    log = written(tmp_path)
    log.store.lies = True
    log.flush()
    assert log.recovery_point == 16
    log.store.power_loss(lambda: 0.0)
    again, _ = reload(log.store, recovery_point=16)
    assert contents(again) == []
    assert again.log_end_offset == again.recovery_point == log.segments[-1].base_offset < 16


def test_a_checkpointed_log_start_above_the_log_end_empties_the_log(tmp_path) -> None:
    log = written(tmp_path)
    size = log.size_bytes
    again, recovery = load_log(
        log.store, DIRECTORY, TP, CONFIG, clean=False, recovery_point=0, log_start_offset=100
    )
    assert (again.log_start_offset, again.log_end_offset) == (100, 100)
    assert recovery.truncated_bytes == size
    assert again.append_as_leader(batch(), 5, NOW).base_offset == 100


def test_a_follower_refuses_a_batch_whose_bytes_were_damaged_on_the_leaders_disk(tmp_path) -> None:
    config = LogConfig(tail_bytes=1, tail_batches=1)
    leader = written(tmp_path / "leader", config=config)
    follower = new_log(tmp_path / "follower", config)
    leader.store.write_back_all()
    good = leader.read(0, 2, 1)
    assert not follower.append_as_follower(good)
    size = good[0].size_bytes
    leader.store.flip_bit(f"{DIRECTORY}/{0:020d}.log", size + 70, 0)
    with pytest.raises(CorruptRecord, match="checksum at 2"):
        follower.append_as_follower(leader.read(2, 16, 10_000))
    assert follower.log_end_offset == 2
    leader.store.flip_bit(f"{DIRECTORY}/{0:020d}.log", size + 70, 0)
    follower.append_as_follower(leader.read(2, 14, 10_000))
    assert follower.log_end_offset == 14


def test_reading_a_header_damaged_on_the_platter_says_so(tmp_path) -> None:
    leader = written(tmp_path, config=LogConfig(tail_bytes=1, tail_batches=1))
    leader.store.flip_bit(f"{DIRECTORY}/{0:020d}.log", 8, 7)
    with pytest.raises(CorruptRecord):
        leader.read(0, 14, 10_000)


def hollow(root):
    """A log whose second segment has lost everything, and what it was."""
    log = written(root)
    second = log.segments[1]
    log.store.open(f"{DIRECTORY}/{second.base_offset:020d}.log").truncate(0)
    return log, contents(log), (second.base_offset, log.segments[2].base_offset)


def test_recovery_keeps_what_follows_a_hole_between_segments(tmp_path) -> None:
    """``LogLoader.recoverLog`` drops later segments only where it has cut one."""
    log = written(tmp_path)
    whole = contents(log)
    begin, end = log.segments[1].base_offset, log.segments[2].base_offset
    log.store.open(f"{DIRECTORY}/{begin:020d}.log").truncate(0)
    again, recovery = reload(log.store)
    assert contents(again) == whole[: begin // 2] + whole[end // 2 :]
    assert again.log_end_offset == log.log_end_offset
    assert recovery.truncated_bytes == 0
    assert recovery.holes == ((begin, end),)
    assert again.append_as_leader(batch(16, 2, pid=4), 9, NOW).base_offset == 16
    _, once_more = reload(log.store, clean=True)
    assert once_more.holes == ((begin, end),)


def test_a_read_from_a_hole_goes_on_behind_it_and_so_does_a_followers_copy(tmp_path) -> None:
    log, _, (begin, end) = hollow(tmp_path / "leader")
    log, _ = reload(log.store)
    assert log.read(begin, 16, 1)[0].base_offset == end
    follower = new_log(tmp_path / "follower", CONFIG)
    while (found := log.read(follower.log_end_offset, 16, 10_000)) != ():
        follower.append_as_follower(found)
    assert contents(follower) == contents(log)


def test_a_log_cut_within_a_hole_ends_where_it_was_cut(tmp_path) -> None:
    """``LocalLog.truncateTo`` sets the log end to the offset that it was given."""
    log, _, (begin, end) = hollow(tmp_path)
    assert end - begin > 2
    log, _ = reload(log.store)
    log.truncate_to(begin + 1)
    assert log.log_end_offset == begin + 1
    assert log.append_as_leader(batch(), 9, NOW).base_offset == begin + 1


def test_the_metadata_log_is_cut_at_a_hole(tmp_path) -> None:
    log, _, (begin, _) = hollow(tmp_path)
    again, recovery = load_log(
        log.store, DIRECTORY, METADATA_PARTITION, CONFIG, clean=False, recovery_point=0
    )
    assert again.log_end_offset == begin
    assert recovery.holes == ()


def test_a_clean_shutdown_on_a_lying_disk_leaves_no_partial_batch(tmp_path) -> None:
    for survivors in (0.0, 0.7, 0.99):
        log = written(tmp_path / str(survivors))
        whole = contents(log)
        log.store.lies = True
        log.close()
        log.store.power_loss(lambda survivors=survivors: survivors)
        again, _ = reload(log.store, clean=True)
        left = contents(again)
        assert [data for data in whole if data in left] == left
        assert again.log_end_offset == again.segments[-1].next_offset()
        assert again.segments[-1].is_whole()
