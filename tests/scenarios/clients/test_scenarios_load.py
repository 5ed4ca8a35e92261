"""Load shapes in whole runs: closed loops, the curve of a day, hot keys."""

from itertools import pairwise

import pytest
import yaml

from sim.errors import ScenarioError
from sim.scenario.estimate.flows import flows
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

LOOP = {"name": "shop", "topic": "orders", "clients": 4, "think.time": "20ms"}


def sends(ran):
    """Intended instant and outcome instant of each record, in the order of the former."""
    found = []
    for row in ran.rows("client_batches"):
        found += [(row["t_us"] - wait, row["t_us"]) for wait in row["latency_us"]]
    return sorted(found)


def most_at_once(found):
    """The largest number of records that waited for their answers at one instant."""
    steps = sorted([(sent, 1) for sent, _ in found] + [(done, -1) for _, done in found])
    most = now = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


@pytest.mark.parametrize("arrivals", ["steady", "poisson"])
def test_a_closed_loop_never_has_more_records_open_than_clients(tmp_path, arrivals):
    ran = go(tmp_path, producers=[LOOP | {"arrivals": arrivals}], lasts="5s")
    found = sends(ran)
    assert most_at_once(found) <= 4
    # 4 clients that think 20 ms and wait for an answer, and for a linger of up to 5 ms.
    assert 4 * 5 / 0.040 < len(found) < 4 * 5 / 0.020
    assert ran.records["sent"] == ran.records["acked"] == len(found)


def test_a_steady_client_thinks_as_long_as_it_says(tmp_path):
    found = sends(go(tmp_path, producers=[LOOP | {"clients": 1}], lasts="3s"))
    thinks = [sent - done for (_, done), (sent, _) in pairwise(found)]
    assert set(thinks) == {20_000}


def test_a_closed_loop_waits_out_an_outage_and_an_open_one_does_not(tmp_path):
    fault = {"at": "2s", "do": "pause", "target": "all brokers", "for": "2s"}
    ran = go(tmp_path, producers=[LOOP], faults=[fault], lasts="6s")
    during = [sent for sent, _ in sends(ran) if 2.1 * S < sent < 3.9 * S]
    assert len(during) <= 4
    assert ran.records["acked"] == ran.records["sent"]
    after = [sent for sent, _ in sends(ran) if sent > 5 * S]
    assert len(after) > 50


def test_clients_of_a_process_that_crashes_begin_again_with_the_next(tmp_path):
    fault = {"at": "2s", "do": "crash", "target": "shop", "for": "1s"}
    ran = go(tmp_path, producers=[LOOP], faults=[fault], lasts="5s")
    found = sends(ran)
    assert not [sent for sent, _ in found if 2.01 * S < sent < 3 * S]
    assert len([sent for sent, _ in found if sent > 3.5 * S]) > 100
    assert most_at_once([each for each in found if each[0] > 3 * S]) <= 4
    assert ran.records["lost_acked"] == 0


def test_clients_that_are_refused_at_once_still_let_time_pass(tmp_path):
    producer = LOOP | {"think.time": "0ms", "record.size": "2KiB", "clients": 1,
                       "config": {"max.block.ms": 0, "buffer.memory": 3000}}  # fmt: skip
    ran = go(tmp_path, producers=[producer], lasts="500ms", expect={"failed": ">= 0"})
    assert ran.records["sent"] < 10_000


def test_a_closed_loop_with_keys_and_a_partitioner_uses_every_partition(tmp_path):
    producer = LOOP | {"keys": "uniform", "key.count": 50, "clients": 8, "tombstones": "10%"}
    own = producer | {"name": "two", "config": {"partitioner.class": "RoundRobinPartitioner"}}
    ran = go(tmp_path, producers=[producer, own], lasts="2s",
             topic={"config": {"cleanup.policy": "compact"}})  # fmt: skip
    for name in ("shop", "two"):
        assert {r["partition"] for r in ran.rows("client_batches", producer=name)} == {0, 1, 2}
    assert ran.records["acked"] == ran.records["sent"] > 500


def test_the_same_seed_is_the_same_run(tmp_path):
    producers = [LOOP | {"arrivals": "poisson"}]
    one, two = (go(tmp_path, producers=producers, lasts="2s") for _ in range(2))
    assert one.card["trace_digest"] == two.card["trace_digest"]


def test_a_curve_moves_load_and_keeps_the_rate(tmp_path):
    producer = {"rate": "200/s", "curve": {"period": "4s", "amplitude": "80%"}}
    found = [sent for sent, _ in sends(go(tmp_path, producer=producer, lasts="8s"))]
    assert abs(len(found) - 1_600) < 20
    assert sum(0 <= at % (4 * S) < 2 * S for at in found) > 2.5 * len(found) / 4 * 1.1


def test_a_hot_key_is_one_partitions_load(tmp_path):
    producer = {"rate": "500/s", "keys": "uniform", "key.count": 10_000, "key.hot": "70%"}
    ran = go(tmp_path, producer=producer, lasts="2s")
    counts = dict.fromkeys(range(3), 0)
    for row in ran.rows("client_batches"):
        counts[row["partition"]] += row["record_count"]
    assert max(counts.values()) > 0.7 * sum(counts.values())


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"clients": None}, "rate: the key is missing"),
        ({"rate": "5/s"}, "rate with clients"),
        ({"curve": {"period": "5s", "amplitude": "5%"}}, "curve with clients"),
        ({"arrivals": "burst", "burst": {"on": "1s", "off": "1s", "peak": "5/s"}},
         "arrivals with clients"),
        ({"producer.per": "request"}, "producer.per with clients"),
        ({"clients": None, "rate": "5/s", "think.time": "1s"}, "think.time without clients"),
        ({"key.hot": "5%"}, "key.hot without keys"),
        ({"clients": None, "rate": "5/s", "curve": {"period": "5s"}}, "neither amplitude"),
        ({"clients": None, "rate": "5/s", "curve": {"period": "0s", "amplitude": "5%"}},
         "curve.period: 0us"),
        ({"clients": None, "rate": "5/s",
          "curve": {"period": "5s", "points": [{"at": "6s", "level": 1}]}}, "points"),
        ({"clients": None, "rate": "5/s",
          "curve": {"period": "5s", "points": [{"at": "1s", "level": 0}]}}, "every level is 0"),
    ],
)  # fmt: skip
def test_a_load_that_cannot_be_is_refused(given, words):
    producer = {key: value for key, value in (LOOP | given).items() if value is not None}
    if "clients" not in producer and "think.time" not in given:
        del producer["think.time"]
    with pytest.raises(ScenarioError) as caught:
        load_text(text_of(producers=[producer]))
    assert words in str(caught.value)


def test_a_surge_of_a_closed_loop_is_refused():
    fault = {"at": "1s", "do": "load-surge", "target": "shop", "factor": 3, "for": "1s"}
    with pytest.raises(ScenarioError, match="a closed loop, which has no rate"):
        load_text(text_of(producers=[LOOP], faults=[fault]))


POINTS = {"period": "9s", "points": [{"at": "1s", "level": 1}, {"at": "4s", "level": 2.5}]}


@pytest.mark.parametrize(
    "given",
    [
        {"think.time": "20ms", "clients": 4, "arrivals": "poisson"},
        {"rate": "9/s", "curve": POINTS},
        {"rate": "9/s", "curve": {"period": "9s", "amplitude": "10%"}, "keys": "zipf",
         "key.hot": "10%"},
    ],
)  # fmt: skip
def test_a_load_is_written_out_as_it_was_given_and_can_be_read_again(given):
    scenario = load_text(text_of(producers=[{"name": "shop", "topic": "orders"} | given]))
    text = scenario.as_yaml()
    assert load_text(text).digest == scenario.digest
    written = yaml.safe_load(text)["producers"][0]
    assert given.items() <= written.items()
    assert ("rate" in written) == ("rate" in given)


def test_the_estimate_knows_closed_loops_and_curves():
    (loop,) = flows(load_text(text_of(producers=[LOOP], lasts="10s")))
    assert 4 * 10 / 0.040 < loop.records < 4 * 10 / 0.025
    half = {"rate": "100/s", "curve": {"period": "20s", "amplitude": "100%"}}
    (flow,) = flows(load_text(text_of(producer=half, lasts="10s")))
    assert 1_600 < flow.records < 1_670


def network_threads_of(tmp_path, **config):
    """The busiest second of a broker's network threads under forty clients, in 1/1000."""
    busy = {"cpu": {"handler.request": "2ms"}, "brokers": 1}
    slow = {"num.io.threads": 1, "num.network.threads": 1, **config}
    ran = go(
        tmp_path, producers=[LOOP | {"count": 40, "clients": 1, "think.time": "1ms"}],
        topic={"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}},
        cluster=busy, config=slow, lasts="3s",
    )  # fmt: skip
    assert ran.verdict["held"]
    return max(row["network_threads_ratio"] for row in ran.rows("load", node="broker-1"))


def test_a_full_request_queue_keeps_network_threads_busy_with_waiting(tmp_path):
    """Each of forty clients has one request at the broker, whose one handler does 500 a second."""
    assert network_threads_of(tmp_path) < 100
    assert network_threads_of(tmp_path, **{"queued.max.requests": 40}) < 100
    assert network_threads_of(tmp_path, **{"queued.max.requests": 5}) > 800


def test_a_request_queue_needs_a_place_and_is_kafkas():
    with pytest.raises(ScenarioError, match=r"queued\.max\.requests"):
        load_text(text_of(config={"queued.max.requests": 0}))
    with pytest.raises(ScenarioError, match=r"means nothing with cluster\.replication: raft"):
        load_text(text_of(config={"queued.max.requests": 9}, cluster={"replication": "raft"}))
