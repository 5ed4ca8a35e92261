"""Raft groups whose replicas move by themselves: brokers that come, go, and stay away."""

import pytest

from sim.errors import InvariantBroken
from sim.protocol.controller.partition_balancer import BalancerRules
from tests.scenarios.run_kit import S, go

RAFT = {"replication": "raft", "controllers": 1}
TOPICS = {"orders": {"partitions": 4, "replication.factor": 3}}
SOON = {"leader_balancer_idle_timeout_ms": 500}


def balanced(directory, faults, lasts="4s", config=SOON, **parts):
    cluster = RAFT | {"config": SOON | config} | parts.pop("cluster", {})
    return go(
        directory,
        cluster=cluster,
        topics=TOPICS,
        faults=faults,
        lasts=lasts,
        producer={"rate": "100/s"},
        **parts,
    )


def holders(ran):
    """The last replicas of each partition."""
    rows = ran.rows("partition_changes", topic="orders")
    return {row["partition"]: sorted(map(int, row["replicas"].split(","))) for row in rows}


def nothing_is_lost(ran):
    kept = ran.records["acked"] == ran.records["sent"] == ran.records["survived"]
    return kept and ran.records["divergent"] == ran.records["duplicated"] == 0


ADDED = {"brokers": 4, "initial.brokers": 3}
ADD = [{"at": "500ms", "do": "add-broker", "target": "broker-4"}]


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    return balanced(tmp_path_factory.mktemp("raft-added"), ADD, cluster=ADDED)


def test_a_broker_that_is_added_gets_its_share_of_replicas_and_leaders(added):
    balance = added.verdict["balance"]
    assert {name: b["replicas"] for name, b in balance["brokers"].items()} == {
        f"broker-{number}": 3 for number in (1, 2, 3, 4)
    }
    assert balance["leaders_spread"] == 0
    assert nothing_is_lost(added)
    assert added.checked("raft-one-change-at-a-time") >= 3 * 4
    assert added.verdict["held"]


def test_nobody_knew_of_it_before(added):
    begun = added.times("node_states", node="broker-4", state="started")
    assert begun == [S // 2]
    (fault,) = added.faults
    assert (fault["took_effect"], fault["effect"]) == (True, "broker-4 is a member")


def test_under_isr_a_broker_that_is_added_stays_empty(tmp_path):
    ran = go(
        tmp_path, cluster=ADDED | {"controllers": 1}, topics=TOPICS, faults=ADD, lasts="2s",
        producer={"rate": "50/s"},
    )  # fmt: skip
    assert ran.verdict["balance"]["brokers"]["broker-4"] == {"replicas": 0, "leaders": 0}
    assert ran.verdict["held"]


def test_a_balancer_that_finds_nothing_better_is_seen_by_the_spread(tmp_path, monkeypatch):
    monkeypatch.setattr(BalancerRules, "is_better", lambda *_: False)
    ran = balanced(tmp_path, ADD, cluster=ADDED, expect={"replicas.spread": 0})
    assert ran.verdict["balance"]["replicas_spread"] == 4
    assert [line["held"] for line in ran.verdict["expectations"]] == [False]


LEAVE = [{"at": "500ms", "do": "decommission", "target": "leader of orders-0"}]


def test_a_broker_is_drained_and_then_no_member_any_more(tmp_path):
    ran = balanced(tmp_path, LEAVE, cluster={"brokers": 4})
    (fault,) = ran.faults
    gone = int(fault["resolved"].removeprefix("broker-"))
    assert fault["effect"] == f"broker-{gone} has left"
    assert all(gone not in replicas for replicas in holders(ran).values())
    (left,) = ran.rows("broker_states", broker=gone, state="unregistered")
    last_move = ran.times("partition_changes", topic="orders")
    assert left["t_us"] < 3 * S
    assert max(t for t in last_move if t <= left["t_us"]) > S // 2
    assert ran.checked("raft-drained-before-removed") == 1
    assert nothing_is_lost(ran)


def test_a_broker_that_leaves_too_early_is_caught_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(BalancerRules, "is_drained", lambda *_: True)
    with pytest.raises(InvariantBroken, match="raft-drained-before-removed"):
        balanced(tmp_path, LEAVE, cluster={"brokers": 4})


def test_a_broker_whose_replicas_have_nowhere_to_go_stays_and_the_run_says_so(tmp_path):
    ran = balanced(tmp_path, LEAVE, cluster={"brokers": 3}, lasts="2s")
    (fault,) = ran.faults
    assert (fault["took_effect"], fault["effect"]) == (False, "it still holds replicas")
    assert not ran.verdict["held"]


def test_a_decommissioned_broker_that_is_started_again_is_not_let_in(tmp_path):
    again = [
        {"at": "500ms", "do": "decommission", "target": "broker-1"},
        {"at": "3s", "do": "restart", "target": "broker-1"},
    ]
    ran = balanced(tmp_path, again, cluster={"brokers": 4}, lasts="5s")
    after = [row for row in ran.rows("broker_states", broker=1) if row["t_us"] > 0]
    assert [row["state"] for row in after] == ["unregistered"]
    assert nothing_is_lost(ran)


def test_replicas_of_a_broker_that_stays_away_are_made_anew_elsewhere(tmp_path):
    config = {
        "partition_autobalancing_mode": "continuous",
        "partition_autobalancing_node_availability_timeout_sec": 10,
        "partition_autobalancing_tick_interval_ms": 1000,
    }
    crash = [{"at": "500ms", "do": "crash", "target": "broker-1"}]
    ran = balanced(tmp_path, crash, cluster={"brokers": 4}, config=config, lasts="15s", then="stop")
    assert all(1 not in replicas for replicas in holders(ran).values())
    moved = [t for t in ran.times("partition_changes", topic="orders") if t > 5 * S]
    assert 10 * S < min(moved) < 13 * S
    assert ran.records["lost_acked"] == 0
    assert not ran.rows("broker_states", broker=1, state="unregistered")


def test_a_controller_that_takes_over_goes_on_where_the_other_stopped(tmp_path):
    """Who is to be given its share is in the metadata log, not in a controller's memory."""
    faults = [
        {"at": "500ms", "do": "add-broker", "target": "broker-4"},
        {"at": "1500ms", "do": "crash", "target": "controller leader"},
    ]
    config = {
        "partition_autobalancing_concurrent_moves": 1,
        "partition_autobalancing_tick_interval_ms": 4000,
    }
    three = ADDED | {"controllers": 3}
    ran = balanced(tmp_path, faults, cluster=three, config=config, lasts="14s")
    assert ran.verdict["balance"]["replicas_spread"] == 0
    assert nothing_is_lost(ran)
