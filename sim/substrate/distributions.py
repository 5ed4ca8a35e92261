"""Delays drawn from tables of whole microseconds.

A table holds the quantiles of a log-normal distribution given by its median and its 99th
percentile, each rounded up to a whole microsecond, so a draw is one uniform number and one look-up,
and no last digit of a logarithm can move a trace between platforms.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, exp, log
from statistics import NormalDist

from sim.units import Micros

_CELLS = 1_024
_Z99 = NormalDist().inv_cdf(0.99)


@dataclass(frozen=True, slots=True)
class Spread:
    """A delay by its median and 99th percentile, both in microseconds; equal means constant.

    Raises:
        ValueError: If ``p50_us`` is negative or above ``p99_us``.
    """

    p50_us: Micros
    p99_us: Micros

    def __post_init__(self) -> None:
        if not 0 <= self.p50_us <= self.p99_us:
            message = f"a spread needs 0 <= p50 <= p99, not p50={self.p50_us} p99={self.p99_us}"
            raise ValueError(message)


@lru_cache(maxsize=256)
def quantile_table(spread: Spread) -> tuple[Micros, ...]:
    """The middle quantile of each of 1,024 cells of equal probability."""
    if spread.p50_us in {0, spread.p99_us}:
        return (spread.p50_us,) * _CELLS
    sigma = log(spread.p99_us / spread.p50_us) / _Z99
    normal = NormalDist()
    return tuple(
        ceil(spread.p50_us * exp(sigma * normal.inv_cdf((cell + 0.5) / _CELLS)))
        for cell in range(_CELLS)
    )


class Delays:
    """A spread bound to a stream of chance."""

    __slots__ = ("_table", "_unit")

    def __init__(self, spread: Spread, unit: Callable[[], float]) -> None:
        self._table = quantile_table(spread)
        self._unit = unit

    def draw(self) -> Micros:
        """The next delay in microseconds."""
        return self._table[int(self._unit() * _CELLS)]

    def at(self, unit: float) -> Micros:
        """The delay at a place of the distribution, in [0, 1)."""
        return self._table[int(unit * _CELLS)]
