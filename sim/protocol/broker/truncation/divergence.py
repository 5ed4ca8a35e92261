"""Truncation after divergence: Kafka 4.1's rule, and the base of the historic ones.

One object of one class is chosen for a broker at its start, and every place at which the historic
rules differ calls it. The rules of older versions are subclasses, one module each.

Source: KIP-320 (fenced fetches), KIP-595 (diverging epochs in the answer to a fetch);
``AbstractFetcherThread``, ``ReplicaFetcherThread.latestEpoch``.
"""

from typing import Final

from sim.ids import NO_EPOCH, LeaderEpoch, Offset
from sim.protocol.broker.replica import Replica
from sim.protocol.ports import NO_EPOCH_END, EpochEnd, ReplicaLog


class Truncation:
    """Kafka 2.7 and later: a fetch has the last epoch, and its response the diverging epoch.

    Fetches carry the leader epoch, so a leader neither serves nor counts a follower of another one.
    """

    name: str = "kip320"
    fences: bool = True
    """True if fetches carry the leader epoch and the epoch of the last record."""
    by_last_offset: bool = False
    """True if a fetched batch may begin below the end of the log that it goes to."""

    def cut_before_fetching(self, replica: Replica) -> Offset:
        """Truncation offset of a log whose replica begins to follow; its end if it stays."""
        log = replica.log
        return replica.high_watermark if log.latest_epoch == NO_EPOCH else log.log_end_offset

    def needs_lookup(self, replica: Replica) -> bool:  # noqa: ARG002 - the historic rules look at it
        """True if an epoch end is looked up before the first fetch."""
        return False

    def end_for(self, log: ReplicaLog, epoch: LeaderEpoch) -> EpochEnd:
        """A leader's OffsetForLeaderEpoch result for its log (KIP-279)."""
        return log.end_offset_for_epoch(epoch)

    def cut_for(self, replica: Replica, leader_end: EpochEnd) -> tuple[Offset, bool]:
        """Truncation offset by the leader's result, and true if no further lookup is needed."""
        return replica.truncate_for(leader_end, replica.high_watermark)


class LookupFirst(Truncation):
    """Common part of KIP-101 and KIP-279: a lookup before the first fetch, and no fencing.

    The follower looks up the end of its own log's last epoch at the leader (OffsetForLeaderEpoch).
    Neither this request, nor its response, nor the fetches that follow carry the leader epoch; so a
    response that was made in a former epoch is applied all the same.
    """

    fences = False

    def needs_lookup(self, replica: Replica) -> bool:
        """True, unless the log has no epoch; then it is truncated to the high watermark."""
        return replica.log.latest_epoch != NO_EPOCH


def is_undefined(end: EpochEnd) -> bool:
    """True if the leader does not know the epoch."""
    return end.offset == NO_EPOCH_END.offset


KIP_320: Final = Truncation()
"""The rule of Kafka 4.1; it has no state, so every broker may have the same one."""
