"""Files of a real cluster import without an edit, and nothing secret of them comes out."""

# ruff: noqa: E501 - the tools print long lines

import json
import traceback

import pytest
import yaml
from typer.testing import CliRunner

from sim import run
from sim.cli import app, importing
from sim.importer.cluster import build
from sim.importer.masking import HIDDEN, is_secret, shown
from sim.importer.sources import read_all
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.loader import load_text
from sim.scenario.settings.facts import settings_of
from sim.scenario.settings.kafka import UNSAID, defined, difference, names
from sim.scenario.settings.registry import SETTINGS
from tests.importer.test_importer_cluster import OLD_TOPICS

CANARY = "cAnAry7"
SERVER = f"""\
# ssl.key.password={CANARY}
! sasl.jaas.config={CANARY}
process.roles=broker
node.id=101
controller.quorum.voters=1@c1:9093
listeners=SASL_SSL://:9092
log.dirs=/data/1,/data/2
min.insync.replicas=2
ssl.keystore.location=/etc/kafka/keystore.p12
ssl.keystore.password={CANARY}
ssl.key.password: {CANARY}
ssl.truststore.password {CANARY}
ssl.keystore.key=-----BEGIN PRIVATE KEY----- \\
    {CANARY} \\
    -----END PRIVATE KEY-----
ssl.truststore.certificates=-----BEGIN CERTIFICATE----- {CANARY}
listener.name.external.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\
    username="admin" \\
    password="{CANARY}";
sasl.oauthbearer.client.credentials.client.secret={CANARY}
sasl.oauthbearer.token.endpoint.url=https://id:{CANARY}@login.example.com/token
sasl.oauthbearer.jwks.endpoint.url=https://id:{CANARY}@login.example.com/keys?assertion={CANARY}
sasl.oauthbearer.assertion.private.key.passphrase={CANARY}
delegation.token.secret.key={CANARY}
password.encoder.old.secret={CANARY}
confluent.license={CANARY}
my.company.database=jdbc:postgresql://app:{CANARY}@db/x
config.providers.vault.param.token={CANARY}
rlmm.config.remote.log.metadata.common.client.sasl.jaas.config=x {CANARY}
log.retention.hours={CANARY}
compression.type={CANARY}
    username="admin" password="{CANARY}";
org.apache.kafka.common.security.plain.PlainLoginModule required username=a password={CANARY};
https://id:{CANARY}@schema.example.com
MIIEvQIBADANBgkqh{CANARY}kiG9w0BAQEFAASC
{CANARY}
"""
TOPICS = f"""\
Topic: orders\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: no.such.password={CANARY},follower.replication.throttled.replicas={CANARY},retention.ms={CANARY}
\tTopic: orders\tPartition: 0\tLeader: 101\tReplicas: 101\tIsr: 101\tAdding Replicas: {CANARY}
"""
CONFIGS = f"""\
Dynamic configs for topic orders are:
  min.insync.replicas=1 sensitive=false synonyms={{DYNAMIC_TOPIC_CONFIG:min.insync.replicas={CANARY}}}
Dynamic configs for broker 101 are:
  listener.name.external.ssl.keystore.password={CANARY} sensitive=true synonyms={{DYNAMIC_BROKER_CONFIG:x={CANARY}}}
Dynamic configs for topic gone are:
  my.secret={CANARY} sensitive=true synonyms={{DYNAMIC_TOPIC_CONFIG:x=1}}
SCRAM credential configs for user-principal 'alice' are SCRAM-SHA-512=salt={CANARY},stored_key={CANARY},iterations=8192
Quota configs for client-id 'shop' are producer_byte_rate=1048576.0
"""
PRODUCER = f"""\
bootstrap.servers=k1:9092
acks=all
linger.ms=3
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="{CANARY}";
ssl.keystore.password={CANARY}
interceptor.classes=com.example.Audit,https://u:{CANARY}@audit
key.serializer=org.apache.kafka.common.serialization.StringSerializer
"""
KRAFT = """\
process.roles=broker
node.id={node}
controller.quorum.voters=1@c1:9093
broker.rack={rack}
num.io.threads=4
ssl.protocol=TLSv1.2
socket.listen.backlog.size=900
"""


def put(tmp_path, **files):
    paths = []
    for name, text in files.items():
        paths.append(tmp_path / f"{name}.txt")
        paths[-1].write_text(text)
    return paths


def invoke(*words):
    return CliRunner().invoke(app, ["import", *(str(word) for word in words)])


# -- secrets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--json",), ("--strict",), ("--out",)])
def test_no_secret_of_a_cluster_reaches_the_scenario_or_the_terminal(tmp_path, words):
    files = put(tmp_path, server=SERVER, topics=TOPICS, configs=CONFIGS, producer=PRODUCER)
    out = tmp_path / "mine.yaml"
    more = ["--out", out] if words == ("--out",) else words
    done = invoke(*files, *more)
    assert done.exit_code == (2 if words == ("--strict",) else 0), done.output
    written = out.read_text() if out.exists() else ""
    for printed in (done.stdout, done.stderr, written):
        assert CANARY not in printed
    if not words:
        assert f"broker-101: ssl.keystore.password={HIDDEN}: Kafka's, not simulated" in done.stderr
        assert f"https://{HIDDEN}@login.example.com/keys?{HIDDEN}" in done.stderr
        assert "broker-101: my.company.database: not Kafka's own" in done.stderr
        assert "producer_byte_rate=1048576.0" in done.stderr
        assert load_text(done.stdout).producers[0].config["linger.ms"] == 3


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("topics", "PartitionCount: 1", f"PartitionCount: {CANARY}"),
        ("topics", "Replicas: 101", f"Replicas: {CANARY}"),
        ("topics", "Topic: orders\tP", f"password={CANARY}\nTopic: orders\tP"),
        ("topics", "Topic: orders\tPartitionCount: 1", f"Topic: orders\tPartitionCount: 2{CANARY}"),
        ("configs", "Dynamic configs for broker", f"\n{CANARY}\nDynamic configs for broker"),
        ("server", "node.id=101", f"node.id={CANARY}"),
        ("server", "process.roles=broker", f"process.roles={CANARY}"),
        ("server", "node.id=101", "node.id=99999999999999999999"),
        ("server", "process.roles=broker", f"process.roles=broker\nbroker.rack=//{CANARY}@/"),
    ],
)
def test_no_secret_of_a_cluster_is_in_the_message_that_refuses_a_file(tmp_path, file, old, new):
    texts = {"server": SERVER, "topics": TOPICS, "configs": CONFIGS, "producer": PRODUCER}
    assert old in texts[file]
    texts[file] = texts[file].replace(old, new)
    done = invoke(*put(tmp_path, **texts))
    assert done.exit_code in (0, 2), done.output
    if "rack" not in new:  # the one value that a scenario needs as it is spelt
        assert CANARY not in done.output
        assert done.exit_code == 2 or "process.roles" in new


def test_no_secret_is_in_the_traceback_of_a_defect(tmp_path, monkeypatch):
    def broken(*_words):
        raise ValueError(f"invalid literal: {CANARY}")

    monkeypatch.setattr(importing, "build", broken)
    done = invoke(*put(tmp_path, server=SERVER, topics=TOPICS))
    assert done.exit_code == 4
    printed = done.output + "".join(traceback.format_exception(done.exception))
    assert CANARY not in printed
    assert "the import failed: ValueError at importing.py:" in printed


@pytest.mark.parametrize(
    ("name", "value", "printed"),
    [
        ("ssl.keystore.password", "x", HIDDEN),
        ("a.b.sasl.jaas.config", "x", HIDDEN),
        ("ssl.keystore.key", "x", HIDDEN),
        ("key.serializer", "x", HIDDEN),
        ("sasl.oauthbearer.client.credentials.client.id", "x", HIDDEN),
        ("metric.reporters", 'a.B password = "x"', HIDDEN),
        ("sasl.oauthbearer.jwks.endpoint.url", "http://u:p@h/x", f"http://{HIDDEN}@h/x"),
        ("advertised.listeners", "A://:1,B://h:2", "A://:1,B://h:2"),
        ("monkey.business", "x\n  y", "x y"),
        ("log.cleaner.threads", "2", "2"),
    ],
)
def test_a_value_is_shown_unless_its_name_or_itself_is_secret(name, value, printed):
    assert shown(name, value) == printed


def test_every_setting_that_kafka_itself_treats_as_a_password_is_secret():
    kinds = ("broker", "producer", "consumer", "admin", "connect distributed", "mirror source")
    passwords = [
        name
        for kind in kinds
        for name, known in settings_of(kind).items()
        if known.near().type == "password"
    ]
    assert len(passwords) > 20
    shows = [name for name in passwords if not is_secret(name)]
    # Public by their nature, and hidden by what is in them.
    assert sorted(dict.fromkeys(shows)) == [
        "ssl.keystore.certificate.chain",
        "ssl.truststore.certificates",
    ]
    assert shown(shows[0], "-----BEGIN CERTIFICATE-----") == HIDDEN


# -- Kafka's own names -----------------------------------------------------------------------------


def test_the_names_are_those_of_the_released_jars():
    threads = defined("broker", "num.io.threads")
    assert (threads.since, threads.last, threads.near().default) == ("0.10", "4.3", "8")
    assert defined("broker", "zookeeper.connect").last == "3.9"
    assert len(names("broker")) > 400
    assert len(names("topic")) > 30
    assert defined("broker", "listener.name.x.scram-sha-512.sasl.jaas.config") is not None
    assert defined("broker", "super.users") is not None
    assert defined("broker", "confluent.license") is None


@pytest.mark.parametrize("scope", SETTINGS)
def test_every_setting_of_kafka_that_is_not_simulated_has_what_it_changes(scope):
    absent = [name for name in names(scope) if name not in SETTINGS[scope]]
    assert bool(absent) is (scope != "group"), "all of a group's have their line"
    assert len(absent) > 3 or scope == "group"
    assert [name for name in absent if difference(scope, name) == UNSAID] == []


@pytest.mark.parametrize("scope", ["broker", "topic", "producer", "consumer"])
def test_a_scenario_with_a_setting_of_kafka_that_is_not_simulated_is_refused_as_such(scope):
    others = (n for n in names(scope) if n not in SETTINGS[scope])
    name = next(n for n in others if defined(scope, n).at(DEFAULT))
    own = {"config": {name: "x"}}
    data = {
        "claim": "C.",
        "cluster": {"brokers": 1, **(own if scope == "broker" else {})},
        "topics": {"t": {"replication.factor": 1, **(own if scope == "topic" else {})}},
        "producers": [
            {"name": "p", "topic": "t", "rate": "1/s", **(own if scope == "producer" else {})}
        ],
        "consumers": [{"group": "g", "topics": ["t"], **(own if scope == "consumer" else {})}],
        "run": {"for": "1s"},
    }
    with pytest.raises(Exception, match="is Kafka's and not simulated here"):
        load_text(yaml.safe_dump(data))


# -- what is made ----------------------------------------------------------------------------------


def test_a_setting_that_does_not_fit_the_rest_is_left_out_and_listed(tmp_path):
    text = KRAFT.format(node=0, rack="") + "zookeeper.session.timeout.ms=9000\n"
    files = put(tmp_path, s=text, topics=OLD_TOPICS.replace("min.insync.replicas=2", "a=1"))
    found = build(read_all(files), "10/s")
    (line,) = [line for line in found.absent if "zookeeper.session" in line]
    assert line.startswith("all brokers: zookeeper.session.timeout.ms: left out: ")
    scenario = load_text(found.text)
    assert scenario.cluster.config["num.io.threads"] == 4


def test_a_topic_below_the_min_insync_replicas_of_its_brokers_is_imported(tmp_path):
    text = KRAFT.format(node=0, rack="") + "min.insync.replicas=2\n"
    topics = OLD_TOPICS.replace("0,1", "0").replace("1,0", "1").replace("=2,ret", "=3,ret")
    found = build(read_all(put(tmp_path, s=text, topics=topics)), "10/s")
    assert load_text(found.text).topic("orders").config["min.insync.replicas"] == 1
    (line,) = [line for line in found.absent if "replication factor" in line]
    assert line.startswith("topic orders: min.insync.replicas is above its replication factor")


def test_what_all_servers_share_is_said_once_and_differences_by_broker(tmp_path):
    texts = {f"s{n}": KRAFT.format(node=n, rack="r") for n in range(6)}
    texts["s4"] = texts["s4"].replace("900", "901").replace("threads=4", "threads=5")
    found = build(read_all(put(tmp_path, **texts, topics=OLD_TOPICS)), "10/s")
    assert found.absent == [
        f"all servers: ssl.protocol=TLSv1.2: Kafka's, not simulated here (default TLSv1.3): {difference('broker', 'ssl.protocol')}",
        "broker-0, broker-1, broker-2, broker-3, broker-5: socket.listen.backlog.size=900: sockets have no buffer sizes",
        "broker-4: socket.listen.backlog.size=901: sockets have no buffer sizes",
        "num.io.threads: not alike (4 of 0, 1, 2, 3, 5; 5 of 4); here all brokers have 4",
    ]


def test_brokers_keep_their_ids_also_zero_and_run_with_them(tmp_path):
    files = put(
        tmp_path,
        a=KRAFT.format(node=0, rack="b").replace("node.id", "broker.id"),
        b=KRAFT.format(node=1, rack="/dc 1"),
        topics=OLD_TOPICS,
    )
    found = build(read_all(files), "20/s")
    scenario = load_text(found.text, "imported.yaml", ["run.for=2s"])
    assert [(b.name, b.node, b.rack) for b in scenario.cluster.brokers] == [
        ("broker-0", 0, "b"),
        ("broker-1", 1, "dc-1"),
    ]
    result = run(scenario, 1, tmp_path / "run", level="facts")
    assert result.held
    assert result.verdict["records"]["acked"] == 40
    again = load_text((tmp_path / "run" / "scenario.yaml").read_text())
    assert again.digest == scenario.digest


def test_broker_ids_beyond_a_scenarios_are_numbered_again_and_listed(tmp_path):
    text = OLD_TOPICS.replace("0,1", "4001,1").replace("1,0", "1,4001")
    found = build(read_all(put(tmp_path, topics=text)), "20/s")
    assert found.brokers == {1: "broker-1", 4001: "broker-2"}
    assert "broker ids: 4001 is more than a scenario's 3000" in found.absent[0]
    assert "# Brokers, here and in the cluster: broker-2 is 4001." in found.text


def test_a_compacted_topic_gets_a_producer_with_keys(tmp_path):
    topics = OLD_TOPICS + "\n".join(
        f"Topic: {name}\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: {configs}\n"
        f"\tTopic: {name}\tPartition: 0\tLeader: 0\tReplicas: 0\tIsr: 0\n"
        for name, configs in (("table", "cleanup.policy=compact,delete"), ("log", ""))
    )
    found = load_text(build(read_all(put(tmp_path, topics=topics)), "20/s").text)
    assert {p.topic: p.keys for p in found.producers} == {
        "orders": "none",
        "table": "uniform",
        "log": "none",
    }
    server = KRAFT.format(node=0, rack="") + "log.cleanup.policy=compact\n"
    found = load_text(build(read_all(put(tmp_path, topics=topics, s=server)), "20/s").text)
    assert [p.keys for p in found.producers] == ["uniform"] * 3


def test_json_has_the_scenario_and_what_is_left_out(tmp_path):
    done = invoke(*put(tmp_path, topics=OLD_TOPICS), "--json")
    printed = json.loads(done.stdout)
    assert printed["brokers"] == {"0": "broker-0", "1": "broker-1"}
    assert load_text(printed["text"]).cluster.brokers[0].node == 0


REAL = """\
# Production broker 1 - managed by Ansible
process.roles=broker
node.id=1
broker.rack=eu-west-1a
controller.quorum.voters=101@ctrl-1:9093,102@ctrl-2:9093,103@ctrl-3:9093
controller.listener.names=CONTROLLER
listeners=INTERNAL://:9092,REPLICATION://:9095
listener.security.protocol.map=INTERNAL:SASL_SSL,REPLICATION:SSL,CONTROLLER:SSL
inter.broker.listener.name=REPLICATION
sasl.enabled.mechanisms=SCRAM-SHA-512,OAUTHBEARER
ssl.keystore.location=/etc/kafka/ssl/keystore.p12
ssl.endpoint.identification.algorithm=
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:CN=broker
log.dirs=/data/kafka1,/data/kafka2,/data/kafka3
num.network.threads=8
num.partitions=12
default.replication.factor=3
min.insync.replicas=2
replica.fetch.max.bytes=10485760
replica.selector.class=org.apache.kafka.common.replica.RackAwareReplicaSelector
auto.create.topics.enable=false
offsets.topic.replication.factor=3
offsets.topic.num.partitions=6
transaction.state.log.replication.factor=3
transaction.state.log.num.partitions=2
message.max.bytes=10485760
metric.reporters=com.linkedin.kafka.cruisecontrol.metricsreporter.CruiseControlMetricsReporter
cruise.control.metrics.reporter.bootstrap.servers=localhost:9092
inter.broker.protocol.version=3.6
remote.log.storage.system.enable=true
quota.window.num=11
"""


def described(topic, configs, *placed):
    lines = [
        f"Topic: {topic}\tPartitionCount: {len(placed)}\tReplicationFactor: 3\tConfigs: {configs}"
    ]
    lines += [
        f"\tTopic: {topic}\tPartition: {number}\tLeader: {nodes[0]}\tReplicas: {nodes}\tIsr: {nodes}\tElr: \tLastKnownElr: "
        for number, nodes in enumerate(placed)
    ]
    return "\n".join(lines) + "\n"


def test_a_kraft_clusters_own_files_import_without_an_edit_validate_and_run(tmp_path):
    topics = described("orders", "min.insync.replicas=2,segment.bytes=536870912", "1,2,3", "5,6,4")
    topics += described("customers", "cleanup.policy=compact", "3,1,2")
    topics += described("clicks", "remote.storage.enable=true", "4,5,6")
    configs = "Dynamic configs for topic orders are:\n  min.insync.replicas=2 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:min.insync.replicas=2}\nDynamic configs for topic clicks are:\n"
    files = put(tmp_path, server=REAL, topics=topics, configs=configs)
    out = tmp_path / "mine.yaml"
    assert invoke(*files, "--out", out).exit_code == 0
    checked = CliRunner().invoke(app, ["validate", str(out)])
    assert checked.exit_code == 0, checked.output
    scenario = load_text(out.read_text(), "mine.yaml", ["run.for=1s"])
    result = run(scenario, 1, tmp_path / "run", level="facts")
    assert result.held
    assert result.verdict["records"]["acked"] == 300
    assert "unknown" not in out.read_text()
