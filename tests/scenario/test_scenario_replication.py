"""``cluster.replication``: one switch, and nothing beside it that it would silently ignore."""

import pytest
import yaml

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.rules.replication import raft_config
from sim.units import MS
from tests.scenarios.run_kit import text_of

TOPICS = {"orders": {"partitions": 1, "replication.factor": 3}}


def loaded(replication="raft", topics=TOPICS, **more):
    return load_text(text_of(cluster={"replication": replication}, topics=topics, **more))


def refused(**more):
    with pytest.raises(ScenarioError) as caught:
        loaded(**more)
    return str(caught.value)


def test_kafkas_own_replication_is_the_default():
    scenario = load_text(text_of())
    assert scenario.cluster.replication == "isr"
    assert raft_config(scenario.cluster.replication, scenario.cluster.config) is None
    assert not [o for o in scenario.off_default if o.path == "cluster.replication"]


def test_raft_is_shown_on_the_run_card_and_written_out():
    scenario = loaded()
    assert [o for o in scenario.off_default if o.path == "cluster.replication"]
    assert yaml.safe_load(scenario.as_yaml())["cluster"]["replication"] == "raft"
    assert load_text(scenario.as_yaml()).digest == scenario.digest


@pytest.mark.parametrize(
    "name", ["min.insync.replicas", "replica.lag.time.max.ms", "replica.fetch.max.bytes"]
)
def test_a_setting_of_the_isr_is_refused_with_raft_even_at_its_default(name):
    default = {"min.insync.replicas": 1, "replica.lag.time.max.ms": 30_000}.get(name, 1_048_576)
    message = refused(config={name: default})
    assert f"cluster.config.{name}" in message
    assert "means nothing with cluster.replication: raft" in message
    load_text(text_of(config={name: default}))


def test_a_topics_setting_of_the_isr_is_refused_with_raft():
    topics = {"orders": TOPICS["orders"] | {"config": {"unclean.leader.election.enable": True}}}
    assert "topics.orders.config.unclean.leader.election.enable" in refused(topics=topics)


def test_a_setting_of_groups_is_refused_without_them():
    message = refused(replication="isr", config={"election_timeout_ms": 1_500})
    assert "cluster.config.election_timeout_ms" in message
    assert "set cluster.replication: raft" in message


def test_a_setting_of_groups_reaches_them():
    config = loaded(config={"election_timeout_ms": 700}).cluster.config
    raft = raft_config("raft", config)
    assert raft is not None
    assert raft.election_timeout_us == 700 * MS
    assert raft.heartbeat_interval_us == 150 * MS


def test_a_behaviour_of_the_isr_is_refused_with_raft():
    assert "behaviours.recovery" in refused(behaviours={"recovery": "isr"})
    load_text(text_of(behaviours={"recovery": "isr"}))


@pytest.mark.parametrize(
    "entry",
    [
        {"do": "alter-replica-log-dirs", "partition": "orders-0", "broker": "broker-1", "to": 1},
        {"do": "elect-leader", "partition": "orders-0", "election": "preferred"},
    ],
)
def test_an_operation_that_groups_do_not_have_is_refused(entry):
    cluster = {"replication": "raft", "disk": {"directories": 2}}
    with pytest.raises(ScenarioError, match=r"faults\[0\]\.do"):
        load_text(text_of(cluster=cluster, topics=TOPICS, faults=[{"at": "1s", **entry}]))


def test_an_administrator_moves_groups_as_he_moves_replicas():
    entry = {"at": "1s", "do": "reassign", "partition": "orders-0", "replicas": ["broker-1"]}
    assert [fault.kind for fault in loaded(faults=[entry]).faults] == ["reassign"]


def test_a_historic_version_is_refused_with_raft():
    with pytest.raises(ScenarioError, match=r"cluster\.kafka: 3\.6 with cluster\.replication"):
        load_text(text_of(cluster={"replication": "raft", "kafka": "3.6"}, topics=TOPICS))


def test_another_word_is_refused():
    assert "cluster.replication" in refused(replication="paxos")
