"""``initial.brokers``, ``add-broker``, ``decommission``: which brokers there are, and when."""

import pytest
import yaml

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.rules.membership import balancer_config
from sim.units import SECOND
from tests.scenarios.run_kit import text_of

TOPICS = {"orders": {"partitions": 1, "replication.factor": 3}}
FOUR = {"brokers": 4, "initial.brokers": 3}


def loaded(faults=(), topics=TOPICS, **cluster):
    return load_text(text_of(cluster=cluster, topics=topics, faults=faults))


def refused(*given, **more):
    with pytest.raises(ScenarioError) as caught:
        loaded(*given, **more)
    return str(caught.value)


def do(kind, target):
    return [{"at": "1s", "do": kind, "target": target}]


def test_every_broker_is_there_from_the_start_unless_fewer_are_named():
    scenario = loaded(brokers=4)
    assert scenario.cluster.spare_brokers == ()
    assert "initial.brokers" not in yaml.safe_load(scenario.as_yaml())["cluster"]
    fewer = loaded(do("add-broker", "broker-4"), **FOUR)
    assert [server.name for server in fewer.cluster.spare_brokers] == ["broker-4"]
    assert load_text(fewer.as_yaml()).digest == fewer.digest


@pytest.mark.parametrize(
    ("cluster", "found"),
    [
        ({"brokers": 3, "initial.brokers": 4}, "4 of 3 brokers"),
        (FOUR | {"combined": 3}, "initial.brokers with cluster.combined"),
        (FOUR | {"zookeeper": {}}, "initial.brokers with cluster.zookeeper"),
    ],
)
def test_what_does_not_go_with_brokers_that_come_later_is_refused(cluster, found):
    assert found in refused(**cluster)


def test_what_is_made_at_the_start_counts_the_brokers_of_the_start():
    assert "replication.factor" in refused(brokers=4, **{"initial.brokers": 2})
    placed = {"orders": TOPICS["orders"] | {"replicas": [["broker-1", "broker-2", "broker-4"]]}}
    assert "no broker 'broker-4'" in refused(topics=placed, **FOUR)


def test_only_a_broker_that_is_not_there_can_be_added():
    assert "is not a broker that is not there from the start" in refused(
        do("add-broker", "broker-1"), **FOUR
    )
    assert "add cluster.initial.brokers" in refused(do("add-broker", "broker-1"), brokers=4)


def test_brokers_are_decommissioned_one_by_one_and_among_raft_groups_only():
    raft = {"brokers": 4, "replication": "raft"}
    loaded(do("decommission", "leader of orders-0"), **raft)
    assert "is not one broker" in refused(do("decommission", "all brokers"), **raft)
    assert "is not one broker" in refused(do("decommission", "controller-1"), **raft)
    assert "cluster.replication: raft beside it" in refused(do("decommission", "broker-1"))


def test_settings_of_the_balancer_reach_it():
    name = "partition_autobalancing"
    config = {f"{name}_mode": "continuous", f"{name}_node_availability_timeout_sec": 20}
    found = balancer_config(loaded(replication="raft", config=config).cluster.config)
    assert (found.mode, found.availability_timeout_us) == ("continuous", 20 * SECOND)
    plain = balancer_config(loaded(replication="raft").cluster.config)
    assert (plain.mode, plain.concurrent_moves, plain.tick_us) == ("node_add", 50, 30 * SECOND)


def test_moving_replicas_because_of_full_disks_is_refused():
    mode = {"partition_autobalancing_mode": "continuous"}
    full = refused(replication="raft", config=mode, disk={"capacity": "20MB"})
    assert "continuous with cluster.disk.capacity" in full
    limit = {"partition_autobalancing_max_disk_usage_percent": 70}
    assert "replicas do not move by how full disks are" in refused(replication="raft", config=limit)
    assert "partition_autobalancing_mode" in refused(config=mode)


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        ("[1, 2]", "cluster.ids: 2 ids of 3 brokers; allowed: an id for each broker"),
        ("[1, 2, 2]", "cluster.ids: 2 twice; allowed: each id once"),
        ("[1, 2, 3001]", "cluster.ids"),
        ("[-1, 2, 3]", "cluster.ids"),
    ],
)
def test_ids_that_brokers_cannot_have_are_refused(ids, told):
    text = (
        f"claim: C.\ncluster: {{brokers: 3, ids: {ids}}}\n"
        "topics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    )
    with pytest.raises(ScenarioError, match=told):
        load_text(text)
