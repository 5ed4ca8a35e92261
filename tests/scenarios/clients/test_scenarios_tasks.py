"""Tasks that read, process and write: once and only once, at least once, at most once.

Source: KIP-129, KIP-447; ``StreamsConfig``; the failure catalogue, E8.
"""

import json
from itertools import pairwise

import pytest

from analysis.report import write as report
from analysis.spark import session
from tests.scenarios.run_kit import S, go

TOPIC = {"partitions": 2, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
TOPICS = {"orders": TOPIC, "bills": TOPIC}
QUICK = {
    "broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 400,
    "group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}  # fmt: skip
MEMBER = {"consumer.session.timeout.ms": 1500, "consumer.heartbeat.interval.ms": 300}
SHOP = {"rate": "200/s", "stop": "5s"}


def task(guarantee="exactly_once_v2", config=(), **more):
    own = {"processing.guarantee": guarantee, "commit.interval.ms": 200, "producer.linger.ms": 5}
    return {
        "name": "copy", "topics": ["orders"], "output": "bills", "count": 2, "processing": "1ms",
        "record.size": "100B", "config": {**own, **MEMBER, **dict(config)}, **more,
    }  # fmt: skip


def processed(directory, each, faults=(), **parts):
    ran = go(
        directory, topics=TOPICS, processors=[each], config=QUICK, faults=list(faults),
        **{"lasts": "6s", "producer": SHOP, **parts},
    )  # fmt: skip
    told = ran.verdict["processing"]
    return ran, (told["unprocessed"], told["reprocessed"], told["orphaned"])


def copies(ran):
    """How often each input record's outputs are in the final leader's log of what is visible."""
    return ran.records["survived"] - 1000


BAD_LUCK = [
    {"at": "1100ms", "do": "crash", "target": "copy-1", "for": "300ms"},
    {"at": "2s", "do": "pause", "target": "copy-2", "for": "2500ms"},
]


def test_static_tasks_come_back_without_a_rebalance_and_exactly_once_holds(tmp_path):
    """The session of 5 s outlives the restart; dynamic tasks need a generation for it (KIP-345)."""
    static = {"consumer.group.instance.id": "copy", "consumer.session.timeout.ms": 5_000}
    generations = []
    for config in ((), static):
        faults = [{"at": "2500ms", "do": "crash", "target": "copy-1", "for": "300ms"}]
        each = task(config=config, outputs=2)
        ran, wrong = processed(tmp_path, each, faults, seed=2)
        assert wrong == (0, 0, 0)
        assert copies(ran) == 2000
        rows = ran.rows("groups", group="copy", reason="assignment committed")
        generations.append([row["generation"] for row in rows if 2_500_000 < row["t_us"] < 6 * S])
    dynamic, kept = generations
    assert dynamic
    assert kept == []


def test_exactly_once_survives_a_crash_and_a_zombie_that_is_fenced(tmp_path):
    ran, wrong = processed(tmp_path, task(outputs=2), BAD_LUCK)
    assert wrong == (0, 0, 0)
    assert copies(ran) == 2000
    outcomes = {row["outcome"] for row in ran.rows("transaction_outcomes")}
    assert "committed" in outcomes
    assert outcomes & {"aborted", "fenced"}, "bad luck met an open transaction"
    assert any(row["consumer"] == "copy-1" for row in ran.rows("commits", error="NONE"))


def test_commits_outside_the_transaction_make_outputs_twice(tmp_path):
    _, (unprocessed, reprocessed, orphaned) = processed(tmp_path, task("at_least_once"), BAD_LUCK)
    assert (unprocessed, orphaned) == (0, 0)
    assert reprocessed > 0


@pytest.mark.slow
@pytest.mark.spark
def test_both_judges_find_the_same_outputs_made_again(tmp_path):
    ran, (_, reprocessed, _) = processed(tmp_path, task("at_least_once"), BAD_LUCK)
    with session.using("local[2]"):
        report.build([ran.directory])
    found = json.loads((ran.directory / "report" / "report.json").read_text())
    assert found["agrees_with_checker"] is True, found["differences"]
    assert found["processing"]["reprocessed"] == reprocessed > 0


def test_commits_before_processing_lose_what_was_not_processed_yet(tmp_path):
    crash = [{"at": "2s", "do": "crash", "target": "copy-1", "for": "300ms"}]
    each = task("at_least_once", commits="before", processing="20ms", count=1, name="copy-1")
    _, (unprocessed, reprocessed, orphaned) = processed(
        tmp_path, each, crash, producer={"rate": "40/s", "stop": "5s"}
    )
    assert unprocessed > 0
    assert (reprocessed, orphaned) == (0, 0)


def test_what_waits_for_a_worker_is_lost_although_the_client_has_committed_it(tmp_path):
    crash = [{"at": "2500ms", "do": "crash", "target": "copy-1", "for": "300ms"}]
    each = {
        "name": "copy-1", "topics": ["orders"], "output": "bills", "record.size": "100B",
        "processing": "20ms", "commits": "auto",
        "config": {"consumer.auto.commit.interval.ms": 500, **MEMBER},
    }  # fmt: skip
    ran, (unprocessed, _, orphaned) = processed(
        tmp_path, each, crash, producer={"rate": "80/s", "stop": "3s"}
    )
    # At the last commit, 2 s or later, 60 records waited at least; 25 were processed since then.
    assert 35 <= unprocessed <= 75
    assert orphaned == 0
    commits = ran.times("commits", error="NONE")
    gaps = [round((later - at) / S, 2) for at, later in pairwise(commits)]
    assert gaps.count(0.5) >= 3


def test_exactly_once_goes_on_when_both_coordinators_die_in_turn(tmp_path):
    faults = [
        {"at": "1s", "do": "crash", "target": "group coordinator of copy", "for": "1s"},
        {"at": "4s", "do": "crash", "target": "transaction coordinator of copy-1", "for": "1s"},
    ]
    ran, wrong = processed(tmp_path, task(), faults)
    assert wrong == (0, 0, 0)
    assert copies(ran) == 1000


@pytest.mark.slow
def test_a_transaction_that_takes_too_long_is_aborted_and_its_input_processed_again(tmp_path):
    faults = [{"at": "2050ms", "do": "pause", "target": "copy", "for": "3s"}]
    config = {"producer.transaction.timeout.ms": 1000, "consumer.session.timeout.ms": 6000,
              "consumer.heartbeat.interval.ms": 1000}  # fmt: skip
    each = task(config=config, count=1, processing="3ms")
    ran, wrong = processed(tmp_path, each, faults, lasts="7s")
    assert wrong == (0, 0, 0)
    fenced = ran.rows("transaction_outcomes", outcome="fenced")
    assert fenced, "the coordinator ended it"
    after = [r for r in ran.rows("transaction_outcomes") if r["t_us"] > fenced[0]["t_us"]]
    assert "committed" in {row["outcome"] for row in after}, "a new producer took its place"
    assert fenced[0]["t_us"] > 5 * S


@pytest.mark.slow
@pytest.mark.parametrize(("fences", "again"), [("kip447", False), ("unfenced", True)])
def test_a_zombie_s_offsets_are_refused_by_its_member_and_by_nothing_else(fences, again, tmp_path):
    faults = [{"at": "2s", "do": "pause", "target": "copy-1", "for": "3s"}]
    config = {"producer.transaction.timeout.ms": 60000, "commit.interval.ms": 1000}
    _, (unprocessed, reprocessed, _) = processed(
        tmp_path, task(config=config), faults, behaviours={"transaction.offsets": fences}
    )
    assert unprocessed == 0
    assert (reprocessed > 0) is again


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_a_round_that_failed_is_read_again_by_a_member_that_stays(guarantee, tmp_path):
    cut = {"at": "2s", "do": "partition", "between": ["copy"], "and": ["leader of bills-0"]}
    config = {
        "producer.request.timeout.ms": 500, "producer.delivery.timeout.ms": 1000,
        "consumer.session.timeout.ms": 30000, "consumer.heartbeat.interval.ms": 1000,
        "producer.max.block.ms": 60000,
    }  # fmt: skip
    ran, (unprocessed, reprocessed, _) = processed(
        tmp_path, task(guarantee, config, count=1), [{**cut, "for": "2500ms"}], seed=3
    )
    assert ran.records["failed"] + ran.records["unknown"] > 0, "some outputs ran out of time"
    assert unprocessed == 0
    assert reprocessed == 0 or guarantee == "at_least_once"
    joins = [row for row in ran.rows("groups", group="copy") if row["state"] == "Stable"]
    assert len(joins) == 1, "nobody left"
