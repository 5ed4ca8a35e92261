"""``cluster.quorum``: who votes on metadata, and what may stand beside it."""

import pytest
import yaml

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of


def loaded(faults=(), **cluster):
    return load_text(text_of(cluster=cluster, faults=faults))


def refused(faults=(), **cluster):
    with pytest.raises(ScenarioError) as caught:
        loaded(faults, **cluster)
    return str(caught.value)


def test_a_quorum_is_static_unless_asked_for():
    scenario = loaded()
    assert scenario.cluster.initial_controllers == 0
    assert "quorum" not in yaml.safe_load(scenario.as_yaml())["cluster"]


def test_all_controllers_vote_from_the_start_unless_fewer_are_named():
    assert loaded(quorum="dynamic").cluster.initial_controllers == 3
    fewer = loaded(quorum="dynamic", **{"initial.controllers": 2})
    assert fewer.cluster.initial_controllers == 2
    assert load_text(fewer.as_yaml()).digest == fewer.digest
    assert [o for o in fewer.off_default if o.path == "cluster.quorum"]


@pytest.mark.parametrize(
    ("cluster", "found", "allowed"),
    [
        ({"initial.controllers": 2}, "cluster.quorum: static", "cluster.quorum: dynamic"),
        ({"quorum": "dynamic", "initial.controllers": 4}, "4 initial controllers of 3", "1 to 3"),
        ({"quorum": "dynamic", "kafka": "3.8"}, "dynamic with cluster.kafka 3.8", "3.9 and newer"),
    ],
)
def test_what_does_not_go_with_the_quorum_is_refused(cluster, found, allowed):
    message = refused(**cluster)
    assert found in message
    assert allowed in message


def test_dynamic_voters_are_as_old_as_kafka_3_9():
    assert loaded(quorum="dynamic", kafka="3.9").cluster.initial_controllers == 3


@pytest.mark.parametrize("target", ["broker-1", "rack a", "all brokers", "leader of orders-0"])
def test_only_a_controller_gets_a_vote(target):
    faults = [{"at": "1s", "do": "add-controller", "target": target}]
    text = yaml.safe_load(text_of(faults=faults))
    text["cluster"] = {"racks": {"a": 3}, "controllers": 3}
    with pytest.raises(ScenarioError, match="is not one controller"):
        load_text(yaml.safe_dump(text))


# -- combined roles -------------------------------------------------------------------------------


def named(scenario):
    return [server.name for server in scenario.cluster.controllers]


def alone(**cluster):
    text = yaml.safe_load(text_of())
    text["cluster"] = cluster
    return load_text(yaml.safe_dump(text))


def test_the_first_brokers_are_controllers_as_well():
    scenario = alone(brokers=3, combined=2)
    assert named(scenario) == ["broker-1", "broker-2"]
    assert load_text(scenario.as_yaml()).digest == scenario.digest
    assert [o for o in scenario.off_default if o.path == "cluster.combined"]


def test_combined_controllers_stand_in_one_rack_after_the_other():
    assert named(alone(racks={"a": 3, "b": 3}, combined=3)) == ["broker-1", "broker-2", "broker-4"]


@pytest.mark.parametrize(
    ("cluster", "found"),
    [
        ({"brokers": 3, "combined": 4}, "4 of 3 brokers"),
        ({"brokers": 3, "combined": 3, "controllers": 3}, "controllers beside combined"),
        ({"brokers": 3, "combined": 3, "quorum": "dynamic"}, "dynamic with combined"),
    ],
)
def test_what_does_not_go_with_combined_roles_is_refused(cluster, found):
    with pytest.raises(ScenarioError, match=found):
        alone(**cluster)
