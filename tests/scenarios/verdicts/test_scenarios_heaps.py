"""Clients that make a producer for each request, and brokers whose heap is too small for that."""

import re

import pytest

from sim.suite.explain.causes import causes
from sim.suite.explain.run_facts import RunFacts, Story
from tests.scenarios.run_kit import S, go

API = {
    "name": "api", "topic": "orders", "rate": "10/s", "count": 2, "record.size": "100B",
    "config": {"linger.ms": 0, "delivery.timeout.ms": 4000, "request.timeout.ms": 2000},
}  # fmt: skip
STORM = API | {"producer.per": "request"}
SMALL = {"size": "1GB", "used": "500MB", "per.producer.id": "5MB", "per.request": "1MB"}
"""Full after 96 producers, in all replicas of all partitions; collections begin at 80."""


@pytest.fixture(scope="module")
def requests(tmp_path_factory):
    directory = tmp_path_factory.mktemp("requests")
    crash = {"at": "2s", "do": "crash", "target": "api-1", "for": "1s"}
    ample = {"heap": SMALL | {"size": "100GB"}}
    return go(directory, producers=[STORM], cluster=ample, lasts="5s", faults=[crash])


def test_each_record_has_a_producer_id_of_its_own(requests):
    written = requests.rows("appends", topic="orders", as_leader=True)
    ids = [row["producer_id"] for row in written]
    assert len(ids) == len(set(ids)) >= 80
    assert all(row["base_sequence"] == 0 for row in written)
    asked = requests.rows("requests", kind="InitProducerId")
    assert {row["client"] for row in asked} == {"api-1", "api-2"}
    assert len(asked) >= len(ids)


def test_every_request_is_accounted_for_also_those_of_a_process_that_died(requests):
    records = requests.records
    assert records["sent"] == 91, "of 100; one of two processes was away for a second"
    assert (records["acked"], records["failed"]) == (90, 1), "one came at the instant of the crash"
    assert (records["lost_acked"], records["duplicated"], records["reordered"]) == (0, 0, 0)


def test_a_producer_that_is_closed_leaves_its_id_and_no_connection(requests):
    samples = [row for row in requests.rows("heaps") if row["t_us"] > 4 * S]
    assert all(row["producers"] > 60 for row in samples)
    assert max(row["connections"] for row in samples) < 20


def test_requests_that_wait_when_their_process_stands_still_are_sent_at_its_end(tmp_path):
    pause = {"at": "2s", "do": "pause", "target": "api-1", "for": "1s"}
    ran = go(tmp_path, producers=[STORM], lasts="5s", faults=[pause])
    assert ran.records["acked"] == ran.records["sent"] == 100
    late = [row for row in ran.rows("client_batches") if max(row["latency_us"]) > 700_000]
    assert 2 <= len(late) <= 4, "those of the first third of a second"


@pytest.mark.parametrize("do", ["crash", "pause"])
def test_nobody_asks_a_process_that_is_gone_or_stands_still_to_the_end(tmp_path, do):
    gone = {"at": "2s", "do": do, "target": "api-1"}
    ran = go(tmp_path, producers=[STORM], lasts="5s", then="stop", faults=[gone])
    assert ran.records["sent"] == 50 + 21
    assert ran.records["acked"] == 50 + 20


def test_requests_that_never_found_a_thread_were_refused(tmp_path):
    cut = [{"at": "1s", "do": "crash", "target": f"broker-{n}"} for n in (1, 2, 3)]
    ran = go(tmp_path, producers=[STORM], lasts="6s", then="stop", faults=cut)
    assert ran.records["sent"] == 120
    assert ran.records["failed"] + ran.records["unknown"] >= 95
    assert ran.records["lost_acked"] == 0


def test_heaps_fill_with_producer_ids_until_collections_stop_everything_and_the_brokers_end(
    tmp_path,
):
    ran = go(tmp_path, producers=[STORM], cluster={"heap": SMALL}, lasts="20s", then="stop")
    collections = ran.rows("heaps", event="collection")
    assert collections
    assert all(row["live_bytes"] > 900_000_000 for row in collections)
    ends = ran.rows("heaps", event="out_of_memory")
    assert {row["broker"] for row in ends} == {1, 2, 3}
    assert ran.times("node_states", state="crashed") == [row["t_us"] for row in ends]
    assert ran.records["failed"] > 100
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["heaps"]["exhausted"] == 3
    assert ran.verdict["heaps"]["used_max_percent"] >= 98
    for broker in (1, 2, 3):
        assert re.search(rf"broker-{broker} ran out of heap at .*: its logs knew \d+ ", told(ran))


def test_with_one_producer_for_all_requests_the_same_heap_is_large_enough(tmp_path):
    expect = {"heap.exhausted": 0, "heap.used.max": "< 60"}
    ran = go(tmp_path, producers=[API], cluster={"heap": SMALL}, lasts="10s", expect=expect)
    assert {row["event"] for row in ran.rows("heaps")} == {"sample"}
    assert max(row["producers"] for row in ran.rows("heaps")) <= 2 * 3
    assert ran.records["failed"] == 0
    assert ran.verdict["held"]


def test_ids_that_are_forgotten_make_room_again(tmp_path):
    config = {"producer.id.expiration.ms": 2000, "producer.id.expiration.check.interval.ms": 500}
    ran = go(
        tmp_path, producers=[STORM], cluster={"heap": SMALL, "config": config}, lasts="12s",
        expect={"heap.used.max": "60..85", "failed": 0},
    )  # fmt: skip
    assert ran.verdict["held"], ran.verdict["expectations"]
    assert all(row["producers"] < 20 * 3 for row in ran.rows("heaps"))


def test_a_broker_that_is_started_again_knows_all_ids_and_ends_again_until_it_has_more_memory(
    tmp_path,
):
    start = {"at": "15s", "do": "restart", "target": "broker-1"}
    ran = go(
        tmp_path, producers=[STORM], cluster={"heap": SMALL}, lasts="20s", faults=[start],
        expect={"lost_acked": 0, "divergent": 0, "heap.exhausted": 3},
    )  # fmt: skip
    ends = [row["t_us"] for row in ran.rows("heaps", event="out_of_memory", broker=1)]
    assert len(ends) == 2
    assert 15 * S <= ends[1] < 16 * S
    assert ran.verdict["held"], "the end of the run gives all of them more, and all is there"
    assert not [row for row in ran.rows("heaps") if row["t_us"] > 20 * S]


@pytest.mark.parametrize("plane", ["controllers", "combined", "zookeeper"])
def test_heaps_end_under_every_control_plane(tmp_path, plane):
    more = {"zookeeper": {"servers": 3}} if plane == "zookeeper" else {plane: 3}
    cluster = {"heap": SMALL, **more}
    ran = go(tmp_path, producers=[STORM], cluster=cluster, lasts="16s", expect={"lost_acked": 0})
    assert ran.verdict["heaps"]["exhausted"] == 3
    assert ran.verdict["held"]


# Collections of nearly ten seconds, longer than a session of six.
SLOW = SMALL | {"collection": "100MB/s"}
SESSION = {"broker.session.timeout.ms": 6000, "broker.heartbeat.interval.ms": 1000}


def told(ran):
    """What ``explain`` names as causes of the longest outage."""
    facts = RunFacts(ran.directory)
    return " ".join(causes(Story(facts, facts.pick())))


def collections(ran, broker):
    rows = ran.rows("heaps", event="collection", broker=broker)
    return [(row["t_us"], row["t_us"] + row["pause_us"]) for row in rows]


def test_a_broker_that_collects_sends_no_heartbeat_and_loses_its_session(tmp_path):
    ran = go(
        tmp_path, producers=[STORM], cluster={"heap": SLOW, "config": SESSION}, lasts="30s",
        then="stop",
    )  # fmt: skip
    for broker in (1, 2, 3):
        begun, ended = collections(ran, broker)[0]
        fenced = ran.times("broker_states", broker=broker, state="fenced")
        assert any(begun + 4 * S < at < ended for at in fenced)
        answered = [row["t_us"] for row in ran.rows("requests", node=broker)]
        assert not [at for at in answered if begun < at < ended]
    assert re.search(r"broker-\d stood still for collections of a heap that was near", told(ran))


def test_a_process_that_is_stopped_in_a_collection_stays_so_until_it_is_told_to_go_on(tmp_path):
    # No session ends in a collection: broker-2 leads when it goes on, and has leaderships to move.
    cluster = {"heap": SLOW, "config": {"broker.session.timeout.ms": 18_000}}
    first = go(tmp_path, producers=[STORM], cluster=cluster, lasts="8s", then="stop")
    begun, ended = collections(first, 1)[0]
    assert begun < 7 * S
    later = {"at": "8s", "do": "pause", "target": "broker-1", "for": "20s"}
    asked = {"at": "9s", "do": "controlled-shutdown", "target": "broker-2"}
    ran = go(
        tmp_path, producers=[STORM], cluster=cluster, lasts="40s", then="stop",
        faults=[later, asked],
    )  # fmt: skip
    assert collections(ran, 1)[0] == (begun, ended), "the same history up to there"
    assert 8 * S < ended < 27 * S
    states = [(row["state"], row["t_us"]) for row in ran.rows("node_states", node="broker-1")]
    assert [state for state in states if 0 < state[1] <= 28 * S] == [
        ("paused", begun), ("resumed", 28 * S),
    ]  # fmt: skip
    assert [fault["took_effect"] for fault in ran.faults] == [True, True]
    begun, ended = collections(ran, 2)[0]
    told = ran.times("broker_states", broker=2, state="controlled_shutdown")
    assert begun < 9 * S < ended <= told[0] < ended + S, "it hears of SIGTERM when it goes on"
