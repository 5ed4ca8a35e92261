"""Ways in which one of several log directories fails, and who stands on it."""

from tests.scenarios.run_kit import S, go

THREE = {"disk": {"directories": 3}}


def failing(kind="failed-disk"):
    return {"at": "3s", "do": kind, "target": "broker-1", "directory": 1}


def fails(tmp_path, fault, **more):
    parts = {"lasts": "8s", "then": "stop", "topic": {"partitions": 6}} | more
    return go(tmp_path, cluster=THREE, faults=[fault], **parts)


def offline(ran, topic="orders"):
    rows = ran.rows("leadership", broker=1, role="offline", topic=topic)
    return sorted({row["partition"] for row in rows if row["t_us"] > 2 * S})


def on_directory_1(ran, topic="orders"):
    root = ran.directory / "disks/broker-1/data-1"
    return sorted(int(p.name.rpartition("-")[2]) for p in root.iterdir() if topic in p.name)


def goes_on(ran):
    states = [row["state"] for row in ran.rows("node_states", node="broker-1")]
    return states == ["started", "running"]


def test_a_full_disk_takes_only_its_directory_offline(tmp_path):
    ran = fails(tmp_path, failing("full-disk"))
    assert offline(ran) == on_directory_1(ran)
    assert len(offline(ran)) == 2
    assert goes_on(ran)
    assert ran.records["lost_acked"] == 0


FLUSHED = {"partitions": 6, "config": {"min.insync.replicas": 1, "flush.messages": 1}}


def test_an_fsync_that_fails_acknowledges_nothing_and_takes_its_directory_offline(tmp_path):
    """With ``flush.messages`` 1 the failure is met in an fsync as often as in an append."""
    ran = fails(tmp_path, failing(), topic=FLUSHED, acks="1")
    assert offline(ran) == on_directory_1(ran)
    assert goes_on(ran)
    failed_at = min(t for t in ran.times("leadership", broker=1, role="offline") if t > 2 * S)
    told = [
        row
        for row in ran.rows("acknowledgements", broker=1, topic="orders", error="NONE")
        if row["partition"] in offline(ran) and row["t_us"] > failed_at
    ]
    assert told == []
    assert ran.records["lost_acked"] == 0


def test_the_coordinator_moves_with_its_partition_when_its_directory_fails(tmp_path):
    """Groups whose partition of __consumer_offsets lay there find another coordinator."""
    consumers = [{"name": "billing", "group": "billing", "topics": ["orders"], "count": 2}]
    config = {"offsets.topic.num.partitions": 3, "offsets.topic.replication.factor": 3}
    ran = fails(tmp_path, failing(), consumers=consumers, config=config, lasts="12s")
    gone = offline(ran, "__consumer_offsets")
    assert gone == on_directory_1(ran, "__consumer_offsets")
    assert gone
    for number in gone:
        assert ran.leader_at(11 * S, number, "__consumer_offsets") != 1
    commits = [row["t_us"] for row in ran.rows("appends", topic="__consumer_offsets")]
    assert max(commits) > 10 * S, "the group goes on committing"


def test_a_frozen_broker_meets_the_failure_when_it_goes_on(tmp_path):
    """Its checkpoint of high watermarks was due meanwhile."""
    frozen = {"at": "2s", "do": "pause", "target": "broker-1", "for": "6s"}
    ran = go(tmp_path, cluster=THREE, faults=[frozen, failing("full-disk")], lasts="10s")
    assert all(fault["took_effect"] for fault in ran.faults)
    assert offline(ran)
    assert min(ran.times("leadership", broker=1, role="offline")) >= 8 * S


def test_what_cannot_be_read_cannot_be_corrupted(tmp_path):
    corrupt = {"at": "4s", "do": "corrupt-replica", "target": "broker-1", "partition": "orders-0"}
    lone = {"disk": {"directories": 1}}
    failed = failing() | {"directory": 0}
    ran = go(tmp_path, cluster=lone, faults=[failed, corrupt], lasts="6s")
    assert [fault["took_effect"] for fault in ran.faults] == [True, False]
