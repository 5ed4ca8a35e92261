"""Acknowledged, survived, lost: tiny logs, each with a twin in which nothing is wrong.

A case is a topic of its own, and all topics are one run: Spark judges them in one pass, for what a
pass costs hardly depends on how little there is to see.
"""

import pytest

from analysis.spark import tables
from analysis.verify import durability, records, run_data, survivors
from tests.analysis.durability_cases import CASES
from tests.analysis.synthetic import row, write_run

pytestmark = pytest.mark.spark
TOPICS = {claim: f"case-{place}" for place, claim in enumerate(CASES)}


PLAIN = {
    claim: case for claim, case in CASES.items() if not case.contents and not case.transactions
}
"""Cases in which Spark does not have to say what is visible, or what cleaners removed."""


def written(run, cases):
    rows = {"client_batches": [], "partition_changes": [], "log_starts": []}
    rows |= {"high_watermarks": [], "leadership": [], "topic_deletions": []}
    rows |= {"log_contents": [], "record_keys": [], "transaction_records": []}
    rows |= {"transaction_outcomes": [], "reads": []}
    rows["committed_readers"] = [row("committed_readers", consumer="careful")]
    logs = {}
    for claim, case in cases.items():
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
    return run


def records_of(spark, run):
    data = run_data.gather(spark, run, survivors.replicas(run), run / "survivors.parquet")
    return records.judged(data, lambda frame: tables.held(spark, frame))


@pytest.fixture(scope="module")
def judged(spark, tmp_path_factory):
    return records_of(spark, written(tmp_path_factory.mktemp("cases"), CASES))


@pytest.fixture(scope="module")
def judged_plain(spark, tmp_path_factory):
    return records_of(spark, written(tmp_path_factory.mktemp("plain"), PLAIN))


@pytest.mark.parametrize("claim", CASES)
def test_it_is_judged_that(judged, claim):
    numbers = judged.topics[TOPICS[claim]]
    assert list(numbers) == list(durability.COUNTS)
    assert {name: count for name, count in numbers.items() if count} == CASES[claim].expected


@pytest.mark.parametrize("claim", PLAIN)
def test_without_transactions_and_cleanings_it_is_judged_that(judged_plain, claim):
    numbers = judged_plain.topics[TOPICS[claim]]
    assert {name: count for name, count in numbers.items() if count} == CASES[claim].expected


def test_records_drawn_by_lot_suffer_everything_but_divergence():
    assert min(CASES["ranges agree with a list of records"].expected.values()) > 0


def test_a_corrupt_batch_is_found_with_its_broker(judged):
    leader = TOPICS["a corrupt batch of the leader is lost"]
    follower = TOPICS["a corrupt batch of a follower is not"]
    bad = judged.unreadable[["topic", "broker", "status", "batches"]]
    assert bad.to_dict("split")["data"] == [
        [leader, 1, "bad_crc", 1], [follower, 2, "bad_crc", 1],
    ]  # fmt: skip


def test_deleted_and_moving_directories_and_controllers_are_not_replicas(tmp_path):
    for name in ("orders-0", "orders-0.0a-delete", "orders-0.0a-future", "__cluster_metadata-0"):
        (tmp_path / "disks" / "broker-1" / "data-0" / name).mkdir(parents=True)
    (tmp_path / "disks" / "controller-1" / "data-0" / "orders-0").mkdir(parents=True)
    assert [(r.broker, r.topic) for r in survivors.replicas(tmp_path)] == [(1, "orders")]
