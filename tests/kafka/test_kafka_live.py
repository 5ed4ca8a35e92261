"""A real cluster is read while it runs, and nothing of it changes; in the order of the file."""

import json
import time

import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.scenario.loader import load_text
from tests.importer.refusals import refused
from tests.kafka.live_kit import (  # it imports kafka-python without its warnings
    CANARY,
    NODES,
    PER_S,
    Busy,
    LiveCluster,
    furnish,
    state,
    writes,
)

# isort: split
from sim.importer.live.connection import Connection, NoAnswer
from sim.importer.live.guard import ALLOWED, WriteRefused
from sim.importer.live.reading import read_cluster
from sim.importer.live.sampling import measure

pytestmark = [
    pytest.mark.kafka,
    # kafka-python leaves the socket of a connection that broke to the collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster(kafka, tmp_path_factory):
    with LiveCluster(tmp_path_factory.mktemp("live")) as started:
        furnish(started)
        yield started


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def imported(cluster, *words):
    """The answer of the command in JSON."""
    done = invoke("import", "--bootstrap", cluster.bootstrap, "--json", *words)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_reading_creates_no_topic_and_moves_no_offset(cluster):
    before = state(cluster)
    assert "__consumer_offsets" not in before[0], "nobody has looked for a coordinator yet"
    found = imported(cluster, "--for", "2s")
    assert state(cluster) == before
    assert found["topics"] == 3
    assert "nothing was written to any topic: the rates here are a guess" in found["measured"]


def test_a_write_is_refused_before_it_is_sent(cluster):
    before = state(cluster)
    with Connection(cluster.servers, {}) as opened:
        for request in writes():
            with pytest.raises(WriteRefused):
                opened.answer(request)
        # Below the first check, where a connection of kafka-python itself would send.
        manager = opened._admin._manager

        async def past_the_first_check():
            for node in NODES:
                reached = await manager.get_connection(node)
                await reached.send_request(writes()[0])

        with pytest.raises(WriteRefused):
            manager.run(past_the_first_check)
    with Connection(cluster.servers, {}) as opened:
        measure(opened, read_cluster(opened, lambda _: None), 0.1, lambda _: None)
        assert [key for key in opened.gate.sent if key not in ALLOWED] == []
        assert opened.gate.sent[35] == 2 * len(NODES), "the gate sees what is sent"
    assert state(cluster) == before


def test_a_running_cluster_is_imported_with_its_load_and_runs(cluster, tmp_path):
    out = tmp_path / "mine.yaml"
    words = ["import", "--bootstrap", cluster.bootstrap, "--for", "12s", "--out", out]
    with Busy(cluster, tmp_path) as busy:
        time.sleep(15)  # groups have formed, and the console's JVM has started
        began = time.monotonic()
        done = invoke(*words)
        lowest, highest = busy.rates(began, time.monotonic(), 12)
    assert done.exit_code == 0, done.output
    text = out.read_text()
    scenario = load_text(text)
    assert [(b.node, b.rack) for b in scenario.cluster.brokers] == [
        (node, f"rack-{node}") for node in NODES
    ]
    assert scenario.cluster.combined
    assert len(scenario.cluster.controllers) == 3
    config = scenario.cluster.config
    assert (config["num.replica.fetchers"], config["message.max.bytes"]) == (2, 2_000_000)
    assert config["offsets.topic.num.partitions"] == 4
    orders = scenario.topic("orders")
    assert orders.assignment == ((1, 2), (2, 3), (3, 1))
    assert orders.config["segment.bytes"] == 536_870_912
    (producer,) = scenario.producers
    assert producer.topic == "orders"
    assert 0.85 * lowest <= producer.rate_per_s <= 1.15 * highest
    assert lowest > PER_S / 4, "the machine was too busy to write"
    assert 290 <= producer.record_size <= 310, "300 B were sent, one in each batch"
    consumers = {consumer.group: consumer for consumer in scenario.consumers}
    assert (consumers["billing"].count, consumers["billing"].name) == (2, "biller")
    assert consumers["modern"].config["group.protocol"] == "consumer"
    assert consumers["slow-group"].processing_us > 50_000
    assert "lag" in text
    assert "nothing was written to idle, table: no producer here" in text
    assert "quota of user alice: producer_byte_rate=1024.0: no client here" in text
    assert yaml.safe_load(text)["quotas"] == [
        {"client.id": "biller", "consumer_byte_rate": 2_000_000},
        {"client.id": "<default>", "consumer_byte_rate": 1_000_000},
    ]
    assert CANARY not in done.output + text
    assert invoke("validate", out).exit_code == 0
    ran = invoke("run", out, "--set", "run.for=5s", "--out", tmp_path / "run")
    assert ran.exit_code == 0, ran.output
    verdict = invoke("verdict", out, "--budget", "15s", "--jobs", "1", "--out", tmp_path / "v")
    assert verdict.exit_code in (0, 1), verdict.output


def test_a_cluster_is_read_through_tls_if_its_certificate_is_trusted(cluster, tmp_path):
    config = tmp_path / "tls.properties"
    trusts = f"ssl.truststore.type=PEM\nssl.truststore.location={cluster.certificate}\n"
    words = ["--bootstrap", cluster.encrypted, "--command-config", config, "--for", "1s"]
    config.write_text(f"security.protocol=SSL\n{trusts}")
    done = invoke("import", *words)
    assert done.exit_code == 0, done.output
    assert load_text(done.stdout).topic("orders").assignment == ((1, 2), (2, 3), (3, 1))
    for properties, reasons in (
        ("security.protocol=SSL\n", ["its certificate is not trusted: ssl.truststore.location"]),
        # It answers by an alert of TLS, of which the end of the connection may be all that comes.
        (trusts, ["it closes the connection: is security.protocol that of this listener?",
                  "it does not speak Kafka in the clear: is security.protocol missing?"]),
    ):  # fmt: skip
        config.write_text(properties)
        answer = refused(*words)
        assert any(f"no broker answers: {why}" in answer for why in reasons)


@pytest.fixture
def reader(tmp_path):
    """A client's properties, in the form of Kafka's own tools."""
    path = tmp_path / "reader.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="reader" password="{CANARY}";\ninterceptor.classes={CANARY}\n'
    )
    return path


def test_what_a_principal_may_not_see_is_listed_with_what_to_grant(cluster, reader):
    words = ["--bootstrap", cluster.named, "--command-config", reader, "--for", "1s"]
    done = invoke("import", *words)
    assert done.exit_code == 0, done.output
    assert load_text(done.stdout).topic("orders").assignment == ((1, 2), (2, 3), (3, 1))
    assert load_text(done.stdout).cluster.racks == ("rack-1", "rack-2", "rack-3")
    for line in (
        "settings of broker 1: not known: not authorised; grant DescribeConfigs on the cluster",
        "overrides of orders: not known: not authorised; grant DescribeConfigs on the topics",
        "who votes is not known: not authorised; grant Describe on the cluster",
        "quotas: not known: not authorised; grant DescribeConfigs on the cluster",
        "sizes of the logs of broker 1: not known: not authorised; grant Describe on the cluster",
        "--command-config: interceptor.classes: not used here",
    ):
        assert line in done.stderr
    assert list(yaml.safe_load(done.stdout)["topics"]) == ["orders"]
    assert CANARY not in done.output
    refused = invoke("import", *words, "--strict")
    assert (refused.exit_code, refused.stdout) == (2, "")


def test_credentials_that_are_refused_are_not_shown(cluster, reader):
    reader.write_text(reader.read_text().replace(CANARY, f"{CANARY}x"))
    words = ["--bootstrap", cluster.named, "--command-config", reader, "--for", "1s"]
    done = invoke("import", *words)
    assert done.exit_code == 2
    # By timing: kafka-python may read the refusal, only the end of the connection, or nothing.
    assert "no broker answers: it " in done.stderr
    assert "these credentials" in done.stderr
    assert CANARY not in done.output


def test_a_broker_that_is_not_reached_leaves_lines(cluster, monkeypatch):
    answer = Connection.answer

    def firewalled(self, request, node=None):
        if node == 2:
            raise NoAnswer("no answer in time: is it reachable from here?")
        return answer(self, request, node)

    monkeypatch.setattr(Connection, "answer", firewalled)
    found = imported(cluster, "--for", "1s")
    lines = "\n".join(found["not_simulated"])
    why = "not known: no answer in time: is it reachable from here?"
    assert f"settings of broker 2: {why}" in lines
    assert "offsets of " in lines
    assert f"sizes of the logs of broker 2: {why}" in lines
    assert f"groups that broker 2 coordinates: {why}" in lines
    assert load_text(found["text"]).cluster.racks == ("rack-1", "rack-2", "rack-3")


def test_a_cluster_with_a_broker_down_is_imported_all_the_same(cluster):
    cluster.stop_node(3)
    found = imported(cluster, "--for", "1s")
    assert found["brokers"] == {str(node): f"broker-{node}" for node in NODES}
    lines = "\n".join(found["not_simulated"])
    assert "broker 3: it is down, so its settings are not known" in lines
    assert "replicas out of sync; here all are in sync at first" in lines
    scenario = load_text(found["text"])
    assert scenario.cluster.racks == ("rack-1", "rack-2", "rack-3"), "it is still registered"
    assert scenario.topic("orders").assignment == ((1, 2), (2, 3), (3, 1))
