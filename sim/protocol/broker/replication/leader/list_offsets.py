"""ListOffsets at a leader: log start, log end, end for a consumer, or an offset by time.

Source: ``Partition.fetchOffsetForTimestamp``, ``ReplicaManager.fetchOffset``; KIP-207 for the gate.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.tiered.segments import epoch_at
from sim.protocol.messages.data import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    READ_COMMITTED,
    ListOffsetsRequest,
    ListOffsetsResponse,
)


def list_offsets(hosted: HostedPartitions, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """The log start, the log end for a follower, the end for a consumer, or an offset by time.

    The first readable record at or after a timestamp; offset -1 if there is none.
    """
    partition = request.partition
    replica = hosted.led(partition)
    if isinstance(replica, ErrorCode):
        return ListOffsetsResponse(partition, replica)
    if request.leader_epoch >= 0 and request.leader_epoch != replica.leader_epoch:
        older = request.leader_epoch < replica.leader_epoch
        error = ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return ListOffsetsResponse(partition, error)
    if request.timestamp == -2:
        return ListOffsetsResponse(
            partition, ErrorCode.NONE, replica.log.log_start_offset, replica.leader_epoch
        )
    if request.timestamp == EARLIEST_LOCAL_TIMESTAMP:
        start = replica.log.local_log_start_offset
        epoch = epoch_at(replica.log.epochs, start)
        return ListOffsetsResponse(
            partition, ErrorCode.NONE, start, NO_EPOCH if epoch is None else epoch
        )
    if request.timestamp == EARLIEST_PENDING_UPLOAD_TIMESTAMP:
        return _pending_upload(replica)
    if request.replica_id >= 0:
        return ListOffsetsResponse(
            partition, ErrorCode.NONE, replica.log.log_end_offset, replica.leader_epoch
        )
    latest = replica.high_watermark
    if request.isolation_level == READ_COMMITTED:
        latest = replica.log.transactions.last_stable_offset(latest)
    if request.timestamp >= 0:
        found = replica.log.offset_for_timestamp(request.timestamp)
        if 0 <= found < latest:
            return ListOffsetsResponse(partition, ErrorCode.NONE, found, replica.leader_epoch)
    if replica.high_watermark < replica.epoch_start_offset:
        return ListOffsetsResponse(partition, ErrorCode.OFFSET_NOT_AVAILABLE)
    if request.timestamp >= 0:
        return ListOffsetsResponse(partition, ErrorCode.NONE)
    return ListOffsetsResponse(partition, ErrorCode.NONE, latest, replica.leader_epoch)


def _pending_upload(replica: Replica) -> ListOffsetsResponse:
    """The first offset that is not in the remote log; -1 if that is not known.

    Source: ``UnifiedLog.fetchEarliestPendingUploadOffset``,
    ``LocalLeaderEndPoint.fetchEarliestPendingUploadOffset`` (4.3); KIP-1023.
    """
    log, partition = replica.log, replica.partition
    highest, start = log.highest_remote_offset, log.local_log_start_offset
    if not log.is_tiered or (highest < 0 and start != log.log_start_offset):
        return ListOffsetsResponse(partition, ErrorCode.NONE, -1, NO_EPOCH)
    offset = max(highest + 1, start)
    epoch = epoch_at(log.epochs, offset)
    return ListOffsetsResponse(
        partition, ErrorCode.NONE, offset, NO_EPOCH if epoch is None else epoch
    )
