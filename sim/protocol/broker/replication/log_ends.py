"""GetReplicaLogInfo: how far the logs of this broker's replicas reach, leaders or not.

Source: KIP-966, part 2 (no release has it).
"""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.leader_epochs import (
    GetReplicaLogInfoRequest,
    GetReplicaLogInfoResponse,
    ReplicaLogInfo,
)


def ends_of_logs(
    hosted: HostedPartitions, request: GetReplicaLogInfoRequest
) -> GetReplicaLogInfoResponse:
    """Last written leader epoch and log end of each replica, with this process's broker epoch."""
    found = tuple(_end_of(hosted, partition) for partition in request.partitions)
    return GetReplicaLogInfoResponse(hosted.broker_epoch, found)


def _end_of(hosted: HostedPartitions, partition: TopicPartition) -> ReplicaLogInfo:
    if partition in hosted.offline:
        return ReplicaLogInfo(partition, ErrorCode.KAFKA_STORAGE_ERROR)
    replica = hosted.replicas.get(partition)
    if replica is None:
        return ReplicaLogInfo(partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    log = replica.log
    # An epoch that began at the log's end, as that of a leader without a record, is not written.
    written = (epoch for epoch, start in log.epochs if start < log.log_end_offset)
    return ReplicaLogInfo(
        partition, ErrorCode.NONE, max(written, default=-1), replica.leader_epoch,
        log.log_end_offset,
    )  # fmt: skip
