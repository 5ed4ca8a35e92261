"""KIP-966, part 2, a proposal: after the power loss of all brokers the longest log leads."""

import pytest

from tests.scenarios.run_kit import S, go


def ends(ran, at):
    """Log ends with which brokers came back from the power loss, by broker."""
    rows = ran.rows("recoveries", topic="orders")
    return {row["broker"]: row["log_end_offset"] for row in rows if row["t_us"] > at}


def power_loss(directory, seed, **behaviours):
    return go(
        directory,
        topic={"partitions": 1},
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
