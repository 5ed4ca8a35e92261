"""Estimates of a probability or a mean, with 95 % intervals.

Sources: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits" (1934); E. B.
Wilson, "Probable inference" (1927); J. A. Hanley, A. Lippman-Hand, "If nothing goes wrong, is
everything all right?" (1983) for the rule of three; Q. McNemar (1947), in its exact form.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from scipy import stats

LEVEL: Final = 0.95
"""Share of intervals that hold the true value."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


def proportion(hits: int, runs: int) -> Estimate:
    """Probability of a hit, with the exact interval of Clopper and Pearson.

    Args:
        hits: 0 to ``runs``.
        runs: At least one.
    """
    return _proportion(hits, runs, "exact")


def wilson(hits: int, runs: int) -> Estimate:
    """Probability of a hit, with Wilson's interval: shorter, and right on average only."""
    return _proportion(hits, runs, "wilson")


def _proportion(hits: int, runs: int, method: Literal["exact", "wilson"]) -> Estimate:
    found = stats.binomtest(hits, runs).proportion_ci(LEVEL, method)
    return Estimate(hits / runs, float(found.low), float(found.high))


def mean(values: Sequence[float]) -> Estimate:
    """The mean, with Student's interval; of a single value the interval is everything."""
    count = len(values)
    value = math.fsum(values) / count
    if count < 2:
        return Estimate(value, -math.inf, math.inf)
    square = math.fsum((one - value) ** 2 for one in values) / (count - 1)
    half = student(count - 1) * math.sqrt(square / count)
    return Estimate(value, value - half, value + half)


def student(freedom: int) -> float:
    """The quantile of Student's distribution that leaves 2.5 % above it."""
    return float(stats.t.ppf((1 + LEVEL) / 2, freedom))


def sign_test(more: int, fewer: int) -> float:
    """p-value of so uneven a split if both sides are as likely; McNemar's exact test."""
    count = more + fewer
    return float(stats.binomtest(more, count).pvalue) if count else 1.0
