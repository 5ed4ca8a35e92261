"""Batches taken by their last offset, as before 0.11: what a log makes of those that overlap."""

import pytest

from sim.inspect.doctor import examine
from sim.inspect.dump import DumpOptions, shown
from sim.inspect.dump_checks import Complaints
from sim.log.config import LogConfig
from sim.log.partition.recovery import InvalidOffset, load_log
from sim.wire.record_batch import NewRecord, build_batch
from tests.log.log_kit import NOW, TP, contents, new_log

EVERY = LogConfig(index_interval_bytes=0, by_last_offset=True)
"""Every batch but a segment's first has an index entry."""

SPARSE = LogConfig(index_interval_bytes=4096, by_last_offset=True)
DIRECTORY = str(TP)


def made(first, count, *, epoch=0, codec="gzip", size=10):
    records = [NewRecord(NOW, None, bytes([epoch]) * size)] * count
    return build_batch(records, base_offset=first, leader_epoch=epoch, codec=codec)


def overlapping(root, config=EVERY, codec="gzip"):
    """Ten old batches of a record each, and a new one over the last four: offsets 6 to 14."""
    log = new_log(root, config)
    log.append_as_follower([made(offset, 1, codec=codec) for offset in range(10)])
    log.append_as_follower([made(6, 9, epoch=2, codec=codec), made(15, 3, epoch=2, codec=codec)])
    return log


def reload(log, *, clean=False, recovery_point=0):
    return load_log(
        log.store, DIRECTORY, TP, log.config, clean=clean, recovery_point=recovery_point
    )


def test_a_batch_is_held_against_the_log_end_by_its_last_offset(tmp_path):
    log = overlapping(tmp_path / "old")
    assert log.log_end_offset == 18
    with pytest.raises(AssertionError, match="does not follow"):
        log.append_as_follower([made(12, 6)])
    today = new_log(tmp_path / "new", LogConfig())
    today.append_as_follower([made(0, 4)])
    with pytest.raises(AssertionError, match="does not follow"):
        today.append_as_follower([made(2, 4)])


@pytest.mark.parametrize("tail_bytes", [0, LogConfig().tail_bytes])
def test_readers_get_an_offset_from_the_first_batch_that_does_not_end_below_it(
    tmp_path, tail_bytes
):
    config = LogConfig(by_last_offset=True, tail_bytes=tail_bytes, tail_batches=0)
    log = overlapping(tmp_path, config)
    first = {offset: log.read(offset, 18, 1)[0] for offset in range(18)}
    assert [first[offset].leader_epoch for offset in range(18)] == [0] * 10 + [2] * 8
    assert first[10].base_offset == 6, "the batch that begins below"
    assert [batch.base_offset for batch in log.read(8, 18, 1 << 20)] == [8, 9, 6, 15]


@pytest.mark.parametrize(("cut", "left"), [(18, 18), (16, 15), (12, 10), (10, 10), (8, 8), (3, 3)])
def test_a_cut_leaves_whole_batches_and_ends_where_the_last_of_them_ends(tmp_path, cut, left):
    log = overlapping(tmp_path)
    before = contents(log)
    log.truncate_to(cut)
    assert log.log_end_offset == left
    kept = {18: 12, 15: 11, 10: 10, 8: 8, 3: 3}[left]
    assert contents(log) == before[:kept]
    log.append_as_follower([made(left, 1, epoch=3)])
    assert log.read(left, 100, 1)[0].leader_epoch == 3


def test_an_unclean_start_ends_the_broker_where_the_overlap_is_to_be_indexed(tmp_path):
    """KAFKA-3919: appended by 14, behind 9; indexed by 6, behind 9."""
    log = overlapping(tmp_path)
    before = contents(log)
    for _ in range(2):
        with pytest.raises(InvalidOffset, match=r"append an offset \(6\) no larger .* \(9\)"):
            reload(log)
    again, _ = reload(log, clean=True)
    assert contents(again) == before, "no batch was touched, and nobody looks after a clean stop"


@pytest.mark.parametrize(("config", "codec"), [(SPARSE, "gzip"), (EVERY, "none")])
def test_an_overlap_that_gets_no_entry_or_is_not_compressed_is_not_noticed(tmp_path, config, codec):
    log = overlapping(tmp_path, config, codec)
    before = contents(log)
    again, recovery = reload(log)
    assert contents(again) == before
    assert (again.log_end_offset, recovery.truncated_bytes) == (18, 0)


def test_what_is_read_of_an_overlap_is_the_same_after_recovery(tmp_path):
    log = overlapping(tmp_path, SPARSE)
    before = [log.read(offset, 18, 1 << 20) for offset in range(18)]
    again, _ = reload(log)
    after = [again.read(offset, 18, 1 << 20) for offset in range(18)]
    assert [[b.data for b in found] for found in after] == [
        [b.data for b in found] for found in before
    ]


def test_today_an_overlap_is_damage_and_cut_off(tmp_path):
    log = overlapping(tmp_path)
    log.config = LogConfig(index_interval_bytes=0)
    again, _ = reload(log)
    assert again.log_end_offset == 10


def rolled(root):
    """A segment with an overlap in front of another one."""
    log = overlapping(root)
    log.roll()
    log.append_as_follower([made(18, 2, epoch=2), made(20, 2, epoch=2)])
    return log


def test_in_an_older_segment_that_is_not_flushed_an_overlap_empties_the_log_from_there(tmp_path):
    """``Log.recoverLog`` catches what ``Log.loadSegments`` does not."""
    log = rolled(tmp_path)
    size = log.size_bytes
    again, recovery = reload(log)
    assert (again.log_end_offset, again.size_bytes) == (0, 0)
    assert recovery.truncated_bytes == size


def test_in_an_older_segment_that_is_flushed_nobody_looks(tmp_path):
    log = rolled(tmp_path)
    before = contents(log)
    assert contents(reload(log, recovery_point=18)[0]) == before


def test_an_older_segment_without_index_ends_the_broker_too(tmp_path):
    log = rolled(tmp_path)
    log.store.delete(f"{DIRECTORY}/{0:020d}.index")
    with pytest.raises(InvalidOffset):
        reload(log, recovery_point=18)


def test_the_last_segment_is_looked_at_before_an_older_one_is_emptied(tmp_path):
    log = rolled(tmp_path)
    log.append_as_follower([made(19, 9, epoch=3)])
    before = contents(log)
    with pytest.raises(InvalidOffset, match=r"\(19\) no larger"):
        reload(log)
    assert contents(log) == before


def test_the_doctor_and_the_dump_tell_of_an_overlap(tmp_path):
    log = overlapping(tmp_path)
    log.close()
    log.store.write_back_all()
    said = [finding.message for finding in examine(tmp_path) if finding.path.suffix == ".log"]
    assert any("begins at 6, below offset 10" in message for message in said), said
    (path,) = (tmp_path / DIRECTORY).glob("*.log")
    complaints = Complaints()
    assert list(shown(path, DumpOptions(deep=True), complaints))
    assert "  9 is followed by 6" in complaints.lines
