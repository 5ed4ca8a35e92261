"""The same faults with the same seed under ``cluster.replication: isr`` and ``raft``."""

from dataclasses import replace

import pytest

from sim.errors import InvariantBroken
from sim.inspect.doctor import examine
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.types import RaftRules
from tests.scenarios.run_kit import S, go

TOPICS = {"orders": {"partitions": 2, "replication.factor": 3}}
RAFT = {"replication": "raft", "controllers": 1}
ISR = {"controllers": 1}
CRASH = [{"at": "2s", "do": "crash", "target": "leader of orders-0"}]
DARK = [{"at": "2s", "do": "power-loss", "target": "all brokers", "for": "1s"}]
CUT = [{"at": "2s", "do": "partition", "between": "leader of orders-0", "and": "all brokers"}]
LAG = {
    "at": "1s", "do": "delay", "between": "leader of orders-0", "and": "all brokers",
    "one-way": True, "by": "50ms", "for": "2s",
}  # fmt: skip
SLOW = {"flush": {"p50": "50ms", "p99": "80ms"}}
GROUP = [{"group": "billing", "topics": ["orders"], "config": {"auto.offset.reset": "earliest"}}]


def under(replication, directory, **parts):
    return go(directory, cluster=replication, topics=TOPICS, **parts)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory):
    directory = tmp_path_factory.mktemp("raft-crash")
    return under(RAFT, directory, faults=CRASH, lasts="8s", consumers=GROUP)


def produce_gap(ran):
    return ran.verdict["availability"]["produce_max_us"]


def test_a_leaders_crash_is_mended_in_4_seconds_by_a_group_and_in_7_or_more_by_the_controller(
    crashed, tmp_path
):
    isr = under(ISR, tmp_path, faults=CRASH, lasts="14s", producer={"rate": "100/s"})
    assert 1.5 * S <= produce_gap(crashed) <= 4 * S
    assert produce_gap(isr) >= 7 * S
    assert crashed.records["lost_acked"] == isr.records["lost_acked"] == 0


def test_a_group_elects_while_the_controller_still_believes_in_the_dead_broker(crashed):
    (crash,) = crashed.times("node_states", state="crashed")
    fenced = crashed.times("broker_states", state="fenced")
    elected = crashed.changed_leader(crash)
    assert crash + 1.5 * S <= elected <= crash + 3.1 * S
    assert all(elected < at for at in fenced)


def test_the_controllers_leader_epoch_is_the_groups_term(crashed):
    led = {
        (row["leader_epoch"], row["broker"])
        for row in crashed.rows("leadership", topic="orders", partition=0, role="leader")
    }
    known = {
        (row["leader_epoch"], row["leader"])
        for row in crashed.rows("partition_changes", topic="orders", partition=0)
        if row["leader"] >= 0
    }
    assert led == known
    assert len(led) == 2


def test_every_term_is_opened_by_a_record_that_no_consumer_sees(crashed):
    opened = [
        row
        for row in crashed.rows("appends", topic="orders", partition=0, as_leader=True)
        if row["producer_index"] == -1
    ]
    assert len(opened) == 2
    seen = {row["base_offset"] for row in crashed.rows("reads", topic="orders", partition=0)}
    assert seen
    assert not seen & {row["base_offset"] for row in opened}


def test_the_checks_saw_a_majority_behind_every_commit(crashed):
    assert crashed.checked("raft-commit-needs-majority") > 1_000
    assert crashed.checked("leader-complete") > 2
    assert crashed.checked("one-leader-per-epoch") > 1_000


def test_the_doctor_finds_the_disks_of_groups_healthy(crashed):
    assert crashed.log_dirs("broker")
    for directory in crashed.log_dirs("broker"):
        assert [f for f in examine(directory) if f.severity == "error"] == []


def test_a_whole_cluster_without_power_keeps_what_groups_acknowledged_and_loses_what_isrs_did(
    tmp_path,
):
    raft = under(RAFT, tmp_path, faults=DARK)
    isr = under(ISR, tmp_path, faults=DARK)
    assert raft.records["lost_acked"] == 0
    assert raft.records["acked"] == raft.records["survived"]
    assert isr.records["lost_acked"] > 100


def test_a_leader_without_its_majority_steps_down_and_another_one_leads(tmp_path):
    ran = under(RAFT, tmp_path, faults=CUT, lasts="8s")
    (old,) = [ran.leader_at(2 * S)]
    elected = ran.changed_leader(2 * S)
    stepped_down = min(
        row["t_us"]
        for row in ran.rows("leadership", topic="orders", partition=0, broker=old)
        if row["role"] != "leader" and row["t_us"] > 2 * S
    )
    assert 3.4 * S <= stepped_down <= 3.8 * S
    assert elected <= 5.2 * S
    assert ran.records["lost_acked"] == 0


def test_with_acks_1_a_leaders_crash_takes_acknowledged_records_with_it(tmp_path):
    faults = [LAG, {"at": "2s", "do": "crash", "target": "leader of orders-0"}]
    fast = {"rate": "3000/s"}
    ran = under(RAFT, tmp_path, faults=faults, acks="1", lasts="4s", producer=fast)
    assert ran.records["lost_acked"] > 0
    assert ran.records["divergent"] == 0


def test_a_controlled_shutdown_hands_over_within_a_second(tmp_path):
    stop = [{"at": "2s", "do": "controlled-shutdown", "target": "leader of orders-0", "for": "3s"}]
    ran = under(RAFT, tmp_path, faults=stop)
    assert produce_gap(ran) < 1 * S
    assert ran.records["lost_acked"] == 0


def test_a_replica_that_was_lost_is_built_anew_and_deleted_records_stay_deleted(tmp_path):
    faults = [
        {"at": "1s", "do": "lost-replica", "target": "follower of orders-0"},
        {"at": "2s", "do": "delete-records", "partition": "orders-0", "before": 100},
    ]
    ran = under(RAFT, tmp_path, faults=faults, lasts="4s")
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0
    assert ran.records["removed"] > 0
    starts = {(r["broker"], r["to_offset"]) for r in ran.rows("log_starts", topic="orders")}
    assert {(broker, 100) for broker in (1, 2, 3)} <= starts


@pytest.mark.parametrize("balances", [True, False])
def test_leaders_are_spread_evenly_again_after_a_broker_was_away(tmp_path, balances):
    config = {"leader_balancer_idle_timeout_ms": 1_000, "enable_leader_balancer": balances}
    topics = {"orders": {"partitions": 6, "replication.factor": 3}}
    back = [{"at": "1s", "do": "crash", "target": "leader of orders-0", "for": "3s"}]
    slow = {"rate": "60/s"}
    ran = go(
        tmp_path, cluster=RAFT | {"config": config}, topics=topics, faults=back, lasts="7s",
        producer=slow,
    )  # fmt: skip
    last = {row["partition"]: row for row in ran.rows("partition_changes", topic="orders")}
    leaders = [row["leader"] for row in last.values()]
    counts = sorted(leaders.count(broker) for broker in (1, 2, 3))
    assert (counts == [2, 2, 2]) is balances
    assert ran.records["lost_acked"] == 0


def test_transactions_and_groups_run_on_groups_of_replicas(tmp_path):
    config = {"acks": "all", "transactional.id": "bank"}
    bank = {"transaction": {"records": 20, "abort": "10%"}, "rate": "100/s", "config": config}
    reader = [GROUP[0] | {"config": {"isolation.level": "read_committed"}}]
    ran = under(RAFT, tmp_path, producer=bank, consumers=reader, faults=CRASH, lasts="4s")
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0
    assert ran.checked("stable-offset-below-open") > 0


def test_the_same_seed_gives_the_same_run(tmp_path):
    runs = [under(RAFT, tmp_path, faults=CUT, lasts="3s") for _ in range(2)]
    assert runs[0].card["trace_digest"] == runs[1].card["trace_digest"] != ""
    assert runs[0].card["disk_digest"] == runs[1].card["disk_digest"] != ""


def test_a_commit_at_a_minority_is_caught_while_it_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(RaftRules, "reached", lambda _self, ends: max(ends))
    with pytest.raises(InvariantBroken, match="raft-commit-needs-majority"):
        under(RAFT, tmp_path, lasts="2s")


def test_an_acknowledgement_before_the_flush_is_caught_by_the_judge(tmp_path, monkeypatch):
    asked = RaftGroup.on_append_request
    monkeypatch.setattr(RaftRules, "durable_end", lambda _self, end, _flushed: end)
    monkeypatch.setattr(
        RaftGroup, "on_append_request", lambda s, t, n, sent, now: asked(s, t, n, hasty(sent), now)
    )
    ran = under(RAFT | {"disk": SLOW}, tmp_path, faults=DARK, lasts="4s")
    assert ran.records["lost_acked"] > 0


def hasty(sent):
    return replace(sent, flush=False)


def test_with_write_caching_a_whole_cluster_without_power_loses_what_was_acknowledged(tmp_path):
    config = {"write_caching_default": True}
    fast = {"rate": "3000/s"}
    ran = under(RAFT | {"config": config}, tmp_path, faults=DARK, lasts="4s", producer=fast)
    assert ran.records["lost_acked"] > 0
