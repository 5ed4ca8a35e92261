"""Two judges, one truth: the checker in the run, and Spark on acknowledgements and real files."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from analysis.report import write as report
from analysis.spark import session
from analysis.verify import offline
from sim.checking.outcomes.verdict import COUNTS
from sim.errors import SimulationError
from tests.scenarios import planted
from tests.scenarios.judges import differences, reported
from tests.scenarios.run_kit import CATALOGUE, SHIPPED, S, go

pytestmark = pytest.mark.spark
RUNS = [
    pytest.param(name, marks=[pytest.mark.slow] if name != "small" else [])
    for name in ("small", *SHIPPED)
]


@pytest.fixture(scope="module", autouse=True)
def spark():
    with session.using("local[2]", is_long=True) as running:
        yield running


SMALL = (
    "combined-roles-crash", "separate-roles-crash", "controller-disk-replaced", "group-protocols",
    "raft-dead-broker-replaced", "tradeoff", "zookeeper-majority-lost", "region-loss-mirror",
    "read-replica", "idempotence-across-restart", "retry-storm", "retry-storm-patient",
)  # fmt: skip
"""What looks at processes, groups and waiting clients sends few records."""

FLOORS = {**dict.fromkeys(SMALL, 500), "share-group-renewals": 39}
"""Records that must survive more than; elsewhere 10,000."""


@pytest.mark.parametrize("name", RUNS)
def test_both_judges_agree(name, shared, tmp_path):
    """On every record, outage and fault; on latencies within both judges' buckets."""
    ran = shared.ran(name)
    found = reported(ran.directory, tmp_path)
    assert differences(found, ran) == []
    assert found["complete"] is True
    assert found["unreadable"] == []
    records = found["durability"]["records"]
    for topic, counts in ran.verdict["topics"].items():
        told = found["durability"]["topics"][topic]
        assert {key: told[key] for key in COUNTS} == counts, topic
    assert records["survived"] > FLOORS.get(name, 10_000)
    assert [(f["fault"], f["took_effect"]) for f in found["faults"]] == [
        (fault["fault"], fault["took_effect"]) for fault in ran.faults
    ]
    assert found["availability"]["partitions"] == ran.verdict["availability"]["partitions"]
    if "offline" in ran.verdict["availability"]:
        assert found["availability"]["offline"] == ran.verdict["availability"]["offline"]
    for kind, told in ran.verdict["latency_us"].items():
        for rank in ("p50", "p90", "p99", "p999") if told else ():
            ours = found["latency_us"][kind][rank]
            assert ours == pytest.approx(told[rank], rel=0.03, abs=2), (kind, rank)


@pytest.mark.slow
@pytest.mark.parametrize("name", CATALOGUE)
def test_both_judges_agree_on_every_published_failure(name, shared, tmp_path):
    """On every record; and both have seen everything, but for what a fault has spoilt."""
    ran = shared.ran(name)
    found = reported(ran.directory, tmp_path)
    assert differences(found, ran) == []
    spoilt = {fault["resolved"] for fault in ran.faults if fault["kind"] == "corrupt-replica"}
    assert {f"broker-{each['broker']}" for each in found["unreadable"]} <= spoilt


def test_spark_reads_the_bytes_and_not_the_trace(shared, tmp_path):
    """The limit of the checker: what it is not told, the files tell. Records cut off are lost."""
    ran = shared.ran("power-loss-whole-cluster-flushed")
    copy = tmp_path / "cut"
    shutil.copytree(ran.directory, copy)
    for log in copy.glob("disks/broker-*/data-0/orders-0/*.log"):
        with log.open("r+b") as file:
            file.truncate(log.stat().st_size // 2)
    report.build([copy])
    found = json.loads((copy / "report" / "report.json").read_text())
    assert found["agrees_with_checker"] is False
    assert found["durability"]["records"]["lost_acked"] > 1_000 > ran.records["lost_acked"]


STAYS_DOWN = {
    "loses power": (3 * S, [{"at": "3s", "do": "power-loss", "target": "leader of orders-0"}]),
    "loses power after its process": (
        2 * S,
        [
            {"at": "2s", "do": "crash", "target": "broker-1"},
            {"at": "3s", "do": "power-loss", "target": "broker-1"},
        ],
    ),
}
"""When the process ends, and the faults."""


def without_leader(ran):
    """How long each partition that was offline had no leader in service, by the report."""
    names = ("partition_changes", "topic_deletions", "node_states", "broker_states")
    tables = [pq.read_table(ran.directory / "trace" / name).to_pandas() for name in names]
    found = offline.totals(offline.stretches(*tables, ran.verdict["end_us"]))
    return {f"{row.topic}-{row.partition}": row.total_us for row in found.itertuples()}


@pytest.mark.slow
@pytest.mark.parametrize("how", ["loses power", "loses power after its process"])
def test_both_judges_count_what_is_left_on_the_disk_of_a_broker_that_stays_down(how, tmp_path):
    alone = {"replication.factor": 1, "config": {}}
    died, faults = STAYS_DOWN[how]
    ran = go(tmp_path, faults=faults, topic=alone, then="stop", lasts="15s")
    assert reported(ran.directory, tmp_path)["differences"] == []
    lost = ran.rows("truncations", topic="orders", reason="unrecovered")
    assert sum(row["from_offset"] - row["to_offset"] for row in lost) == ran.records["lost_acked"]
    assert ran.records["lost_acked"] > 100
    assert list(ran.directory.glob("tmp*")) == []
    told = ran.verdict["availability"]["offline"]
    assert told["orders-0"]["from_us"] == died, "its death, not the end of its session"
    assert {name: each["total_us"] for name, each in told.items()} == without_leader(ran)


@pytest.mark.slow
def test_both_judges_count_what_lay_in_a_hole_between_segments_as_lost(tmp_path):
    rolls = {"partitions": 4, "config": {"min.insync.replicas": 2, "segment.ms": 100}}
    dark = {"at": "2500ms", "do": "power-loss", "target": "all brokers", "for": "1s"}
    # A segment is rolled while the one before is still being flushed, in many a seed.
    slow = {"disk": {"flush": {"p50": "40ms", "p99": "90ms"}}}
    load = {"rate": "400/s"}
    ran = go(tmp_path, lasts="4s", topic=rolls, producer=load, faults=[dark], cluster=slow, seed=2)
    assert ran.rows("log_holes", topic="orders")
    assert ran.records["lost_acked"] > ran.records["divergent"] > 0
    assert reported(ran.directory, tmp_path)["differences"] == []


@pytest.mark.slow
def test_a_corrupt_batch_that_a_broker_kept_is_seen_by_spark_alone(tmp_path, monkeypatch):
    with monkeypatch.context() as planting:
        planted.corrupt_batches_are_kept(planting)
        fault = {"at": "3s", "do": "corrupt-replica", "target": "follower of orders-0"}
        ran = go(tmp_path, faults=[fault])
    assert ran.records["divergent"] == 0
    found = reported(ran.directory, tmp_path)
    assert found["agrees_with_checker"] is False or found["unreadable"] != []


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(SimulationError):
        report.build([tmp_path])
