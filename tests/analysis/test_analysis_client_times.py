"""Times of clients are counted by numpy as by Spark, for a trace of all that may be in one."""

import random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from analysis.report import client_times, latency
from analysis.spark import histogram, tables
from tests.analysis.synthetic import S, row, sent, write_run

pytestmark = pytest.mark.spark

COLUMNS = ["records", "top_us", "sum_us"]


def drawn(seed: int, batches: int = 60) -> dict[str, list[dict]]:
    """Batches of several producers, topics and partitions, in no order, and reads of parts of them.

    Some batches are refused, or empty; some reads are of records that no batch has, of two batches
    at once, or of no producer.
    """
    draw = random.Random(seed)
    sends, reads = [], []
    for place in range(batches):
        whose = {
            "topic": draw.choice(("orders", "bills")), "producer_index": draw.randrange(3),
            "partition": draw.choice((-1, 0, 1)),
        }  # fmt: skip
        count, first = draw.choice((0, 1, 2, 7)), 20 * place
        at = draw.randrange(1, 20) * S
        took = [draw.choice((0, 1, 99, 101, 5_000, 30 * S)) for _ in range(count)]
        outcome = draw.choice(("ok", "ok", "failed", "unknown"))
        sends.append(sent(first, count, t_us=at, latency_us=took, outcome=outcome, **whose))
        for _ in range(draw.randrange(3)):
            if draw.random() < 0.1:
                whose = whose | {"producer_index": -1}
            part = {"first_record": first + draw.choice((0, 0, 1, 3, 12)), "record_count": 3}
            reads.append(row("reads", t_us=at + draw.randrange(S), **whose, **part))
    draw.shuffle(sends)
    draw.shuffle(reads)
    return {"client_batches": sends, "reads": reads, "requests": served(sends, draw)}


def served(sends: list[dict], draw: random.Random) -> list[dict]:
    """Requests of the batches: some traced twice, some not at all, some of another kind."""
    requests = []
    for place, each in enumerate(sends):
        each |= {"correlation": place // 2, "answered_by": draw.choice((1, 2, 3001))}
        each |= {"created_us": 10, "first_sent_us": 20, "last_sent_us": draw.choice((-1, 35, 40))}
        for _ in range(draw.choice((0, 1, 1, 2))):
            instants = sorted(draw.randrange(40, 60 * S) for _ in range(4))
            times = dict(
                zip(("arrived_us", "started_us", "decided_us", "t_us"), instants, strict=True)
            )
            whose = {"client": each["producer"], "node": each["answered_by"]}
            kind = draw.choice(("Produce", "Produce", "Fetch"))
            number = each["correlation"]
            requests.append(row("requests", kind=kind, correlation=number, **whose, **times))
    draw.shuffle(requests)
    return requests


def of_spark(spark, run, width_us) -> dict[str, pd.DataFrame]:
    batches, reads = (tables.read(spark, run, name) for name in ("client_batches", "reads"))
    return {
        "produce": latency.produce(batches, width_us).toPandas(),
        "end_to_end": latency.end_to_end(batches, reads, width_us).toPandas(),
    }


def check(spark, run, width_us=S) -> None:
    expected = of_spark(spark, run, width_us)
    found = client_times.latencies(run, width_us)
    for name, frames in found.items():
        for by, frame in zip(("bin", "topic"), frames, strict=True):
            keys = [by, "bucket"]
            whole = (
                expected[name]
                .groupby(keys, as_index=False)
                .agg({"records": "sum", "top_us": "max", "sum_us": "sum"})
            )
            ordered = frame.sort_values(keys, ignore_index=True)
            pd.testing.assert_frame_equal(
                ordered[[*keys, *COLUMNS]], whole[[*keys, *COLUMNS]], check_dtype=False
            )


def check_stages(spark, run, width_us=S) -> None:
    batches, requests = (tables.read(spark, run, name) for name in ("client_batches", "requests"))
    keys = ["stage", "bin", "bucket"]
    expected = latency.stages(batches, requests, width_us).toPandas()
    found = client_times.stages(run, width_us)
    assert list(found.columns) == list(expected.columns)
    first, second = (frame.sort_values(keys, ignore_index=True) for frame in (found, expected))
    assert len(first) > 0
    pd.testing.assert_frame_equal(first, second, check_dtype=False)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    write_run(place, drawn(1))
    return place


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_latencies_are_counted_as_spark_counts_them(spark, tmp_path, seed):
    rows = drawn(seed)
    write_run(tmp_path, rows)
    check(spark, tmp_path)
    by_bin, by_topic = client_times.latencies(tmp_path, S)["end_to_end"]
    assert by_bin["records"].sum() == by_topic["records"].sum() > 0
    assert (by_bin["bin"] < 0).any(), "no record was meant for an instant before zero"


def test_row_groups_do_not_matter(spark, run, monkeypatch):
    whole = tables.row_groups

    def one_by_one(*given):
        for rows in whole(*given):
            yield from (rows.slice(at, 1) for at in range(rows.num_rows))

    monkeypatch.setattr(tables, "row_groups", one_by_one)
    check(spark, run)
    check_stages(spark, run)


@pytest.mark.parametrize("seed", [2, 3])
def test_stages_are_counted_as_spark_counts_them(spark, tmp_path, seed):
    write_run(tmp_path, drawn(seed))
    check_stages(spark, tmp_path)


def test_records_and_bytes_add_up_by_second_and_outcome(tmp_path):
    rows = drawn(5)["client_batches"]
    write_run(tmp_path, {"client_batches": rows})
    expected = (
        pd.DataFrame(rows)
        .assign(bin=lambda each: each["t_us"] // S)
        .groupby(["bin", "outcome"], as_index=False)
        .agg(records=("record_count", "sum"), bytes=("size_bytes", "sum"))
    )
    found = client_times.outcomes(tmp_path, S)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_a_run_without_records_has_no_latency(tmp_path):
    write_run(tmp_path, {"client_batches": [], "reads": []})
    assert len(client_times.stages(tmp_path, S)) == len(client_times.outcomes(tmp_path, S)) == 0
    for frames in client_times.latencies(tmp_path, S).values():
        assert [len(frame) for frame in frames] == [0, 0]
        assert [list(frame.columns[:1]) for frame in frames] == [["bin"], ["topic"]]


def test_values_in_memory_have_the_buckets_of_spark(spark):
    edges = [int(100 * 1.01**n) + d for n in range(0, 2_000, 7) for d in (-1, 0, 1)]
    values = np.array([-5, 0, 1, 99, 100, 101, 2**31, 10**11, *edges])
    frame = spark.createDataFrame([(int(value),) for value in values], "value long")
    expected = [found[0] for found in frame.select(histogram.bucket_of(frame["value"])).collect()]
    assert histogram.buckets_of(values).tolist() == expected


def test_a_read_that_is_taken_for_one_of_the_next_batch_is_caught(spark, run, monkeypatch):
    search = np.searchsorted

    def beyond(ordered, values, side="left"):
        return search(ordered, values, side="left")

    monkeypatch.setattr(np, "searchsorted", beyond)
    with pytest.raises(AssertionError):
        check(spark, run)


def test_a_request_of_another_broker_is_caught(spark, run, monkeypatch):
    placed = client_times.Requests.placed

    def of_any(self, rows, client, broker):
        only = pa.array(np.ones(rows.num_rows, np.int32))
        place = rows.column_names.index(broker)
        return placed(self, rows.set_column(place, broker, only), client, broker)

    monkeypatch.setattr(client_times.Requests, "placed", of_any)
    with pytest.raises(AssertionError):
        check_stages(spark, run)


def test_a_record_that_counts_at_its_acknowledgement_is_caught(spark, run, monkeypatch):
    add = client_times._Counted.add

    def late(self, topic, meant_us, took_us):
        add(self, topic, meant_us + took_us, took_us)

    monkeypatch.setattr(client_times._Counted, "add", late)
    with pytest.raises(AssertionError):
        check(spark, run)
