"""How a follower finds where its log parts from its leader's, and what Kafka 4.1 does about it.

One object of one class is chosen for a broker at its start, and every place at which the historic
rules differ asks it. The rules of older versions are subclasses, one module each.

Source: KIP-320 (fenced fetches), KIP-595 (diverging epochs in the answer to a fetch);
``AbstractFetcherThread``, ``ReplicaFetcherThread.latestEpoch``.
"""

from typing import Final

from sim.ids import NO_EPOCH, LeaderEpoch, Offset
from sim.protocol.broker.replica import Replica
from sim.protocol.ports import NO_EPOCH_END, EpochEnd, ReplicaLog


class Truncation:
    """Kafka 2.7 and later: a fetch names the last epoch, and its answer says where to cut.

    Fetches carry the leader epoch, so a leader neither serves nor counts a follower of another one.
    """

    name: str = "kip320"
    fences: bool = True
    """Whether fetches carry the leader epoch and the epoch of the last record."""
    by_last_offset: bool = False
    """Whether a fetched batch may begin below the end of the log that it goes to."""

    def cut_before_fetching(self, replica: Replica) -> Offset:
        """Where a log is cut as soon as its replica begins to follow; its end if it is not."""
        log = replica.log
        return replica.high_watermark if log.latest_epoch == NO_EPOCH else log.log_end_offset

    def must_ask(self, replica: Replica) -> bool:  # noqa: ARG002 - the historic rules look at it
        """Whether the leader is asked for the end of an epoch before anything is fetched."""
        return False

    def end_for(self, log: ReplicaLog, epoch: LeaderEpoch) -> EpochEnd:
        """A leader's answer to the question where an epoch ends in its log (KIP-279)."""
        return log.end_offset_for_epoch(epoch)

    def cut_for(self, replica: Replica, leader_end: EpochEnd) -> tuple[Offset, bool]:
        """Where a follower cuts after its leader's answer, and whether that settles it."""
        return replica.truncate_for(leader_end, replica.high_watermark)


class AskFirst(Truncation):
    """What KIP-101 and KIP-279 have in common: a question before the first fetch, and no fences.

    The follower asks where the last epoch of its own log ends at the leader (OffsetForLeaderEpoch).
    Neither the question, nor its answer, nor the fetches that follow say which leader epoch they
    are of; so an answer that was made in a former epoch is obeyed all the same.
    """

    fences = False

    def must_ask(self, replica: Replica) -> bool:
        """Ask, unless the log has no epoch to ask about; then it is cut at the high watermark."""
        return replica.log.latest_epoch != NO_EPOCH


def is_undefined(end: EpochEnd) -> bool:
    """Whether the leader knows nothing of the epoch."""
    return end.offset == NO_EPOCH_END.offset


KIP_320: Final = Truncation()
"""The rule of Kafka 4.1; it has no state, so every broker may have the same one."""
