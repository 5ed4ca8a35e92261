"""KIP-966, part 2, a proposal: after the power loss of all brokers the longest log leads."""

import pytest

from tests.scenarios.run_kit import S, go


def ends(ran, at):
    """Log ends with which brokers came back from the power loss, by broker."""
    rows = ran.rows("recoveries", topic="orders")
    return {row["broker"]: row["log_end_offset"] for row in rows if row["t_us"] > at}


def power_loss(directory, seed, *, topic=(), config=(), **behaviours):
    return go(
        directory,
        topic={"partitions": 1, "config": dict(topic)},
        config=dict(config),
        producer={"rate": "100/s", "config": {"acks": "all", "linger.ms": 0}},
        faults=[{"at": "10s", "do": "power-loss", "target": "all brokers", "for": "8s"}],
        lasts="28s",
        behaviours=behaviours,
        seed=seed,
    )


@pytest.mark.parametrize("seed", [2, 3])
def test_balanced_recovery_loses_only_what_no_replica_has(tmp_path, seed):
    ran = power_loss(tmp_path, seed, **{"recovery.unclean": "longest_log"})
    found = ends(ran, 10 * S)
    leader = ran.leader_at(28 * S)
    assert found[leader] == max(found.values()) > min(found.values())
    asked = ran.rows("requests", kind="GetReplicaLogInfo")
    assert sorted({row["node"] for row in asked}) == [1, 2, 3]
    today = power_loss(tmp_path, seed)
    assert not today.rows("requests", kind="GetReplicaLogInfo")
    assert ran.records["lost_acked"] < today.records["lost_acked"]


@pytest.mark.parametrize("level", ["topic", "config"])
def test_without_a_strategy_for_recovery_the_partition_stays_without_a_leader(tmp_path, level):
    given = {level: {"unclean.recovery.strategy": "None"}}
    ran = power_loss(tmp_path, 2, **given, **{"recovery.unclean": "longest_log"})
    rows = ran.rows("partition_changes", topic="orders")
    assert [row["leader"] for row in rows if row["t_us"] > 10 * S][-1] == -1
    assert not ran.rows("requests", kind="GetReplicaLogInfo")


def test_a_topic_may_recover_where_the_brokers_strategy_is_none(tmp_path):
    ran = power_loss(
        tmp_path,
        2,
        topic={"unclean.recovery.strategy": "Balanced"},
        config={"unclean.recovery.strategy": "None"},
        **{"recovery.unclean": "longest_log"},
    )
    assert ran.leader_at(28 * S) > 0
