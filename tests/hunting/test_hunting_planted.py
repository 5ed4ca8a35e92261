"""Defects that are planted into the machines: the hunt finds each within its budget.

It begins with a plain scenario, and knows neither the defect nor the faults that show it.
"""

import pytest

from sim.hunting.search.hunt import Hunt, Plan
from sim.suite.pool import Pool
from tests.hunting import planted_parts as parts
from tests.scenarios import planted

BUDGET = 200
"""Executions of a hunt, of at most two faults each."""

LONGER = {planted.joins_the_isr_while_behind: 500}
"""Budgets of defects that draws which come together meet later, here in execution 213: a follower
must come back while a second fault delays its fetches. It was 200 before them."""

PLAIN = {
    "claim": "No promise is broken.",
    "cluster": {
        "brokers": 3,
        "controllers": 3,
        "config": {
            "broker.session.timeout.ms": 3000,
            "broker.heartbeat.interval.ms": 500,
            "replica.lag.time.max.ms": 2000,
            "offsets.topic.num.partitions": 2,
            "group.initial.rebalance.delay.ms": 0,
        },
    },
    "topics": {
        "orders": {"partitions": 2, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
    },
    "producers": [
        {
            "name": "shop",
            "topic": "orders",
            "rate": "50/s",
            "record.size": "100B",
            "stop": "12s",
            "config": {"acks": "all", "request.timeout.ms": 2000, "delivery.timeout.ms": 60000},
        }
    ],
    "consumers": [
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
    ],
    "run": {"for": "15s", "drain.timeout": "60s"},
}
"""Nothing goes wrong in it."""

AT_ONCE = (
    (planted.high_watermark_without_followers, "high-watermark-needs-in-sync-ends"),
    (planted.acknowledged_at_append, "acknowledged-is-committed"),
    (planted.everyone_gets_every_partition, "assignments-disjoint"),
)
"""Defects that need no fault: the first execution, in which nothing goes wrong, has them."""

BY_FAULTS = (
    (planted.leader_epoch_stays, "one-leader-per-epoch"),
    (planted.high_watermark_below_min_in_sync, "high-watermark-needs-min-in-sync"),
    (planted.unclean_leader_while_there_is_a_clean_one, ""),
    (planted.joins_the_isr_while_behind, "in-sync-complete"),
    (planted.broker_forgets_producers, "sequences-contiguous"),
    (planted.everyone_votes_for_everyone, "one-quorum-leader"),
    (planted.sequence_is_used_twice, ""),
    (planted.fsync_lies, ""),
    (planted.commits_of_any_generation_are_taken, "commits-are-current"),
)
"""Defects that faults bring to light; without a name they lose what was acknowledged."""

LASTING = {**PLAIN, "run": {**PLAIN["run"], "for": "60s"}}
SCENARIOS = {planted.commits_of_any_generation_are_taken: LASTING}
"""Of defects that 15 s cannot show: the answer to a commit may take 30 s (request.timeout.ms), so
that only a later one is certainly of a former generation."""

PRODUCER, CONSUMERS = PLAIN["producers"][0], PLAIN["consumers"][0]


def plain(*, topic=None, producer=None, consumers=None):
    """The plain scenario with other keys of its topic's settings, its producer and consumers."""
    orders = PLAIN["topics"]["orders"]
    topics = {"orders": {**orders, "config": {**orders["config"], **(topic or {})}}}
    return {
        **PLAIN,
        "topics": topics,
        "producers": [{**PRODUCER, **(producer or {})}],
        "consumers": [{**CONSUMERS, **(consumers or {})}],
    }


CONSUMER_PROTOCOL = plain(
    consumers={"config": {"group.protocol": "consumer", "auto.offset.reset": "earliest"}}
)
TRANSACTIONS = plain(
    producer={
        "transaction": {"records": 10, "abort": "20%"},
        "config": {"transactional.id": "shop", "request.timeout.ms": 2000},
    },
    consumers={"config": {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}},
)
SHARES = plain(
    consumers={
        "group.type": "share",
        "processing": "10ms",
        "release": "5%",
        "config": {
            "share.acknowledgement.mode": "explicit",
            "share.auto.offset.reset": "earliest",
            "max.poll.records": 20,
        },
    }
)
COMPACTED = plain(
    topic={
        "cleanup.policy": "compact",
        "segment.ms": 1000,
        "min.cleanable.dirty.ratio": 0.1,
        "delete.retention.ms": 5000,
    },
    producer={"keys": "zipf", "key.count": 20},
)

PARTS = (
    (parts.a_majority_is_enough, "high-watermark-needs-in-sync-ends", PLAIN),
    (parts.one_vote_is_enough, "one-quorum-leader", PLAIN),
    (parts.a_vote_is_forgotten, "one-quorum-leader", PLAIN),
    (parts.a_generation_stays, "assignments-disjoint", PLAIN),
    (
        parts.a_partition_is_given_out_while_another_has_it,
        "partitions-have-one-owner",
        CONSUMER_PROTOCOL,
    ),
    (parts.readers_pass_open_transactions, "stable-offset-below-open", TRANSACTIONS),
    (parts.an_abort_is_marked_as_a_commit, "markers-follow-the-decision", TRANSACTIONS),
    (parts.a_lock_keeps_nobody_away, "records-have-one-holder", SHARES),
    (parts.the_next_leader_forgets_what_was_accepted, "acknowledged-is-not-delivered", SHARES),
    (parts.the_last_value_goes, "cleaner-keeps-last-values", COMPACTED),
)
"""Defects of replica, quorum, group, transaction, share group and cleaner, each in a scenario
that uses the part."""


def name_of(each):
    """The defect's name, or the invariant's."""
    return getattr(each, "__name__", each if isinstance(each, str) else "")


def found_at(tmp_path, invariant, budget=BUDGET, scenario=PLAIN):
    """Executions until a failure of that name; ``None`` if there was none."""
    hunt = Hunt(Plan("plain", scenario, "lost_acked", 2, 1), tmp_path / "hunt")

    def first():
        for each in hunt.all_ended():
            names = [name for f in each.findings for name in (f.kind, *f.chain)]
            if (invariant or "lost_acked") in names:
                return each.number
        return None

    hunt.go(Pool(1, None), runs_max=budget, should_stop=lambda: first() is not None)
    return first()


@pytest.mark.parametrize(("plant", "invariant"), AT_ONCE, ids=name_of)
def test_a_planted_defect_that_needs_no_fault_is_in_the_first_execution(
    plant, invariant, tmp_path, monkeypatch
):
    plant(monkeypatch)
    assert found_at(tmp_path, invariant, budget=1) == 0


@pytest.mark.night
@pytest.mark.parametrize(("plant", "invariant"), BY_FAULTS, ids=name_of)
def test_a_planted_defect_is_found_within_the_budget(plant, invariant, tmp_path, monkeypatch):
    plant(monkeypatch)
    scenario = SCENARIOS.get(plant, PLAIN)
    assert found_at(tmp_path, invariant, LONGER.get(plant, BUDGET), scenario) is not None


@pytest.mark.night
@pytest.mark.parametrize(("plant", "invariant", "scenario"), PARTS, ids=name_of)
def test_a_defect_of_any_part_is_found_within_the_budget(
    plant, invariant, scenario, tmp_path, monkeypatch
):
    plant(monkeypatch)
    assert found_at(tmp_path, invariant, scenario=scenario) is not None


@pytest.mark.night
def test_without_a_defect_the_same_budget_breaks_no_promise(tmp_path):
    assert found_at(tmp_path, "broken") is None


@pytest.mark.parametrize(
    "scenario",
    [PLAIN, CONSUMER_PROTOCOL, TRANSACTIONS, SHARES, COMPACTED],
    ids=["plain", "consumer-protocol", "transactions", "shares", "compacted"],
)
def test_without_a_defect_and_without_faults_no_promise_is_broken(scenario, tmp_path):
    assert found_at(tmp_path, "broken", budget=1, scenario=scenario) is None
