"""Acknowledged, survived, lost: tiny logs, each with a twin in which nothing is wrong.

A case is a topic of its own, and all topics are one run: Spark judges them in one pass, for what a
pass costs hardly depends on how little there is to see.
"""

import pytest
from pyspark.testing import assertDataFrameEqual

from analysis.spark import tables
from analysis.verify import compaction, durability, policy, records, survivors, transactions
from tests.analysis.durability_cases import CASES
from tests.analysis.synthetic import row, write_run

pytestmark = pytest.mark.spark
TOPICS = {claim: f"case-{place}" for place, claim in enumerate(CASES)}


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    run = tmp_path_factory.mktemp("cases")
    rows = {"client_batches": [], "partition_changes": [], "log_starts": []}
    rows |= {"high_watermarks": [], "leadership": [], "topic_deletions": []}
    rows |= {"log_contents": [], "record_keys": [], "transaction_records": []}
    rows |= {"transaction_outcomes": [], "reads": []}
    rows["committed_readers"] = [row("committed_readers", consumer="careful")]
    logs = {}
    for claim, case in CASES.items():
        topic = TOPICS[claim]
        rows["client_batches"] += [told | {"topic": topic} for told in case.told]
        rows["partition_changes"] += [one | {"topic": topic} for one in case.changes]
        rows["log_starts"] += [one | {"topic": topic} for one in case.starts]
        rows["high_watermarks"] += [one | {"topic": topic} for one in case.watermarks]
        rows["leadership"] += [one | {"topic": topic} for one in case.leadership]
        rows["topic_deletions"] += [one | {"topic": topic} for one in case.deletions]
        rows["log_contents"] += [one | {"topic": topic} for one in case.contents]
        rows["record_keys"] += [one | {"topic": topic} for one in case.keys]
        rows["transaction_records"] += [one | {"topic": topic} for one in case.transactions]
        rows["transaction_outcomes"] += case.endings
        rows["reads"] += [one | {"topic": topic} for one in case.reads]
        logs |= {(broker, topic, 0): log for broker, log in case.logs.items()}
    write_run(run, rows, logs)
    there = survivors.read(spark, survivors.replicas(run)).persist()
    yield (*(tables.read(spark, run, name) for name in rows), there)
    there.unpersist()


@pytest.fixture(scope="module")
def judged(spark, found):
    batches, changes, log_starts, watermarks, leadership, deletions, *others, there = found
    leaders = durability.final_leaders(changes, there).persist()
    starts = policy.starts(log_starts)
    expired = policy.expiry(log_starts, watermarks, leadership)
    ended = policy.deleted(deletions, changes)
    contents, told_keys, parts, endings, reads, readers = others
    visited = compaction.cleaned(contents)
    facts = durability.RunData(
        batches, there, leaders, starts, expired, leadership, ended, visited, told_keys,
        transactions.TransactionTables(parts, endings, reads, readers), contents,
    )  # fmt: skip
    numbers = records.judged(facts, lambda frame: tables.held(spark, frame)).topics
    leaders.unpersist()
    return numbers


@pytest.mark.parametrize("claim", CASES)
def test_it_is_judged_that(judged, claim):
    numbers = judged[TOPICS[claim]]
    assert list(numbers) == list(durability.COUNTS)
    assert {name: count for name, count in numbers.items() if count} == CASES[claim].expected


def test_records_drawn_by_lot_suffer_everything_but_divergence():
    assert min(CASES["ranges agree with a list of records"].expected.values()) > 0


def test_a_corrupt_batch_is_told_with_its_broker_and_offset(spark, found):
    bad = durability.unreadable(found[-1]).select("topic", "broker", "base_offset", "status")
    leader = TOPICS["a corrupt batch of the leader is lost"]
    follower = TOPICS["a corrupt batch of a follower is not"]
    rows = [(leader, 1, 4, "bad_crc"), (follower, 2, 4, "bad_crc")]
    assertDataFrameEqual(bad, spark.createDataFrame(rows, bad.schema))


def test_deleted_and_moving_directories_and_controllers_are_not_replicas(tmp_path):
    for name in ("orders-0", "orders-0.0a-delete", "orders-0.0a-future", "__cluster_metadata-0"):
        (tmp_path / "disks" / "broker-1" / "data-0" / name).mkdir(parents=True)
    (tmp_path / "disks" / "controller-1" / "data-0" / "orders-0").mkdir(parents=True)
    assert [(r.broker, r.topic) for r in survivors.replicas(tmp_path)] == [(1, "orders")]
