"""Tasks in a rebalance: what moves stops, what stays does not, and each output is there once.

Source: KIP-429, KIP-447, KIP-848; ``TaskManager.handleRevocation``.
"""

from dataclasses import replace
from itertools import pairwise

import pytest

from sim.scenario.build import client_configs
from tests.scenarios.clients.test_scenarios_tasks import QUICK, SHOP
from tests.scenarios.run_kit import S, go

TOPIC = {"partitions": 6, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
SESSION = {"consumer.session.timeout.ms": 1500, "consumer.heartbeat.interval.ms": 300}
EAGER = {**SESSION, "consumer.partition.assignment.strategy": "range"}
COOPERATIVE = SESSION
"""As Streams since 2.4."""

MODERN = {"consumer.group.protocol": "consumer"}
BEATS = {
    "group.consumer.min.session.timeout.ms": 500, "group.consumer.session.timeout.ms": 1500,
    "group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 300,
}  # fmt: skip

PAUSE_S = 3.9, 5.1
"""While ``copy-2`` does not run; less than its session."""

SPREAD = {**SHOP, "stop": "8s", "config": {"batch.size": 250}}
"""Two records to a partition, then the next one: every task has some every few milliseconds."""

NEWCOMER = [
    # Without it for longer than its session, the others have all there is when it comes back.
    {"at": "1s", "do": "crash", "target": "copy-3", "for": "3s"},
    {"at": f"{PAUSE_S[0]}s", "do": "pause", "target": "copy-2",
     "for": f"{PAUSE_S[1] - PAUSE_S[0]:.1f}s"},
]  # fmt: skip


def moved(directory, way, faults=NEWCOMER, guarantee="exactly_once_v2", **more):
    config = {"processing.guarantee": guarantee, "commit.interval.ms": 100, "producer.linger.ms": 5}
    task = {
        "name": "copy", "topics": ["orders"], "output": "bills", "count": 3, "processing": "1ms",
        "record.size": "100B", "config": {**config, **way, **more},
    }  # fmt: skip
    ran = go(
        directory, topics={"orders": TOPIC, "bills": TOPIC}, processors=[task], lasts="9s",
        config={**QUICK, **BEATS}, faults=list(faults), producer=SPREAD,
    )  # fmt: skip
    processing = ran.verdict["processing"]
    return ran, (processing["unprocessed"], processing["reprocessed"], processing["orphaned"])


def silence(ran, name, since, until):
    """The longest time without a record of a task, in seconds."""
    at = [since * S, *ran.times("reads", consumer=name), until * S]
    inside = [t for t in at if since * S <= t <= until * S]
    return max(later - t for t, later in pairwise(inside)) / S


@pytest.mark.parametrize("way", [COOPERATIVE, MODERN], ids=["cooperative", "modern"])
def test_a_newcomer_stops_only_what_moves_and_each_output_is_there_once(tmp_path, way):
    """A rebalance of the classic protocol ends when all members have joined, so that it waits for
    the one that is paused. An eager task that has given up everything stops for that long, less
    the interval of the heartbeat that calls it; a cooperative one polls on with all it has. A
    consumer-protocol group waits for nobody but for who loses the partition.
    """
    joins_s = 4 + 0.3  # the newcomer, then the next heartbeat of copy-1
    stops = {}
    for name, each in (("eager", EAGER), ("moving", way)):
        ran, wrong = moved(tmp_path, each)
        assert wrong == (0, 0, 0)
        assert ran.records["survived"] == 2 * 1600
        stops[name] = silence(ran, "copy-1", PAUSE_S[0], 7)
    assert stops["eager"] > PAUSE_S[1] - joins_s
    # With a third or half of the 200 records a second it has some every 10 to 30 ms; a commit takes
    # some round trips and what its coordinators write.
    assert stops["moving"] < 0.3


@pytest.mark.parametrize("way", [COOPERATIVE, MODERN], ids=["cooperative", "modern"])
def test_planted_tasks_that_give_up_without_a_commit_make_outputs_again(tmp_path, monkeypatch, way):
    """No commit is due before the newcomer comes: all that was read of what moves is open."""
    interval = {"commit.interval.ms": 5_000}
    back = NEWCOMER[:1]
    assert moved(tmp_path, way, back, **interval)[1] == (0, 0, 0)
    real = client_configs.task

    def planted(*given):
        spec = real(*given)
        return replace(spec, plan=replace(spec.plan, commits_revoked=False))

    monkeypatch.setattr(client_configs, "task", planted)
    unprocessed, reprocessed, orphaned = moved(tmp_path, way, back, **interval)[1]
    assert (unprocessed, orphaned) == (0, 0)
    assert reprocessed > 0


def test_at_least_once_a_cooperative_task_makes_nothing_twice_without_a_failure(tmp_path):
    ran, wrong = moved(tmp_path, COOPERATIVE, NEWCOMER[1:], "at_least_once")
    assert wrong == (0, 0, 0)
    assert ran.records["survived"] == 2 * 1600


BAD_LUCK = [
    {"at": "1100ms", "do": "crash", "target": "copy-1", "for": "300ms"},
    {"at": "2s", "do": "pause", "target": "copy-2", "for": "2500ms"},
    {"at": "5500ms", "do": "crash", "target": "group coordinator of copy", "for": "1s"},
]


@pytest.mark.parametrize("way", [COOPERATIVE, MODERN], ids=["cooperative", "modern"])
def test_exactly_once_survives_a_zombie_and_a_coordinator_that_dies(tmp_path, way):
    ran, wrong = moved(tmp_path, way, BAD_LUCK)
    assert wrong == (0, 0, 0)
    assert ran.records["survived"] == 2 * 1600
