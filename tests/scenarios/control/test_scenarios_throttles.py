"""Throttled reassignment (KIP-73): it takes its time, and what is in sync does not notice."""

from tests.scenarios.run_kit import S, go

MOVE = {
    "at": "5s", "do": "reassign", "partition": "orders-0",
    "replicas": ["broker-4", "broker-1"],
}  # fmt: skip
SIDES = {
    "leader": {"leader.replication.throttled.replicas": ["0:2", "0:3"]},
    "follower": {"follower.replication.throttled.replicas": ["0:4", "0:1"]},
}
RATE = 500_000
"""Bytes a second; 1.3 MB wait to be moved, twice."""


def moved(tmp_path, sides=(), rate=RATE, stop="4s"):
    throttled = {name: value for side in sides for name, value in SIDES[side].items()}
    rates = {f"{side}.replication.throttled.rate": rate for side in sides}
    return go(
        tmp_path,
        cluster={"brokers": 4, "controllers": 1},
        config={
            "replica.fetch.max.bytes": 20_000, "replication.quota.window.num": 2, **rates,
        },
        topic={
            "partitions": 1, "replication.factor": 2,
            "config": {"min.insync.replicas": 1, **throttled},
        },
        producer={"rate": "300/s", "record.size": "1000B", "stop": stop},
        faults=[MOVE],
        lasts="12s",
        then="stop",
    )  # fmt: skip


def took(ran):
    """How long the reassignment took; ``None`` if it did not end."""
    rows = ran.rows("partition_changes", topic="orders")
    begun = next(r["t_us"] for r in rows if len(r["replicas"].split(",")) == 4)
    return next((r["t_us"] - begun for r in rows if r["replicas"] == "4,1"), None)


def carried(ran, start, end):
    """Bytes that new replicas appended between two instants."""
    return sum(
        row["size_bytes"]
        for row in ran.rows("appends", topic="orders")
        if row["broker"] in {4, 1} and start <= row["t_us"] < end
    )


def test_unthrottled_it_is_done_in_no_time(tmp_path):
    ran = moved(tmp_path)
    assert took(ran) < S
    assert ran.records["lost_acked"] == 0


def test_at_the_leader_a_rate_stretches_the_move(tmp_path):
    """2.5 MB less what the window forgives at first, by 0.5 MB a second."""
    ran = moved(tmp_path, ["leader"])
    assert 3 * S < took(ran) < 7 * S
    for second in range(7, 10):
        assert carried(ran, second * S, (second + 1) * S) <= 1.1 * RATE
    assert ran.records["lost_acked"] == 0


def test_at_followers_each_has_a_rate_of_its_own(tmp_path):
    ran = moved(tmp_path, ["follower"])
    assert 1.5 * S < took(ran) < 4 * S
    assert RATE < carried(ran, 6 * S, 7 * S) <= 2.2 * RATE


def test_a_rate_below_what_is_written_never_lets_the_move_end_and_slows_no_producer(tmp_path):
    ran = moved(tmp_path, ["leader"], rate=100_000, stop="12s")
    assert took(ran) is None
    assert carried(ran, 6 * S, 12 * S) == 0
    # Before the move a producer waits for its first metadata.
    during = [r for r in ran.rows("client_batches") if r["created_us"] > 5 * S]
    assert len(during) > 500
    assert max(max(row["latency_us"]) for row in during) < 20_000
    assert ran.records["acked"] == ran.records["sent"]
