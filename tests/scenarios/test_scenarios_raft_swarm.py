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
