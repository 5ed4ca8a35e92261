"""The summary of a scenario: servers, settings that apply, faults with their instants."""

from pathlib import Path

import pytest

from sim.scenario.loader import load, load_text
from sim.scenario.run.summary import summary

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.mark.parametrize(
    ("name", "servers", "controllers"),
    [
        ("quickstart", "6 brokers in racks a, b, c, 3 controllers", 3),
        ("combined-roles-crash", "3 brokers, 3 of them controllers as well", 3),
        ("zookeeper-majority-lost", "3 brokers, 3 ZooKeeper servers", 0),
    ],
)
def test_servers_are_said_as_the_cluster_has_them(name, servers, controllers):
    found = summary(load(SCENARIOS / f"{name}.yaml"))
    assert found.servers == servers
    assert found.controllers == controllers


def test_settings_are_those_that_apply_and_not_only_those_that_were_written():
    text = """
claim: It holds.
cluster: {brokers: 3, config: {min.insync.replicas: 2}}
topics:
  own: {partitions: 2, replication.factor: 3, config: {min.insync.replicas: 1}}
  brokers: {replication.factor: 3}
producers:
  - {name: p, topic: own, count: 2, rate: 10/s}
consumers:
  - {group: none, topics: [own, brokers]}
faults:
  - {at: 2s..3s, do: crash, target: leader of own-0, for: 1s}
  - {do: crash, target: each broker, mtbf: 50s, mttr: 1s}
  - {at: 5s, do: load-surge, target: p, factor: 3, for: 1s}
run: {for: 10s, seed: 4}
expect: {lost_acked: 0, produce.p99: "< 1s"}
"""
    found = summary(load_text(text), 9)
    assert [topic.min_insync_replicas for topic in found.topics] == [1, 2]
    assert [producer.acks for producer in found.producers] == ["all"]
    assert found.consumers[0].group == ""
    assert found.faults == (
        "2 s to 3 s crash leader of own-0",
        "every 50 s crash each broker",
        "5 s load-surge p",
    )
    assert found.expectations == ("lost_acked: 0", "produce.p99: < 1s")
    assert found.seed == 9
    assert found.run_us == 10_000_000
    assert found.records_at_most == 2 * (10 * 10 + 2 * 10)


def test_records_of_other_clusters_count():
    scenario = load(SCENARIOS / "region-loss-mirror.yaml")
    alone = sum(
        p.count * p.rate_per_s * (p.stop_us - p.start_us) // 1_000_000 for p in scenario.producers
    )
    others = [other.scenario for other in scenario.clusters]
    assert summary(scenario).records_at_most == alone + sum(
        summary(other).records_at_most for other in others
    )
