"""Expectations about a part of a run are held against that part; one that fails tells its story."""

import pyarrow.parquet as pq
import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import CATALOGUE, Ran, S, go, text_of

CRASH = {
    "lasts": "16s",
    "acks": 1,
    "topics": {"orders": {"partitions": 2, "replication.factor": 3}},
    "producers": [
        {
            "name": "shop", "topic": "orders", "rate": "2000/s", "record.size": "100B",
            "config": {"acks": 1},
        }
    ],
    "consumers": [
        {"group": "billing", "topics": "orders", "config": {"auto.offset.reset": "earliest"}},
        {"group": "audit", "topics": "orders", "stop": "4s",
         "config": {"auto.offset.reset": "earliest"}},
    ],
    "faults": [
        {"at": "3s", "do": "delay", "between": "leader of orders-0", "and": "all brokers",
         "one-way": True, "by": "50ms", "for": "3s"},
        {"at": "5s", "do": "crash", "target": "leader of orders-0", "for": "9s"},
    ],
}  # fmt: skip
EXPECT = {
    "lost_acked": [0, {"is": 0, "during": "1s..4s"}, {"is": 0, "during": "4s..6s"},
                   {"is": 0, "partition": "orders-0"}, {"is": 0, "partition": "orders-1"}],
    "sent": {"is": 4000, "during": "6s..8s"},
    "acked": [{"is": "< 3000", "topic": "orders", "during": "1s..2s"}],
    "unavailable.produce.max": [
        {"is": "< 1s", "during": "0s..5s"},
        {"is": "2s", "during": "7s..9s", "partition": "orders-0"},
    ],
    "produce.p99": [{"is": "< 100ms", "during": "0s..4s"}, "< 100ms"],
    "end_to_end.max": [{"is": "< 4s", "group": "audit"}, {"is": "< 4s", "group": "billing"}],
    "divergence": {"broker-1, broker-2": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("expectations") / "run"
    return Ran(run(load_text(text_of(**CRASH, expect=EXPECT)), out=directory).directory)


def line(ran, name, where=""):
    lines = ran.verdict["expectations"]
    (found,) = [e for e in lines if (e["name"], e["where"]) == (name, where)]
    return found


def meant(ran, low, high, outcome="ok", partition=None):
    """Records meant for the window, counted from the trace by hand."""
    found = 0
    for row in ran.rows("client_batches", outcome=outcome):
        if partition in (None, row["partition"]):
            found += sum(low <= row["t_us"] - wait < high for wait in row["latency_us"])
    return found


def test_a_window_counts_the_records_that_were_meant_for_it(crashed):
    assert line(crashed, "sent", "during 6 s..8 s")["held"]
    answer = line(crashed, "acked", "topic orders, during 1 s..2 s")
    assert answer["held"]
    assert answer["found"] == meant(crashed, S, 2 * S) == 2000


def test_losses_are_found_in_the_window_and_partition_where_they_are(crashed):
    lost = line(crashed, "lost_acked")["found"]
    assert lost > 0
    assert line(crashed, "lost_acked", "during 1 s..4 s")["held"]
    assert line(crashed, "lost_acked", "during 4 s..6 s")["found"] == lost
    by_partition = [line(crashed, "lost_acked", f"orders-{n}")["found"] for n in (0, 1)]
    assert sum(by_partition) == lost
    assert by_partition[0] > 0
    assert crashed.verdict["partitions"]["orders-0"]["lost_acked"] == by_partition[0]


def test_an_outage_is_cut_to_the_window(crashed):
    assert line(crashed, "unavailable.produce.max", "during 0 us..5 s")["held"]
    assert line(crashed, "unavailable.produce.max", "orders-0, during 7 s..9 s")["held"]
    assert crashed.verdict["availability"]["produce_max_us"] > 5 * S


def test_latencies_of_a_window_are_those_of_its_records(crashed):
    assert line(crashed, "produce.p99", "during 0 us..4 s")["held"]
    assert not line(crashed, "produce.p99")["held"]


def test_a_group_answers_for_its_own_members(crashed):
    """The group that left before the crash never saw anything late."""
    early, late = (line(crashed, "end_to_end.max", f"group {g}") for g in ("audit", "billing"))
    assert early["held"]
    assert not late["held"]
    longest = {"audit": 0, "billing": 0}
    instants = {}
    for row in crashed.rows("client_batches", outcome="ok"):
        for place, wait in enumerate(row["latency_us"]):
            instants[row["partition"], row["first_record"] + place] = row["t_us"] - wait
    for row in crashed.rows("reads"):
        due = instants.get((row["partition"], row["first_record"]))
        if due is not None:
            longest[row["group"]] = max(longest[row["group"]], row["t_us"] - due)
    assert early["found"] == longest["audit"]
    assert late["found"] == longest["billing"]


def test_what_did_not_hold_says_what_came_first_and_which_fault_stood_nearest(crashed):
    story = line(crashed, "lost_acked")["story"]
    assert story.startswith("first: record ")
    assert "of shop in orders-0, acknowledged at 4.9" in story
    assert "nearest fault: crash of leader of orders-0 (broker-" in story
    assert "begun at 5.000000 s" in story
    slow = line(crashed, "produce.p99")["story"]
    assert slow.startswith("slowest: record ")
    assert "nearest fault: crash" in slow
    assert line(crashed, "sent", "during 6 s..8 s")["story"] == ""


def test_the_logs_of_two_brokers_are_compared_by_their_names(tmp_path):
    """Two logs that were alike, and one that was not: only pairs with the odd one differ."""
    from tests.checking.conftest import Facts  # noqa: PLC0415 - a kit of another room

    facts = Facts(watched=False)
    facts.replicate(10)
    facts.append(1, 10, leader=True)
    facts.append(2, 10, leader=False)
    facts.append(3, 10, leader=False, crc=1)
    facts.row("partition_changes", 3000, "orders", 0, 1, 0, 1, "1,2,3", "", "1,2,3", False)
    facts.row("client_batches", "shop", 0, "orders", 0, 0, 20, 2000, 1, 0, 0, 0, 1, "ok", "NONE",
              0, 1, 1, [0] * 20)  # fmt: skip
    verdict = facts.judge.verdict(1)
    assert verdict["divergence"] == {"broker-1, broker-3": 10, "broker-2, broker-3": 10}
    assert verdict["records"]["divergent"] == 10


@pytest.mark.slow
def test_a_run_without_such_expectations_has_no_slice(crashed, tmp_path):
    """The limit: the same run without them leaves the same trace."""
    plain = run(load_text(text_of(**CRASH)), out=tmp_path / "plain")
    assert plain.card["trace_digest"] == crashed.card["trace_digest"]
    assert pq.read_table(tmp_path / "plain" / "trace" / "reads").num_rows > 0


def test_a_partition_without_a_leader_is_offline_also_if_nobody_waits_for_it(tmp_path):
    """Producers without keys go round it, once what they had for it has timed out."""
    expect = {
        "offline.max": ["32s..36s", {"is": "0s", "partition": "orders-1"},
                        {"is": "1s", "during": "15s..16s"}, {"is": "< 1s", "topic": "orders"}],
        "unavailable.produce.max": "< 14s",
    }  # fmt: skip
    down = {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "32s"}
    hasty = {"config": {"delivery.timeout.ms": 3000, "request.timeout.ms": 1000}}
    alone = {"replication.factor": 1, "config": {}}
    ran = go(tmp_path, lasts="36s", topic=alone, producer=hasty, faults=[down], expect=expect)
    assert [line["held"] for line in ran.verdict["expectations"]] == [True] * 3 + [False, True]
    failed = line(ran, "offline.max", "topic orders")
    (began,) = ran.times("node_states", state="crashed")
    committed = ran.times("partition_changes", partition=0, topic="orders", leader=-1)[0]
    assert began + 6 * S < committed, "the session of the dead leader goes on"
    until = ran.changed_leader(committed)
    told = ran.verdict["availability"]
    assert told["offline"]["orders-0"] == {
        "max_us": until - began, "from_us": began, "total_us": until - began
    }  # fmt: skip
    assert failed["found"] == told["offline_max_us"] == until - began
    assert failed["story"].startswith("orders-0 had no live leader from 2.0")
    assert "nearest fault: crash of leader of orders-0" in failed["story"]


def test_a_leader_that_dies_while_no_controller_is_alive_leaves_its_partition_offline(tmp_path):
    """Nobody commits that it is dead, and started again it is not unfenced before they are back."""
    voters = ["controller-1", "controller-2", "controller-3"]
    down = [
        {"at": "1s", "do": "crash", "target": voters, "for": "6s"},
        {"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "1s"},
    ]
    ran = go(tmp_path, lasts="10s", faults=down, expect={"offline.max": "5s..30s"})
    (line,) = ran.verdict["expectations"]
    assert line["held"] is True
    told = ran.verdict["availability"]["offline"]["orders-0"]
    assert told["from_us"] == 2 * S
    dead = ran.leader_at(2 * S)
    back = [
        row["t_us"] for row in ran.rows("broker_states", broker=dead, state="unfenced")
        if row["t_us"] > 2 * S
    ]  # fmt: skip
    replaced = [t for t, who in ran.leader_changes() if t > 2 * S and who not in (-1, dead)]
    assert told["max_us"] == min(back + replaced) - 2 * S >= 5 * S


@pytest.mark.parametrize(
    "name",
    ["a06-unclean-leader-election-loss", "a09-follower-only-partition-isr-shrink",
     "c17-isr-shrunk-then-dir-failure", "b01-last-replica-standing"],
)  # fmt: skip
def test_no_time_offline_is_expected_of_a_failure_and_of_its_repair(name):
    bounds = {}
    for variant in ("fixed", "historic"):
        expect = load(CATALOGUE[f"{name}-{variant}"]).expect
        (bounds[variant],) = [line for line in expect if line.name == "offline.max"]
    short, long = sorted(bounds.values(), key=lambda line: line.low)
    assert not any(long.holds(found) for found in (short.low, short.high))
    assert not any(short.holds(found) for found in (long.low, long.high))


def test_raft_groups_have_no_controller_that_knows_that_nobody_leads(tmp_path):
    raft = {"cluster": {"replication": "raft"}, "topic": {"config": {}}}
    with pytest.raises(ScenarioError, match=r"offline\.max with replication: raft"):
        load_text(text_of(**raft, expect={"offline.max": "0s"}))
    ran = go(tmp_path, **raft, lasts="2s")
    assert "offline" not in ran.verdict["availability"]
    assert "offline_max_us" not in ran.verdict["availability"]
