"""A topic may say where its replicas stand; in every control plane they stand there."""

import pyarrow.parquet as pq
import pytest

from sim.errors import ScenarioError
from sim.rng import Streams
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
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


# -- the topics of coordinators --------------------------------------------------------------------

INTERNAL = """
claim: The coordinator is broker-2.
cluster:
  brokers: 3
  controllers: 1
  config: {transaction.state.log.num.partitions: 1, transaction.state.log.replication.factor: 2}
  internal.replicas: {__transaction_state: [[broker-2, broker-3]]}
topics: {orders: {replication.factor: 1}}
producers:
  - {name: shop, topic: orders, rate: 9/s, transaction: {records: 9}, config: {transactional.id: x}}
run: {for: 1s}
"""


@pytest.mark.parametrize("plane", ["controllers: 1", "zookeeper: {servers: 1}"])
def test_an_internal_topic_stands_where_the_scenario_says(plane, tmp_path):
    scenario = load_text(INTERNAL.replace("controllers: 1", plane))
    assert load_text(scenario.as_yaml()).digest == scenario.digest
    run(scenario, out=tmp_path / "run", level="facts")
    rows = pq.read_table(tmp_path / "run" / "trace" / "partition_changes").to_pylist()
    placed = [row for row in rows if row["topic"] == "__transaction_state"]
    assert (placed[0]["replicas"], placed[0]["leader"]) == ("2,3", 2)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("broker-2,", "broker-9,"), r"__transaction_state\[0\]: no broker 'broker-9'"),
        (("[broker-2, broker-3]", "[broker-2]"), "allowed: 2 brokers, each once"),
        (("partitions: 1", "partitions: 2"), "state.log.num.partitions is 2"),
        (("__transaction_state:", "__consumer_offsets:"), "replicas of 1 partitions"),
        ((", transaction: {records: 9}, config: {transactional.id: x}", ""), "no client here"),
    ],
)  # fmt: skip
def test_an_internal_assignment_that_cannot_be_is_refused(change, says):
    with pytest.raises(ScenarioError, match=says):
        load_text(INTERNAL.replace(*change))
