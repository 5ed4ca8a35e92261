"""ZooKeeper mode: partitions that are moved while clients use them."""

import pytest

from sim.protocol.broker.replication.removal import ReplicaRemoval
from tests.scenarios.run_kit import S, go

CONFIG = {"zookeeper.session.timeout.ms": 6_000}


TWO = {
    "partitions": 1, "replication.factor": 2, "replicas": [["broker-1", "broker-2"]],
    "config": {"min.insync.replicas": 1},
}  # fmt: skip


def at(when, do, **keys):
    return {"at": when, "do": do} | keys


def move(when, *brokers):
    return at(when, "reassign", partition="orders-0", replicas=[f"broker-{b}" for b in brokers])


def under(directory, faults, *, kafka="3.9", **parts):
    cluster = {"zookeeper": {"servers": 3}, "brokers": 5, "kafka": kafka, "config": CONFIG}
    parts = {"topic": TWO, "lasts": "8s", "then": "heal and drain"} | parts
    return go(directory, cluster=cluster, faults=faults, **parts)


def directories(ran, broker):
    (root,) = (ran.directory / "disks" / broker).iterdir()
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def holders(ran):
    return [b for b in range(1, 6) if "orders-0" in directories(ran, f"broker-{b}")]


def replicas(ran):
    return [row["replicas"] for row in ran.rows("partition_changes", topic="orders")]


@pytest.mark.parametrize("kafka", ["2.4", "3.9"])
def test_a_moved_partition_loses_nothing_and_leaves_no_replicas_behind(tmp_path, kafka):
    ran = under(tmp_path, [move("2s", 4, 5, 3), move("5s", 1, 2)], kafka=kafka)
    assert [fault["took_effect"] for fault in ran.faults] == [True, True]
    assert replicas(ran)[-1] == "1,2"
    assert "4,5,3" in replicas(ran)
    assert holders(ran) == [1, 2]
    assert ran.records["lost_acked"] == ran.records["failed"] == ran.records["divergent"] == 0
    last = ran.rows("partition_changes", topic="orders")[-1]
    assert (last["leader"] in {1, 2}, last["in_sync"]) == (True, "1,2")


def test_the_new_replicas_fetch_everything_from_the_first_record(tmp_path):
    ran = under(tmp_path, [move("3s", 4, 5)], lasts="6s")
    for broker in (4, 5):
        appends = ran.rows("appends", topic="orders", broker=broker)
        assert appends[0]["base_offset"] == 0
        assert appends[0]["t_us"] >= 3 * S


def test_called_off_the_partition_stays_where_it_was(tmp_path):
    """A target's broker hangs, and its session has not ended: it counts as live."""
    faults = [
        at("1900ms", "pause", target="broker-5") | {"for": "4s"},
        move("2s", 4, 5),
        at("4s", "cancel-reassignment", partition="orders-0"),
    ]
    ran = under(tmp_path, faults, lasts="9s")
    assert [fault["took_effect"] for fault in ran.faults] == [True, True, True]
    seen = replicas(ran)
    assert seen[0] == seen[-1] == "1,2"
    assert "4,5,1,2" in seen
    assert holders(ran) == [1, 2]
    assert ran.records["lost_acked"] == 0


def test_a_broker_that_keeps_a_replica_that_it_should_delete_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(ReplicaRemoval, "delete", lambda *_: None)
    ran = under(tmp_path, [move("2s", 4, 5, 3), move("5s", 1, 2)])
    assert len(holders(ran)) > 2
