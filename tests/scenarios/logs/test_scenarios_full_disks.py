"""Disks with a capacity: what is written fills them, and what is deleted frees them."""

from tests.scenarios.run_kit import S, go

SMALL = {"disk": {"capacity": "3MB"}}
QUICK = {
    "broker.session.timeout.ms": 1_000,
    "broker.heartbeat.interval.ms": 200,
    "log.initial.task.delay.ms": 0,
    "log.retention.check.interval.ms": 200,
}
LOAD = {
    "rate": "200/s",
    "record.size": "10KB",
    "config": {"acks": "all", "request.timeout.ms": 1_000, "delivery.timeout.ms": 3_000},
}


def ended(ran):
    return [row["t_us"] for row in ran.rows("node_states", state="crashed") if row["t_us"] > 0]


def filled(tmp_path, cluster, **settings):
    topic = {"partitions": 1, "config": {"segment.bytes": 1_048_576} | settings}
    return go(tmp_path, cluster=cluster, config=QUICK, topic=topic, producer=LOAD, lasts="6s")


def test_brokers_whose_disks_are_full_end_one_after_the_other_and_lose_nothing(tmp_path):
    ran = filled(tmp_path, SMALL)
    times = ended(ran)
    assert len(times) == 3
    # 2 MB a second, less what is no record: nobody ends before its 3 MB are written.
    assert 1_300_000 < times[0] < 2 * S
    assert ran.records["failed"] > 0 == ran.records["lost_acked"]
    rows = [row for row in ran.rows("node_states", state="running") if row["t_us"] >= 6 * S]
    assert {row["node"] for row in rows} == {"broker-1", "broker-2", "broker-3"}, "with new disks"
    assert ran.records["unacked_present"] + ran.records["acked"] == ran.records["survived"]


def test_retention_makes_room_once_its_files_are_gone(tmp_path):
    room = {"retention.bytes": 1_048_576, "file.delete.delay.ms": 0}
    kept = filled(tmp_path, SMALL, **room)
    assert (ended(kept), kept.records["failed"]) == ([], 0)
    assert kept.records["removed"] > 0
    # A minute after retention has marked them is too late.
    late = filled(tmp_path, SMALL, **room | {"file.delete.delay.ms": 60_000})
    assert len(ended(late)) == 3
