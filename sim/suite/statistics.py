"""Comparison of two samples, and intervals of medians: exact, without a model.

Two samples of seeds are compared by the exact permutation distribution of the rank sum (Wilcoxon,
Mann and Whitney), with ties: what a simulator measures is rarely normal, and often the same number
many times. Many comparisons at once are kept honest by Tarone's bound: a test that could not reach
the level whatever came out is not counted, and the others share the level among them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import comb, exp, lgamma, log, log1p

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RankTest:
    """One-sided: is the second sample larger?"""

    p: float
    """Chance of a rank sum at least as large, if both samples are of one kind."""
    p_min: float
    """The smallest that these numbers could have given."""


def rank_test(before: Sequence[int], after: Sequence[int]) -> RankTest:
    """Compare two samples; neither may be empty."""
    pooled = sorted([*before, *after])
    if pooled[0] == pooled[-1]:
        return RankTest(1.0, 1.0)
    ranks = {value: _twice_the_rank(pooled, value) for value in dict.fromkeys(pooled)}
    weights = [ranks[value] for value in pooled]
    found = sum(ranks[value] for value in after)
    counts = _sums(weights, len(after))
    total = comb(len(pooled), len(after))
    largest = sum(weights[len(before) :])
    return RankTest(min(float(counts[found:].sum()) / total, 1.0), float(counts[largest]) / total)


def smallest_p(before: int, after: int) -> float:
    """The least p of two samples of these sizes: complete separation."""
    return 1 / comb(before + after, after)


def seeds_needed(level: float, comparisons: int) -> int:
    """So many seeds on both sides can show a difference in each of the comparisons."""
    size = 1
    while smallest_p(size, size) > level / comparisons:
        size += 1
    return size


def shared_level(level: float, tests: Sequence[RankTest]) -> float:
    """The level of each test with which all together are wrong at most that often (Tarone 1990)."""
    count = 1
    while sum(test.p_min <= level / count for test in tests) > count:
        count += 1
    return level / count


def median_interval(sample: Sequence[int]) -> tuple[int, int, int]:
    """The median, and an interval for it of at least 95 % between two members of the sample.

    With fewer than six members it is the whole range, which covers less.
    """
    ordered = sorted(sample)
    size = len(ordered)
    cut, tail = 0, 0.0
    while cut < size // 2:
        tail += comb(size, cut) / 2**size
        if tail > 0.025:
            break
        cut += 1
    low = max(cut - 1, 0)
    return ordered[(size - 1) // 2], ordered[low], ordered[size - 1 - low]


def proportion_interval(hits: int, draws: int, missed: float = 0.05) -> tuple[float, float]:
    """Interval of a probability of which ``hits`` of independent ``draws`` are known.

    Exact, and so a little wide: it misses the probability in at most that share of cases.

    Args:
        hits: Draws that had it.
        draws: All draws; at least one.
        missed: Share of cases in which the interval may be wrong.

    Source: C. Clopper and E. Pearson, "The use of confidence or fiducial limits".
    """
    tail = missed / 2
    low = 0.0 if hits == 0 else _root(lambda p: 1 - _at_most(hits - 1, draws, p) < tail)
    high = 1.0 if hits == draws else _root(lambda p: _at_most(hits, draws, p) > tail)
    return low, high


def never_above(draws: int, missed: float = 0.05) -> float:
    """Bound of a probability of which independent draws have seen nothing: about three of them.

    Source: the rule of three, exactly: ``(1 - p) ** draws = missed``.
    """
    return 1.0 if draws <= 0 else 1 - missed ** (1 / draws)


def _at_most(hits: int, draws: int, p: float) -> float:
    """Chance of at most so many hits."""
    if p <= 0:
        return 1.0
    if p >= 1:
        return float(hits >= draws)
    terms = (
        lgamma(draws + 1) - lgamma(k + 1) - lgamma(draws - k + 1) + k * log(p)
        + (draws - k) * log1p(-p)
        for k in range(hits + 1)
    )  # fmt: skip
    return min(sum(exp(term) for term in terms), 1.0)


def _root(is_below: Callable[[float], bool]) -> float:
    """The place in [0, 1] up to which a test is true."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if is_below(middle):
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _twice_the_rank(pooled: Sequence[int], value: int) -> int:
    """Twice the middle rank of equal values, which is whole."""
    first = pooled.index(value)
    return 2 * first + pooled.count(value) + 1


def _sums(weights: Sequence[int], chosen: int) -> NDArray[np.float64]:
    """For each sum: how many choices of so many weights have it."""
    size = sum(sorted(weights)[len(weights) - chosen :]) + 1
    ways = np.zeros((chosen + 1, size))
    ways[0, 0] = 1
    for weight in weights:
        for number in range(chosen, 0, -1):
            ways[number, weight:] += ways[number - 1, : size - weight]
    return np.asarray(ways[chosen])
