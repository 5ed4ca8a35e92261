"""The curve of a day: a producer's rate rises and falls around its mean, period after period.

Arrivals are generated in the application's own time, which passes at the curve's level; over a
whole period it is as long as true time, so that the rate stays the mean.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.units import Micros

_STEPS: Final = 96
"""Straight pieces of a sine: a quarter of an hour each, of a day."""

_SCALE: Final = 1_000_000


class Curve:
    """Levels at instants of a period, joined by straight lines; the last and the first, too.

    Args:
        period_us: Length of the period; periods begin at zero.
        points: Instants, ascending, and levels relative to each other, at least one above 0.
    """

    def __init__(self, period_us: Micros, points: Sequence[tuple[Micros, int]]) -> None:
        first_at, first = points[0]
        last_at, last = points[-1]
        gap = period_us - last_at + first_at
        seam = last + (first - last) * (period_us - last_at) / gap
        inner = [(at, float(level)) for at, level in points if at > 0]
        whole = [(0, seam), *inner, (period_us, seam)]
        self._period = period_us
        self._at = np.array([at for at, _ in whole], dtype=np.float64)
        levels = np.array([level for _, level in whole], dtype=np.float64)
        areas = (levels[1:] + levels[:-1]) / 2 * np.diff(self._at)
        factor = period_us / float(areas.sum())
        self._levels = levels * factor
        self._own = np.concatenate(([0.0], np.cumsum(areas * factor)))

    @classmethod
    def sine(cls, period_us: Micros, amplitude_ppm: int) -> "Curve":
        """A sine around the mean, rising from it at zero."""
        amplitude = amplitude_ppm / 1_000_000
        levels = [
            round(_SCALE * (1 + amplitude * math.sin(2 * math.pi * step / _STEPS)))
            for step in range(_STEPS)
        ]
        return cls(period_us, [(period_us * k // _STEPS, each) for k, each in enumerate(levels)])

    def own(self, at: Micros) -> float:
        """Application's time at a true instant, in microseconds."""
        cycle, rest = divmod(at, self._period)
        piece = min(int(np.searchsorted(self._at, rest, side="right")), len(self._at) - 1) - 1
        start, end = self._at[piece : piece + 2]
        low, high = self._levels[piece : piece + 2]
        passed = rest - start
        slope = (high - low) / (end - start)
        return cycle * self._period + float(self._own[piece] + passed * (low + slope * passed / 2))

    def true(self, blocks: Iterable[NDArray[np.int64]]) -> Iterator[NDArray[np.int64]]:
        """Maps instants of the application's time to true ones, in order."""
        last = np.int64(-(1 << 62))
        for block in blocks:
            found = np.maximum.accumulate(np.maximum(self._true(block), last))
            if len(found):
                last = found[-1]
            yield found

    def _true(self, block: NDArray[np.int64]) -> NDArray[np.int64]:
        cycles, rest = np.divmod(block, self._period)
        piece = np.searchsorted(self._own[:-1], rest, side="right") - 1
        low = self._levels[piece]
        slope = (self._levels[piece + 1] - low) / (self._at[piece + 1] - self._at[piece])
        due = rest - self._own[piece]
        # The root of slope/2 x^2 + low x = due, in the form that a slope of 0 does not hurt.
        below = low + np.sqrt(np.maximum(low * low + 2 * slope * due, 0.0))
        passed = np.divide(2 * due, below, out=np.zeros_like(low), where=below > 0)
        inside = np.ceil(self._at[piece] + passed).astype(np.int64)
        found: NDArray[np.int64] = cycles * self._period + np.minimum(inside, self._period)
        return found
