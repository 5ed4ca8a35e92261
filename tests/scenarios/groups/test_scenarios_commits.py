"""Who commits, and how, says what is read again when a consumer dies.

Source: the documentation of ``KafkaConsumer.{commitSync,commitAsync}``.
"""

import pytest

from tests.scenarios.run_kit import go

QUICK = {
    "group.min.session.timeout.ms": 500, "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
}  # fmt: skip
FAULTS = [
    {"at": "2s", "do": "drop", "message": "OffsetCommitRequest", "from": "billing", "for": "2s"},
    {"at": "3900ms", "do": "crash", "target": "billing", "for": "300ms"},
]


def read(directory, commits):
    reader = {
        "group": "billing", "topics": ["orders"], "processing": "100us", "commits": commits,
        "config": {
            "auto.offset.reset": "earliest", "session.timeout.ms": 1000,
            "heartbeat.interval.ms": 300,
        },
    }  # fmt: skip
    ran = go(directory, consumers=[reader], config=QUICK, faults=FAULTS, lasts="6s")
    assert ran.verdict["readers"]["undelivered"] == 0
    return ran


def test_an_asynchronous_commit_that_failed_is_not_made_good_and_its_records_are_read_again(
    tmp_path,
):
    ran = read(tmp_path, "async")
    failed = [row for row in ran.rows("commits") if row["error"] != "NONE"]
    stuck = [row for row in ran.rows("reads") if 2_000_000 < row["t_us"] < 3_900_000]
    lost = sum(row["record_count"] for row in stuck)
    assert lost > 500, "it went on reading"
    assert ran.verdict["readers"]["delivered_twice"] >= 0.9 * lost
    assert len(failed) <= len(ran.rows("commits"))


def test_an_application_that_waits_for_its_commit_reads_little_again(tmp_path):
    ran = read(tmp_path, "sync")
    stuck = [row for row in ran.rows("reads") if 2_100_000 < row["t_us"] < 3_900_000]
    assert stuck == [], "it waited"
    assert ran.verdict["readers"]["delivered_twice"] < 200


@pytest.mark.parametrize("commits", ["sync", "async"])
def test_at_the_end_everything_that_was_processed_is_committed(tmp_path, commits):
    ran = read(tmp_path, commits)
    last = {}
    for row in ran.rows("commits", error="NONE"):
        last[row["partition"]] = row["offset"]
    ends = {}
    for row in ran.rows("reads"):
        ends[row["partition"]] = max(ends.get(row["partition"], 0), row["last_offset"] + 1)
    assert last == ends
