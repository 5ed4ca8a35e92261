"""Leader epochs at which a follower truncates that follows their leader already.

Source: ``kafka.cluster.Partition.makeFollower`` (2.0.0, 2.0.1, 2.1.0); KAFKA-7164.
"""

from enum import StrEnum

from sim.ids import LeaderEpoch


class NewEpoch(StrEnum):
    """Rule for a new leader epoch of the same leader; values are those of the behaviour."""

    EACH = "each"
    """It truncates, as at another leader's (since 2.1)."""
    MISSED = "missed"
    """It truncates if an epoch lies between, of which it has not heard (2.0.1)."""
    ANOTHER_LEADER = "another_leader"
    """It fetches on."""

    def fetches_on(self, former: LeaderEpoch, epoch: LeaderEpoch) -> bool:
        """True if the follower fetches on from where it is, without truncation."""
        if self is NewEpoch.MISSED:
            return epoch <= former + 1
        return self is NewEpoch.ANOTHER_LEADER
