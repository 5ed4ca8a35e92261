"""What a sample says of a probability or a mean, with 95 % intervals.

Few formulas and no library: counts are small, and each is checked against published values.

Sources: C. J. Clopper, E. S. Pearson, "The use of confidence or fiducial limits" (1934); E. B.
Wilson, "Probable inference" (1927); J. A. Hanley, A. Lippman-Hand, "If nothing goes wrong, is
everything all right?" (1983) for the rule of three; Q. McNemar (1947), in its exact form; DLMF 8.17
for the incomplete beta function; W. J. Lentz (1976) for its continued fraction.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

LEVEL: Final = 0.95
"""How often an interval holds the true value."""

_Z: Final = 1.959963984540054
_STEPS: Final = 300
_TINY: Final = 1e-300


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and its 95 % interval."""

    value: float
    low: float
    high: float


def proportion(hits: int, runs: int) -> Estimate:
    """How likely a hit is, with the exact interval of Clopper and Pearson.

    Args:
        hits: 0 to ``runs``.
        runs: At least one.
    """
    tail = (1 - LEVEL) / 2
    low = 0.0 if hits == 0 else _solve(lambda p: beta(hits, runs - hits + 1, p), tail)
    high = 1.0 if hits == runs else _solve(lambda p: beta(hits + 1, runs - hits, p), 1 - tail)
    return Estimate(hits / runs, low, high)


def wilson(hits: int, runs: int) -> Estimate:
    """How likely a hit is, with Wilson's interval: shorter, and right on average only."""
    share, square = hits / runs, _Z * _Z
    middle = (share + square / (2 * runs)) / (1 + square / runs)
    spread = share * (1 - share) / runs + square / (4 * runs * runs)
    half = _Z * math.sqrt(spread) / (1 + square / runs)
    return Estimate(share, max(0.0, middle - half), min(1.0, middle + half))


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
    # P(|T| > t) is I_x(freedom / 2, 1 / 2) at x = freedom / (freedom + t * t).
    x = _solve(lambda p: beta(freedom / 2, 0.5, p), 1 - LEVEL)
    return math.sqrt(freedom * (1 - x) / x)


def sign_test(more: int, fewer: int) -> float:
    """How likely so uneven a split is if both sides were as likely; McNemar's exact test."""
    count = more + fewer
    tail = sum(math.comb(count, k) for k in range(min(more, fewer) + 1))
    return min(1.0, 2 * tail / math.pow(2, count))


def beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function ``I_x(a, b)``; ``a, b > 0``, ``0 <= x <= 1``."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta(b, a, 1 - x)
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front += a * math.log(x) + b * math.log1p(-x)
    return math.exp(front) * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of DLMF 8.17.22, from the front."""
    upper, lower = 1.0, 1.0 - (a + b) * x / (a + 1)
    lower = 1 / _away(lower)
    value = lower
    for m in range(1, _STEPS):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            lower = 1 / _away(1 + numerator * lower)
            upper = _away(1 + numerator / upper)
            value *= upper * lower
        if abs(upper * lower - 1) < 1e-15:
            break
    return value


def _away(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _solve(rising: Callable[[float], float], wanted: float) -> float:
    """Where a rising function of [0, 1] has a value; by halving, to the last bit that matters."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < wanted:
            low = middle
        else:
            high = middle
        if high - low <= 1e-16 * high:
            break
    return (low + high) / 2
