"""Whole runs with compacted topics: what cleaners may take, and defects that they must not have."""

import json

import pytest

from analysis.report import write as report
from analysis.spark import session
from sim.checking.invariants.compaction import LastValuesStay, TombstonesStay
from sim.errors import InvariantBroken
from sim.log.cleaning import batch_filter
from sim.log.cleaning.batch_filter import BatchFilter
from tests.scenarios.run_kit import go

COMPACTED = {
    "min.insync.replicas": 2, "cleanup.policy": "compact", "segment.ms": 1_000,
    "segment.bytes": 1_048_576, "min.cleanable.dirty.ratio": 0.01,
}  # fmt: skip
FAULTS = [
    {"at": "6s", "do": "crash", "target": "leader of orders-0", "for": "1s"},
    {"at": "9s", "do": "power-loss", "target": "broker-2", "for": "1s"},
]


def cleaned(tmp_path, *, keys=1_000, kept_ms=2_000, **more):
    """A few thousand records of a thousand keys, one in five a tombstone; cleaners never rest."""
    producer = {
        "rate": "200/s", "record.size": "300B", "keys": "uniform", "key.count": keys,
        "tombstones": "20%",
    }  # fmt: skip
    return go(
        tmp_path,
        topic={"partitions": 1, "config": COMPACTED | {"delete.retention.ms": kept_ms}},
        producer=producer,
        config={"log.cleaner.backoff.ms": 500},
        **{"lasts": "12s", "faults": FAULTS} | more,
    )


def spark_says(ran):
    with session.using("local[2]"):
        report.build([ran.directory])
    found = json.loads((ran.directory / "report" / "report.json").read_text())
    assert found["differences"] == []
    return found["durability"]["records"]


def drops_the_last_value_of_a_key(monkeypatch):
    real = BatchFilter._stays

    def stays(self, record, *, is_past):
        victim = record.value is not None and record.key.startswith(b"key-000000")
        return not victim and real(self, record, is_past=is_past)

    monkeypatch.setattr(BatchFilter, "_stays", stays)


def drops_tombstones_at_once(monkeypatch):
    monkeypatch.setattr(batch_filter, "delete_horizon_ms", lambda batch: 0)


def unwatched(monkeypatch, *kinds):
    """The run goes on although an invariant is broken, so that both judges see the end of it."""
    for kind in kinds:
        monkeypatch.setattr(kind, "_taken", lambda self, partition, removal: None)


@pytest.mark.spark
@pytest.mark.slow
def test_both_judges_agree_on_what_cleaners_took_across_crash_and_power_loss(tmp_path):
    ran = cleaned(tmp_path)
    assert ran.records["removed"] > 1_000
    assert ran.records["lost_acked"] == ran.records["early_tombstones"] == 0
    assert ran.records["divergent"] == 0
    assert ran.checked("cleaner-keeps-last-values") > 1_000
    assert ran.checked("tombstones-stay-their-time") > 50
    assert spark_says(ran)["removed"] == ran.records["removed"]


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        (drops_the_last_value_of_a_key, LastValuesStay.name),
        (drops_tombstones_at_once, TombstonesStay.name),
    ],
)
def test_a_cleaner_that_breaks_its_promise_ends_the_run(tmp_path, monkeypatch, plant, name):
    plant(monkeypatch)
    with pytest.raises(InvariantBroken, match=f"^invariant {name} broken"):
        cleaned(tmp_path, keys=20, lasts="4s", faults=())


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("plant", [drops_the_last_value_of_a_key, drops_tombstones_at_once])
def test_both_judges_count_what_a_cleaner_took_against_its_promise(tmp_path, monkeypatch, plant):
    with monkeypatch.context() as planting:
        plant(planting)
        unwatched(planting, LastValuesStay, TombstonesStay)
        # No visit of a cleaner is late enough: Spark sees what is gone, and not when it went.
        ran = cleaned(tmp_path, kept_ms=60_000, lasts="5s", faults=())
    assert ran.records["lost_acked"] > 0
    assert (ran.records["early_tombstones"] > 0) is (plant is drops_tombstones_at_once)
    assert spark_says(ran)["lost_acked"] == ran.records["lost_acked"]


def test_keys_are_told_for_compacted_topics_only(tmp_path):
    ran = go(tmp_path, producer={"keys": "uniform", "key.count": 9}, lasts="1s")
    assert ran.rows("record_keys") == ran.rows("log_contents") == []
