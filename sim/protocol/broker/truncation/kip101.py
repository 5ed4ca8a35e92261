"""Kafka 0.11 to 1.1: the leader returns the end of the follower's last epoch, without its epoch.

The result is the start of the leader's first later epoch. Where the leader never had the looked-up
epoch, the result is about another leader's records, and the logs stay divergent.

Source: ``LeaderEpochFileCache.endOffsetFor``, ``ReplicaFetcherThread.maybeTruncate`` (0.11);
KIP-101, KAFKA-6361.
"""

from sim.ids import NO_EPOCH, LeaderEpoch, Offset
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.truncation.divergence import LookupFirst, is_undefined
from sim.protocol.ports import NO_EPOCH_END, EpochEnd, ReplicaLog


class Kip101(LookupFirst):
    """``truncation: kip101``."""

    name = "kip101"

    def end_for(self, log: ReplicaLog, epoch: LeaderEpoch) -> EpochEnd:
        """End offset alone; undefined for an epoch before the leader's first or after its last."""
        end = log.end_offset_for_epoch(epoch)
        # The first epoch begins at the log start: epochs that end there are older than the log.
        before_all = epoch != log.latest_epoch and end.offset <= log.log_start_offset
        return NO_EPOCH_END if before_all else EpochEnd(NO_EPOCH, end.offset)

    def cut_for(self, replica: Replica, leader_end: EpochEnd) -> tuple[Offset, bool]:
        """The leader's offset, or the high watermark if the leader does not know the epoch."""
        if is_undefined(leader_end):
            return replica.high_watermark, True
        return min(leader_end.offset, replica.log.log_end_offset), True
