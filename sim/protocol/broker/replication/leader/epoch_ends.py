"""OffsetForLeaderEpoch at a leader.

Source: ``Partition.lastOffsetForLeaderEpoch``; KIP-101, KIP-320.
"""

from sim.error_codes import ErrorCode
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)


def end_of_epoch(
    hosted: HostedPartitions, request: OffsetForLeaderEpochRequest
) -> OffsetForLeaderEpochResponse:
    """End of the epoch, or of the largest one before it."""
    partition = request.partition
    replica = hosted.led(partition)
    if isinstance(replica, ErrorCode):
        return OffsetForLeaderEpochResponse(partition, replica)
    current = request.current_leader_epoch
    if current >= 0 and current != replica.leader_epoch:
        older = current < replica.leader_epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return OffsetForLeaderEpochResponse(partition, error)
    end = hosted.config.truncation.end_for(replica.log, request.leader_epoch)
    return OffsetForLeaderEpochResponse(partition, ErrorCode.NONE, end.epoch, end.offset)
