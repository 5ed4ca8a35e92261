"""Connectors: what a source and a sink deliver when their tasks die.

Source: KIP-26, KIP-618; the documentation of Kafka Connect.
"""

import json
from dataclasses import replace

import pytest

from analysis.report import write as report
from analysis.spark import session
from sim.scenario.build import connectors as connector_runs
from tests.scenarios.run_kit import go

TOPIC = {"partitions": 2, "replication.factor": 3, "config": {"min.insync.replicas": 2}}
QUICK = {
    "broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 400,
    "group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2,
}  # fmt: skip
SHOP = {"name": "shop", "topic": "orders", "rate": "200/s", "record.size": "100B", "stop": "5s"}
ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


def source(config=(), **more):
    return {
        "name": "crm", "kind": "source", "topics": ["orders"], "tasks": 2, "rate": "200/s",
        "record.size": "100B", "poll": "100ms", "stop": "5s",
        "config": {"offset.flush.interval.ms": 1000, **dict(config)}, **more,
    }  # fmt: skip


def sink(config=(), **more):
    member = {"consumer.session.timeout.ms": 1500, "consumer.heartbeat.interval.ms": 300}
    return {
        "name": "lake", "kind": "sink", "topics": ["orders"], "tasks": 2,
        "config": {"offset.flush.interval.ms": 1000, **member, **dict(config)}, **more,
    }  # fmt: skip


def connected(directory, *each, faults=(), **parts):
    producers = [] if any(c["kind"] == "source" for c in each) else [SHOP]
    ran = go(
        directory, topics={"orders": TOPIC}, producers=producers, connectors=list(each),
        config=QUICK, faults=list(faults), **{"lasts": "6s", **parts},
    )  # fmt: skip
    told = ran.verdict["connecting"]
    return ran, (told["missing"], told["duplicated"], told["orphaned"])


def crash(who, at="2500ms"):
    return {"at": at, "do": "crash", "target": who, "for": "300ms"}


COORDINATOR = {
    "at": "3500ms", "do": "crash", "target": "transaction coordinator of connect-cluster-crm-0",
    "for": "1s",
}  # fmt: skip


@pytest.fixture(scope="module")
def at_least_once(tmp_path_factory):
    return connected(
        tmp_path_factory.mktemp("source"), source(), sink(), faults=[crash("crm-1"), crash("lake")]
    )


def test_a_source_that_dies_sends_again_what_came_after_its_stored_position(at_least_once):
    ran, _ = at_least_once
    told = ran.verdict["connecting"]["connectors"]["crm"]
    assert (told["missing"], told["orphaned"]) == (0, 0)
    rows = ran.rows("source_offsets", source_partition=0)
    begun = [number for number, row in enumerate(rows) if row["what"] == "begun"]
    again = rows[begun[1]]["position"]
    assert again == rows[begun[1] - 1]["position"], "where it had stored last"
    sent = [row for row in ran.rows("sourced", task="crm-1") if row["t_us"] < 2_500_000]
    last = max(row["position"] + row["record_count"] for row in sent)
    assert told["duplicated"] == last - again > 0
    assert ran.records["survived"] == 2000 + told["duplicated"]


def test_a_sink_that_dies_writes_again_what_it_had_not_committed(at_least_once):
    ran, _ = at_least_once
    told = ran.verdict["connecting"]["connectors"]["lake"]
    assert (told["missing"], told["orphaned"]) == (0, 0)
    assert told["duplicated"] > 0
    written = sum(row["record_count"] for row in ran.rows("external_writes"))
    assert written == ran.records["survived"] + told["duplicated"]


def test_what_a_record_waited_for_its_poll_is_part_of_its_latency(at_least_once):
    ran, _ = at_least_once
    assert ran.verdict["latency_us"]["produce"]["p50"] >= 50_000


@pytest.mark.slow
@pytest.mark.spark
def test_both_judges_count_alike_what_was_delivered_twice(at_least_once):
    ran, (_, duplicated, _) = at_least_once
    with session.using("local[2]"):
        report.build([ran.directory])
    found = json.loads((ran.directory / "report" / "report.json").read_text())
    assert found["agrees_with_checker"] is True, found["differences"]
    assert found["connecting"]["duplicated"] == duplicated > 0


@pytest.mark.parametrize("boundary", ["poll", "interval"])
def test_with_positions_in_transactions_and_offsets_with_data_nothing_is_there_twice(
    tmp_path, boundary
):
    """KIP-618, and a sink that keeps its offsets with its data."""
    each = source({**ONCE, "transaction.boundary": boundary})
    reader = sink({"consumer.isolation.level": "read_committed"}, delivery="exactly-once")
    faults = [crash("crm-1"), crash("lake-1", "3s"), COORDINATOR]
    ran, wrong = connected(tmp_path, each, reader, faults=faults)
    assert wrong == (0, 0, 0)
    assert ran.records["survived"] == 2000
    assert {row["outcome"] for row in ran.rows("transaction_outcomes")} >= {"committed"}


def planting(monkeypatch, name, **defect):
    real = getattr(connector_runs, name)
    monkeypatch.setattr(connector_runs, name, lambda *given: replace(real(*given), **defect))


CUT = [
    {"at": "2s", "do": "drop", "message": "ProduceRequest", "from": "crm-1", "for": "1s"},
    crash("crm-1", "2900ms"),
]


def test_planted_positions_stored_before_records_are_acknowledged_lose_them(tmp_path, monkeypatch):
    each = source({"offset.flush.interval.ms": 200})
    assert connected(tmp_path, each, faults=CUT)[1][0] == 0
    planting(monkeypatch, "source_plan", offsets="taken")
    missing, _, orphaned = connected(tmp_path, each, faults=CUT)[1]
    assert missing > 0
    assert orphaned == 0


NO_COMMITS = [
    {"at": "2s", "do": "drop", "message": "OffsetCommitRequest", "from": "crm-1", "for": "1s"},
    crash("crm-1", "2900ms"),
]


def test_planted_positions_outside_of_transactions_send_records_again(tmp_path, monkeypatch):
    planting(monkeypatch, "source_plan", offsets="apart")
    missing, duplicated, _ = connected(tmp_path, source(ONCE), faults=NO_COMMITS)[1]
    assert missing == 0
    assert duplicated > 0


def test_planted_offsets_committed_before_the_flush_lose_what_was_buffered(tmp_path, monkeypatch):
    each, faults = sink(buffer=100_000), [crash("lake")]
    assert connected(tmp_path, each, faults=faults)[1][0] == 0
    planting(monkeypatch, "sink_plan", flushes_first=False)
    missing, _, _ = connected(tmp_path, each, faults=faults)[1]
    assert missing > 0


def test_a_source_whose_transaction_is_aborted_fails_and_stays_so(tmp_path):
    """As in Connect, where somebody has to restart the task."""
    slow = source({
        **ONCE, "transaction.boundary": "interval", "transaction.boundary.interval.ms": 4000,
        "producer.transaction.timeout.ms": 1000, "producer.delivery.timeout.ms": 40_000,
    }, tasks=1)  # fmt: skip
    config = QUICK | {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 500}
    ran = go(
        tmp_path, topics={"orders": TOPIC}, producers=[], connectors=[slow], config=config,
        lasts="6s",
    )  # fmt: skip
    assert ran.rows("node_states", node="crm", state="failed")
    assert ran.verdict["connecting"]["missing"] == 1000
