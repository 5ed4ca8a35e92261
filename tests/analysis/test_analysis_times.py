"""Latency, replication, load and lag of traces small enough to count by hand."""

import pytest
from pyspark.testing import assertDataFrameEqual

from analysis.report import latency, load, replication
from analysis.spark import histogram, tables
from analysis.verify import offline
from tests.analysis.synthetic import S, change, row, sent, write_run

pytestmark = pytest.mark.spark


@pytest.fixture
def frames(spark, tmp_path):
    def of(**rows):
        write_run(tmp_path, rows)
        return [tables.read(spark, tmp_path, name) for name in rows]

    return of


@pytest.fixture
def small(tmp_path):
    def of(**rows):
        write_run(tmp_path, rows)
        return [tables.small(tmp_path, name) for name in rows]

    return of


def test_percentiles_stay_within_the_stated_error_and_the_largest_is_exact(spark):
    values = [int(1.7**n) + n for n in range(1, 38)] * 3
    frame = spark.createDataFrame([(value,) for value in values], "value long")
    counted = histogram.count(frame, [], "value").toPandas()
    [found] = histogram.percentiles(counted, []).to_dict("records")
    ordered = sorted(values)
    for name, share in histogram.QUANTILES.items():
        exact = ordered[-int(-share * len(ordered) // 1) - 1]
        assert found[name] == pytest.approx(exact, rel=histogram.RELATIVE_ERROR), name
    assert found["max"] == max(values)
    assert found["records"] == len(values)


def test_small_values_are_exact_and_negative_ones_count_as_zero(spark):
    frame = spark.createDataFrame([(v,) for v in (-5, 0, 7, 7, 99)], "value long")
    counted = histogram.count(frame, [], "value").select("bucket", "records")
    expected = spark.createDataFrame([(0, 2), (7, 2), (99, 1)], counted.schema)
    assertDataFrameEqual(counted, expected)


def test_produce_latency_counts_acknowledged_records_at_their_intended_instant(frames):
    [batches] = frames(
        client_batches=[
            sent(0, 2, t_us=2_500_000, latency_us=[1_600_000, 100]),
            sent(2, 1, t_us=3_000_000, latency_us=[50], outcome="failed"),
        ]
    )
    found = latency.produce(batches, S).select("bin", "records", "top_us").orderBy("bin").collect()
    assert [tuple(r) for r in found] == [(0, 1, 1_600_000), (2, 1, 100)]


def test_a_read_of_a_part_of_a_batch_counts_from_the_records_own_instants(frames):
    batches, reads = frames(
        client_batches=[sent(0, 3, t_us=1000, latency_us=[900, 800, 700]),
                        sent(3, 1, t_us=5000, latency_us=[10])],
        reads=[
            row("reads", t_us=2000, topic="orders", first_record=1, record_count=2),
            row("reads", t_us=9000, topic="orders", first_record=3, record_count=1),
            row("reads", t_us=9000, topic="orders", first_record=0, record_count=1,
                producer_index=-1),
            row("reads", t_us=9000, topic="orders", first_record=77, record_count=1),
        ],
    )  # fmt: skip
    found = latency.end_to_end(batches, reads, S).select("top_us").collect()
    assert sorted(r.top_us for r in found) == [1700, 1800, 4010]


def test_stages_follow_one_another_and_add_up(frames):
    served = {"kind": "Produce", "client": "shop-1", "correlation": 5, "node": 1}
    times = {"arrived_us": 40, "started_us": 50, "decided_us": 55, "t_us": 90}
    batches, requests = frames(
        client_batches=[sent(0, 1, t_us=100, created_us=0, first_sent_us=10, last_sent_us=30,
                             correlation=5)],
        requests=[row("requests", **served, **times),
                  row("requests", **(served | {"node": 2}), **times),
                  row("requests", **(served | {"kind": "Fetch"}), **times)],
    )  # fmt: skip
    found = latency.stages(batches, requests, S).orderBy("stage").collect()
    assert [r.top_us for r in found] == [10, 20, 10, 10, 5, 35, 10]
    assert sum(r.top_us for r in found) == 100


def test_time_without_a_leader_and_under_the_minimum_is_added_up(small):
    changes, marks = small(
        partition_changes=[
            change(1, t_us=0),
            change(2, t_us=2 * S, leader_epoch=1, partition_epoch=1, in_sync="2"),
            change(-1, t_us=5 * S, leader_epoch=2, partition_epoch=2, in_sync="2"),
            change(2, t_us=6 * S, leader_epoch=3, partition_epoch=3, unclean=True),
        ],
        high_watermarks=[row("high_watermarks", topic="orders", min_in_sync=2)],
    )
    states = replication.spans(changes, replication.minima(marks), 10 * S)
    [found] = replication.totals(states).to_dict("records")
    assert found == {
        "topic": "orders", "partition": 0, "leaderless_us": S, "under_min_us": 4 * S,
        "elections": 3, "unclean_elections": 1,
    }  # fmt: skip


def test_a_calm_partition_has_neither(small):
    changes, marks = small(
        partition_changes=[change(1, t_us=0)],
        high_watermarks=[row("high_watermarks", topic="orders", min_in_sync=2)],
    )
    states = replication.spans(changes, replication.minima(marks), 10 * S)
    [found] = replication.totals(states).to_dict("records")
    assert (found["leaderless_us"], found["under_min_us"], found["elections"]) == (0, 0, 0)


def test_lag_is_summed_over_partitions_and_an_unowned_one_counts_from_its_commit(small):
    sample = {"t_us": S, "group": "billing", "topic": "orders", "high_watermark": 100}
    [samples] = small(
        lag=[row("lag", **sample, position=90, committed=80),
             row("lag", **sample, partition=1, position=-1, committed=70),
             row("lag", **sample, partition=2, position=-1, committed=-1)]
    )  # fmt: skip
    [found] = load.consumers(samples, S).to_dict("records")
    assert (found["lag"], found["uncommitted"]) == (10 + 30 + 100, 20 + 30 + 100)


def out(small, *, changes, states, registrations=(), deletions=()):
    """Partitions that were offline, in seconds: longest, since when, in all."""
    tables_of = small(
        partition_changes=[change(who, t_us=at * S, partition_epoch=n, partition=0)
                           for n, (at, who) in enumerate(changes)],
        topic_deletions=[row("topic_deletions", t_us=at * S, topic="orders") for at in deletions],
        node_states=[row("node_states", t_us=at * S, node=f"broker-{who}", state=state)
                     for at, who, state in states],
        broker_states=[row("broker_states", t_us=at * S, broker=who, state=state)
                       for at, who, state in registrations],
    )  # fmt: skip
    found = offline.totals(offline.stretches(*tables_of, 60 * S))
    return [(r.max_us // S, r.from_us // S, r.total_us // S) for r in found.itertuples()]


def test_a_partition_is_offline_while_its_leader_is_dead_and_until_another_is_committed(small):
    died = [(2, 1, "crashed"), (30, 2, "paused"), (33, 2, "resumed"), (40, 9, "crashed")]
    assert out(small, changes=[(0, 1), (11, -1), (20, 2)], states=died) == [(18, 2, 21)]


def test_a_leader_that_was_started_again_serves_once_it_is_unfenced(small):
    states = [(-9, 1, "started"), (15, 1, "crashed"), (20, 1, "started"), (21, 1, "running")]
    registrations = [(-8, 1, "registered"), (-7, 1, "unfenced"), (14, 1, "controlled_shutdown"),
                     (48, 1, "registered"), (51, 1, "unfenced")]  # fmt: skip
    found = out(small, changes=[(0, 1)], states=states, registrations=registrations)
    assert found == [(36, 15, 36)]


def test_a_deleted_topic_misses_no_leader_and_the_end_of_the_run_ends_an_outage(small):
    states = [(15, 1, "powered_off")]
    assert out(small, changes=[(0, 1)], states=states, deletions=[19]) == [(4, 15, 4)]
    assert out(small, changes=[(0, 1)], states=states) == [(45, 15, 45)]
