"""Quotas of changes to the metadata and of connections, in whole runs."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ALONE = {"brokers": 1, "controllers": 1}
ONE = {"partitions": 1, "replication.factor": 1, "config": {"min.insync.replicas": 1}}
SLOTS = "max.incremental.fetch.session.cache.slots"
SHOP = {"name": "shop", "topic": "orders", "rate": "20/s", "record.size": "100B"}


def more(at, topic, count):
    return {"at": at, "do": "create-partitions", "topic": topic, "count": count}


def small(directory, **parts):
    return go(directory, **{"cluster": ALONE, "topics": {"orders": ONE}, "producer": SHOP} | parts)


@pytest.mark.parametrize(("behaviours", "late"), [({}, 4), ({"client.quota_errors": "none"}, 4)])
def test_an_administrator_above_his_quota_makes_his_changes_later(tmp_path, behaviours, late):
    """14 partitions with 11 tokens: one a second makes that good by 4 s."""
    ran = small(
        tmp_path,
        topics={"orders": ONE, "bills": ONE},
        quotas=[{"client.id": "admin", "controller_mutation_rate": 1}],
        faults=[more("1s", "orders", 15), more("1500ms", "bills", 2)],
        behaviours=behaviours,
    )
    made = {topic: ran.times("partition_changes", topic=topic, partition=1)[0]
            for topic in ("orders", "bills")}  # fmt: skip
    assert S < made["orders"] < 1.1 * S
    assert late * S <= made["bills"] < (late + 0.1) * S
    row, *later = ran.rows("throttles")
    assert len(later) == len(behaviours)
    assert (row["client"], row["quota"]) == ("admin", "controller_mutation_rate")
    assert row["request"] == "CreatePartitions"
    assert row["throttle_us"] == pytest.approx(3 * S if behaviours else 2.5 * S, abs=S // 100)
    assert all(fault["took_effect"] for fault in ran.faults)
    assert ran.verdict["held"]


def test_clients_that_come_too_fast_wait_at_the_door_and_lose_nothing(tmp_path):
    """Ten are forgiven, then one a second is let in."""
    ran = small(
        tmp_path,
        cluster=ALONE | {"config": {"max.connection.creation.rate": 1}},
        producer=SHOP | {"count": 12},
    )
    rows = ran.rows("throttles", quota="max.connection.creation.rate")
    assert rows
    assert {row["throttle_us"] for row in rows} <= {S}
    assert ran.records["acked"] == ran.records["sent"]
    assert ran.verdict["latency_us"]["produce"]["max"] > S


def test_a_host_that_may_have_no_connection_is_never_served(tmp_path):
    config = {"max.connections.per.ip.overrides": "shop-2:0"}
    ran = small(tmp_path, cluster=ALONE | {"config": config}, producer=SHOP | {"count": 2})
    served = {row["producer"] for row in ran.rows("client_batches", outcome="ok")}
    assert served == {"shop-1"}
    refused = ran.rows("throttles", quota="max.connections.per.ip")
    assert {(row["client"], row["throttle_us"]) for row in refused} == {("shop-2", 0)}


@pytest.mark.parametrize(
    ("quota", "found"),
    [
        ({"ip": "nobody", "connection_creation_rate": 5}, "no ip 'nobody'"),
        ({"ip": "shop", "producer_byte_rate": 5}, "producer_byte_rate of an address"),
        ({"client.id": "shop", "connection_creation_rate": 5}, "of clients and users"),
        ({"ip": "shop", "user": "ANONYMOUS", "connection_creation_rate": 5}, "ip beside client.id"),
        ({"client.id": "shop", "controller_mutation_rate": 5}, "who makes and deletes no topics"),
        ({"client.id": "admin", "producer_byte_rate": 5}, "who sends no records"),
    ],
)
def test_a_quota_that_means_nothing_for_its_entity_is_refused(quota, found):
    with pytest.raises(ScenarioError, match=found):
        load_text(text_of(quotas=[quota]))


def test_hosts_with_other_numbers_of_connections_must_be_there():
    load_text(text_of(config={"max.connections.per.ip.overrides": "shop:1,broker-1:9"}))
    for text, found in (("nobody:1", "no host 'nobody'"), ("shop", "HOST:NUMBER")):
        with pytest.raises(ScenarioError, match=found):
            load_text(text_of(config={"max.connections.per.ip.overrides": text}))


def test_quotas_are_written_out_as_they_were_given():
    quotas = [
        {"ip": "<default>", "connection_creation_rate": 5},
        {"user": "<default>", "controller_mutation_rate": 0.5},
    ]
    scenario = load_text(text_of(quotas=quotas))
    assert load_text(scenario.as_yaml()).digest == scenario.digest


def fetch_bytes_of(tmp_path, **config):
    """Bytes of consumers' Fetch requests to one broker, for each request; and the run."""
    ran = small(
        tmp_path, config=config, topics={"orders": ONE | {"partitions": 20}}, lasts="3s",
        consumers=[{"name": f"reader-{n}", "group": "none", "topics": ["orders"]} for n in (1, 2)],
    )  # fmt: skip
    rows = [row for n in (1, 2) for row in ran.rows("requests", kind="Fetch", client=f"reader-{n}")]
    return sum(row["request_bytes"] for row in rows) / len(rows), ran


def test_consumers_without_a_fetch_session_list_all_their_partitions_in_each_request(tmp_path):
    """Eight shards share the slots, so that seven are none."""
    with_sessions, _ = fetch_bytes_of(tmp_path, **{SLOTS: 8})
    without, ran = fetch_bytes_of(tmp_path, **{SLOTS: 7})
    assert without > 3 * with_sessions
    assert ran.verdict["held"]


def test_fetch_sessions_have_no_such_bound_in_raft_groups():
    with pytest.raises(ScenarioError, match=r"means nothing with cluster\.replication: raft"):
        load_text(text_of(config={SLOTS: 9}, cluster={"replication": "raft"}))


IDLE = "connections.max.idle.ms"


def produced_with(tmp_path, clients=(), brokers=()):
    """A producer with a batch every 4 s, in TLS whose handshake takes the broker 50 ms."""
    tls = {"security.protocol": "SSL", "linger.ms": 4_000}
    ran = small(
        tmp_path, lasts="20s", config=dict(brokers),
        cluster=ALONE | {"cpu": {"tls.handshake": "50ms"}},
        producer=SHOP | {"rate": "1/s", "config": tls | dict(clients)},
    )  # fmt: skip
    assert ran.verdict["held"]
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0
    assert len(ran.rows("requests", client="shop", kind="Produce")) >= 4
    return ran.verdict["latency_us"]["produce"]["p50"]


@pytest.mark.parametrize("end", ["clients", "brokers"])
def test_a_batch_after_idleness_waits_for_a_handshake(tmp_path, end):
    """Whoever has the shorter limit closes the connection; the next batch makes another one."""
    kept = produced_with(tmp_path)
    unlimited = produced_with(tmp_path, **{end: {IDLE: -1}})
    closed = produced_with(tmp_path, **{end: {IDLE: 1_000}})
    assert closed - kept > 45_000
    assert abs(unlimited - kept) < 5_000
