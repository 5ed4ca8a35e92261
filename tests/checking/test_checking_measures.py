"""Interval sets, histograms, latency and availability: the arithmetic below a verdict."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.checking.interval_set import IntervalSet, size
from sim.checking.outcomes.histogram import RELATIVE_ERROR, Histogram
from sim.checking.outcomes.latency import Latency
from sim.checking.outcomes.service import DOWN_FROM, PartitionService


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9))), st.integers(0, 60),
       st.integers(0, 30))  # fmt: skip
def test_an_interval_set_is_a_set(ranges, start, length):
    intervals = IntervalSet((a, a + n) for a, n in ranges)
    numbers = {k for a, n in ranges for k in range(a, a + n)}
    stop = start + length
    assert len(intervals) == len(numbers)
    assert all(a < b for a, b in intervals)
    held = list(intervals)
    assert all(first[1] < second[0] for first, second in pairwise(held))
    inside = {k for a, b in intervals.within(start, stop) for k in range(a, b)}
    outside = {k for a, b in intervals.missing(start, stop) for k in range(a, b)}
    assert inside == numbers & set(range(start, stop))
    assert outside == set(range(start, stop)) - numbers
    assert size(intervals.missing(start, stop)) == len(outside)


@given(st.lists(st.integers(0, 40)), st.lists(st.integers(0, 40)))
def test_union_and_difference_of_interval_sets_are_those_of_sets(a, b):
    one, other = (IntervalSet((k, k + 1) for k in numbers) for numbers in (a, b))
    assert {k for r in one.union(other) for k in range(*r)} == set(a) | set(b)
    assert {k for r in one.minus(other) for k in range(*r)} == set(a) - set(b)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-5, 2**40), min_size=1, max_size=400))
def test_a_percentile_is_within_the_stated_error_and_the_maximum_is_exact(values):
    histogram = Histogram()
    for start in range(0, len(values), 7):
        histogram.add(np.array(values[start : start + 7]) - 3, 3)
    found = histogram.summary()
    exact = sorted(max(v, 0) for v in values)
    for name, share in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999}.items():
        rank = next(r for r in range(1, len(exact) + 1) if r >= share * len(exact) - 1e-9)
        value = exact[rank - 1]
        assert abs(found[name] - value) <= max(value * RELATIVE_ERROR, 0.5)
    assert found["max"] == exact[-1]
    assert found["records"] == len(values)


def test_a_histogram_without_values_says_nothing():
    assert Histogram().summary() == {}


# -- latency and availability ----------------------------------------------------------------------


def test_latency_counts_acknowledged_records_from_the_instant_they_were_meant(facts):
    facts.told(0, 2, latency=np.array([9, 3], dtype=np.int32), t=100_000)
    facts.told(2, 1, "failed", latency=[77], t=100_000)
    produce = facts.verdict()["latency_us"]["produce"]
    assert (produce["p50"], produce["max"], produce["records"]) == (3, 9, 2)


@pytest.mark.parametrize("read_first", [True, False])
def test_end_to_end_latency_does_not_depend_on_who_is_told_first(facts, read_first):
    facts.replicate(10)
    facts.watermark(10)
    if read_first:
        facts.read(0, 9, t=20_050)
    facts.told(0, 10, latency=[100 - n for n in range(10)], t=20_000)
    if not read_first:
        facts.read(0, 9, t=20_050)
    end_to_end = facts.verdict()["latency_us"]["end_to_end"]
    assert (end_to_end["p50"], end_to_end["max"], end_to_end["records"]) == (145, 150, 10)
    assert "unmatched" not in end_to_end


def test_parts_of_a_batch_are_matched_with_their_own_records(facts):
    facts.replicate(10)
    facts.watermark(10)
    facts.read(0, 3, t=20_000)
    facts.told(0, 10, latency=list(range(100, 90, -1)), t=20_000)
    facts.read(4, 9, t=20_000)
    end_to_end = facts.verdict()["latency_us"]["end_to_end"]
    assert (end_to_end["max"], end_to_end["records"]) == (100, 10)


@pytest.mark.parametrize("order", ["reads first", "between", "reads last"])
def test_a_read_of_several_batches_counts_the_records_of_each(order):
    """A rehearsal's rows: a poll returns what many batches hold."""
    latency = Latency()

    def batch(first, age):
        latency.batch(
            (10, "p", 0, "t", 0, first, 2, 0, -1, 0, 0, 0, 1, "ok", "NONE", 0, 1, 0, [age, age])
        )

    def read():
        latency.read((110, "c", "g", "t", 0, 0, 5, 0, 0, 0, 6, 0, 1))

    steps = {
        "reads first": [read, 0, 2, 4],
        "between": [2, read, 4, 0],
        "reads last": [4, 2, 0, read],
    }
    for step in steps[order]:
        if step is read:
            read()
        else:
            batch(step, step)
    report = latency.report()["end_to_end"]
    assert (report["records"], report["p50"], report["max"]) == (6, 102, 104)
    assert "unmatched" not in report


def test_a_read_of_a_batch_nobody_told_of_is_unmatched(facts):
    facts.replicate(10)
    facts.watermark(10)
    facts.read(0, 9)
    assert facts.verdict()["latency_us"]["end_to_end"] == {"unmatched": 10}


def test_a_reader_behind_the_bound_is_unmatched_and_memory_stays_bounded():
    latency = Latency(batches_kept=5)
    for n in range(100):
        latency.batch(
            (n, "p", 0, "t", 0, n * 2, 2, 0, -1, 0, 0, 0, 1, "ok", "NONE", 0, 1, 0, [1, 1])
        )
    for first in (0, 198):
        latency.read((200, "c", "g", "t", 0, first, first + 1, 0, 0, first, 2, 0, 1))
    report = latency.report()["end_to_end"]
    assert (report["records"], report["unmatched"]) == (2, 2)
    assert len(latency._ages) == 5
    assert len(latency._known[0, "t", 0].firsts) == 5


def test_a_produce_gap_is_the_longest_time_in_which_records_wait_for_any_acknowledgement(facts):
    for t in (1_000_000, 1_100_000):
        facts.told(t, 1, latency=[5_000], t=t)
    facts.told(7, 1, "failed", latency=[800_000], t=2_000_000)
    facts.told(8, 1, latency=[2_100_000], t=4_100_000)
    facts.told(9, 1, latency=[5_000], t=4_200_000)
    availability = facts.verdict()["availability"]
    assert availability["produce_max_us"] == 2_900_000
    assert availability["partitions"]["orders-0"]["produce_from_us"] == 1_200_000
    assert "fetch_max_us" not in availability


def test_a_partition_without_traffic_has_no_gap_however_rare_its_batches_are(facts):
    for n in range(4):
        facts.told(n, 1, latency=[5_000 + n], t=n * 60_000_000)
    assert facts.verdict()["availability"]["produce_max_us"] == 5_003


def test_an_attempt_that_fails_is_an_outage_as_long_as_it_takes(facts):
    facts.told(0, 1, latency=[5_000], t=1_000_000)
    facts.told(1, 1, "failed", latency=[2_000_000], t=40_000_000)
    facts.told(2, 1, latency=[5_000], t=90_000_000)
    assert facts.verdict()["availability"]["produce_max_us"] == 2_000_000


def test_records_that_wait_at_the_beginning_or_at_the_end_count(facts):
    facts.told(0, 1, latency=[2_000_000], t=2_500_000)
    assert facts.verdict()["availability"]["produce_max_us"] == 2_000_000
    facts.told(1, 1, "unknown", latency=[3_000_000], t=9_000_000)
    assert facts.verdict()["availability"]["produce_max_us"] == 3_000_000
    facts.t = 60_000_000
    assert facts.verdict()["availability"]["produce_max_us"] == 3_000_000


def test_a_partition_on_which_nothing_is_ever_acknowledged_was_never_available(facts):
    facts.told(0, 1, "failed", latency=[1_000_000], t=1_000_000)
    facts.told(1, 1, "failed", latency=[7_500_000], t=8_000_000)
    assert facts.verdict()["availability"]["produce_max_us"] == 8_000_000


def test_a_fetch_gap_lasts_until_the_next_delivery_of_what_waits(facts):
    facts.replicate(10)
    facts.watermark(10)
    facts.told(0, 5, latency=[500] * 5, t=1_000_000)
    facts.read(0, 4, t=1_200_000)
    facts.told(5, 5, latency=[500] * 5, t=2_000_000)
    facts.read(5, 9, t=6_000_000)
    availability = facts.verdict()["availability"]
    assert availability["fetch_max_us"] == 4_000_500
    assert availability["partitions"]["orders-0"]["fetch_from_us"] == 1_999_500


def test_what_nobody_ever_read_waits_until_the_traffic_ends(facts):
    facts.replicate(10)
    facts.watermark(10)
    facts.told(0, 5, latency=[500] * 5, t=1_000_000)
    facts.read(0, 4, t=1_200_000)
    facts.told(5, 5, latency=[500] * 5, t=2_000_000)
    assert facts.verdict()["availability"]["fetch_max_us"] == 200_500
    facts.told(10, 5, "failed", latency=[1_000_000] * 5, t=9_000_000)
    assert facts.verdict()["availability"]["fetch_max_us"] == 6_000_500


STEP = DOWN_FROM // 10


def slow_longest(batches):
    """Step by step; an application whose record failed waits for its next one, if that is soon."""
    acked = {t for t, _, error in batches if error == "ok"}
    begun = {t - took for t, took, _ in batches}
    waits = {at for t, took, _ in batches for at in range(t - took, t)}
    joined = set()
    for t, _, error in batches:
        following = min((begin for begin in begun if begin > t), default=99)
        if error == "NOT_ENOUGH_REPLICAS" and t not in waits and following - t <= 10:
            joined.update(range(t, following))
    best, since = (0, 0), None
    for t in range(60):
        is_waiting = t in waits or t in joined
        since = None if not is_waiting else t if since is None or t in acked else since
        if since is not None and t + 1 - since > best[0]:
            best = (t + 1 - since, since)
    return best


ERRORS = st.sampled_from(["ok", "NOT_ENOUGH_REPLICAS", "MESSAGE_TOO_LARGE"])
OUTCOMES = st.tuples(st.integers(10, 59), st.integers(0, 10), ERRORS)


@settings(max_examples=300, deadline=None)
@given(st.lists(OUTCOMES, min_size=1, max_size=8))
def test_the_longest_gap_is_that_of_looking_at_every_instant(batches):
    service = PartitionService()
    for t, took, error in sorted(batches):
        row = (
            t * STEP,
            "p",
            0,
            "t",
            0,
            0,
            1,
            0,
            -1,
            0,
            0,
            0,
            1,
            "ok" if error == "ok" else "failed",
        )
        service.batch((*row, error, 0, 1, 0, [took * STEP]))
    report = service.report()
    found = report.get("produce_us", 0), report.get("produce_from_us", 0)
    assert found == tuple(STEP * number for number in slow_longest(batches))
