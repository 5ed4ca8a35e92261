"""Future logs beside current ones: what a start finds, what is checkpointed, the doctor."""

import pytest

from sim.ids import TopicPartition
from sim.inspect.doctor import examine
from sim.log.directory.manager import TwoLogs
from sim.log.directory.names import future_partition_of, marked_name, partition_of
from sim.log.store import checkpoints
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import MetadataLogConfig, format_directories
from tests.log.log_kit import NOW, TOPIC_ID, TP, batch, manager


def moving(root, batches=5, copied=3, *, starts=0):
    """A log in directory 0 of which a future log in directory 1 has a part."""
    stores = FileStore(root / "0"), FileStore(root / "1")
    format_directories(stores, MetadataLogConfig(), NOW)
    logs = manager(*stores)
    log = logs.create(TP, TOPIC_ID, 0)
    for number in range(batches):
        log.append_as_leader(batch(number), 0, NOW)
    log.raise_log_start(starts)
    future = logs.futures.create(TP, 1)
    for found in list(log.batches())[:copied]:
        future.append_as_follower((found,))
    return logs, stores


def stopped(root, **more):
    logs, _ = moving(root, **more)
    logs.checkpoint_high_watermarks({TP: 5}, {TP: 3})
    logs.shutdown(1)
    logs.finish()
    return root


def test_names_are_kafkas_and_tell_the_partition():
    name = marked_name(TopicPartition("a.b-1", 12), 0, TOPIC_ID, "future")
    assert future_partition_of(name) == TopicPartition("a.b-1", 12)
    assert partition_of(name) is None
    assert future_partition_of("a.b-1-12") is None
    assert future_partition_of(marked_name(TP, 0, TOPIC_ID, "delete")) is None
    long = marked_name(TopicPartition("x" * 249, 1), 0, TOPIC_ID, "future")
    assert len(long) > 255


def test_a_start_finds_both_logs_and_knows_which_one_counts(tmp_path):
    stopped(tmp_path)
    logs = manager(FileStore(tmp_path / "0"), FileStore(tmp_path / "1"))
    found = {one.is_future: one for one in logs.load()}
    assert (found[False].directory, found[True].directory) == (0, 1)
    assert all(one.recovery.clean for one in found.values())
    assert logs.get(TP).log_end_offset == 5
    assert logs.futures.get(TP).log_end_offset == 3
    assert logs.read_high_watermarks() == {TP: 5}
    assert logs.read_future_watermarks() == {TP: 3}
    assert logs.futures.topic_id_of(TP) == TOPIC_ID


def test_after_an_unclean_stop_each_is_recovered_from_its_own_recovery_point(tmp_path):
    logs, stores = moving(tmp_path)
    logs.get(TP).flush()
    logs.checkpoint_recovery_points()
    for store in stores:
        store.power_loss(lambda: 0.0)
    logs = manager(*stores)
    found = {one.is_future: one.recovery for one in logs.load()}
    assert (found[False].recovery_point, found[False].log_end_offset) == (5, 5)
    assert (found[True].recovery_point, found[True].log_end_offset) == (0, 0)


def test_two_current_logs_of_one_partition_stop_a_broker_with_words_that_help(tmp_path):
    stopped(tmp_path)
    (one,) = (tmp_path / "1").glob("*-future")
    one.rename(tmp_path / "1" / str(TP))
    logs = manager(FileStore(tmp_path / "0"), FileStore(tmp_path / "1"))
    with pytest.raises(TwoLogs, match=r"orders-0 found in .*/0/orders-0 and in .*/1/orders-0"):
        logs.load()


def test_the_doctor_examines_a_future_log_and_knows_its_checkpoints(tmp_path):
    stopped(tmp_path)
    assert [str(found) for found in examine(tmp_path)] == []
    (log,) = (tmp_path / "1").glob("*-future/*.log")
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    assert [found.path for found in examine(tmp_path) if found.severity == "error"] == [log]


def test_the_doctor_finds_two_logs_and_a_move_to_nowhere(tmp_path):
    stopped(tmp_path)
    (one,) = (tmp_path / "1").glob("*-future")
    (tmp_path / "0" / one.name).mkdir()
    said = [found.message for found in examine(tmp_path)]
    assert any("another log directory expected" in message for message in said)
    one.rename(tmp_path / "1" / str(TP))
    said = [found.message for found in examine(tmp_path)]
    assert any("a broker does not start" in message for message in said)


def test_a_failed_directory_takes_its_future_logs_along_and_leaves_the_current_ones(tmp_path):
    logs, _ = moving(tmp_path)
    assert logs.take_offline(1, "gone") == ()
    assert logs.futures.logs == {}
    assert logs.directory_of(TP) == 0
    logs, _ = moving(tmp_path / "again")
    assert logs.take_offline(0, "gone") == (TP,)
    assert logs.futures.get(TP) is not None


def test_a_future_log_counts_for_the_directory_that_it_lies_in(tmp_path):
    logs, _ = moving(tmp_path)
    logs.create(TopicPartition("orders", 1), TOPIC_ID)
    logs.create(TopicPartition("orders", 2), TOPIC_ID)
    assert [logs.directory_of(TopicPartition("orders", n)) for n in (1, 2)] == [0, 1]


def test_a_wanted_directory_holds_the_next_log_and_no_other(tmp_path):
    logs, _ = moving(tmp_path)
    other = TopicPartition("orders", 7)
    logs.preferred[other] = 1
    logs.create(other, TOPIC_ID)
    assert logs.directory_of(other) == 1
    assert logs.preferred == {}


def test_log_starts_of_both_are_checkpointed_where_they_lie(tmp_path):
    logs, stores = moving(tmp_path, starts=2)
    logs.futures.get(TP).raise_log_start(1)
    logs.checkpoint_log_starts()
    read = [checkpoints.read_offsets(store, checkpoints.LOG_STARTS) for store in stores]
    assert read == [{TP: 2}, {TP: 1}]
