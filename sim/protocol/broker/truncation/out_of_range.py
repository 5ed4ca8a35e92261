"""Out-of-range fetch offsets of followers.

The follower lists the leader's log end. If that is before its own end, its log is truncated there;
else it lists the leader's log start, and restarts there if that is after its own end, or fetches
on. Until 2.0 the process halted instead of truncating where unclean elections were off, as that was
considered impossible; and before 0.9 a log was dropped as soon as the leader's end was not before
its own, although it may have passed that only after the fetch was refused.

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
    """Rules by the names that a scenario uses."""

    TRUNCATE = "truncate"
    HALT = "halt"
    RESTART = "restart"

    def forbids_truncation(self, configs: dict[str, str]) -> bool:
        """True if a topic with these settings may not be truncated to the leader's end."""
        unclean = configs.get("unclean.leader.election.enable", "false") == "true"
        return self is not OutOfRange.TRUNCATE and not unclean

    def restarts(self, leader_start: Offset, own_end: Offset) -> bool:
        """True if the log is dropped for the leader's, whose end is not before its own."""
        return self is OutOfRange.RESTART or leader_start > own_end


@dataclass(frozen=True, slots=True)
class TruncationForbidden:
    """Effect: the process halts rather than truncate a log; an operator has to intervene."""

    partition: TopicPartition
    reason: str
