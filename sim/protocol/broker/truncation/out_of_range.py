"""What a follower does when its leader does not have the offset that it wants to fetch.

It asks where the leader's log ends. Is that before its own end, its log is cut there; else it asks
where the leader's log begins, and starts there if that is behind its own end, or fetches on.

Until 2.0 the process ended instead of cutting where unclean elections were off, for that was taken
for impossible; and before 0.9 a log was given up as soon as the leader's end was not before its
own, although it may have passed that only after the fetch was refused.

Source: ``ReplicaFetcherThread.handleOffsetOutOfRange`` (0.8 to 2.0),
``AbstractFetcherThread.fetchOffsetAndTruncate`` (since); KAFKA-2143, KAFKA-4039.
"""

from dataclasses import dataclass
from enum import Enum

from sim.ids import Offset, TopicPartition


class OutOfRange(Enum):
    """The rules by the names that a scenario uses."""

    TRUNCATE = "truncate"
    HALT = "halt"
    RESTART = "restart"

    def forbids_truncation(self, configs: dict[str, str]) -> bool:
        """Whether a topic with these settings may not be cut to the leader's end."""
        unclean = configs.get("unclean.leader.election.enable", "false") == "true"
        return self is not OutOfRange.TRUNCATE and not unclean

    def starts_anew(self, leader_start: Offset, own_end: Offset) -> bool:
        """Whether the log is given up for the leader's, whose end is not before its own."""
        return self is OutOfRange.RESTART or leader_start > own_end


@dataclass(frozen=True, slots=True)
class TruncationForbidden:
    """Effect: the process ends rather than cut a log; somebody has to look at it."""

    partition: TopicPartition
    reason: str
