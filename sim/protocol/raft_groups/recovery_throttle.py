"""Rate limit of learner recovery, in bytes a second for all groups of a broker.

Voters that are behind are not limited: they count, and clients may wait for them.

Source: Redpanda v25.1 ``raft/{recovery_stm,coordinated_recovery_throttle}.cc``.
"""

from sim.units import SECOND, Bytes, Micros


class RecoveryThrottle:
    """A token bucket of bytes that one read may overdraw.

    Args:
        rate: ``raft_learner_recovery_rate``, bytes a second; at least 1.
    """

    def __init__(self, rate: Bytes) -> None:
        self._rate = rate
        self._left: Bytes = rate
        self._filled_at: Micros = 0

    def allows(self, now: Micros) -> bool:
        """True if a read may be sent at this instant."""
        gained = (now - self._filled_at) * self._rate // SECOND
        if gained > 0:
            self._left = min(self._rate, self._left + gained)
            self._filled_at = now
        return self._left > 0

    def take(self, size: Bytes) -> None:
        """Takes a read's size from the bucket."""
        self._left -= size
