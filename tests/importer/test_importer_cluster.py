"""What a cluster's files and tools say becomes a scenario; what does not fit is told."""

# ruff: noqa: E501 - the tools print long lines

import json

import pytest
import yaml
from typer.testing import CliRunner

from sim import run
from sim.cli import app
from sim.errors import SimulationError
from sim.importer.cluster import build
from sim.importer.descriptions import UnreadableError, parse_configs, parse_topics
from sim.importer.properties import parse
from sim.importer.sources import read_all
from sim.scenario.loader import load_text

SERVER = """\
# A node of a small cluster.
process.roles=broker
node.id={node}
broker.rack={rack}
controller.quorum.voters=1@c1:9093,2@c2:9093,3@c3:9093
listeners=PLAINTEXT://:9092
log.dirs=/disks/1,/disks/2
min.insync.replicas=2
replica.lag.time.max.ms = 20000
num.partitions=6
log.retention.hours=168
socket.send.buffer.bytes=102400
auto.create.topics.enable=false
confluent.balancer.enable=true
"""
TOPICS = """\
Topic: orders\tTopicId: h8sJcJ3hQmqf4l1rYV0Rxw\tPartitionCount: 2\tReplicationFactor: 3\tConfigs: cleanup.policy=compact,delete,segment.bytes=1048576
\tTopic: orders\tPartition: 0\tLeader: 101\tReplicas: 101,103,102\tIsr: 101,102,103\tElr: \tLastKnownElr: \n\
\tTopic: orders\tPartition: 1\tLeader: none\tReplicas: 102,101,103\tIsr: 101\tElr: 102\tLastKnownElr: 103
Topic: clicks.raw\tTopicId: x0RbJ3hQmqf4l1rYV0Rabc\tPartitionCount: 1\tReplicationFactor: 2\tConfigs: min.insync.replicas=1
\tTopic: clicks.raw\tPartition: 0\tLeader: 103\tReplicas: 103,101\tIsr: 103,101\tElr: N/A\tLastKnownElr: N/A
Topic: __consumer_offsets\tTopicId: abc\tPartitionCount: 1\tReplicationFactor: 3\tConfigs: cleanup.policy=compact
\tTopic: __consumer_offsets\tPartition: 0\tLeader: 101\tReplicas: 101,102,103\tIsr: 101,102,103
"""
OLD_TOPICS = """\
Topic:orders\tPartitionCount:2\tReplicationFactor:2\tConfigs:min.insync.replicas=2,retention.ms=60000
\tTopic: orders\tPartition: 0\tLeader: 0\tReplicas: 0,1\tIsr: 0,1
\tTopic: orders\tPartition: 1\tLeader: 1\tReplicas: 1,0\tIsr: 1,0
"""
OLD_SERVER = """\
broker.id={node}
zookeeper.connect=zk1:2181,zk2:2181,zk3:2181/kafka
zookeeper.session.timeout.ms=12000
log.dir=/disks
unclean.leader.election.enable=true
"""
CONFIGS = """\
Dynamic configs for topic orders are:
  max.message.bytes=2000000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:max.message.bytes=2000000, DEFAULT_CONFIG:message.max.bytes=1048588}
Dynamic configs for broker 101 are:
Default configs for brokers in the cluster are:
  num.io.threads=4 sensitive=false synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:num.io.threads=4}
Quota configs for client-id 'shop' are producer_byte_rate=1048576.0
"""
PRODUCER = "bootstrap.servers=k1:9092\nacks=1\nlinger.ms=20\ncompression.type=lz4\n"


def sources(tmp_path, **files):
    """The files, named by their keys, as they are read."""
    paths = []
    for name, text in files.items():
        path = tmp_path / f"{name}.txt"
        path.write_text(text)
        paths.append(path)
    return read_all(paths)


def modern(tmp_path, **more):
    files = {
        f"s{n}": SERVER.format(node=n, rack=r) for n, r in ((101, "b"), (102, "a"), (103, "c"))
    }
    return sources(tmp_path, **files, topics=TOPICS, **more)


@pytest.fixture
def imported(tmp_path):
    return build(modern(tmp_path, configs=CONFIGS, producer=PRODUCER), "50/s")


# -- what is read ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a=1\nb : 2\nc 3\n", {"a": "1", "b": "2", "c": "3"}),
        ("# no\n! no\n\n  a = x=y \n", {"a": "x=y"}),
        ("a=one,\\\n   two\n", {"a": "one,two"}),
        ("a=C\\:\\\\x\na=2\\\\\nb=3", {"a": "2\\", "b": "3"}),
        ("key\\ with=1\nempty=\n", {"key with": "1", "empty": ""}),
    ],
)
def test_properties_are_read_as_java_reads_them(text, found):
    assert parse(text) == found


@pytest.mark.parametrize("text", [TOPICS, TOPICS.replace("\t", "    ")])
def test_topics_of_kafka_4_are_read_with_tabs_and_as_pasted(text):
    found = parse_topics(text)
    assert found["orders"].replicas == {0: (101, 103, 102), 1: (102, 101, 103)}
    assert found["orders"].configs == {
        "cleanup.policy": "compact,delete",
        "segment.bytes": "1048576",
    }
    assert found["clicks.raw"].partitions == 1


def test_topics_of_kafka_2_are_read():
    found = parse_topics(OLD_TOPICS)
    assert list(found) == ["orders"]
    assert found["orders"].configs == {"min.insync.replicas": "2", "retention.ms": "60000"}
    assert found["orders"].replicas == {0: (0, 1), 1: (1, 0)}


def test_a_setting_with_colons_and_commas_stays_whole():
    line = "Topic: a\tPartitionCount: 1\tReplicationFactor: 1\tConfigs: leader.replication.throttled.replicas=0:1,1:2,retention.ms=5"
    assert parse_topics(line)["a"].configs == {
        "leader.replication.throttled.replicas": "0:1,1:2",
        "retention.ms": "5",
    }


@pytest.mark.parametrize(
    "line",
    ["Topic orders", "\tTopic: a\tPartition: x\tReplicas: 1", "Error while executing", "Topic: a"],
)
def test_what_the_tool_does_not_print_is_refused_by_line(line):
    with pytest.raises(UnreadableError) as caught:
        parse_topics(f"{OLD_TOPICS}\n{line}\n")
    assert caught.value.args == (5, line)


def test_configs_of_both_layouts_are_read():
    old = "Configs for topic 'orders' are retention.ms=5,cleanup.policy=compact,delete\n"
    (one,) = parse_configs(old)
    assert (one.entity, one.name) == ("topic", "orders")
    assert one.configs == {"retention.ms": "5", "cleanup.policy": "compact,delete"}
    kinds = [(c.entity, c.name, c.configs) for c in parse_configs(CONFIGS)]
    assert kinds == [
        ("topic", "orders", {"max.message.bytes": "2000000"}),
        ("broker", "101", {}),
        ("brokers", "brokers", {"num.io.threads": "4"}),
        ("other", "client-id 'shop'", {"producer_byte_rate": "1048576.0"}),
    ]


def test_of_all_settings_only_those_that_were_set_are_taken():
    text = (
        "All configs for topic orders are:\n"
        "  retention.ms=9 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=9}\n"
        "  flush.ms=7 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.flush.interval.ms=7}\n"
        "  segment.bytes=1 sensitive=false synonyms={}\n"
    )
    assert parse_configs(text)[0].configs == {"retention.ms": "9"}
    with pytest.raises(UnreadableError):
        parse_configs("  retention.ms=9\n")


# -- what is made ----------------------------------------------------------------------------------


def test_placement_racks_factors_and_overrides_are_kept(imported):
    scenario = load_text(imported.text)
    assert imported.brokers == {n: f"broker-{n}" for n in (101, 102, 103)}, "their own ids"
    found = [(b.node, b.rack) for b in scenario.cluster.brokers]
    assert found == [(102, "a"), (101, "b"), (103, "c")], "rack by rack"
    orders, clicks = scenario.topic("orders"), scenario.topic("clicks.raw")
    assert orders.assignment == ((101, 103, 102), (102, 101, 103))
    assert clicks.assignment == ((103, 101),)
    assert (orders.config["min.insync.replicas"], clicks.config["min.insync.replicas"]) == (2, 1)
    assert orders.config["cleanup.policy"] == "compact,delete"
    assert orders.config["max.message.bytes"] == 2_000_000
    assert scenario.cluster.config["replica.lag.time.max.ms"] == 20_000
    assert scenario.cluster.config["num.io.threads"] == 4
    assert scenario.cluster.config["offsets.topic.num.partitions"] == 1
    assert (len(scenario.cluster.controllers), scenario.cluster.disk.directories) == (3, 2)
    assert scenario.producers[0].config["acks"] == "1"
    assert [p.topic for p in scenario.producers] == ["orders", "clicks.raw"]


def test_what_is_not_simulated_is_told_in_the_file_and_in_the_list(imported):
    lines = "\n".join(imported.absent)
    assert "all servers: num.partitions=6: topics are listed in the scenario" in lines
    assert lines.count("num.partitions=6") == 1, "what all servers share is said once"
    assert "confluent.balancer.enable: not Kafka's own" in lines
    assert "client-id 'shop': producer_byte_rate=1048576.0: quotas and users" in lines
    assert "log.retention.hours" not in lines
    assert "socket.send.buffer.bytes" not in lines, "Kafka's default is what is simulated"
    for line in imported.absent:
        assert f"# - {line}\n" in imported.text
    assert "Brokers, here and in the cluster" not in imported.text, "ids are the same"


def test_the_scenario_runs_and_replicas_stand_where_they_stood(imported, tmp_path):
    scenario = load_text(imported.text, "imported.yaml", ["run.for=2s"])
    result = run(scenario, 1, tmp_path / "run", level="facts")
    assert result.verdict["records"]["acked"] > 0
    first = result.table("partition_changes").drop_duplicates(["topic", "partition"])
    found = {(row.topic, row.partition): row.replicas for row in first.itertuples()}
    assert found[("orders", 0)] == "101,103,102"
    assert found[("orders", 1)] == "102,101,103"
    assert found[("clicks.raw", 0)] == "103,101"


def test_zookeeper_mode_of_kafka_2_is_recognised(tmp_path):
    servers = {f"s{n}": OLD_SERVER.format(node=n) for n in (0, 1)}
    found = build(sources(tmp_path, **servers, topics=OLD_TOPICS), "10/s")
    scenario = load_text(found.text)
    assert len(scenario.cluster.zookeepers) == 3
    assert scenario.cluster.config["zookeeper.session.timeout.ms"] == 12_000
    assert scenario.cluster.config["unclean.leader.election.enable"] is True
    assert scenario.topic("orders").assignment == ((0, 1), (1, 0))
    assert found.absent == []


def test_brokers_that_are_controllers_too_are_combined(tmp_path):
    text = SERVER.replace("roles=broker", "roles=broker,controller")
    files = {f"s{n}": text.format(node=n, rack="") for n in (101, 102, 103)}
    scenario = load_text(build(sources(tmp_path, **files, topics=TOPICS), "10/s").text)
    assert scenario.cluster.combined
    assert len(scenario.cluster.controllers) == 3


def test_topics_alone_are_enough(tmp_path):
    scenario = load_text(build(sources(tmp_path, topics=OLD_TOPICS), "10/s").text)
    assert len(scenario.cluster.brokers) == 2


def test_brokers_that_differ_are_told(tmp_path):
    files = {f"s{n}": SERVER.format(node=n, rack="r") for n in (101, 102, 103)}
    files["s102"] = files["s102"].replace("20000", "9000").replace("broker.rack=r\n", "")
    found = build(sources(tmp_path, **files, topics=TOPICS), "10/s")
    told = "\n".join(found.absent)
    assert "replica.lag.time.max.ms: not alike (20000 of 101, 103; 9000 of 102)" in told
    assert "racks: not known of broker 102" in told
    assert "racks" not in yaml.safe_load(found.text)["cluster"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"topics": OLD_TOPICS.rpartition("\tTopic")[0]}, "1 of 2 partitions are described"),
        ({"s": OLD_SERVER.format(node=1)}, "no topic: give the output of kafka-topics"),
        ({"s": "log.dirs=/x\n", "topics": OLD_TOPICS}, "node.id or broker.id: none"),
        ({"a": OLD_TOPICS, "b": OLD_TOPICS}, "topic orders was described before"),
        ({"c": "group.id=x\nauto.offset.reset=latest\n"}, "a consumer's properties"),
        ({"c": "hello world\n"}, "nothing that is known"),
        ({"t": "12:00 INFO retries = 3\n" + OLD_TOPICS}, "t.txt:1: this line is not what the tool"),
        ({"t": OLD_TOPICS + "garbage\n"}, "t.txt:4: this line is not what the tool"),
        (
            {"a": OLD_SERVER.format(node=1), "b": OLD_SERVER.format(node=1)},
            "a second server with id 1",
        ),
    ],
)
def test_what_cannot_be_imported_is_refused(files, told, tmp_path):
    with pytest.raises(SimulationError, match=told):
        build(sources(tmp_path, **files), "10/s")


# -- the command -----------------------------------------------------------------------------------


def invoke(*words):
    return CliRunner().invoke(app, ["import", *(str(word) for word in words)])


def written(tmp_path, text):
    path = tmp_path / "topics.txt"
    path.write_text(text)
    return path


def test_the_command_writes_a_file_once_and_says_what_is_missing(tmp_path):
    topics = written(tmp_path, TOPICS.replace("segment.bytes=1048576", "no.such=1"))
    out = tmp_path / "new" / "mine.yaml"
    done = invoke(topics, "--out", out, "--rate", "5/s")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "imported: brokers 3, topics 2; 1 not simulated or not alike:\n" in done.stderr
    assert "topic orders: no.such: not Kafka's own" in done.stderr
    assert "rate: 5/s" in out.read_text()
    assert invoke(topics, "--out", out).exit_code == 2
    assert invoke(topics, "--out", out, "--force").exit_code == 0


def test_strict_refuses_what_is_not_simulated_and_lets_the_rest_pass(tmp_path):
    bad = invoke(written(tmp_path, TOPICS.replace("segment.bytes", "no.such")), "--strict")
    assert (bad.exit_code, bad.stdout) == (2, "")
    assert "--strict: not everything can be simulated" in bad.stderr
    good = invoke(written(tmp_path, TOPICS), "--strict")
    assert good.exit_code == 0, good.stderr
    assert load_text(good.stdout).topics
    told = json.loads(invoke(written(tmp_path, TOPICS), "--json").stdout)
    assert (told["topics"], told["not_simulated"]) == (2, [])


@pytest.mark.parametrize("rate", ["fast", "5"])
def test_a_rate_that_cannot_be_is_bad_input(rate, tmp_path):
    done = invoke(written(tmp_path, TOPICS), "--rate", rate)
    assert done.exit_code == 2
    assert "producers[0].rate" in done.stderr
