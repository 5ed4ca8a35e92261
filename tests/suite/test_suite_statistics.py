"""The rule by which a number has regressed: exact, and honest about many comparisons."""

from itertools import combinations
from math import comb
from random import Random

import pytest

from sim.suite.statistics import (
    RankTest,
    median_interval,
    rank_test,
    seeds_needed,
    shared_level,
    smallest_p,
)


def by_hand(before, after):
    """Every way of dealing the pooled numbers out again."""
    pooled = [*before, *after]
    ranks = [(sum(x < v for x in pooled) + sum(x <= v for x in pooled) + 1) for v in pooled]
    found = sum(ranks[len(before) :])
    sums = [sum(chosen) for chosen in combinations(ranks, len(after))]
    return sum(s >= found for s in sums) / len(sums), sums.count(max(sums)) / len(sums)


def test_the_chance_is_that_of_all_permutations_with_ties_too():
    chance = Random(1)
    for _ in range(60):
        before, after = ([chance.randrange(6) for _ in range(chance.randint(1, 5))] for _ in "ab")
        test = rank_test(before, after)
        p, p_min = by_hand(before, after)
        if len(dict.fromkeys([*before, *after])) > 1:
            assert test.p == pytest.approx(p), (before, after)
            assert test.p_min == pytest.approx(p_min)
        else:
            assert test == RankTest(1.0, 1.0)


def test_complete_separation_is_the_smallest_chance():
    test = rank_test(range(8), range(100, 108))
    assert test.p == test.p_min == smallest_p(8, 8) == 1 / comb(16, 8)
    assert rank_test(range(100, 108), range(8)).p == pytest.approx(1)


def test_so_many_seeds_are_needed_that_each_comparison_can_show_something():
    for comparisons in (1, 8, 500):
        size = seeds_needed(0.001, comparisons)
        assert smallest_p(size, size) <= 0.001 / comparisons < smallest_p(size - 1, size - 1)


def test_a_test_that_could_show_nothing_takes_no_share_of_the_level():
    good, blind = RankTest(0.5, 1e-6), RankTest(1.0, 1.0)
    assert shared_level(0.001, [good, *[blind] * 99]) == 0.001
    assert shared_level(0.001, [good] * 100) == 0.001 / 100


def test_unchanged_numbers_are_rarely_called_worse():
    """Sixty checks of ten numbers with twenty seeds each, all from one distribution."""
    chance, alarms = Random(3), 0
    for _ in range(60):
        pairs = [
            [[int(chance.expovariate(0.01)) for _ in range(20)] for _ in "ab"] for _ in range(10)
        ]
        tests = [rank_test(*pair) for pair in pairs]
        alarms += any(test.p <= shared_level(0.001, tests) for test in tests)
    assert alarms == 0


def test_the_interval_of_a_median_covers_it_as_often_as_it_says():
    chance, covered = Random(4), 0
    for _ in range(400):
        middle, low, high = median_interval([chance.randrange(10_001) for _ in range(20)])
        assert low <= middle <= high
        covered += low <= 5_000 <= high
    assert covered / 400 >= 0.93
    assert median_interval([5]) == (5, 5, 5)
