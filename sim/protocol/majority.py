"""Majority of log end offsets, for every Raft of this package."""

from collections.abc import Iterable

from sim.ids import Offset


def reached_by_majority(ends: Iterable[Offset]) -> Offset:
    """Largest offset that more than half of the members have reached.

    Args:
        ends: Log end offset of each voter.

    Source: Raft, section 5.3; ``LeaderState.maybeUpdateHighWatermark``.
    """
    falling = sorted(ends, reverse=True)
    return falling[len(falling) // 2]
