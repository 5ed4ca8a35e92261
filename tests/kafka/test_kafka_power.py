"""Power losses of a real Apache Kafka: what was not flushed is lost, and what comes of that."""

import pyarrow.parquet as pq
import pytest

from sim.rehearsal import apache
from sim.rehearsal.run import Options, rehearse
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run

pytestmark = pytest.mark.kafka

CLUSTER = """
cluster:
  brokers: 3
  controllers: 3
topics:
  orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 100/s, record.size: 100B}
"""

EVERYTHING = f"""
claim: A cluster without power loses what it has acknowledged and not flushed.
{CLUSTER}
faults:
  - {{at: 5s, do: power-loss, target: all brokers, unflushed: lost, for: 3s}}
run: {{for: 12s, then: heal and drain, drain.timeout: 90s, seed: 1}}
"""

COPY = f"""
claim: A complete copy that was stopped in good order is not asked (docs/findings).
{CLUSTER}
faults:
  - {{at: 5s, do: power-loss, target: [broker-1, broker-2], unflushed: lost, for: 6s}}
  - {{at: 6s, do: controlled-shutdown, target: broker-3, for: 24s}}
run: {{for: 34s, then: heal and drain, drain.timeout: 90s, seed: 1}}
"""

KILLED = f"""
claim: One power loss is enough where the processes of all brokers are killed (docs/findings).
{CLUSTER}
faults:
  - {{at: 5s, do: crash, target: [broker-2, broker-3], for: 20s}}
  - {{at: 8s, do: power-loss, target: broker-1, unflushed: lost, for: 17s}}
run: {{for: 34s, then: heal and drain, drain.timeout: 90s, seed: 1}}
"""

BY_HAND = f"""
claim: Where one of the complete copies is elected by hand nothing is lost (docs/findings).
{CLUSTER}
faults:
  - {{at: 5s, do: crash, target: [broker-2, broker-3], for: 20s}}
  - {{at: 8s, do: power-loss, target: broker-1, unflushed: lost, for: 32s}}
  - {{at: 30s, do: elect-leader, partition: orders-0, election: unclean}}
run: {{for: 50s, then: heal and drain, drain.timeout: 90s, seed: 1}}
"""

JOINING = f"""
claim: A member waits for a coordinator without power as long as for a rebalance (docs/findings).
{CLUSTER}
consumers:
  - group: billing
    topics: [orders]
    config: {{auto.offset.reset: earliest, max.poll.interval.ms: 30000}}
faults:
  - {{at: 2500ms, do: power-loss, target: group coordinator of billing, unflushed: lost, for: 60s}}
run: {{for: 70s, then: heal and drain, drain.timeout: 90s, seed: 1}}
"""


@pytest.fixture(scope="module", autouse=True)
def programs():
    lacks = apache.missing("mvn", "java", "javac")
    if lacks:
        pytest.skip(f"a rehearsal needs {' and '.join(lacks)}")


def rehearsed(text, out):
    scenario = load_text(text, "power.yaml")
    return rehearse(scenario, apache.found("4.3", None), Options(1, out, warm_up_us=0))


def rows(out, table, topic="orders"):
    found = pq.read_table(out / "trace" / table).to_pylist()
    return [row for row in found if row.get("topic", topic) == topic]


def test_a_cluster_without_power_loses_what_was_not_flushed(tmp_path):
    out = tmp_path / "out"
    result = rehearsed(EVERYTHING, out)
    (fault,) = result.verdict["faults"]
    assert fault["took_effect"]
    assert "went dark" in fault["effect"]
    records = result.verdict["records"]
    # 100 a second until 5 s, three copies, nothing of it flushed.
    assert 400 < records["lost_acked"] <= 500
    states = [(row["node"], row["state"]) for row in rows(out, "node_states")]
    assert {node for node, state in states if state == "powered_off"} == {
        "broker-1", "broker-2", "broker-3",
    }  # fmt: skip


def check_that_the_copy_was_not_asked(result, out):
    """The steps of docs/findings, of a simulated or a real run."""
    assert [fault["took_effect"] for fault in result.verdict["faults"]] == [True, True]
    # 100 a second until 5 s, of which brokers 1 and 2 had flushed nothing.
    assert 400 < result.verdict["records"]["lost_acked"] <= 500
    states = [
        (row["in_sync"], row["eligible"], row["leader"] >= 0, row["unclean"])
        for row in rows(out, "partition_changes")
    ]
    left = states.index(("1,2", "", True, False))
    assert states[left - 1] == ("1,2,3", "", True, False)
    assert not any("3" in eligible for _, eligible, _, _ in states)
    nobody = states.index(("", "", False, False))
    assert states[nobody + 1] in [("1", "", True, True), ("2", "", True, True)]
    assert states[-1] == ("1,2,3", "", True, False)


def test_the_simulator_cuts_a_complete_copy_to_a_leader_that_lost_its_log(tmp_path):
    out = tmp_path / "out"
    check_that_the_copy_was_not_asked(run(load_text(COPY, "power.yaml"), out=out), out)


@pytest.mark.slow
def test_a_real_kafka_cuts_a_complete_copy_to_a_leader_that_lost_its_log(tmp_path):
    out = tmp_path / "out"
    check_that_the_copy_was_not_asked(rehearsed(COPY, out), out)


def check_that_one_power_loss_was_enough(result, out):
    """The steps of docs/findings, of a simulated or a real run."""
    assert [fault["took_effect"] for fault in result.verdict["faults"]] == [True, True]
    # 100 a second until 5 s; brokers 2 and 3 were killed, and have every one of them.
    assert 400 < result.verdict["records"]["lost_acked"] <= 500
    changes = [row for row in rows(out, "partition_changes") if row["t_us"] >= 0]
    last = next(place for place, row in enumerate(changes) if row["leader"] < 0)
    assert (changes[last - 1]["leader"], changes[last - 1]["in_sync"]) == (1, "1")
    assert "1" in changes[last]["eligible"]
    elected = next(row for row in changes[last:] if row["leader"] >= 0)
    assert (elected["leader"], elected["in_sync"], elected["unclean"]) == (1, "1", True)
    assert changes[-1]["in_sync"] == "1,2,3"


def test_the_simulator_loses_all_by_one_power_loss_where_all_processes_are_killed(tmp_path):
    out = tmp_path / "out"
    check_that_one_power_loss_was_enough(run(load_text(KILLED, "power.yaml"), out=out), out)


def test_nothing_is_lost_where_a_complete_copy_is_elected_before_the_empty_one_is_back(tmp_path):
    result = run(load_text(BY_HAND, "power.yaml"), out=tmp_path / "out")
    assert [fault["took_effect"] for fault in result.verdict["faults"]] == [True, True, True]
    assert result.verdict["records"]["lost_acked"] == 0
    assert result.verdict["records"]["survived"] == 5_000


@pytest.mark.slow
def test_a_real_kafka_loses_all_by_one_power_loss_where_all_processes_are_killed(tmp_path):
    out = tmp_path / "out"
    check_that_one_power_loss_was_enough(rehearsed(KILLED, out), out)


def test_a_consumer_that_joins_waits_for_a_host_without_power_as_long_as_for_a_rebalance(tmp_path):
    """A real one was a member at 40.7 s: the same 35 s and 3 s, from when it had sent JoinGroup."""
    out = tmp_path / "out"
    run(load_text(JOINING, "power.yaml"), out=out)
    members = [row["t_us"] for row in rows(out, "assignments") if row["group"] == "billing"]
    # max.poll.interval.ms and 5 s, then group.initial.rebalance.delay.ms.
    assert 38_000_000 < min(members) < 38_500_000
    fenced = [row["t_us"] for row in rows(out, "broker_states") if row["state"] == "fenced"]
    assert min(at for at in fenced if at > 0) < 15_000_000
