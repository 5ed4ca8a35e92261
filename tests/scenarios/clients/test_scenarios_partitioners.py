"""``partitioner.class`` in whole runs: Kafka's by version, and a file beside the scenario."""

from collections import Counter

import pytest

from sim.errors import ScenarioError, SimulationError
from sim.mcp.workspace import Workspace
from sim.scenario.build.partitioners import partitioner_of
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from sim.suite.survey import prepare
from tests.scenarios.run_kit import Ran, go, text_of

OWN = """
class Second:
    def partition(self, topic, key, value_size, partitions, available):
        return available[1]


class Wrong:
    def partition(self, topic, key, value_size, partitions, available):
        raise ValueError(topic)


class Far:
    def partition(self, topic, key, value_size, partitions, available):
        return partitions


class Nothing:
    pass
"""
NAME = "partitioner.class"


def beside(tmp_path, given, text=OWN, **parts):
    """A scenario file and a module beside it, for a producer with the partitioner."""
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "own.py").write_text(text)
    file = tmp_path / "scenario.yaml"
    producer = {"config": {NAME: given, "linger.ms": 0}, "rate": "100/s"}
    file.write_text(text_of(lasts="2s", producer=producer, **parts))
    return file


def written(ran):
    """Records acknowledged in each partition."""
    found = Counter()
    for row in ran.rows("client_batches", outcome="ok"):
        found[row["partition"]] += row["record_count"]
    return found


def test_a_class_beside_the_scenario_chooses_and_goes_with_the_run(tmp_path):
    file = beside(tmp_path / "here", "own.py:Second")
    result = run(load(file), 3, tmp_path / "out", level="facts")
    first = Ran(tmp_path / "out")
    assert list(written(first)) == [1]
    # The run directory has the file, too: its scenario can be run again.
    again = load(tmp_path / "out" / "scenario.yaml")
    assert again.digest == load(file).digest == result.card["scenario_digest"]
    run(again, 3, tmp_path / "again", level="facts")
    assert Ran(tmp_path / "again").card["trace_digest"] == first.card["trace_digest"]


@pytest.mark.parametrize(
    ("name", "error"), [("Wrong", "PARTITIONER_FAILED (ValueError)"),
                        ("Far", "PARTITION_OUT_OF_RANGE")],
)  # fmt: skip
def test_a_partitioner_that_fails_is_a_failure_of_its_producers_sends(tmp_path, name, error):
    result = run(load(beside(tmp_path / "here", f"own.py:{name}")), 3, tmp_path / "out")
    assert not result.held
    assert result.verdict["records"]["failed"] == result.verdict["records"]["sent"] > 100
    assert list(result.verdict["failed_by_error"]["orders"]) == [error]


def test_records_that_a_partitioner_refuses_are_refused_for_good(tmp_path):
    text = OWN.replace("available[1]", "1 if value_size and key[-1] % 4 else partitions")
    file = beside(tmp_path / "here", "own.py:Second", text)
    sets = ["producers.shop.keys=uniform"]
    result = run(load(file, sets), 3, tmp_path / "out")
    assert 0 < result.verdict["records"]["failed"] < result.verdict["records"]["sent"]
    assert "refused for good" in result.unserved[0]


def test_round_robin_skips_partitions_before_4_0_and_not_since(tmp_path):
    producer = {
        "rate": "40/s",
        "config": {NAME: "org.apache.kafka.clients.producer.RoundRobinPartitioner", "linger.ms": 0},
    }
    used = []
    for kafka in ("3.9", "4.0"):
        ran = go(tmp_path, lasts="3s", producer=producer, topic={"partitions": 4},
                 cluster={"kafka": kafka})  # fmt: skip
        used.append(len(written(ran)))
    assert used == [2, 4]


def test_keys_may_be_ignored(tmp_path):
    producer = {
        "rate": "500/s", "keys": "uniform", "key.count": 1,
        "config": {"partitioner.ignore.keys": True, "batch.size": 500},
    }  # fmt: skip
    assert len(written(go(tmp_path, lasts="2s", producer=producer))) == 3


@pytest.mark.parametrize(
    ("given", "kafka", "words"),
    [
        ("RoundRobinPartitioner", "2.3", "Kafka 2.4 or newer"),
        ("UniformStickyPartitioner", "4.0", "Kafka before 4.0"),
        ("org.apache.kafka.clients.producer.internals.DefaultPartitioner", "4.1", "before 4.0"),
        ("RoundRobin", "4.1", "RoundRobinPartitioner"),
        ("../own.py:Second", "4.1", "FILE.py:CLASS"),
        ("/tmp/own.py:Second", "4.1", "FILE.py:CLASS"),
        ("absent.py:Second", "4.1", "absent.py cannot be read"),
        ("own.py:Secnd", "4.1", "Second"),
        ("own.py:Nothing", "4.1", "has no method partition"),
    ],
)
def test_a_partitioner_that_cannot_be_is_refused_when_the_file_is_read(
    tmp_path, given, kafka, words
):
    file = beside(tmp_path / "here", given, cluster={"kafka": kafka})
    with pytest.raises(ScenarioError, match=r"partitioner\.class") as caught:
        load(file)
    assert words in str(caught.value)


def test_a_link_to_another_directory_is_refused(tmp_path):
    file = beside(tmp_path / "here", "own.py:Second")
    (tmp_path / "there.py").write_text(OWN)
    (tmp_path / "here" / "own.py").unlink()
    (tmp_path / "here" / "own.py").symlink_to(tmp_path / "there.py")
    with pytest.raises(ScenarioError, match="a link to another directory"):
        load(file)


def test_reading_a_scenario_runs_none_of_its_code(tmp_path):
    text = OWN + "\nraise RuntimeError('it was run')\n"
    scenario = load(beside(tmp_path / "here", "own.py:Second", text))
    with pytest.raises(SimulationError, match="it was run"):
        partitioner_of(scenario.producers[0], "4.1")


def test_a_text_without_a_directory_names_no_file(tmp_path):
    text = beside(tmp_path / "here", "own.py:Second").read_text()
    with pytest.raises(ScenarioError, match="a scenario that is no file"):
        load_text(text)


@pytest.mark.parametrize(
    "more", [{"producer": {"transaction": {"records": 5}, "config": {
        NAME: "RoundRobinPartitioner", "transactional.id": "t"}}}],
)  # fmt: skip
def test_transactions_with_a_partitioner_are_refused(more):
    with pytest.raises(ScenarioError, match=r"with transactional\.id"):
        load_text(text_of(**more))


def test_the_server_of_tools_runs_no_python_outside_of_its_root(tmp_path):
    workspace = Workspace(tmp_path / "root", [tmp_path / "beside"])
    workspace.check_modules(tmp_path / "root" / "scenario.yaml", ["own.py"])
    workspace.check_modules(tmp_path / "beside" / "scenario.yaml", [])
    with pytest.raises(SimulationError, match="Python is run from"):
        workspace.check_modules(tmp_path / "beside" / "scenario.yaml", ["own.py"])


def test_the_scenarios_of_a_verdict_have_the_file_beside_them(tmp_path):
    file = beside(tmp_path / "here", "own.py:Second")
    made = prepare(file, (), (1,), tmp_path / "verdict")
    assert len(made.jobs) > 2
    for job in made.jobs:
        (producer, _) = load(job.path).producers
        assert producer.partitioner_source == OWN
