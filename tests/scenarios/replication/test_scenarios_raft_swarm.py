"""Seeded faults of many kinds, one upon the other, on partitions that are Raft groups."""

import random

import pytest

from tests.scenarios.run_kit import go

TOPICS = {"orders": {"partitions": 2, "replication.factor": 3}}
GROUP = [{"group": "billing", "topics": ["orders"]}]
KINDS = (
    "crash", "power-loss", "pause", "controlled-shutdown", "stalled-disk", "slow-disk",
    "partition", "one-way", "loss", "delay",
)  # fmt: skip
MORE = {"slow-disk": {"factor": 40}, "loss": {"ratio": 0.1}, "delay": {"by": "80ms"}}
LINKS = ("partition", "one-way", "loss", "delay")


def faults_of(seed):
    """A fault every second or so; one of a kind on a target at a time."""
    chance = random.Random(seed)
    found, over = [], {}
    at = 1_000
    while at < 14_000:
        kind = chance.choice(KINDS)
        whom = chance.choice(["broker-1", "broker-2", "broker-3", "leader of orders-0"])
        lasts = chance.randrange(200, 4_000)
        if at > over.get((kind, whom), 0):
            fault = {"at": f"{at}ms", "for": f"{lasts}ms", **MORE.get(kind, {})}
            if kind in LINKS:
                fault |= {"do": "partition" if kind == "one-way" else kind, "between": whom}
                fault |= {"one-way": True} if kind == "one-way" else {}
            else:
                fault |= {"do": kind, "target": whom}
            found.append(fault)
            for of in {kind, "partition"} if kind == "one-way" else {kind}:
                over[of, whom] = at + lasts + 2_500
        at += chance.randrange(300, 2_500)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_no_seed_loses_what_a_majority_flushed_or_breaks_an_invariant(seed, tmp_path):
    ran = go(
        tmp_path,
        cluster={"replication": "raft", "controllers": 1},
        topics=TOPICS,
        faults=faults_of(seed),
        lasts="20s",
        seed=seed,
        consumers=GROUP,
        producer={"rate": "200/s"},
    )
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0
    assert ran.records["divergent"] == ran.records["failed"] == 0
    assert ran.records["acked"] == ran.records["sent"] > 3_000
    assert max(row["leader_epoch"] for row in ran.rows("leadership")) > 1


def moves_of(seed):
    """A new place for the first partition every other second, now and then called off."""
    chance = random.Random(seed * 7 + 1)
    found = []
    for at in range(1_500, 14_000, 2_100):
        brokers = chance.sample(range(1, 6), chance.choice([1, 2, 3, 3, 3]))
        replicas = [f"broker-{broker}" for broker in brokers]
        entry = {"at": f"{at}ms", "partition": "orders-0"}
        found.append(entry | {"do": "reassign", "replicas": replicas})
        if chance.random() < 0.3:
            found.append(entry | {"at": f"{at + 15}ms", "do": "cancel-reassignment"})
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 8))
def test_no_seed_loses_anything_while_replicas_move_and_every_move_comes_to_its_end(seed, tmp_path):
    ran = go(
        tmp_path,
        cluster={"replication": "raft", "controllers": 1, "brokers": 5},
        topics=TOPICS,
        faults=[*faults_of(seed), *moves_of(seed)],
        lasts="20s",
        seed=seed,
        consumers=GROUP,
        producer={"rate": "100/s"},
    )
    assert ran.records["lost_acked"] == ran.records["duplicated"] == 0
    assert ran.records["divergent"] == 0
    assert ran.checked("raft-one-change-at-a-time") > 10
    last = ran.rows("partition_changes", topic="orders", partition=0)[-1]["replicas"]
    said = ran.rows("raft_configurations", topic="orders", partition=0)[-1]
    assert (said["voters"], said["old"], said["learners"]) == (last, "", "")
