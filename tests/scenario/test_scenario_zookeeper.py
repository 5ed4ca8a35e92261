"""``cluster.zookeeper``: what may stand beside it."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

ZOOKEEPER = {"zookeeper": {"servers": 3}}


def refused(match, **parts):
    with pytest.raises(ScenarioError, match=match):
        load_text(text_of(**({"cluster": ZOOKEEPER} | parts)))


def test_a_cluster_has_three_servers_and_the_last_version_that_knows_them():
    cluster = load_text(text_of(cluster=ZOOKEEPER)).cluster
    assert cluster.kafka == "3.9"
    assert cluster.controllers == ()
    assert [s.name for s in cluster.zookeepers] == ["zookeeper-1", "zookeeper-2", "zookeeper-3"]
    assert load_text(text_of()).cluster.zookeeper is None


def test_what_is_written_out_gives_the_same_scenario_again():
    racks = {"racks": {"a": 1, "b": 1, "c": 1}, "brokers": None}
    ensemble = {"servers": {"a": 1, "b": 2, "c": 0}, "tickTime": "1s", "syncLimit": 5}
    for more in ({}, racks | {"zookeeper": ensemble}):
        cluster = {k: v for k, v in (ZOOKEEPER | more).items() if v is not None}
        text = text_of(cluster=cluster).replace("  brokers: 3\n", "" if more else "  brokers: 3\n")
        scenario = load_text(text)
        again = load_text(scenario.as_yaml())
        assert again.digest == scenario.digest
        assert again.cluster == scenario.cluster


def test_versions_without_zookeeper_are_refused_and_older_ones_choose_their_behaviour():
    refused(r"cluster\.kafka: 4\.0 with cluster\.zookeeper", cluster=ZOOKEEPER | {"kafka": "4.0"})
    old = load_text(text_of(cluster=ZOOKEEPER | {"kafka": "2.0"})).behaviours
    new = load_text(text_of(cluster=ZOOKEEPER)).behaviours
    for name, was, now in (
        ("zk.isr_changes", "zookeeper", "alter_partition"),
        ("zk.broker_epoch", "off", "on"),
        ("zk.controller_epoch_fencing", "off", "on"),
        ("zk.batching", "on", "on"),
        ("recovery", "isr", "isr"),
    ):
        assert (old[name], new[name]) == (was, now)


@pytest.mark.parametrize(
    ("match", "cluster"),
    [
        (r"cluster\.controllers: controllers beside zookeeper", {"controllers": 3}),
        (r"cluster\.replication: raft with cluster\.zookeeper", {"replication": "raft"}),
        (r"cluster\.disk\.directories: 2", {"disk": {"directories": 2}, "kafka": "0.11"}),
        (r"cluster\.zookeeper\.tickTime", {"zookeeper": {"tickTime": "0s"}}),
        (r"cluster\.zookeeper\.servers\.z: no rack", {"zookeeper": {"servers": {"z": 1}}}),
        (r"cluster\.config\.broker\.session", {"config": {"broker.session.timeout.ms": 9_000}}),
    ],
)
def test_what_the_other_control_plane_has_is_refused(match, cluster):
    refused(match, cluster=ZOOKEEPER | cluster)


def test_what_zookeeper_mode_has_is_refused_without_it():
    refused(
        r"zookeeper\.session\.timeout\.ms without cluster\.zookeeper",
        cluster={}, config={"zookeeper.session.timeout.ms": 6_000},
    )  # fmt: skip
    refused(r"zk\.batching.*without cluster", cluster={}, behaviours={"zk.batching": "off"})
    refused(r"recovery.*with cluster", behaviours={"recovery": "elr"})


def test_groups_of_the_consumer_protocol_are_refused():
    group = {"group": "billing", "topics": ["orders"]}
    load_text(text_of(cluster=ZOOKEEPER, consumers=[group]))
    refused(
        r"consumers\[0\]\.config\.group\.protocol: consumer with cluster\.kafka 3\.9",
        consumers=[group | {"config": {"group.protocol": "consumer"}}],
    )


def test_quotas_are_refused_from_the_start_and_during_the_run():
    quota = {"user": "<default>", "producer_byte_rate": 1_000}
    refused("a quota with cluster.zookeeper", quotas=[quota])
    fault = {"at": "1s", "do": "alter-client-quotas"}
    refused("quota.* with cluster.zookeeper", faults=[fault | quota])


@pytest.mark.parametrize("do", ["reassign", "cancel-reassignment"])
def test_reassignments_before_kip_455_are_refused(do):
    keys = {"replicas": ["broker-2", "broker-1", "broker-3"]} if do == "reassign" else {}
    fault = {"at": "1s", "do": do, "partition": "orders-0"} | keys
    load_text(text_of(cluster=ZOOKEEPER | {"kafka": "2.4"}, faults=[fault]))
    refused(
        rf"{do} with cluster\.zookeeper and cluster\.kafka 2\.3",
        cluster=ZOOKEEPER | {"kafka": "2.3"}, faults=[fault],
    )  # fmt: skip


def test_an_operation_that_is_not_modelled_is_refused():
    fault = {"at": "1s", "do": "unregister", "target": "broker-1"}
    refused(r"unregister with cluster\.zookeeper", faults=[fault])


@pytest.mark.parametrize("message", ["LeaderAndIsrRequest", "UpdateMetadataRequest"])
def test_requests_of_its_controller_can_be_held_there_and_nowhere_else(message):
    fault = {"at": "1s", "do": "hold", "message": message, "from": "broker-1", "for": "2s"}
    load_text(text_of(cluster=ZOOKEEPER, faults=[fault]))
    with pytest.raises(ScenarioError, match=rf"faults\[0\]\.message: {message} without cluster"):
        load_text(text_of(faults=[fault]))


def test_servers_of_the_ensemble_and_its_leader_are_targets_there_and_nowhere_else():
    faults = [
        {"at": "1s", "do": "crash", "target": "zookeeper leader"},
        {"at": "1s", "do": "pause", "target": "zookeeper-3", "for": "1s"},
    ]
    assert len(load_text(text_of(cluster=ZOOKEEPER, faults=faults)).faults) == 2
    refused("no zookeeper 'zookeeper-4'", faults=[faults[1] | {"target": "zookeeper-4"}])
    refused("no target 'zookeeper leader'", cluster={}, faults=faults[:1])
