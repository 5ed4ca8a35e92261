"""Waits of clients before they try again.

Source: ``org.apache.kafka.common.utils.ExponentialBackoff``; KIP-580.
"""

from collections.abc import Callable

from sim.units import Micros

_DOUBLINGS_MAX = 30


def backoff_us(
    initial: Micros, longest: Micros, earlier_attempts: int, unit: Callable[[], float]
) -> Micros:
    """The wait after an attempt with so many before it: doubled each time, with 20 % of jitter.

    Where the longest is not above the first one, as always before 3.7, all are alike and nothing
    is drawn. Jitter makes no wait longer than the longest.
    """
    if longest <= initial:
        return longest
    term = min(initial << min(earlier_attempts, _DOUBLINGS_MAX), longest)
    return min(longest, term * (800 + int(unit() * 401)) // 1_000)
