"""Fetching from the closest replica (KIP-392) in a whole cluster of three racks."""

from itertools import pairwise

import pytest

from tests.scenarios.run_kit import S, go

RACK_OF = {"broker-1": "a", "broker-2": "b", "broker-3": "c", "shop": "a", "reader": "c"}
ANYWHERE = {
    "brokers": None, "racks": {"a": 1, "b": 1, "c": 1}, "controllers": {"a": 1, "b": 1, "c": 1},
    "network": {
        "same-rack": {"p50": "100us", "p99": "200us"}, "cross-rack": {"p50": "5ms", "p99": "6ms"},
    },
}  # fmt: skip
CLOSEST = {"replica.selector.class": "RackAwareReplicaSelector"}
QUICK = {"broker.session.timeout.ms": 3_000, "broker.heartbeat.interval.ms": 500}


def read(tmp_path, selector=CLOSEST, *, faults=(), lasts="4s", **config):
    """A consumer in rack c reads what a producer in rack a writes."""
    reader = {
        "group": "none", "name": "reader", "topics": ["orders"], "rack": "c",
        "config": {"auto.offset.reset": "earliest", "client.rack": "c", **config},
    }  # fmt: skip
    return go(
        tmp_path,
        cluster=ANYWHERE,
        config=QUICK | selector,
        consumers=[reader],
        faults=faults,
        lasts=lasts,
        producer={"rate": "400/s", "rack": "a", "record.size": "200B"},
        behaviours={"placement": "rack_aware"},
    )


def sources(ran, start=0, end=10**12):
    rows = [row for row in ran.rows("reads") if start <= row["t_us"] < end]
    assert rows
    return {row["read_from"] for row in rows}


def in_order(ran):
    """Every partition was read from its beginning without a gap or a repetition."""
    for partition in range(3):
        rows = ran.rows("reads", partition=partition)
        assert rows[0]["base_offset"] == 0
        assert all(b["base_offset"] == a["last_offset"] + 1 for a, b in pairwise(rows))


def crossing(ran, receiver="reader"):
    """Bytes that came to a client from brokers in other racks."""
    return sum(
        row["size_bytes"]
        for row in ran.rows("messages", receiver=receiver)
        if RACK_OF.get(row["sender"], "c") != RACK_OF[receiver]
    )


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The same with the selector and without it, asked by several tests."""
    root = tmp_path_factory.mktemp("closest")
    return read(root), read(root, {})


def test_with_the_selector_everything_is_read_in_the_consumers_rack(both):
    closest, leaders = both
    assert sources(closest) == {3}
    assert sources(leaders) == {1, 2, 3}
    for ran in both:
        in_order(ran)
        assert ran.verdict["held"]


def test_bytes_between_racks_fall_by_nine_tenths(both):
    closest, leaders = both
    assert crossing(closest) < crossing(leaders) / 10


def slowest(ran):
    return ran.verdict["latency_us"]["end_to_end"]["max"]


def test_what_is_written_last_reaches_a_follower_s_readers_up_to_half_a_second_later(both):
    """A follower learns what is committed with its next answer, which waits while nothing comes."""
    closest, leaders = both
    assert slowest(leaders) < S // 10
    assert 500_000 < slowest(closest) < 600_000


def test_when_the_closest_replica_dies_leaders_serve_and_hand_back_when_it_is_in_sync_again(
    tmp_path,
):
    ran = read(
        tmp_path,
        faults=[{"at": "2s", "do": "crash", "target": "broker-3", "for": "4s"}],
        lasts="10s",
    )
    in_order(ran)
    (fenced, *_) = ran.times("broker_states", broker=3, state="fenced")
    back = max(ran.times("broker_states", broker=3, state="unfenced"))
    assert 3 not in sources(ran, 2 * S + 50_000, back)
    assert sources(ran, fenced, back) == {1, 2}
    assert 3 in sources(ran, back)
    assert ran.records["lost_acked"] == 0


def test_a_lease_ends_with_the_age_of_the_metadata_and_the_leader_is_asked_again(tmp_path):
    ran = read(tmp_path, **{"metadata.max.age.ms": 1_000})
    asked = [
        row["t_us"]
        for row in ran.rows("requests", kind="Fetch", client="reader")
        if row["node"] != 3 and row["response_bytes"] < 200 and row["t_us"] > 0
    ]
    assert {t // S for t in asked} >= {0, 1, 2, 3}
    assert sources(ran) == {3}
    in_order(ran)
