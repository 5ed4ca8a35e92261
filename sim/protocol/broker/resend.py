"""Waits of a broker before it registers, or sends a heartbeat, again after an error.

Source: ``BrokerLifecycleManager.scheduleNextCommunicationAfterFailure``,
``org.apache.kafka.common.utils.ExponentialBackoff`` (2.8 to 4.3); KAFKA-19294, #19061.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sim.units import MS, Micros

FIRST_US: Micros = 100 * MS
"""First wait of a back-off; a constant in Kafka."""

_JITTER_PERMILLE = 20
_DOUBLINGS_MAX = 30


class ResendPolicy(StrEnum):
    """Positions of the behaviour ``broker.resend``."""

    INTERVAL = "interval"
    BACKOFF_HALF_SESSION = "backoff_half_session"
    BACKOFF = "backoff"


@dataclass(frozen=True, slots=True)
class ResendTimes:
    """Policy and times of waits, in µs."""

    policy: ResendPolicy
    interval_us: Micros
    """``broker.heartbeat.interval.ms``."""
    session_us: Micros
    """``broker.session.timeout.ms``."""


class Resend:
    """Failures since the last success, and the wait after each."""

    def __init__(self, times: ResendTimes, unit: Callable[[], float]) -> None:
        """Creates a count of none.

        Args:
            times: Settings.
            unit: Draws the jitter of a back-off, from [0, 1).
        """
        self._times = times
        self._unit = unit
        self._failures = 0

    def succeeded(self) -> None:
        """Notes a response without an error."""
        self._failures = 0

    def failed(self) -> Micros:
        """Notes an error; returns the wait in µs."""
        times = self._times
        if times.policy is ResendPolicy.INTERVAL:
            return times.interval_us
        longest = times.session_us
        if times.policy is ResendPolicy.BACKOFF_HALF_SESSION:
            longest //= 2
        term = min(FIRST_US << min(self._failures, _DOUBLINGS_MAX), longest)
        self._failures += 1
        spread = 2 * _JITTER_PERMILLE + 1
        permille = 1_000 - _JITTER_PERMILLE + int(self._unit() * spread)
        return min(longest, term * permille // 1_000)
