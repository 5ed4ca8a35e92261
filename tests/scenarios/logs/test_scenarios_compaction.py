"""Compaction in whole runs: every replica keeps the last value of each key, and readers get it."""

from itertools import pairwise

import pytest

from sim.ids import TopicPartition
from sim.inspect.doctor import examine
from sim.log.partition.reading import file_batches
from sim.log.store import checkpoints
from tests.scenarios.run_kit import S, go

ORDERS = TopicPartition("orders", 0)
TOPIC = {
    "min.insync.replicas": 2,
    "cleanup.policy": "compact",
    "segment.ms": 1_000,
    "min.cleanable.dirty.ratio": 0.1,
}
PRODUCER = {"rate": "200/s", "record.size": "200B", "keys": "uniform", "key.count": 50}
OFTEN = {"log.cleaner.backoff.ms": 500}


def compacting(tmp_path, *, topic=(), config=(), lasts="12s", **more):
    return go(
        tmp_path,
        topic={"partitions": 1, "config": TOPIC | dict(topic)},
        producer=PRODUCER,
        config={**OFTEN, **dict(config)},
        lasts=lasts,
        **more,
    )


def records(ran, broker):
    """Every record of a broker's replica, from its files."""
    root = ran.directory / f"disks/broker-{broker}/data-0/orders-0"
    return [
        record
        for log in sorted(root.glob("*.log"))
        for _, batch in file_batches(log)
        for record in batch.records()
    ]


def last_values(ran, broker):
    return {record.key: record.value for record in records(ran, broker)}


def cleaned_to(ran, broker):
    path = ran.directory / f"disks/broker-{broker}/data-0" / checkpoints.CLEANER_OFFSETS
    return checkpoints.decode_offsets(path.read_bytes(), "x").get(ORDERS, 0)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    late = {
        "group": "late", "topics": ["orders"], "count": 1, "start": "10s",
        "config": {"auto.offset.reset": "earliest"},
    }  # fmt: skip
    return compacting(tmp_path_factory.mktemp("calm"), consumers=[late])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same without compaction."""
    return compacting(tmp_path_factory.mktemp("whole"), topic={"cleanup.policy": "delete"})


def test_every_replica_keeps_the_last_value_of_each_key(calm, whole):
    wanted = last_values(whole, 1)
    assert len(wanted) == 50
    for broker in (1, 2, 3):
        assert last_values(calm, broker) == wanted
        assert len(records(calm, broker)) < len(records(whole, broker)) // 2


def test_the_clean_part_has_each_key_once(calm):
    for broker in (1, 2, 3):
        end = cleaned_to(calm, broker)
        keys = [record.key for record in records(calm, broker) if record.offset < end]
        assert end > 1_000
        assert len(keys) == len(set(keys)) <= 50


def test_the_trace_tells_of_every_cleaning(calm):
    for broker in (1, 2, 3):
        rows = calm.rows("cleanings", broker=broker, topic="orders")
        assert len(rows) > 5
        assert rows[-1]["end_offset"] == cleaned_to(calm, broker)
        for before, row in pairwise(rows):
            assert row["first_dirty_offset"] == before["end_offset"]
            assert row["records_after"] < row["records_before"]
            assert row["bytes_after"] < row["bytes_before"]


def test_the_doctor_finds_compacted_directories_sound(calm):
    for directory in calm.log_dirs("broker"):
        found = [f for f in examine(directory) if "waits for its deletion" not in f.message]
        assert [str(finding) for finding in found] == []


def test_cleanings_are_kept_apart_by_the_backoff_and_by_the_lag(tmp_path):
    ran = compacting(tmp_path, topic={"min.compaction.lag.ms": 5_000}, lasts="9s")
    rows = ran.rows("cleanings", topic="orders")
    assert rows
    assert min(row["t_us"] for row in rows) > 5 * S
    own = [row["t_us"] for row in rows if row["broker"] == 1]
    assert min(b - a for a, b in pairwise(own)) >= S // 2


def test_a_throttled_cleaner_takes_its_time(tmp_path):
    slow = {"log.cleaner.io.max.bytes.per.second": 20_000}
    ran = compacting(tmp_path, config=slow, lasts="8s")
    first = ran.rows("cleanings", broker=1, topic="orders")[0]
    free = compacting(tmp_path, lasts="8s").rows("cleanings", broker=1, topic="orders")[0]
    moved = first["bytes_before"] + first["bytes_after"]
    assert first["t_us"] - free["t_us"] > moved * S // 20_000 - S


def test_compact_and_delete_lets_old_segments_go_too(tmp_path):
    both = {
        "cleanup.policy": "compact,delete", "retention.ms": 1_500, "min.cleanable.dirty.ratio": 0.9,
    }  # fmt: skip
    ran = compacting(tmp_path, topic=both)
    assert ran.rows("cleanings", topic="orders")
    assert ran.rows("log_starts", topic="orders", reason="retention.ms")
    assert min(record.offset for record in records(ran, 1)) > 0


def test_a_crashed_leader_loses_no_key(tmp_path, whole):
    """Cleaned records are older than the crash lasts: a follower copies no gaps."""
    ran = compacting(
        tmp_path,
        topic={"min.compaction.lag.ms": 12_000},
        faults=[{"at": "3s", "do": "crash", "target": "leader of orders-0", "for": "2s"}],
        lasts="18s",
    )
    assert len(ran.rows("cleanings", topic="orders")) > 3
    kept = [last_values(ran, broker) for broker in (1, 2, 3)]
    assert kept[0] == kept[1] == kept[2]
    assert set(kept[0]) == set(last_values(whole, 1))


def test_nothing_is_cleaned_without_the_policy(whole):
    assert whole.rows("cleanings", topic="orders") == []


def test_a_reader_of_a_compacted_log_gets_what_is_left_of_it(calm):
    read = calm.rows("reads", topic="orders", group="late")
    offsets = [o for row in read for o in range(row["base_offset"], row["last_offset"] + 1)]
    assert offsets == sorted(set(offsets))
    assert all(row["record_count"] == row["last_offset"] - row["base_offset"] + 1 for row in read)
    begun = min(row["t_us"] for row in read)
    gaps = sum(b - a > 1 for a, b in pairwise(offsets))
    assert begun > 10 * S
    assert gaps > 10
    present = {record.offset for record in records(calm, 1)}
    assert present <= set(offsets)


def test_without_cleaners_compacted_logs_keep_every_record(tmp_path, whole):
    """Nor does retention look at them: ``LogManager.cleanupLogs`` leaves them to the cleaner."""
    config = {"log.cleaner.enable": False, "log.retention.check.interval.ms": 500}
    both = {"cleanup.policy": "compact,delete", "retention.ms": 1_000}
    ran = compacting(tmp_path, config=config, topic=both)
    assert ran.rows("cleanings") == []
    for broker in (1, 2, 3):
        assert len(records(ran, broker)) == len(records(whole, broker))
