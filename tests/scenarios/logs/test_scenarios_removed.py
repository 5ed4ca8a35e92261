"""Whole runs in which policy removes records: both judges say what was removed, and agree."""

import json

import pytest

from analysis.report import write as report
from analysis.spark import session
from sim.errors import InvariantBroken
from sim.log.partition import retention
from sim.nodes.broker import upkeep as log_upkeep
from tests.scenarios.run_kit import go

OFTEN = {"log.initial.task.delay.ms": 1_000, "log.retention.check.interval.ms": 500}
KEPT_SHORT = {"min.insync.replicas": 2, "segment.bytes": 1_048_576, "retention.ms": 3_000}


def filling(tmp_path, **more):
    """Five megabytes into segments of one, each kept for three seconds."""
    return go(
        tmp_path,
        topic={"partitions": 1, "config": KEPT_SHORT},
        producer={"rate": "50/s", "record.size": "10000B"},
        config=OFTEN,
        lasts="10s",
        **more,
    )


def deletion(at, partition="orders-0", before=100):
    return {"at": at, "do": "delete-records", "partition": partition, "before": before}


@pytest.mark.spark
@pytest.mark.slow
def test_both_judges_agree_on_what_was_removed_across_crash_and_power_loss(tmp_path):
    faults = [
        {"at": "4s", "do": "crash", "target": "leader of orders-0", "for": "1s"},
        {"at": "7s", "do": "power-loss", "target": "broker-2", "for": "1s"},
        deletion("2s", before=60),
        deletion("9500ms", before="high-watermark"),
    ]
    ran = filling(tmp_path, faults=faults)
    assert {fault["effect"] for fault in ran.faults[2:]} == {"deleted"}
    assert ran.records["removed"] > 400
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0
    assert ran.checked("log-start-is-committed") > 3
    with session.using("local[2]"):
        report.build([ran.directory])
    found = json.loads((ran.directory / "report" / "report.json").read_text())
    assert found["differences"] == []
    assert found["durability"]["records"]["removed"] == ran.records["removed"]


def test_retention_above_the_high_watermark_ends_the_run(tmp_path, monkeypatch):
    """The planted defect: retention looks at the log's end, while followers are cut off."""
    real = retention.delete_old_segments

    def everything(log, watermark, now_ms, *, is_bounded):
        return real(log, log.log_end_offset, now_ms, is_bounded=is_bounded)

    monkeypatch.setattr(log_upkeep, "delete_old_segments", everything)
    faults = [{"at": "1s", "do": "pause", "target": "follower of orders-0", "for": "8s"}]
    with pytest.raises(InvariantBroken, match="log-start-is-committed"):
        filling(tmp_path, faults=faults, acks=1, then="stop")


def test_records_are_deleted_up_to_what_is_committed_or_to_an_offset(tmp_path):
    faults = [
        deletion("2s", before="high-watermark"),
        {"at": "2200ms", "do": "crash", "target": "leader of orders-1", "for": "100ms"},
        deletion("2300ms", "orders-1"),
    ]
    ran = go(tmp_path, faults=faults, lasts="4s")
    assert [(f["took_effect"], f["effect"]) for f in ran.faults[::2]] == [(True, "deleted")] * 2
    (moved,) = [r for r in ran.rows("log_starts", reason="delete_records") if not r["partition"]]
    assert moved["to_offset"] > 100
    starts = {r["partition"]: r["to_offset"] for r in ran.rows("log_starts", broker=1)}
    assert starts == {0: moved["to_offset"], 1: 100}
    assert ran.records["removed"] == moved["to_offset"] + 100
    assert ran.records["lost_acked"] == 0


def test_a_deletion_beyond_the_high_watermark_is_refused_and_the_run_no_pass(tmp_path):
    """The twin."""
    ran = go(tmp_path, faults=[deletion("2s", before=1_000_000)], lasts="3s", then="stop")
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "refused: orders-0 OFFSET_OUT_OF_RANGE"
    assert not ran.verdict["held"]
    assert ran.records["removed"] == 0
