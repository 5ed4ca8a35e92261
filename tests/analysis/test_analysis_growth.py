"""A run that is repeated for measurements is one long sound run: all numbers are multiples."""

import json

import pyarrow.parquet as pq
import pytest

from analysis.report import write as report
from analysis.spark import session, tables
from analysis.verify import segments, survivors
from analysis.verify.durability import COUNTS
from sim.errors import SimulationError
from tests.analysis.synthetic import Model, Outage, S, batch, modelled, row, sent, write_run
from tools import measure_report
from tools.grow_run import grow

TIMES = 3
SMALL = Model(
    seconds=6,
    producers=2,
    partitions=2,
    brokers=3,
    interval_us=200_000,
    outages=(Outage(1, 2 * S, 4 * S, lost_us=250_000),),
)


@pytest.fixture(scope="module")
def grown(tmp_path_factory):
    """A run with loss, and the same three times."""
    place = tmp_path_factory.mktemp("grown")
    one, three = place / "one", place / "three"
    one.mkdir()
    modelled(one, SMALL)
    (replica, *_) = survivors.replicas(one)
    rows = grow(one, TIMES, three, segment_bytes=2 * replica.size_bytes)
    return one, three, rows


def rows_of(run, name):
    return [
        r for p in sorted((run / "trace" / name).glob("*")) for r in pq.read_table(p).to_pylist()
    ]


def test_every_table_has_its_rows_as_often_and_no_key_twice(grown):
    one, three, rows = grown
    tables = sorted(path.name for path in (one / "trace").iterdir())
    counted = {name: len(rows_of(three, name)) for name in tables}
    assert counted == {name: TIMES * len(rows_of(one, name)) for name in tables}
    assert rows == sum(counted.values())
    batches = rows_of(three, "client_batches")
    for columns in (("partition", "producer_index", "first_record"), ("producer", "correlation")):
        assert len({tuple(b[c] for c in columns) for b in batches}) == len(batches)
    instants = [b["t_us"] for b in rows_of(three, "load")]
    assert instants == sorted(instants)


def test_its_logs_have_right_checksums_and_offsets_and_numbers_that_go_on(grown):
    one, three, _ = grown
    (replica, *_) = survivors.replicas(one)
    (longer, *_) = survivors.replicas(three)
    assert len(longer.paths) == 2, "a segment rolls before it is too large"
    assert longer.size_bytes == TIMES * replica.size_bytes
    assert [int(path.stem) for path in longer.paths] == sorted(int(p.stem) for p in longer.paths)
    found = [run for p in longer.paths for rows in segments.runs(p) for run in rows.to_pylist()]
    assert {run["status"] for run in found} == {segments.OK}
    offsets = [run["base_offset"] for run in found]
    assert offsets == sorted(set(offsets))
    first = {(run["producer_index"], run["first_record"]) for run in found}
    assert len(first) == len(found)


@pytest.mark.spark
@pytest.mark.slow
def test_a_report_counts_three_times_as_much_and_the_same_latency(spark, grown):
    one, three, _ = grown
    report.build([one, three])
    alone, long = (json.loads((r / "report" / "report.json").read_text()) for r in (one, three))
    records = alone["durability"]["records"]
    assert records["lost_acked"] > 0
    assert {n: long["durability"]["records"][n] for n in COUNTS} == {
        name: TIMES * records[name] for name in COUNTS
    }
    for name, told in alone["latency_us"]["stages"].items():
        assert long["latency_us"]["stages"][name] == pytest.approx(told)
    for kind in ("produce", "end_to_end"):
        few, many = (told["latency_us"][kind] for told in (alone, long))
        assert many == pytest.approx(few | {"records": TIMES * few["records"]})
    assert len(long["faults"]) == TIMES * len(alone["faults"])
    gaps = [len(told["availability"]["produce_gaps"]) for told in (alone, long)]
    assert gaps[1] >= TIMES * gaps[0] > 0


def test_what_cannot_be_repeated_is_refused(tmp_path):
    run = write_run(tmp_path / "run", {"tasks": [row("tasks")], "client_batches": [sent(0, 1)]})
    with pytest.raises(SimulationError, match="it has rows of tasks"):
        grow(run, 2, tmp_path / "out")
    torn = batch(0, 1).data[:-1]
    run = write_run(tmp_path / "torn", {"client_batches": [sent(0, 1)]}, {(1, "orders", 0): torn})
    with pytest.raises(SimulationError, match="bytes that are no batch"):
        grow(run, 2, tmp_path / "out2")


@pytest.mark.spark
@pytest.mark.slow
def test_a_measurement_tells_rows_time_and_memory(grown):
    _, three, rows = grown
    found = measure_report.measure(three, "1g")
    assert found["rows"] == rows
    assert found["cpu_seconds"] > 0
    assert 100 < found["java_mb"] < 1_800
    assert found["driver_mb"] > 50
    assert found["workers_mb"] < 20, "so few segments are decoded without Python workers"
    assert found["steps"][0][2] == "starting Spark"
    assert found["steps"][-1][2] == "done"
    assert [cpu for _, cpu, _ in found["steps"]] == sorted(cpu for _, cpu, _ in found["steps"])


def test_a_long_trace_is_worth_a_better_compiler_and_memory_is_sparks_own_variable(monkeypatch):
    options, memory = "spark.driver.extraJavaOptions", "spark.driver.memory"
    monkeypatch.delenv("SPARK_DRIVER_MEMORY", raising=False)

    def settings(*, is_long):
        return session._settings(local=True, is_long=is_long, keeps_classes=False)

    short, long = settings(is_long=False), settings(is_long=True)
    assert "TieredStopAtLevel" in short[options]
    assert "TieredStopAtLevel" not in long[options]
    assert short[memory] == long[memory]
    monkeypatch.setenv("SPARK_DRIVER_MEMORY", "2g")
    assert memory not in settings(is_long=False)


def test_rows_of_a_trace_are_counted_without_reading_them(grown, tmp_path):
    _, three, rows = grown
    assert tables.rows(three) == rows
    bad = tmp_path / "trace" / "load" / "part-00000.parquet"
    bad.parent.mkdir(parents=True)
    bad.write_bytes(b"PAR1")
    assert tables.rows(tmp_path) == 0
