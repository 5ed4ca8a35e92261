"""Facts of a running cluster, as data, become a scenario with its load."""

import pytest
import yaml

from sim import run
from sim.errors import SimulationError
from sim.importer.cluster import build
from sim.importer.live.connection import reason_of, reason_with_sasl
from sim.importer.live.facts import (
    UNSAID,
    BrokerFacts,
    ClusterFacts,
    GroupFacts,
    MemberFacts,
    PartitionFacts,
    QuotaFacts,
    Sample,
    TopicFacts,
)
from sim.importer.live.load import group_loads, topic_loads
from sim.importer.live.translate import sources_of
from sim.importer.sources import Properties, Sources
from sim.scenario.loader import load_text

CANARY = "cAnAry7"
STATIC = {"process.roles": "broker", "num.io.threads": "4", "min.insync.replicas": "2"}


def topic(name, *placed, **more):
    """A topic whose replicas are all in sync."""
    parts = {n: PartitionFacts(nodes, nodes, nodes[0]) for n, nodes in enumerate(placed)}
    return TopicFacts(name, parts, **more)


def cluster(**changed):
    """Three brokers, two topics, a group of two, all measured for ten seconds."""
    members = (MemberFacts("biller", topics=("orders",)), MemberFacts("biller", topics=("orders",)))
    facts = {
        "cluster": "AbCdEfGhIjKlMnOpQrStUg",
        "brokers": [BrokerFacts(n, f"r{n}", STATIC, version=(3, 9)) for n in (1, 2, 3)],
        "topics": [
            topic("__consumer_offsets", (1, 2, 3), internal=True),
            topic("orders", (1, 2, 3), (2, 3, 1), configs={"retention.ms": "60000"}),
            topic("quiet", (3, 1, 2)),
        ],
        "groups": [GroupFacts("billing", "classic", assignor="range", members=members)],
        "voters": (3001, 3002, 3003),
        "samples": [
            sample(0, {("orders", 0): 100, ("orders", 1): 50, ("quiet", 0): 7}, 20_000),
            sample(10, {("orders", 0): 400, ("orders", 1): 150, ("quiet", 0): 7}, 80_000),
        ],
    }  # fmt: skip
    return ClusterFacts(**(facts | changed))


def sample(at_s, ends, size, committed=None):
    return Sample(
        at_s,
        at_s,
        ends,
        dict.fromkeys(ends, 0),
        {("orders", 0): size, ("orders", 1): size // 2, ("quiet", 0): 700},
        {"billing": committed or {("orders", 0): ends[("orders", 0)] - 20}},
    )


def scenario(facts, rate=None, files=None):
    found = build(sources_of(facts, files), rate)
    return found, load_text(found.text)


# -- what is made ----------------------------------------------------------------------------------


def test_a_cluster_becomes_a_scenario_with_its_load():
    found, made = scenario(cluster())
    assert [(b.node, b.rack) for b in made.cluster.brokers] == [(1, "r1"), (2, "r2"), (3, "r3")]
    assert (made.cluster.kafka, len(made.cluster.controllers)) == ("3.9", 3)
    assert not made.cluster.combined
    assert made.cluster.config["num.io.threads"] == 4
    assert made.cluster.config["offsets.topic.num.partitions"] == 1
    assert made.topic("orders").assignment == ((1, 2, 3), (2, 3, 1))
    assert made.topic("orders").config["retention.ms"] == 60_000
    (producer,) = made.producers
    assert (producer.topic, producer.rate_per_s) == ("orders", 40)
    (consumer,) = made.consumers
    assert (consumer.group, consumer.count, consumer.topics) == ("billing", 2, ("orders",))
    assert consumer.config["partition.assignment.strategy"] == "range"
    assert found.absent == []
    lines = "\n".join(found.measured)
    assert "orders: 40.0 records/s, 9000 B/s (225 B each)" in lines, "90,000 B in 400 records"
    assert "group billing: 2 members, lag 20 at first and 20 at last, 30.0 records/s" in lines
    assert "nothing was written to quiet: no producer here" in lines
    assert "left out here as brokers make their own: __consumer_offsets" in lines
    for line in (*found.measured, *found.unknown):
        assert f"# - {line}\n" in found.text


@pytest.mark.parametrize(("rate", "rates"), [(None, [40]), ("7/s", [40, 7])])
def test_a_topic_without_load_has_the_rate_that_was_given(rate, rates):
    _, made = scenario(cluster(), rate)
    assert [producer.rate_per_s for producer in made.producers] == rates


def test_an_idle_cluster_gets_a_guess_that_is_named_so():
    same = sample(10, {("orders", 0): 100, ("quiet", 0): 7}, 20_000)
    found, made = scenario(cluster(samples=[same, same]))
    assert [producer.rate_per_s for producer in made.producers] == [100, 100]
    assert "the rates here are a guess" in "\n".join(found.measured)


def test_a_group_that_falls_behind_is_as_slow_as_it_was_measured():
    first, last = cluster().samples
    slow = [
        sample(0, dict(first.ends), 20_000, {("orders", 0): 80}),
        sample(10, dict(last.ends), 100_000, {("orders", 0): 180}),
    ]
    found, made = scenario(cluster(samples=slow))
    assert made.consumers[0].processing_us == 200_000, "two members, ten records a second"
    assert "lag 20 at first and 220 at last" in found.text


@pytest.mark.parametrize(
    ("group", "line"),
    [
        (GroupFacts("g", "share"), "group g: of kind share; not carried over"),
        (GroupFacts("g", "classic", "connect"), "of another protocol"),
        (GroupFacts("g", "classic"), "no members, only offsets"),
        (GroupFacts("g", "classic", members=(MemberFacts(topics=("x",)),)), "no topic that is h"),
        (
            GroupFacts("g", "classic", assignor="mine", members=(MemberFacts(topics=("orders",)),)),
            "its assignor is not Kafka's own",
        ),
        (
            GroupFacts("a b", "classic", members=(MemberFacts(topics=("orders",)),)),
            "group a-b: spelt otherwise",
        ),
    ],
)  # fmt: skip
def test_of_a_group_what_cannot_be_carried_over_is_a_line(group, line):
    found, _ = scenario(cluster(groups=[group]))
    assert line in "\n".join(found.absent)


def test_many_groups_with_one_reason_are_one_line():
    found, _ = scenario(cluster(groups=[GroupFacts(f"g{n}", "classic") for n in range(8)]))
    (line,) = found.absent
    assert line == (
        "groups g0, g1, g2, g3, g4 and 3 more: no members, only offsets; not carried over"
    )


def test_consumers_that_the_rest_of_the_scenario_refuses_are_left_out_with_a_line():
    named = GroupFacts("to-orders", "classic", members=(MemberFacts(topics=("orders",)),))
    found, made = scenario(cluster(groups=[named]))
    assert made.consumers == ()
    (line,) = found.absent
    assert line.startswith("consumers: one left out: ")


def test_groups_of_the_consumer_protocol_static_members_and_subscriptions_are_kept():
    modern = GroupFacts(
        *("modern", "consumer", "consumer", "Stable", "uniform"),
        (MemberFacts("a", topics=("orders",)), MemberFacts("b", topics=("orders", "quiet"))),
    )
    static = GroupFacts(
        *("fixed", "classic", "consumer", "Stable", "cooperative-sticky"),
        (MemberFacts("c", "c-1", ("orders",)), MemberFacts("d", "d-1", ("orders",))),
    )
    brokers = [BrokerFacts(n, f"r{n}", STATIC, version=(4, 0)) for n in (1, 2, 3)]
    found, made = scenario(cluster(brokers=brokers, groups=[modern, static]))
    assert found.absent == []
    first, second, third = made.consumers
    assert (first.name, second.name) == ("modern", "modern.2")
    assert (first.topics, second.topics) == (("orders",), ("orders", "quiet"))
    assert first.config["group.protocol"] == "consumer"
    assert first.config["group.remote.assignor"] == "uniform"
    assert third.instance_ids == ("fixed-1", "fixed-2")


def test_quotas_that_meet_a_client_here_are_kept_and_others_listed():
    quotas = [
        QuotaFacts((("client-id", None),), {"consumer_byte_rate": 5e6}),
        QuotaFacts((("client-id", "biller"),), {"request_percentage": 50.0}),
        QuotaFacts((("client-id", "shop"),), {"producer_byte_rate": 1e6}),
        QuotaFacts((("ip", None),), {"connection_creation_rate": 3.0}),
        QuotaFacts((("user", None),), {"producer_byte_rate": 1_000.0}),
    ]
    found, made = scenario(cluster(quotas=quotas))
    assert yaml.safe_load(found.text)["quotas"] == [
        {"client.id": "<default>", "consumer_byte_rate": 5_000_000},
        {"client.id": "biller", "request_percentage": 50.0},
        {"ip": "<default>", "connection_creation_rate": 3},
    ]
    assert made.consumers[0].name == "biller", "the quota's client is among the consumers"
    unknown, held_up = found.absent
    assert unknown.startswith("quota of client-id shop: producer_byte_rate=1000000.0: no client")
    assert held_up.startswith("quota of user <default>: producer_byte_rate=1000: left out: here")


def test_brokers_that_are_controllers_are_combined_whoever_says_it():
    _, made = scenario(cluster(voters=(1, 2, 3)))
    assert made.cluster.combined
    combined = {**STATIC, "process.roles": "broker,controller"}
    brokers = [BrokerFacts(n, "", combined, version=(3, 9)) for n in (1, 2, 3)]
    _, made = scenario(cluster(brokers=brokers, voters=()))
    assert len(made.cluster.controllers) == 3
    assert made.cluster.combined


def test_a_dynamic_quorum_and_an_ensemble_of_zookeeper_are_known():
    found, _ = scenario(cluster(is_dynamic=True))
    assert yaml.safe_load(found.text)["cluster"]["quorum"] == "dynamic"
    old = {"zookeeper.connect": "a:1,b:1,c:1/k", "num.io.threads": "4"}
    brokers = [BrokerFacts(n, f"r{n}", old, version=(2, 8)) for n in (1, 2, 3)]
    _, made = scenario(cluster(brokers=brokers, voters=()))
    assert len(made.cluster.zookeepers) == 3
    assert made.cluster.kafka == "2.8"


def test_brokers_that_are_down_or_silent_are_there_with_their_racks():
    brokers = [
        BrokerFacts(1, "r1", STATIC, version=(4, 3)),
        BrokerFacts(2, "r2", None, version=(4, 1)),
        BrokerFacts(3, "r3", None, is_up=False),
    ]
    lost = {0: PartitionFacts((3, 1), (1,), -1), 1: PartitionFacts((1, 2), (1, 2), 2, moving=True)}
    topics = [TopicFacts("orders", lost)]
    gaps = ["broker 3: it is down"]
    found, made = scenario(cluster(brokers=brokers, topics=topics, samples=[], gaps=gaps))
    assert made.cluster.racks == ("r1", "r2", "r3")
    lines = "\n".join(found.absent)
    assert lines.startswith("broker 3: it is down\n"), "each gap is a line"
    assert "Kafka 4.1, 4.3: brokers differ; here all are 4.1" in lines
    assert "topic orders, partition 0: replicas out of sync" in lines
    assert "topic orders, partition 0: no leader" in lines
    assert "topic orders, partition 1: a reassignment under way" in lines
    assert "not led by the preferred replica, as here at first: partition 1" in found.text


def test_a_topic_that_takes_no_acks_all_is_imported_with_a_line():
    topics = [topic("orders", (1, 2, 3)), topic("alone", (1,))]
    found, made = scenario(cluster(topics=topics))
    assert made.topic("alone").config["min.insync.replicas"] == 1
    assert made.topic("orders").config["min.insync.replicas"] == 2
    assert found.absent == [
        f"topic alone: min.insync.replicas is above its replication factor{NO_ACKS_ALL}"
    ]


NO_ACKS_ALL = ", so no write with acks=all is taken there; here it is 1"


def test_a_newer_kafka_is_simulated_as_the_newest_there_is():
    brokers = [BrokerFacts(n, f"r{n}", STATIC, version=(4, 9)) for n in (1, 2, 3)]
    found, made = scenario(cluster(brokers=brokers))
    assert made.cluster.kafka == "4.3"
    assert "Kafka 4.9: simulated as 4.3, the newest there is here" in found.absent


def test_a_cluster_of_which_no_topic_may_be_seen_is_refused_with_what_to_grant():
    with pytest.raises(SimulationError, match="grant Describe on them"):
        sources_of(cluster(topics=[topic("__consumer_offsets", (1,), internal=True)]))


def test_a_producers_own_properties_go_with_a_running_cluster():
    files = Sources(producers=[Properties("p", {"acks": "1", "linger.ms": "20"})], files=["p"])
    _, made = scenario(cluster(), files=files)
    assert made.producers[0].config["acks"] == "1"


# -- arithmetic ------------------------------------------------------------------------------------


def test_a_size_is_that_of_what_was_written_meanwhile_or_of_all_there_is():
    place = ("t", 0)

    def at(seconds, end, size, start=0):
        return Sample(seconds, seconds, {place: end}, {place: start}, {place: size})

    assert topic_loads(at(0, 10, 1_000), at(10, 30, 5_000))["t"].bytes_per_record == 200
    # A segment was deleted in between: the rest of the log says it.
    cut = topic_loads(at(0, 10, 9_000), at(10, 30, 2_000, start=10))["t"]
    assert (cut.records_per_s, cut.bytes_per_record) == (2.0, 100)
    again = topic_loads(at(0, 10, 9_000), at(10, 3, 100))["t"]
    assert again.went_back
    assert again.records_per_s == 0


def test_lag_and_consumption_are_counted_where_a_group_has_committed():
    ends = {("t", 0): 100, ("t", 1): 50}
    first = Sample(0, 0, ends, committed={"g": {("t", 0): 90}})
    last = Sample(10, 10, ends, committed={"g": {("t", 0): 100, ("t", 1): 20}, "h": {}})
    found = group_loads(first, last)
    assert (found["g"].lag_first, found["g"].lag_last) == (10, 30)
    assert found["g"].records_per_s == 1.0
    assert found["h"].lag_last == 0


@pytest.mark.parametrize(("per_s", "each"), [(40, 370.0), (2_000, 130.0), (40, 1_500.0)])
def test_a_simulated_producer_writes_as_many_bytes_as_were_measured(per_s, each, tmp_path):
    place = ("orders", 0)
    samples = [
        Sample(0, 0, {place: 0}, {place: 0}, {place: 0}),
        Sample(10, 10, {place: per_s * 10}, {place: 0}, {place: int(per_s * 10 * each)}),
    ]
    facts = cluster(topics=[topic("orders", (1,))], groups=[], samples=samples)
    text = build(sources_of(facts)).text
    result = run(load_text(text, "mine.yaml", ["run.for=4s"]), 1, tmp_path / "run", level="facts")
    written = sum(p.stat().st_size for p in (tmp_path / "run" / "disks").rglob("orders-0/*.log"))
    acked = result.verdict["records"]["acked"]
    assert acked == per_s * 4
    assert written / acked == pytest.approx(each, rel=0.05)


# -- secrets ---------------------------------------------------------------------------------------


def test_values_that_a_broker_keeps_for_itself_are_hidden():
    own = STATIC | {
        "ssl.keystore.password": UNSAID,
        "confluent.license": UNSAID,
        "sasl.oauthbearer.jwks.endpoint.url": f"https://id:{CANARY}@example.com/keys",
    }
    brokers = [BrokerFacts(n, f"r{n}", own, version=(3, 9)) for n in (1, 2, 3)]
    found, _ = scenario(cluster(brokers=brokers))
    assert CANARY not in found.text
    assert "all servers: ssl.keystore.password=(hidden): Kafka's, not simulated" in found.text


@pytest.mark.parametrize(
    ("error", "tried", "words"),
    [
        (ConnectionError("Disconnected"), False, "credentials, and the protocol, right?"),
        (TimeoutError("timed out"), True, "does not answer these credentials in time"),
        (TimeoutError("timed out"), False, "is it reachable from here?"),
        (ConnectionRefusedError("refused"), True, "connection refused"),
    ],
)
def test_credentials_are_doubted_where_a_refusal_may_have_been_lost(error, tried, words):
    assert words in reason_with_sasl(reason_of(error), tried=tried)
