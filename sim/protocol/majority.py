"""How far a majority has come: the arithmetic that every Raft in here shares."""

from collections.abc import Iterable

from sim.ids import Offset


def reached_by_majority(ends: Iterable[Offset]) -> Offset:
    """The largest offset that more than half of the members have reached.

    Args:
        ends: How far each voter has come; one number for each of them.

    Source: Raft, section 5.3; ``LeaderState.maybeUpdateHighWatermark``.
    """
    falling = sorted(ends, reverse=True)
    return falling[len(falling) // 2]
