"""Acknowledged, survived, lost: tiny runs, each with a twin in which nothing is wrong."""

import random

import pytest
from pyspark.testing import assertDataFrameEqual

from analysis import durability, survivors, tables
from tests.analysis.synthetic import batch, change, sent, write_run

pytestmark = pytest.mark.spark


def judged(spark, run):
    found = survivors.read(spark, survivors.replicas(run)).persist()
    changes = tables.read(spark, run, "partition_changes")
    leaders = durability.final_leaders(changes, found).persist()
    facts = durability.Facts(tables.read(spark, run, "client_batches"), found, leaders)
    [row] = durability.counts(durability.stretches(facts)).collect()
    numbers = {name: row[name] for name in durability.COUNTS if name in row}
    numbers["reordered"] = durability.reordered(durability.leader_runs(facts)).count()
    numbers["divergent"] = durability.divergent(found).count()
    assert list(numbers) == list(durability.COUNTS)
    return {name: count for name, count in numbers.items() if count}


def three(*batches):
    return {(broker, "orders", 0): batches for broker in (1, 2, 3)}


def run_of(tmp_path, told, logs, changes=None):
    return write_run(
        tmp_path, {"client_batches": told, "partition_changes": changes or [change(1)]}, logs
    )


def test_what_is_acknowledged_and_there_has_survived(spark, tmp_path):
    run = run_of(tmp_path, [sent(0, 10), sent(10, 5)], three(batch(0, 10), batch(10, 5)))
    assert judged(spark, run) == {"sent": 15, "acked": 15, "survived": 15}


def test_an_acknowledged_record_that_is_not_there_is_lost(spark, tmp_path):
    run = run_of(tmp_path, [sent(0, 10), sent(10, 5)], three(batch(0, 10)))
    assert judged(spark, run) == {"sent": 15, "acked": 15, "survived": 10, "lost_acked": 5}


def test_a_batch_that_survives_in_part_is_lost_in_part(spark, tmp_path):
    run = run_of(tmp_path, [sent(0, 10)], three(batch(0, 4)))
    assert judged(spark, run) == {"sent": 10, "acked": 10, "survived": 4, "lost_acked": 6}


def test_only_the_final_leader_is_asked(spark, tmp_path):
    logs = three(batch(0, 10)) | {(2, "orders", 0): []}
    changes = [change(1), change(2, t_us=5, leader_epoch=1), change(-1, t_us=9, leader_epoch=2)]
    run = run_of(tmp_path, [sent(0, 10)], logs, changes)
    assert judged(spark, run) == {"sent": 10, "acked": 10, "lost_acked": 10}


def test_without_a_leader_in_the_trace_the_highest_epoch_then_the_longest_log_is_asked(
    spark, tmp_path
):
    logs = {
        (1, "orders", 0): [batch(0, 9)],
        (2, "orders", 0): [batch(0, 2), batch(2, 1, offset=2, epoch=1)],
        (3, "orders", 0): [batch(0, 2, epoch=1), batch(2, 3, offset=2, epoch=1)],
    }
    run = write_run(tmp_path, {"client_batches": [sent(0, 9)]}, logs)
    assert judged(spark, run)["survived"] == 5


def test_failed_and_unknown_records_that_are_there_are_unasked_for(spark, tmp_path):
    told = [sent(0, 3, outcome="failed"), sent(3, 4, outcome="unknown"), sent(7, 2)]
    run = run_of(tmp_path, told, three(batch(0, 9)))
    assert judged(spark, run) == {
        "sent": 9, "acked": 2, "failed": 3, "unknown": 4, "survived": 9, "unacked_present": 7,
    }  # fmt: skip


def test_an_unknown_record_that_is_not_there_is_not_lost(spark, tmp_path):
    run = run_of(tmp_path, [sent(0, 3, outcome="unknown")], three())
    assert judged(spark, run) == {"sent": 3, "unknown": 3}


def test_second_copies_are_duplicates_and_not_reordered(spark, tmp_path):
    logs = three(batch(0, 4), batch(4, 4, offset=4), batch(2, 4, offset=8))
    run = run_of(tmp_path, [sent(0, 8)], logs)
    assert judged(spark, run) == {"sent": 8, "acked": 8, "survived": 8, "duplicated": 4}


def test_records_behind_later_ones_are_reordered(spark, tmp_path):
    logs = three(batch(4, 4, offset=0), batch(0, 4, offset=4), batch(8, 2, offset=8))
    run = run_of(tmp_path, [sent(0, 10)], logs)
    assert judged(spark, run) == {"sent": 10, "acked": 10, "survived": 10, "reordered": 4}


def test_records_of_two_producers_may_lie_in_any_order(spark, tmp_path):
    logs = three(batch(4, 4, offset=0), batch(0, 4, producer=1, offset=4))
    run = run_of(tmp_path, [sent(4, 4), sent(0, 4, producer_index=1)], logs)
    assert judged(spark, run) == {"sent": 8, "acked": 8, "survived": 8}


def test_replicas_that_differ_below_the_smallest_end_diverge(spark, tmp_path):
    logs = three(batch(0, 4), batch(4, 4, offset=4), batch(8, 4, offset=8))
    logs[2, "orders", 0] = [batch(0, 4), batch(4, 4, offset=4, epoch=1)]
    run = run_of(tmp_path, [sent(0, 12)], logs)
    assert judged(spark, run)["divergent"] == 4


def test_a_replica_that_is_only_behind_does_not_diverge(spark, tmp_path):
    logs = three(batch(0, 4), batch(4, 4, offset=4)) | {(2, "orders", 0): [batch(0, 4)]}
    run = run_of(tmp_path, [sent(0, 8)], logs)
    assert judged(spark, run) == {"sent": 8, "acked": 8, "survived": 8}


def test_a_corrupt_batch_of_the_leader_is_lost_and_told(spark, tmp_path):
    data = bytearray(batch(0, 4).data + batch(4, 4, offset=4).data)
    data[-1] ^= 8
    logs = three(batch(0, 4), batch(4, 4, offset=4)) | {(1, "orders", 0): bytes(data)}
    run = run_of(tmp_path, [sent(0, 8)], logs)
    assert judged(spark, run) == {"sent": 8, "acked": 8, "survived": 4, "lost_acked": 4}
    found = survivors.read(spark, survivors.replicas(run))
    bad = durability.unreadable(found).select("broker", "base_offset", "status")
    assertDataFrameEqual(bad, spark.createDataFrame([(1, 4, "bad_crc")], bad.schema))


def test_deleted_and_moving_directories_and_controllers_are_not_replicas(tmp_path):
    for name in ("orders-0", "orders-0.0a-delete", "orders-0.0a-future", "__cluster_metadata-0"):
        (tmp_path / "disks" / "broker-1" / "data-0" / name).mkdir(parents=True)
    (tmp_path / "disks" / "controller-1" / "data-0" / "orders-0").mkdir(parents=True)
    assert [(r.broker, r.topic) for r in survivors.replicas(tmp_path)] == [(1, "orders")]


def test_ranges_agree_with_a_list_of_records(spark, tmp_path):
    chance = random.Random(5)
    told, kept, place = [], [], 0
    fates = {"ok": set(), "failed": set(), "unknown": set()}
    for first in range(0, 400, 8):
        outcome = chance.choice(["ok", "ok", "failed", "unknown"])
        told.append(sent(first, 8, outcome=outcome))
        fates[outcome].update(range(first, first + 8))
        for _ in range(chance.choice([0, 1, 1, 1, 2])):
            start = first + chance.randrange(4)
            kept.append(batch(start, 4, offset=place))
            place += 4
    run = run_of(tmp_path, told, {(1, "orders", 0): kept})
    there = [b.first_record + i for b in kept for i in range(4)]
    present, highest, late = set(), -1, 0
    for number in there:
        late += number not in present and number < highest
        highest = max(highest, number)
        present.add(number)
    expected = {
        "sent": 400, "acked": len(fates["ok"]), "failed": len(fates["failed"]),
        "unknown": len(fates["unknown"]), "survived": len(present),
        "lost_acked": len(fates["ok"] - present), "unacked_present": len(present - fates["ok"]),
        "duplicated": len(there) - len(present), "reordered": late,
    }  # fmt: skip
    assert judged(spark, run) == expected
    assert min(expected.values()) > 0
