"""Intervals are those of published tables, and hold what they say."""

import math
import random

import pytest

from analysis.sweep import confidence as intervals


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [
        # Clopper and Pearson's own chart, and the tables made from it.
        (0, 10, 0.0, 0.3085),
        (1, 10, 0.0025, 0.4450),
        (5, 10, 0.1871, 0.8129),
        (5, 50, 0.0333, 0.2181),
        (10, 100, 0.0490, 0.1762),
        (50, 50, 0.9289, 1.0),
    ],
)
def test_exact_intervals_are_those_of_the_tables(hits, runs, low, high):
    found = intervals.proportion(hits, runs)
    assert found.value == hits / runs
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"), [(0, 10, 0.0, 0.2775), (5, 50, 0.0435, 0.2136)]
)
def test_wilsons_interval_is_his(hits, runs, low, high):
    found = intervals.wilson(hits, runs)
    assert (found.low, found.high) == pytest.approx((low, high), abs=6e-5)


def test_where_nothing_was_seen_the_bound_is_near_three_over_n():
    for runs in (50, 500, 5_000):
        one_sided = 1 - 0.05 ** (1 / runs)
        assert one_sided < 3 / runs < intervals.proportion(0, runs).high


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(1, 12.7062), (2, 4.3027), (9, 2.2622), (49, 2.0096), (999, 1.9623)]
)
def test_students_quantiles_are_those_of_the_tables(freedom, quantile):
    assert intervals.student(freedom) == pytest.approx(quantile, abs=6e-5)


def test_a_mean_has_its_interval_and_a_single_value_none():
    found = intervals.mean([1.0, 2.0, 3.0, 4.0])
    half = 3.1824 * math.sqrt(5 / 3 / 4)
    assert (found.value, found.low) == pytest.approx((2.5, 2.5 - half), abs=1e-4)
    assert intervals.mean([7.0]).high == math.inf
    assert intervals.mean([7.0, 7.0]) == intervals.Estimate(7.0, 7.0, 7.0)


@pytest.mark.parametrize(
    ("more", "fewer", "chance"), [(0, 0, 1.0), (5, 5, 1.0), (5, 0, 0.0625), (9, 1, 0.021484375)]
)
def test_an_uneven_split_is_as_unlikely_as_coins_have_it(more, fewer, chance):
    assert intervals.sign_test(more, fewer) == pytest.approx(chance)
    assert intervals.sign_test(fewer, more) == pytest.approx(chance)


@pytest.mark.parametrize("share", [0.02, 0.3])
def test_exact_intervals_hold_the_truth_at_least_as_often_as_they_say(share):
    draw = random.Random(5)
    held = 0
    for _ in range(150):
        hits = sum(draw.random() < share for _ in range(40))
        found = intervals.proportion(hits, 40)
        held += found.low <= share <= found.high
    assert held >= 0.95 * 150
