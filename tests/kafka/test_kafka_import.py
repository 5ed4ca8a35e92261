"""What Apache Kafka's own tools print of a real cluster is imported as it stands."""

import subprocess

import pytest

from sim.importer.cluster import build
from sim.importer.sources import read_all
from sim.scenario.loader import load_text
from tests.kafka.apache import java

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
NODES = (3, 7)


def tool(cluster, main, *words):
    """What a tool of Kafka's printed, without the log that the kit's settings put beside it."""
    servers = ["--bootstrap-server", cluster.servers[0]]
    given = java(main, *servers, *words, heap="128m")
    command = [word for word in given if not word.startswith("-Dlog4j2")]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_descriptions_by_kafkas_own_tools_are_imported(kafka, tmp_path):
    directories = {node: [tmp_path / f"disk-{node}"] for node in NODES}
    real = kafka.Cluster(directories, tmp_path, "broker.rack=one\nnum.partitions=9\n")
    for node in NODES:
        real.format(node)
    wanted = ["--create", "--topic", "orders", "--replica-assignment", "3:7,7:3,7:3"]
    settings = ["--config", "cleanup.policy=compact,delete", "--config", "segment.bytes=1048576"]
    with real as cluster:
        tool(cluster, TOPICS, *wanted, *settings)
        tool(cluster, TOPICS, "--create", "--topic", "few", "--replica-assignment", "7")
        orders = ["--entity-type", "topics", "--entity-name", "orders"]
        tool(cluster, CONFIGS, "--alter", *orders, "--add-config", "min.insync.replicas=2")
        brokers = ["--entity-type", "brokers", "--entity-default"]
        tool(cluster, CONFIGS, "--alter", *brokers, "--add-config", "message.max.bytes=2000000")
        shop = ["--entity-type", "clients", "--entity-name", "shop"]
        tool(cluster, CONFIGS, "--alter", *shop, "--add-config", "producer_byte_rate=1024")
        told = {
            "topics": tool(cluster, TOPICS, "--describe"),
            "overrides": tool(cluster, CONFIGS, "--describe", *orders),
            "all": tool(cluster, CONFIGS, "--describe", "--all", *orders),
            "brokers": tool(cluster, CONFIGS, "--describe", *brokers),
            "quotas": tool(cluster, CONFIGS, "--describe", *shop),
        }
    files = [tmp_path / f"{node}.properties" for node in NODES]
    for name, text in told.items():
        files.append(tmp_path / f"{name}.txt")
        files[-1].write_text(text)
    found = build(read_all(files), "10/s")
    scenario = load_text(found.text)
    assert scenario.cluster.racks == ("one",)
    assert scenario.topic("orders").assignment == ((3, 7), (7, 3), (7, 3))
    assert scenario.topic("few").assignment == ((7,),)
    config = scenario.topic("orders").config
    assert config["cleanup.policy"] == "compact,delete"
    assert (config["segment.bytes"], config["min.insync.replicas"]) == (1_048_576, 2)
    assert scenario.cluster.config["message.max.bytes"] == 2_000_000
    lines = "\n".join(found.absent)
    assert "client-id 'shop': producer_byte_rate=1024.0: quotas and users" in lines
    assert "num.partitions=9: topics are listed in the scenario" in lines
    # Of all the settings that --all prints only the topic's own are taken.
    assert "compression.gzip.level" in told["all"]
    assert "compression.gzip.level" not in found.text
