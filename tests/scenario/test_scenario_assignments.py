"""A topic may say where its replicas stand; in every control plane they stand there."""

import pytest

from sim.errors import ScenarioError
from sim.rng import Streams
from sim.scenario.loader import load_text
from sim.scenario.run import run
from sim.studies.year import _partitions

TEXT = """
claim: Placed by hand.
cluster: {brokers: 3, controllers: 3}
topics:
  orders:
    partitions: 2
    replication.factor: 2
    replicas: [[broker-3, broker-1], [broker-2, broker-3]]
producers: [{name: shop, topic: orders, rate: 20/s}]
run: {for: 1s}
"""


def test_the_assignment_is_part_of_the_scenario_as_run():
    scenario = load_text(TEXT)
    assert scenario.topic("orders").assignment == ((3, 1), (2, 3))
    again = load_text(scenario.as_yaml())
    assert again.topic("orders").assignment == ((3, 1), (2, 3))
    free = load_text(
        TEXT.replace("    replicas: [[broker-3, broker-1], [broker-2, broker-3]]\n", "")
    )
    assert free.topic("orders").assignment == ()
    assert "\n    replicas:" not in free.as_yaml()
    assert "\n    replicas:" in scenario.as_yaml()
    assert free.digest != scenario.digest


@pytest.mark.parametrize(
    "plane", ["controllers: 3", "zookeeper: {servers: 3}", "controllers: 3, replication: raft"]
)
def test_replicas_stand_where_the_scenario_says(plane, tmp_path):
    text = TEXT.replace("controllers: 3", plane)
    result = run(load_text(text), 1, tmp_path / "run", level="facts")
    changes = result.table("partition_changes")
    first = changes[changes["topic"] == "orders"].drop_duplicates("partition")
    assert first.sort_values("partition")["replicas"].tolist() == ["3,1", "2,3"]


def test_a_study_of_a_year_takes_the_replicas_as_they_stand():
    found = _partitions(load_text(TEXT), Streams(1))
    assert [replicas for replicas, _ in found] == [(1, 3), (2, 3)]


@pytest.mark.parametrize(
    ("replicas", "told"),
    [
        ("[[broker-3, broker-1]]", "replicas of 1 partitions; allowed: those of all 2"),
        ("[[broker-3, broker-9], [broker-2, broker-3]]", "no broker 'broker-9'"),
        ("[[broker-3], [broker-2, broker-3]]", "replicas.0.: broker-3; allowed: 2 brokers"),
        ("[[broker-3, broker-3], [broker-2, broker-3]]", "broker-3, broker-3; allowed: 2 brokers"),
        ("[[], [broker-2, broker-3]]", "nothing; allowed: 2 brokers"),
    ],
)
def test_a_placement_that_cannot_be_is_refused(replicas, told):
    text = TEXT.replace("[[broker-3, broker-1], [broker-2, broker-3]]", replicas)
    with pytest.raises(ScenarioError, match=told):
        load_text(text)
