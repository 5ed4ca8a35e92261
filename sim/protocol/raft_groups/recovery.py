"""How fast a broker may bring learners up to date: so many bytes a second for all its groups.

Voters that lie behind are not held back: they count, and clients may wait for them.

Source: Redpanda v25.1 ``raft/{recovery_stm,coordinated_recovery_throttle}.cc``.
"""

from sim.units import SECOND, Bytes, Micros


class RecoveryThrottle:
    """A bucket of bytes, filled evenly, that may be overdrawn by one read.

    Args:
        rate: ``raft_learner_recovery_rate``, bytes a second; at least 1.
    """

    def __init__(self, rate: Bytes) -> None:
        self._rate = rate
        self._left: Bytes = rate
        self._filled_at: Micros = 0

    def allows(self, now: Micros) -> bool:
        """Whether something may be sent at this instant."""
        gained = (now - self._filled_at) * self._rate // SECOND
        if gained > 0:
            self._left = min(self._rate, self._left + gained)
            self._filled_at = now
        return self._left > 0

    def take(self, size: Bytes) -> None:
        """So much is sent."""
        self._left -= size
