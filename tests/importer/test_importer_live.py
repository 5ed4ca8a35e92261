"""Facts of a running cluster become a scenario; requests that write do not pass the gate."""

import json
import socket
import ssl
import struct
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from sim import run
from sim.cli import app
from sim.errors import SimulationError
from sim.importer.cluster import build
from sim.importer.live.client_config import options_of, read
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
from sim.importer.live.group_describe import ConsumerGroupDescribe, Described
from sim.importer.live.guard import ALLOWED, Gate, WriteRefused
from sim.importer.live.load import group_loads, topic_loads
from sim.importer.live.translate import sources_of
from sim.importer.sources import Properties, Sources
from sim.scenario.loader import load_text
from sim.wire.definitions import definition, keys
from sim.wire.fields import Writer

CANARY = "cAnAry7"
ROOT = Path(__file__).parents[2]
IMPATIENT = """
from sim.importer.live import connection
connection.BOOTSTRAP_MS = 1_500
from sim.cli import main
main()
"""
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
        (GroupFacts("g", "share"), "a share group; not carried over"),
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
    brokers = [BrokerFacts(n, f"r{n}", STATIC, version=(4, 3)) for n in (1, 2, 3)]
    found, made = scenario(cluster(brokers=brokers))
    assert made.cluster.kafka == "4.1"
    assert "Kafka 4.3: simulated as 4.1, the newest there is here" in found.absent


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


# -- nothing is written ----------------------------------------------------------------------------


def frame(key, size=8):
    return struct.pack(">ih", size, key) + b"\0" * (size - 2)


def test_only_requests_that_read_pass_the_gate():
    names = {key: name.removesuffix("Request") for name, key in keys("request").items()}
    for key, name in names.items():
        gate = Gate()
        if key in ALLOWED:
            assert ALLOWED[key] == name
            gate.check_frames(frame(key))
            assert gate.sent[key] == 1
            continue
        with pytest.raises(WriteRefused):
            gate.check_frames(frame(key))
        with pytest.raises(WriteRefused):
            gate.check_request(SimpleNamespace(API_KEY=key))
        assert not gate.sent
    reads = ("Describe", "List", "Metadata", "OffsetFetch", "ApiVersions", "Sasl", "ConsumerGroupD")
    assert all(name.startswith(reads) for name in ALLOWED.values())


@pytest.mark.parametrize(
    "data",
    [frame(3) + frame(19), frame(3)[:5], frame(3) + b"\0", struct.pack(">ih", -1, 3), frame(3)[:8]],
)  # fmt: skip
def test_a_write_behind_a_read_and_what_is_no_request_do_not_pass(data):
    with pytest.raises(WriteRefused):
        Gate().check_frames(data)


def test_metadata_that_could_create_a_topic_does_not_pass():
    def metadata(topics, creates):
        return SimpleNamespace(API_KEY=3, topics=topics, allow_auto_topic_creation=creates)

    Gate().check_request(metadata(None, creates=True))
    Gate().check_request(metadata(["t"], creates=False))
    with pytest.raises(WriteRefused, match="may create topics"):
        Gate().check_request(metadata(["t"], creates=True))


def test_group_descriptions_are_encoded_and_decoded_as_kafka_defines_them():
    request = ConsumerGroupDescribe(["a", "bb"])
    request.with_header(correlation_id=7, client_id="me")
    data = request.encode(framed=True, header=True)
    assert data == bytes.fromhex(
        "00000015" "0045" "0000" "00000007" "0002" "6d65" "00" "03" "02" "61" "03" "6262" "00" "00"
    )  # fmt: skip
    Gate().check_frames(data)
    schema = definition("ConsumerGroupDescribeResponse").schema
    member = {
        "memberId": "m", "memberEpoch": 1, "clientId": "c", "clientHost": "h",
        "subscribedTopicNames": ["t"],
        "assignment": {"topicPartitions": []}, "targetAssignment": {"topicPartitions": []},
    }  # fmt: skip
    group = {
        "errorCode": 0, "groupId": "a", "groupState": "Stable", "groupEpoch": 1,
        "assignmentEpoch": 1, "assignorName": "uniform", "members": [member],
    }  # fmt: skip
    body = Writer(schema, 0, flexible=True).structure(
        schema.fields, {"throttleTimeMs": 0, "groups": [group]}
    )
    (found,) = Described.decode(memoryview_of(body)).groups
    assert (found["assignorName"], found["members"][0]["clientId"]) == ("uniform", "c")


def memoryview_of(body):
    return SimpleNamespace(read=lambda: body)


# -- the client's properties, and secrets ----------------------------------------------------------

SASL = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "SCRAM-SHA-512",
    "sasl.jaas.config": 'x.ScramLoginModule required username=\'me\'\n  password="a\\"b;c";',
}


def test_properties_of_kafkas_own_tools_are_taken():
    found = options_of(SASL | {"request.timeout.ms": "5000", "my.own": CANARY})
    assert found.options == {
        "security_protocol": "SASL_PLAINTEXT",
        "request_timeout_ms": 5_000,
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "me",
        "sasl_plain_password": 'a"b;c',
    }
    assert found.unused == ["my.own"]
    assert "b;c" not in repr(found)
    tls = {"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""}
    context = options_of(tls).options["ssl_context"]
    assert (context.check_hostname, context.verify_mode) == (False, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"security.protocol": CANARY}, "security.protocol: not one that is known here; allowed"),
        (SASL | {"sasl.mechanism": "OAUTHBEARER"}, "sasl.mechanism: not one that is known here"),
        (SASL | {"sasl.jaas.config": f"x required username={CANARY};"}, 'no password="..."'),
        (SASL | {"sasl.jaas.config": "${file:x:y}"}, "configuration providers are not read"),
        (
            {"security.protocol": "SSL", "ssl.truststore.location": f"/{CANARY}.jks"},
            "ssl.truststore.location: a Java store cannot be read here; convert it to PEM",
        ),
        (
            {"security.protocol": "SSL", "ssl.truststore.certificates": f"-----BEGIN {CANARY}"},
            "no certificates in PEM can be read there",
        ),
        ({"security.protocol": "SSL", "ssl.keystore.key": CANARY}, "a key inside the properties"),
        (
            {
                "security.protocol": "SSL",
                "ssl.keystore.type": "PEM",
                "ssl.keystore.location": f"/no/{CANARY}",
                "ssl.key.password": CANARY,
            },
            "is ssl.key.password right?",
        ),
        ({"request.timeout.ms": CANARY}, "request.timeout.ms: allowed: a whole number"),
    ],
)
def test_a_clients_properties_that_cannot_be_used_are_refused_without_their_values(values, line):
    with pytest.raises(SimulationError) as caught:
        options_of(values)
    assert line in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_file_of_properties_is_named_in_the_message(tmp_path):
    path = tmp_path / "client.properties"
    with pytest.raises(SimulationError, match=r"client\.properties: cannot be read"):
        read(path)
    path.write_text(f"security.protocol={CANARY}\n")
    with pytest.raises(SimulationError, match=r"client\.properties: security\.protocol: not one"):
        read(path)


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


def invoke(*words):
    return CliRunner().invoke(app, ["import", *(str(word) for word in words)])


def given(monkeypatch, answer):
    """The command with an answer in place of a cluster."""
    module = SimpleNamespace(live_sources=answer)
    monkeypatch.setitem(sys.modules, "sim.importer.live.cluster", module)


def test_the_command_writes_what_the_cluster_said(monkeypatch, tmp_path):
    calls = []

    def answer(*words):
        calls.append(words[:3])
        return sources_of(cluster())

    given(monkeypatch, answer)
    out = tmp_path / "mine.yaml"
    words = ["--bootstrap", "h:1,i:2", "--for", "90s", "--out", out]
    done = invoke(*words, "--strict")
    assert (done.exit_code, done.stdout) == (0, "")
    assert calls == [("h:1,i:2", None, 90_000_000)]
    assert "measured: orders: 40.0 records/s" in done.stderr
    assert "not known: producers: " in done.stderr
    assert "imported: brokers 3, topics 2; nothing not simulated or not alike" in done.stderr
    assert load_text(out.read_text()).producers
    printed = json.loads(invoke("--bootstrap", "h:1", "--json").stdout)
    assert printed["measured"][0] == "for 10 s, from offsets and sizes of logs"
    assert len(printed["not_known"]) == 4


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "nothing to read: give files, or --bootstrap HOST:PORT"),
        (("--for", "9s"), "--command-config and --for go with --bootstrap"),
        (("--bootstrap", "h:1", "--for", "9"), "--for: '9' has no unit"),
        (("--bootstrap", "h:1", "--for", "1ms"), "--for: less than a second"),
    ],
)
def test_options_that_do_not_fit_are_refused(words, line):
    done = invoke(*words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert line in done.stderr


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_cluster_that_is_not_there_is_named_with_the_reason(is_silent):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if not is_silent:
            listening.close()
        # A process of its own: kafka-python leaves its sockets of such attempts open.
        done = subprocess.run(
            [sys.executable, "-c", IMPATIENT, "import", "--bootstrap", f"127.0.0.1:{port}"],
            env={"PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    why = "no answer in time" if is_silent else "connection refused: does a broker listen there?"
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"--bootstrap 127.0.0.1:{port}: no broker answers: {why}")
    assert done.stderr.count("\n") == 1, "nothing of kafka-python's log"


def test_without_kafka_python_the_message_says_what_to_install(monkeypatch):
    for name in [n for n in sys.modules if n.startswith("sim.importer.live.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kafka", None)
    done = invoke("--bootstrap", "h:1")
    assert done.exit_code == 2
    assert "--bootstrap needs kafka-python: pip install 'logquake[live]'" in done.stderr


def test_no_secret_is_in_the_traceback_of_a_defect_while_a_cluster_is_read(monkeypatch):
    def broken(*_words):
        raise ValueError(f"password {CANARY}")

    given(monkeypatch, broken)
    done = invoke("--bootstrap", "h:1")
    assert done.exit_code == 4
    assert CANARY not in done.output
    assert "the import failed: ValueError at importing.py:" in done.output
