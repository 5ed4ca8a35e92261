"""ZooKeeper mode: topics that are deleted and made again while clients use them."""

import pytest

from sim.protocol.zk_mode.administration.deletion import TopicDeletion
from tests.scenarios.run_kit import S, go

CONFIG = {"zookeeper.session.timeout.ms": 6_000}
ONE = {"partitions": 1, "replication.factor": 3}
FRESH = {"max.block.ms": 2_000, "metadata.max.age.ms": 1_000}


def at(when, do, **keys):
    return {"at": when, "do": do} | keys


def under(directory, faults, **parts):
    cluster = {"zookeeper": {"servers": 3}, "brokers": parts.pop("brokers", 3)}
    cluster |= {"kafka": parts.pop("kafka", "3.9")}
    cluster["config"] = CONFIG | parts.pop("config", {})
    parts = {"topic": ONE, "lasts": "8s", "then": "stop"} | parts
    return go(directory, cluster=cluster, faults=faults, **parts)


def directories(ran, broker):
    (root,) = (ran.directory / "disks" / broker).iterdir()
    return sorted(path.name for path in root.iterdir() if path.is_dir())


FRESH_READER = {"metadata.max.age.ms": 1_000, "auto.offset.reset": "earliest"}
DELETED = at("3s", "delete-topic", topic="orders")
AGAIN = at("5s", "create-topic", topic="orders")


@pytest.fixture(scope="module")
def remade(tmp_path_factory):
    producer = {"config": {"acks": "all"} | FRESH}
    return under(tmp_path_factory.mktemp("zk"), [DELETED, AGAIN], producer=producer)


def test_a_topic_made_again_begins_at_offset_zero_in_epoch_zero(remade):
    assert all(fault["took_effect"] for fault in remade.faults)
    later = [r for r in remade.rows("appends", topic="orders") if r["t_us"] > 5 * S]
    assert len(later) > 100
    assert later[0]["base_offset"] == later[0]["leader_epoch"] == 0
    former, now = (
        [r for r in remade.rows("partition_changes", topic="orders") if (r["t_us"] > 4 * S) is new]
        for new in (False, True)
    )
    assert former[0]["t_us"] < 3 * S
    assert [r["leader_epoch"] for r in now] == [0]


def test_what_was_in_the_deleted_topic_is_removed_and_not_lost(remade):
    assert remade.records["lost_acked"] == remade.records["divergent"] == 0
    assert 0 < remade.records["removed"] < remade.records["acked"]
    (row,) = remade.rows("topic_deletions")
    assert 3 * S < row["t_us"] < 3.2 * S


def test_every_broker_renames_its_log_at_once_and_unlinks_it_after_the_delay(remade, tmp_path):
    for broker in ("broker-1", "broker-2", "broker-3"):
        names = [n for n in directories(remade, broker) if n.startswith("orders-0")]
        assert "orders-0" in names
        assert len([n for n in names if n.endswith("-delete")]) == 1
    soon = under(tmp_path, [DELETED], config={"log.segment.delete.delay.ms": 1_000})
    for broker in ("broker-1", "broker-2", "broker-3"):
        assert [n for n in directories(soon, broker) if n.startswith("orders")] == []


def test_a_dead_broker_holds_the_deletion_up_and_the_name_is_taken_until_then(tmp_path):
    faults = [
        at("1s", "crash", target="follower of orders-0") | {"for": "14s"},
        at("9s", "delete-topic", topic="orders"),
        at("11s", "create-topic", topic="orders"),
    ]
    producer = {"config": {"acks": "all"} | FRESH}
    ran = under(tmp_path, faults, brokers=4, lasts="24s", producer=producer)
    assert [fault["took_effect"] for fault in ran.faults] == [True, True, False]
    assert "TOPIC_ALREADY_EXISTS" in ran.faults[2]["effect"]
    (crashed,) = ran.rows("node_states", state="crashed")
    dead = int(crashed["node"].removeprefix("broker-"))
    removed = {r["broker"]: r["t_us"] for r in ran.rows("leadership", role="removed")}
    assert len(removed) == 3
    assert all((t > 15 * S) is (broker == dead) for broker, t in removed.items())
    assert [n for n in directories(ran, crashed["node"]) if n == "orders-0"] == []


def test_before_1_0_deletion_is_off_and_nothing_happens(tmp_path):
    ran = under(tmp_path, [DELETED], kafka="0.11", lasts="5s")
    assert not ran.faults[0]["took_effect"]
    assert ran.rows("topic_deletions") == []
    assert ran.records["removed"] == 0


def test_a_controller_that_deletes_nothing_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(TopicDeletion, "marked", lambda _self: iter(()))
    ran = under(tmp_path, [DELETED], lasts="5s")
    assert [n for n in directories(ran, "broker-1") if n == "orders-0"]


def test_more_partitions_are_written_to_and_read_from(tmp_path):
    more = at("2s", "create-partitions", topic="orders", count=3)
    reader = {"group": "billing", "topics": ["orders"], "config": FRESH_READER}
    producer = {"keys": "uniform", "key.count": 50, "config": {"acks": "all"} | FRESH}
    ran = under(
        tmp_path, [more], consumers=[reader], producer=producer, then="heal and drain",
        lasts="8s",
    )  # fmt: skip
    assert ran.faults[0]["took_effect"]
    for partition in (1, 2):
        appends = ran.rows("appends", topic="orders", partition=partition)
        assert appends[0]["base_offset"] == 0
        assert {row["broker"] for row in appends} == {1, 2, 3}
        assert ran.rows("reads", topic="orders", partition=partition)
    assert ran.records["lost_acked"] == 0
    assert ran.records["acked"] == ran.records["sent"]
