"""Settings of brokers that change while they run (KIP-226), and brokers that are unregistered."""

import pytest

from sim.errors import ScenarioError
from sim.protocol.metadata.records import BROKER_RESOURCE, ConfigRecord
from sim.records.metadata import encode_record as record_bytes
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 1}
QUICK = {
    "log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 0, "log.roll.ms": 500,
}  # fmt: skip
"""Retention that is looked for twice a second, in segments that are short."""


def at(instant, do, **keys):
    return {"at": instant, "do": do, **keys}


def alter(instant="3s", **config):
    broker = {"broker": config.pop("broker")} if "broker" in config else {}
    return at(instant, "alter-broker-config", **broker, config={
        name.replace("_", "."): value for name, value in config.items()
    })  # fmt: skip


def retained(ran, broker):
    """Instants at which a broker removed segments by age."""
    rows = ran.rows("log_starts", broker=broker, topic="orders")
    return [row["t_us"] for row in rows]


def test_retention_of_one_broker_ends_its_segments_and_no_other_ones(tmp_path):
    change = alter(broker="broker-1", log_retention_ms=1_000)
    ran = go(tmp_path, faults=[change], config=QUICK, topic=ONE, lasts="6s", then="stop")
    assert ran.faults[0]["effect"] == "broker-1: log.retention.ms 604800000 -> 1000"
    assert retained(ran, 1)
    assert min(retained(ran, 1)) > 3 * S
    follows = ran.leader_at(5 * S) == 1
    assert bool(retained(ran, 2)) is follows, "followers follow a leader's log start, none else"


def test_a_brokers_own_value_goes_before_the_clusters_and_comes_back_when_it_is_removed(tmp_path):
    changes = [
        alter("2s", broker="broker-1", log_retention_ms=700_000),
        alter("3s", log_retention_ms=800_000),
        alter("4s", broker="broker-1", log_retention_ms=None),
    ]
    ran = go(tmp_path, faults=changes, config=QUICK, topic=ONE, lasts="6s", then="stop")
    effects = [fault["effect"] for fault in ran.faults]
    assert effects == [
        "broker-1: log.retention.ms 604800000 -> 700000",
        "; ".join(
            [
                "broker-1: log.retention.ms 700000 -> 800000",
                "broker-2: log.retention.ms 604800000 -> 800000",
                "broker-3: log.retention.ms 604800000 -> 800000",
            ]
        ),
        "broker-1: log.retention.ms 700000 -> 800000",
    ]


def test_a_topics_own_value_goes_before_its_brokers_and_the_fault_says_so(tmp_path):
    topic = {"partitions": 1, "config": {"retention.ms": 900_000}}
    ran = go(tmp_path, faults=[alter(log_retention_ms=1_000)], topic=topic, lasts="5s")
    assert not ran.faults[0]["took_effect"]
    assert "every topic has its own" in ran.faults[0]["effect"]


def test_a_changed_value_outlives_the_process(tmp_path):
    """It is in the metadata, not in the file: a restarted broker has it again."""
    faults = [
        alter("2s", broker="broker-1", num_io_threads=4),
        at("3s", "restart", target="broker-1"),
    ]
    ran = go(tmp_path, faults=faults, topic=ONE, lasts="16s")
    assert ran.faults[0]["effect"].count("num.io.threads 8 -> 4") == 1
    assert ran.verdict["held"]


def test_fewer_request_handlers_make_requests_wait(tmp_path):
    """The broker answers as before, and its handlers are busier."""
    busy = {"cpu": {"handler.request": "2ms"}}
    change = alter("3s", num_io_threads=4, num_network_threads=2)
    ran = go(tmp_path, faults=[change], topic=ONE, cluster=busy, lasts="6s")
    assert ran.faults[0]["took_effect"]
    for fault in ran.faults[0]["effect"].split("; "):
        assert "8 -> 4" in fault or "3 -> 2" in fault
    leader = f"broker-{ran.leader_at(5 * S)}"
    rows = ran.rows("load", node=leader)
    before = [r["request_handlers_ratio"] for r in rows if S < r["t_us"] <= 3 * S]
    after = [r["request_handlers_ratio"] for r in rows if 4 * S < r["t_us"] <= 6 * S]
    assert min(after) > max(before) * 1.5


def test_a_minimum_isr_of_the_cluster_is_the_one_of_topics_without_their_own(tmp_path):
    topic = {"partitions": 1, "config": {}}
    faults = [
        alter("2s", min_insync_replicas=3),
        at("3s", "crash", target="follower of orders-0", **{"for": "12s"}),
    ]
    ran = go(tmp_path, faults=faults, topic=topic, lasts="16s")
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    needed = {row["min_in_sync"] for row in ran.rows("high_watermarks", topic="orders")
              if row["t_us"] > 3 * S}  # fmt: skip
    assert needed == {3}


def test_cleaners_are_replaced_and_the_new_ones_clean(tmp_path):
    topic = {"partitions": 1, "config": {"cleanup.policy": "compact", "segment.ms": 500}}
    config = {"log.cleaner.backoff.ms": 60_000}
    keyed = {"rate": "200/s", "keys": "uniform", "key.count": 20}
    change = alter("4s", log_cleaner_backoff_ms=200, log_cleaner_threads=2)
    ran = go(
        tmp_path, faults=[change], config=config, topic=topic, producer=keyed, lasts="9s",
        then="stop",
    )  # fmt: skip
    cleaned = ran.times("cleanings", topic="orders")
    assert ran.faults[0]["took_effect"]
    assert len([t for t in cleaned if t > 4 * S]) > len([t for t in cleaned if t <= 4 * S])
    assert ran.verdict["held"]


def test_a_throttle_may_begin_while_a_replica_moves(tmp_path):
    topic = {"partitions": 1, "config": {
        "leader.replication.throttled.replicas": "*",
        "follower.replication.throttled.replicas": "*",
    }}  # fmt: skip
    change = alter("2s", leader_replication_throttled_rate=1_000)
    ran = go(tmp_path, faults=[change], topic=topic, lasts="5s")
    assert (
        "leader.replication.throttled.rate 9223372036854775807 -> 1000" in (ran.faults[0]["effect"])
    )


@pytest.mark.parametrize(
    ("config", "found"),
    [
        ({"replica.lag.time.max.ms": 1_000}, "is static: Kafka cannot update it dynamically"),
        ({"num.replica.fetchers": 2}, "is not changed here while brokers run"),
        ({"log.retention.mss": 2}, "unknown broker setting"),
        ({"num.io.threads": 32}, "4 to 16"),
        ({"log.retention.bytes": "many"}, "log.retention.bytes"),
    ],
)
def test_what_kafka_refuses_is_refused(config, found):
    with pytest.raises(ScenarioError, match=found):
        load_text(text_of(faults=[at("1s", "alter-broker-config", config=config)]))


def test_the_minimum_isr_of_one_broker_is_refused():
    change = alter("1s", broker="broker-1", min_insync_replicas=1)
    with pytest.raises(ScenarioError, match="the minimum ISR of one broker"):
        load_text(text_of(faults=[change]))


def test_the_records_in_the_metadata_log_are_kafkas():
    """ConfigRecord with resource type 4, of a broker or of all of them."""
    one = record_bytes(ConfigRecord(BROKER_RESOURCE, "1", "log.retention.ms", "1000"))
    every = record_bytes(ConfigRecord(BROKER_RESOURCE, "", "log.retention.ms", None))
    assert b"\x04\x021\x11log.retention.ms\x051000" in one
    assert b"\x04\x01\x11log.retention.ms\x00" in every


# -- brokers that are unregistered -----------------------------------------------------------------


def test_an_unregistered_broker_that_runs_is_a_replica_of_nothing_until_it_is_restarted(tmp_path):
    faults = [
        at("2s", "unregister", target="broker-1"),
        at("8s", "restart", target="broker-1"),
    ]
    ran = go(tmp_path, faults=faults, topic=ONE, lasts="12s")
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    states = [(r["t_us"] // S, r["state"]) for r in ran.rows("broker_states", broker=1)]
    assert (2, "unregistered") in states
    assert not [s for t, s in states if 2 < t < 8]
    assert [s for t, s in states if t >= 8][:2] == ["registered", "unfenced"]
    isr = {r["in_sync"] for r in ran.rows("partition_changes", topic="orders")
           if 2 * S < r["t_us"] < 8 * S}  # fmt: skip
    assert isr
    assert not any("1" in members.split(",") for members in isr)
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["held"]


def test_an_unregistered_broker_keeps_its_replicas_in_the_assignment(tmp_path):
    faults = [at("2s", "unregister", target="broker-1"), at("4s", "restart", target="broker-1")]
    ran = go(tmp_path, faults=faults, topic=ONE, lasts="6s")
    assert {r["replicas"] for r in ran.rows("partition_changes", topic="orders")} == {
        ran.rows("partition_changes", topic="orders")[0]["replicas"]
    }


def test_a_broker_that_is_not_registered_cannot_be_unregistered(tmp_path):
    faults = [
        at("2s", "unregister", target="broker-1"),
        at("3s", "unregister", target="broker-1"),
        at("4s", "restart", target="broker-1"),
    ]
    ran = go(tmp_path, faults=faults, topic=ONE, lasts="6s")
    assert [f["took_effect"] for f in ran.faults] == [True, False, True]
    assert "BROKER_ID_NOT_REGISTERED" in ran.faults[1]["effect"]


def test_zookeeper_has_no_such_request():
    unregister = at("1s", "unregister", target="broker-1")
    text = text_of(faults=[unregister], cluster={"zookeeper": {"servers": 3}})
    with pytest.raises(ScenarioError):
        load_text(text)
