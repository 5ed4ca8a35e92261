"""Several log directories, their checkpoints and identities."""

import pytest

from sim.errors import SimulationError
from sim.ids import METADATA_PARTITION, TopicPartition
from sim.log.config import LogConfig
from sim.log.directory.manager import partition_of
from sim.log.store import checkpoints
from sim.log.store.checkpoints import MalformedCheckpoint
from sim.log.store.files import DiskFailed, FileStore
from tests.log.log_kit import CLUSTER_ID, NOW, TOPIC_ID, TP, batch, contents, manager

OTHER = TopicPartition("a-b", 3)


def stores(root, count: int = 1) -> tuple[FileStore, ...]:
    return tuple(FileStore(root / f"d{i}") for i in range(count))


def filled(root, count: int = 1):
    made = manager(*stores(root, count))
    for partition in (TP, OTHER):
        log = made.create(partition, TOPIC_ID)
        for i in range(3):
            log.append_as_leader(batch(i), 0, NOW)
    return made


def test_a_new_directory_gets_its_identity_and_logs_their_topic_id(tmp_path) -> None:
    filled(tmp_path)
    assert (tmp_path / "d0/meta.properties").read_text().splitlines()[1:] == [
        f"cluster.id={CLUSTER_ID}", "directory.id=ICEiIyQlJicoKSorLC0uLw", "node.id=1", "version=1",
    ]  # fmt: skip
    metadata = (tmp_path / "d0/orders-0/partition.metadata").read_bytes()
    assert metadata == f"version: 0\ntopic_id: {TOPIC_ID}".encode()
    assert len(metadata) == 43


def test_new_logs_go_to_the_directory_with_the_fewest(tmp_path) -> None:
    made = filled(tmp_path, 2)
    assert [made.directory_of(tp) for tp in (TP, OTHER)] == [0, 1]
    made.create(TopicPartition("c", 0), TOPIC_ID, directory=1)
    made.create(TopicPartition("d", 0), TOPIC_ID)
    assert made.directory_of(TopicPartition("d", 0)) == 0


def test_a_clean_shutdown_is_remembered_once(tmp_path) -> None:
    made = filled(tmp_path)
    assert made.shutdown(13) > 0
    marker = tmp_path / "d0/.kafka_cleanshutdown"
    assert marker.read_bytes() == b'{"version":0,"brokerEpoch":13}'
    again = manager(*made.directories)
    loaded = again.load()
    assert again.previous_broker_epoch == 13
    assert [one.recovery.clean for one in loaded] == [True, True]
    assert [one.recovery.log_end_offset for one in loaded] == [3, 3]
    assert not marker.exists()
    third = manager(*made.directories)
    assert [one.recovery.clean for one in third.load()] == [False, False]
    assert third.previous_broker_epoch == -1


def test_after_a_kill_everything_below_the_checkpointed_recovery_point_is_trusted(tmp_path) -> None:
    made = filled(tmp_path)
    made.get(TP).flush()
    made.checkpoint_recovery_points()
    text = (tmp_path / "d0/recovery-point-offset-checkpoint").read_text()
    assert text == "0\n2\na-b 3 0\norders 0 3\n"
    loaded = {one.partition: one for one in manager(*made.directories).load()}
    assert loaded[TP].recovery.recovery_point == 3
    assert loaded[OTHER].recovery.recovery_point == 0
    assert loaded[OTHER].topic_id == TOPIC_ID


def test_high_watermarks_come_back_from_the_directory_of_their_log(tmp_path) -> None:
    made = filled(tmp_path, 2)
    made.checkpoint_high_watermarks({TP: 2, OTHER: 1, TopicPartition("gone", 0): 9})
    assert (tmp_path / "d0/replication-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    again = manager(*made.directories)
    assert again.read_high_watermarks() == {TP: 2, OTHER: 1}


@pytest.mark.parametrize(
    "text", ["1\n0\n", "0\n2\norders 0 3\n", "0\n1\norders 0\n", "x\n", "0\n1\norders 0 y\n", "0\n"]
)
def test_a_malformed_checkpoint_takes_the_directory_offline(tmp_path, text: str) -> None:
    made = filled(tmp_path, 2)
    name = checkpoints.RECOVERY_POINTS
    made.directories[0].replace(name, text.encode())
    again = manager(*made.directories)
    assert [one.partition for one in again.load()] == [OTHER]
    assert list(again.offline) == [0]
    with pytest.raises(MalformedCheckpoint):
        checkpoints.read_offsets(made.directories[0], name)
    made.directories[1].replace(name, text.encode())
    with pytest.raises(DiskFailed):
        manager(*made.directories).load()


def test_empty_and_missing_checkpoints_are_fine(tmp_path) -> None:
    made = filled(tmp_path)
    made.directories[0].replace(checkpoints.RECOVERY_POINTS, b"")
    again = manager(*made.directories)
    assert len(again.load()) == 2
    assert again.read_high_watermarks() == {}


def test_a_directory_of_another_node_is_refused(tmp_path) -> None:
    made = filled(tmp_path)
    identity = checkpoints.Identity(CLUSTER_ID, 2, made.directory_ids[0])
    made.directories[0].replace("meta.properties", checkpoints.encode_identity(identity))
    with pytest.raises(SimulationError, match="node_id=2"):
        manager(*made.directories)


def test_a_failed_disk_takes_only_its_own_logs_with_it(tmp_path) -> None:
    made = filled(tmp_path, 2)
    made.directories[0].failed = True
    with pytest.raises(DiskFailed):
        made.get(TP).append_as_leader(batch(), 0, NOW)
    assert made.take_offline(0, "EIO") == (TP,)
    assert made.get(TP) is None
    made.get(OTHER).append_as_leader(batch(), 0, NOW)
    made.checkpoint_recovery_points()
    with pytest.raises(DiskFailed, match="offline"):
        made.create(TP, TOPIC_ID, directory=0)
    assert made.create(TP, TOPIC_ID) is made.get(TP)
    assert made.directory_of(TP) == 1
    assert [one.partition for one in manager(*made.directories).load()] == [OTHER, TP]


def test_a_replaced_disk_is_empty_at_the_next_start(tmp_path) -> None:
    made = filled(tmp_path)
    made.directories[0].wipe()
    made.directories[0].mount()
    again = manager(*made.directories)
    assert again.load() == ()
    assert (tmp_path / "d0/meta.properties").exists()


def test_a_deleted_log_is_gone_after_its_directory_was_removed(tmp_path) -> None:
    made = filled(tmp_path)
    deleted = made.delete(TP)
    assert made.get(TP) is None
    names = [path.name for path in (tmp_path / "d0").iterdir() if path.is_dir()]
    assert sorted(name.partition(".")[0] for name in names) == ["a-b-3", "orders-0"]
    assert any(name.endswith("-delete") for name in names)
    made.create(TP, TOPIC_ID)
    made.remove_deleted(0, deleted)
    assert made.directories[0].directories() == ("a-b-3", "orders-0")
    assert made.get(TP).log_end_offset == 0


def test_the_metadata_log_is_always_checked_from_its_start_and_never_checkpointed(tmp_path) -> None:
    made = manager(*stores(tmp_path))
    log = made.create(METADATA_PARTITION, "AAAAAAAAAAAAAAAAAAAAAQ", directory=0)
    log.append_as_leader(batch(), 0, NOW)
    made.shutdown(1)
    assert "__cluster" not in (tmp_path / "d0/recovery-point-offset-checkpoint").read_text()
    (loaded,) = manager(*made.directories).load()
    assert not loaded.recovery.clean
    assert loaded.recovery.scanned_bytes == log.size_bytes


def test_a_stray_directory_stops_the_start(tmp_path) -> None:
    made = filled(tmp_path)
    made.directories[0].make_directory("lost+found")
    with pytest.raises(DiskFailed, match=r"lost\+found"):
        manager(*made.directories).load()
    assert partition_of("a-b-3") == OTHER
    assert partition_of("foo-bar") is None


def test_at_the_end_of_a_run_the_files_hold_everything(tmp_path) -> None:
    made = filled(tmp_path)
    made.finish()
    assert made.directories[0].dirty_bytes == 0
    log = (tmp_path / "d0/orders-0" / f"{0:020d}.log").read_bytes()
    assert log == b"".join(contents(made.get(TP)))


def test_settings_follow_the_partition(tmp_path) -> None:
    made = manager(*stores(tmp_path), config=LogConfig(max_message_bytes=10))
    log = made.create(TP, TOPIC_ID)
    assert log.append_as_leader(batch(), 0, NOW).error.name == "MESSAGE_TOO_LARGE"
    log.config = LogConfig()
    assert log.append_as_leader(batch(), 0, NOW).error.name == "NONE"


def test_a_disk_that_fails_at_shutdown_gets_no_marker_and_the_other_does(tmp_path) -> None:
    made = filled(tmp_path, 2)
    made.directories[0].full = True
    made.shutdown(13)
    assert list(made.offline) == [0]
    assert not (tmp_path / "d0/.kafka_cleanshutdown").exists()
    assert (tmp_path / "d1/.kafka_cleanshutdown").exists()
    made.directories[0].full = False
    again = manager(*made.directories)
    assert [one.recovery.clean for one in again.load()] == [False, True]
    assert again.previous_broker_epoch == -1


def test_memory_is_bounded_however_much_is_written(tmp_path) -> None:
    config = LogConfig(segment_bytes=20_000, tail_bytes=2_000, tail_batches=2)
    made = manager(*stores(tmp_path), config=config)
    log = made.create(TP, TOPIC_ID)
    store = made.directories[0]
    for i in range(1_000):
        log.append_as_leader(batch(i), 0, NOW)
        if i % 50 == 49:
            store.write_back(store.mark())
            assert store.dirty_bytes == 0
            assert log._tail._bytes <= 2_000
            assert len(log._tail._batches) < 600
    assert store._marks == []
    assert log.size_bytes > 100_000


def test_a_checkpoint_whose_offsets_moved_has_another_text(tmp_path) -> None:
    made = filled(tmp_path)
    file = made.directories[0]
    for offset in (1, 1, 2, 1):
        made.checkpoint_high_watermarks({TP: offset, OTHER: 3})
        assert made.read_high_watermarks() == {TP: offset, OTHER: 3}
    made.checkpoint_high_watermarks({TP: 1})
    assert checkpoints.read_offsets(file, checkpoints.HIGH_WATERMARKS) == {TP: 1}


def test_a_directory_knows_that_one_of_its_logs_may_have_rolled(tmp_path) -> None:
    config = LogConfig(segment_bytes=2 * batch().size_bytes)
    made = manager(*stores(tmp_path, 2), config=config)
    log = made.create(TP, TOPIC_ID)
    first, second = made.directories
    assert first.has_rolled, "a log that was opened may have rolled before"
    for store in made.directories:
        store.has_rolled = False
    while len(log.segments) == 1:
        log.append_as_leader(batch(log.log_end_offset), 0, NOW)
    assert (first.has_rolled, second.has_rolled) == (log.store is first, log.store is second)
    assert log.take_rolled() is not None
