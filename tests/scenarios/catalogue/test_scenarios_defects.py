"""Defects planted one at a time, through a whole run: each is caught, by name or by number.

Every defect has a twin: the same scenario and seed without it holds.
"""

from dataclasses import dataclass, field

import pytest

from sim.errors import InvariantBroken
from sim.inspect.doctor import examine
from tests.scenarios import planted
from tests.scenarios.run_kit import Ran, go

CONSUMERS = [
    {
        "group": "billing",
        "topics": ["orders"],
        "count": 2,
        "config": {
            "auto.offset.reset": "earliest",
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 1000,
        },
    }
]
LEADER_CRASH = [{"at": "2s", "do": "crash", "target": "leader of orders-0", "for": "12s"}]
LAG = {
    "at": "1s", "do": "delay", "between": "leader of orders-0", "and": "all brokers",
    "one-way": True, "by": "50ms", "for": "2s",
}  # fmt: skip
"""What the leader has, its followers get 50 ms later."""
LATE_RETURN = [
    {"at": "1s", "do": "crash", "target": "broker-3", "for": "12s"},
    {
        "at": "12s", "do": "delay", "between": "broker-1", "and": "broker-3",
        "one-way": True, "by": "200ms", "for": "5s",
    },
]  # fmt: skip
"""The other follower has at once what broker-3, unfenced again, gets 200 ms later."""
ALWAYS_WRITTEN = {"partitions": 1, "replicas": [["broker-1", "broker-2", "broker-3"]]}
"""Of several partitions a producer without keys leaves all but one for the time of a batch."""
NO_ANSWERS = {
    "at": "2s", "do": "partition", "between": "leader of orders-0", "and": "shop",
    "one-way": True, "for": "5s",
}  # fmt: skip
"""The producer's requests arrive, the leader's answers do not."""
IMPATIENT = {"acks": "all", "request.timeout.ms": 2000, "delivery.timeout.ms": 60000}
LEFT_BEHIND = [
    {
        "at": "1s", "do": "partition", "between": "leader of orders-0",
        "and": "follower of orders-0", "for": "15s",
    },
    {"at": "8s", "do": "crash", "target": "leader of orders-0", "for": "14s"},
]  # fmt: skip
"""A follower leaves the ISR although it lives; then the leader dies."""
ONE_PARTITION = {"partitions": 1}


@dataclass(frozen=True)
class Case:
    """A defect, the scenario that shows it, and what catches it."""

    plant: object
    caught: object
    """Name of the invariant, or what the judges' findings then say."""
    parts: dict = field(default_factory=dict)


def lost(ran: Ran) -> bool:
    return ran.records["lost_acked"] > 0


def diverged(ran: Ran) -> bool:
    return ran.records["divergent"] > 0


def damaged(ran: Ran) -> bool:
    return any(finding.severity == "error" for d in ran.log_dirs() for finding in examine(d))


CASES = [
    Case(planted.high_watermark_without_followers, "high-watermark-needs-in-sync-ends"),
    Case(
        planted.high_watermark_below_min_in_sync,
        "high-watermark-needs-min-in-sync",
        {
            "acks": 1, "lasts": "14s",
            "faults": [
                {"at": "1s", "do": "crash", "target": "broker-1"},
                {"at": "1s", "do": "crash", "target": "broker-2"},
            ],
        },
    ),
    Case(planted.acknowledged_at_append, "acknowledged-is-committed"),
    Case(
        planted.divergence_is_ignored,
        diverged,
        {
            "acks": 1, "topic": ONE_PARTITION, "faults": [LAG, *LEADER_CRASH],
            "lasts": "15s", "then": "stop",
            "producer": {"rate": "100/s", "config": {"acks": 1, "linger.ms": 0}},
        },
    ),
    Case(
        planted.truncated_to_the_high_watermark,
        "nothing-committed-truncated",
        {"acks": 1, "topic": ONE_PARTITION, "faults": [LAG, *LEADER_CRASH], "lasts": "16s"},
    ),
    Case(
        planted.corrupt_batches_are_kept,
        damaged,
        {"faults": [{"at": "3s", "do": "corrupt-replica", "target": "follower of orders-0"}]},
    ),
    Case(
        planted.unclean_leader_while_there_is_a_clean_one,
        lost,
        {
            "faults": LEFT_BEHIND, "lasts": "24s", "topic": ONE_PARTITION,
            "config": {"replica.lag.time.max.ms": 2000},
        },
    ),
    Case(
        planted.leader_epoch_stays,
        "one-leader-per-epoch",
        {"faults": LEADER_CRASH, "lasts": "14s"},
    ),
    Case(
        planted.joins_the_isr_while_behind,
        "in-sync-complete",
        {"faults": LATE_RETURN, "lasts": "20s", "topic": ALWAYS_WRITTEN},
    ),
    Case(
        planted.follower_takes_its_log_end_for_committed, "follower-watermark-behind-leader"
    ),
    Case(
        planted.consumers_read_to_the_log_end,
        "reads-are-committed",
        {"consumers": CONSUMERS, "faults": [LAG | {"for": "8s"}], "lasts": "10s"},
    ),
    Case(planted.sequence_is_used_twice, lost),
    Case(
        planted.broker_forgets_producers,
        "sequences-contiguous",
        {"faults": [NO_ANSWERS], "producer": {"config": IMPATIENT}, "lasts": "9s"},
    ),
    Case(
        planted.fsync_lies,
        lost,
        {
            "topic": {"config": {"min.insync.replicas": 2, "flush.messages": 1}},
            "faults": [{"at": "3s", "do": "power-loss", "target": "all brokers", "for": "2s"}],
            "lasts": "20s",
        },
    ),
    Case(
        planted.everyone_votes_for_everyone,
        "one-quorum-leader",
        {
            "faults": [
                {"at": f"{at}s", "do": "crash", "target": "controller leader", "for": "3s"}
                for at in (1, 9, 17, 25)
            ],
            "lasts": "32s",
            "producer": {"rate": "50/s"},
        },
    ),
    Case(
        planted.everyone_gets_every_partition,
        "assignments-disjoint",
        {"consumers": CONSUMERS, "lasts": "10s"},
    ),
    Case(
        planted.commits_of_any_generation_are_taken,
        "commits-are-current",
        {
            "consumers": CONSUMERS,
            "faults": [{"at": "9s", "do": "pause", "target": "billing-1", "for": "45s"}],
            "lasts": "58s",
            "producer": {"rate": "50/s"},
        },
    ),
]  # fmt: skip


def name_of(case: Case) -> str:
    return case.plant.__name__


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_planted_defect_is_caught(case, tmp_path, monkeypatch):
    with monkeypatch.context() as planting:
        case.plant(planting)
        if isinstance(case.caught, str):
            with pytest.raises(InvariantBroken, match=f"^invariant {case.caught} broken at "):
                go(tmp_path, **case.parts)
            return
        ran = go(tmp_path, **case.parts)
    assert case.caught(ran)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_without_the_defect_the_same_run_is_sound(case, tmp_path):
    ran = go(tmp_path, **case.parts)
    assert all(fault["took_effect"] for fault in ran.faults)
    if isinstance(case.caught, str):
        assert ran.checked(case.caught) > 0, "the invariant never saw its subject"
    else:
        assert not case.caught(ran)
    assert not diverged(ran)
    assert not damaged(ran)
