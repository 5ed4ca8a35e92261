"""Snapshots beside a metadata log of real bytes: files, the log's head, and what a start finds."""

import pytest

from sim.ids import METADATA_PARTITION, SnapshotId, uuid_text
from sim.log.directory.manager import LogManager
from sim.log.partition.reading import file_batches
from sim.log.store.files import DiskFailed, FileStore
from sim.nodes.storage.metadata_log import FileMetadataLog, MetadataLogConfig, format_directories
from sim.nodes.storage.snapshot_files import (
    build_bootstrap,
    build_snapshot,
    contained_timestamp_ms,
    file_name,
    snapshot_id,
    snapshot_records,
)
from sim.protocol.metadata import records as mr
from sim.protocol.ports import EpochEnd
from sim.units import EPOCH_MS
from sim.wire.primitives import MalformedBytes

ID = uuid_text("topic")
STATE = (mr.FeatureLevelRecord("metadata.version", 25), mr.TopicRecord("t", ID))
DIRECTORY = str(METADATA_PARTITION)
KEEP = MetadataLogConfig(segment_ms=1_000)


def opened(root, config=KEEP):
    manager = LogManager(
        (FileStore(root),), 3001, uuid_text("c"), (uuid_text("d"),), lambda _: config.log
    )
    manager.load()
    return FileMetadataLog.open(manager, config)


def grown(root, config=KEEP, *, records=30, every=10):
    """A log of a record a second, in segments of a second, with a snapshot now and then."""
    log = opened(root, config)
    for offset in range(records):
        now_ms = EPOCH_MS + 1_000 * offset
        log.append_records([mr.NoOpRecord()], 1 + offset // 15, now_ms)
        if log.log_end_offset % every == 0:
            taken = SnapshotId(offset + 1, log.latest_epoch)
            log.keep_snapshot(taken, log.snapshot_bytes(taken, STATE, now_ms + 5))
    return log


def files(root, suffix):
    return sorted(path.name for path in (root / DIRECTORY).glob(f"*{suffix}"))


# -- bytes ----------------------------------------------------------------------------------------


def test_a_snapshot_is_a_header_the_state_and_a_footer_in_batches_from_offset_0(tmp_path):
    path = tmp_path / file_name(SnapshotId(40, 3))
    path.write_bytes(build_snapshot(SnapshotId(40, 3), STATE, EPOCH_MS + 7, EPOCH_MS))
    batches = [batch for _, batch in file_batches(path)]
    assert [(b.base_offset, b.last_offset, b.is_control) for b in batches] == [
        (0, 0, True), (1, 2, False), (3, 3, True),
    ]  # fmt: skip
    assert {b.leader_epoch for b in batches} == {3}
    assert {b.max_timestamp_ms for b in batches} == {EPOCH_MS + 7}
    assert all(b.valid() for b in batches)
    assert contained_timestamp_ms(path.read_bytes()) == EPOCH_MS
    assert snapshot_records(path.read_bytes()) == STATE


def test_a_large_state_takes_several_batches(monkeypatch, tmp_path):
    monkeypatch.setattr("sim.nodes.storage.snapshot_files._BATCH_MAX", 200)
    state = tuple(mr.FeatureLevelRecord(f"feature-{n:02d}", 1) for n in range(20))
    path = tmp_path / "x.checkpoint"
    path.write_bytes(build_snapshot(SnapshotId(40, 3), state, 5, 5))
    sizes = [batch.size_bytes for _, batch in file_batches(path)]
    assert len(sizes) > 4
    assert max(sizes) < 300
    assert snapshot_records(path.read_bytes()) == state


def test_names_tell_the_end_offset_and_the_epoch():
    assert file_name(SnapshotId(40, 3)) == "00000000000000000040-0000000003.checkpoint"
    assert snapshot_id("00000000000000000040-0000000003.checkpoint") == SnapshotId(40, 3)
    for other in ("bootstrap.checkpoint", "00000000000000000040.log", "40-3.checkpoint"):
        assert snapshot_id(other) is None


@pytest.mark.parametrize("damage", ["header", "footer", "bit"])
def test_a_damaged_snapshot_is_not_loaded(damage):
    data = build_snapshot(SnapshotId(40, 3), STATE, 5, 5)
    broken = {
        "header": data[83:],
        "footer": data[:-75],
        "bit": data[:150] + bytes([data[150] ^ 1]) + data[151:],
    }[damage]
    with pytest.raises(MalformedBytes):
        snapshot_records(broken)


def test_formatting_leaves_the_features_in_every_new_directory_and_touches_no_old_one(tmp_path):
    stores = (FileStore(tmp_path / "a"), FileStore(tmp_path / "b"))
    config = MetadataLogConfig(features=(("metadata.version", 25), ("a.version", 1)))
    (tmp_path / "b" / "meta.properties").write_text("formatted before")
    stores = (FileStore(tmp_path / "a"), FileStore(tmp_path / "b"))
    format_directories(stores, config, EPOCH_MS)
    data = (tmp_path / "a" / "bootstrap.checkpoint").read_bytes()
    assert data == build_bootstrap(config.features, EPOCH_MS)
    assert snapshot_records(data) == (
        mr.FeatureLevelRecord("metadata.version", 25),
        mr.FeatureLevelRecord("a.version", 1),
    )
    assert contained_timestamp_ms(data) == 0
    assert not (tmp_path / "b" / "bootstrap.checkpoint").exists()


@pytest.mark.parametrize(("level", "is_written"), [(0, False), (3, False), (7, True)])
def test_formatting_before_3_3_writes_no_bootstrap_file(level, is_written, tmp_path):
    config = MetadataLogConfig(features=(("metadata.version", level),))
    format_directories((FileStore(tmp_path / "a"),), config, EPOCH_MS)
    assert (tmp_path / "a" / "bootstrap.checkpoint").exists() is is_written


# -- a log with snapshots -------------------------------------------------------------------------


def test_a_snapshot_knows_the_time_of_the_last_record_below_it_and_is_written_once(tmp_path):
    log = grown(tmp_path)
    assert (log.earliest_snapshot, log.latest_snapshot) == (SnapshotId(10, 1), SnapshotId(30, 2))
    part = log.snapshot_part(SnapshotId(10, 1), 0, 1 << 20)
    assert contained_timestamp_ms(part.data) == EPOCH_MS + 9_000
    assert log.snapshot_bytes(SnapshotId(10, 1), STATE, 0) is None
    assert log.snapshot_part(SnapshotId(11, 1), 0, 10) is None
    assert log.snapshot_records(SnapshotId(20, 2)) == STATE


def test_within_its_limits_nothing_is_cleaned(tmp_path):
    log = grown(tmp_path)
    log.clean(EPOCH_MS + 30_000)
    assert log.log_start_offset == 0
    assert len(files(tmp_path, ".checkpoint")) == 3
    assert len(files(tmp_path, ".log")) > 5


def test_by_size_the_oldest_snapshot_goes_first_and_the_log_below_the_next_with_it(tmp_path):
    log = grown(tmp_path)
    one = (tmp_path / DIRECTORY / file_name(SnapshotId(10, 1))).stat().st_size
    # One byte less than log and three snapshots have: the oldest must go, and no other.
    limit = log.log.size_bytes + 3 * one - 1
    cut = FileMetadataLog(log.log, MetadataLogConfig(retention_bytes=limit))
    cut.clean(EPOCH_MS + 30_000)
    assert (cut.log_start_offset, cut.earliest_snapshot) == (20, SnapshotId(20, 2))
    bases = [int(name[:20]) for name in files(tmp_path, ".log")]
    assert bases[0] <= 20 < bases[1]
    assert cut.records_between(20, 30)[0].offset == 20
    cut.clean(EPOCH_MS + 30_000)
    assert cut.log_start_offset == 20


def test_by_size_the_newest_snapshot_stays_however_small_the_limit(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    log.clean(EPOCH_MS + 30_000)
    assert log.log_start_offset == 30
    assert files(tmp_path, ".checkpoint") == [file_name(SnapshotId(30, 2))]
    assert log.log.size_bytes == 72 * len(log.read(log.log.segments[0].base_offset, 1 << 20))


def test_what_goes_is_renamed_at_first_and_unlinked_at_the_next_cleaning(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    log.clean(EPOCH_MS + 30_000)
    waiting = files(tmp_path, ".deleted")
    assert file_name(SnapshotId(10, 1)) + ".deleted" in waiting
    assert f"{0:020d}.log.deleted" in waiting
    log.clean(EPOCH_MS + 90_000)
    assert files(tmp_path, ".deleted") == []
    assert log.latest_snapshot == SnapshotId(30, 2)


def test_by_age_counts_the_time_of_the_last_record_that_a_snapshot_holds(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_ms=20_000))
    log.clean(EPOCH_MS + 29_000)
    assert log.log_start_offset == 0
    log.clean(EPOCH_MS + 29_001)
    assert (log.log_start_offset, log.earliest_snapshot) == (20, SnapshotId(20, 2))


def test_minus_one_is_no_limit(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(retention_bytes=-1, retention_ms=-1))
    log.clean(EPOCH_MS + 10**12)
    assert log.log_start_offset == 0


def test_epochs_below_the_oldest_snapshot_end_at_it(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    assert log.end_offset_for_epoch(1) == EpochEnd(1, 15)
    log.clean(EPOCH_MS + 30_000)
    assert log.end_offset_for_epoch(1) == EpochEnd(2, 30)


def test_a_fetched_snapshot_starts_the_log_anew_unless_the_log_goes_further(tmp_path):
    data = build_snapshot(SnapshotId(100, 9), STATE, 5, 5)
    log = grown(tmp_path)
    assert log.install_snapshot(SnapshotId(100, 9), data)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (100, 100, 9)
    assert files(tmp_path, ".checkpoint") == [file_name(SnapshotId(100, 9))]
    assert files(tmp_path, ".log") == [f"{100:020d}.log"]
    log.append_records([mr.NoOpRecord()], 9, EPOCH_MS)
    assert not log.install_snapshot(SnapshotId(101, 9), data)
    assert log.log_end_offset == 101


# -- what a start finds ---------------------------------------------------------------------------


def test_a_start_finds_snapshots_and_log_as_they_were(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    log.clean(EPOCH_MS + 30_000)
    log.append_records([mr.NoOpRecord()], 2, EPOCH_MS + 31_000)
    log.log.store.write_back_all()
    again = opened(tmp_path)
    # The start is where the first segment begins: what lies below the snapshot does no harm.
    assert again.log_start_offset == log.log.segments[0].base_offset
    assert again.latest_snapshot == SnapshotId(30, 2)
    assert (again.log_end_offset, again.latest_epoch) == (31, 2)


def test_a_log_that_ends_below_its_newest_snapshot_starts_anew_at_it(tmp_path):
    grown(tmp_path).log.store.write_back_all()
    path = tmp_path / DIRECTORY / file_name(SnapshotId(100, 9))
    path.write_bytes(build_snapshot(SnapshotId(100, 9), STATE, 5, 5))
    log = opened(tmp_path)
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (100, 100, 9)


def test_unfinished_and_outdated_snapshots_go_at_a_start(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    log.clean(EPOCH_MS + 30_000)
    log.log.store.write_back_all()
    for name in (
        file_name(SnapshotId(10, 1)),
        file_name(SnapshotId(20, 2)) + ".deleted",
        "00000000000000000050-0000000003-123.checkpoint.part",
    ):
        (tmp_path / DIRECTORY / name).write_bytes(b"")
    opened(tmp_path)
    left = [path.name for path in (tmp_path / DIRECTORY).glob("*.checkpoint*")]
    assert left == [file_name(SnapshotId(30, 2))]


def test_a_log_without_its_beginning_is_refused(tmp_path):
    log = grown(tmp_path, MetadataLogConfig(segment_ms=1_000, retention_bytes=0))
    log.clean(EPOCH_MS + 30_000)
    log.log.store.write_back_all()
    (tmp_path / DIRECTORY / file_name(SnapshotId(30, 2))).unlink()
    with pytest.raises(DiskFailed, match="no snapshot holds what lay below"):
        opened(tmp_path)
