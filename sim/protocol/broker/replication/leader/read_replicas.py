"""Preferred read replica of a consumer (KIP-392): the leader, or one in its own rack.

The leader chooses; the consumer then fetches there, until its lease ends or an error comes. A
follower serves committed records as far as it knows, which may be one fetch behind its leader.

Source: ``org.apache.kafka.common.replica.RackAwareReplicaSelector``,
``ReplicaManager.findPreferredReadReplica``, ``FetchParams.fetchOnlyLeader``.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, Offset, TopicPartition
from sim.protocol.broker.replica import RemoteReplica, Replica
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, Micros


def preferred_read_replica(
    replica: Replica, image: MetadataImage, rack: str, offset: Offset
) -> NodeId:
    """Preferred read replica for a consumer of the rack; NO_LEADER: this leader.

    Members of the ISR that have the offset may serve it. A leader in the consumer's own rack serves
    it; of several followers in that rack, the one with the longest log, then the one that was
    caught up last (to the millisecond), then the one with the larger id.
    """
    own = image.brokers.get(replica.broker)
    if own is None or own.rack == rack:
        return NO_LEADER
    best: NodeId = NO_LEADER
    best_end: Offset = -1
    best_at: Micros = 0
    for broker, remote in replica.remotes.items():
        registration = image.brokers.get(broker)
        if registration is None or registration.fenced or registration.rack != rack:
            continue
        end = remote.log_end_offset
        if broker not in replica.in_sync or not remote.log_start_offset <= offset <= end:
            continue
        at = _caught_up_at(replica, remote) // MS
        if (end, at, broker) > (best_end, best_at, best):
            best, best_end, best_at = broker, end, at
    return best


def _caught_up_at(replica: Replica, remote: RemoteReplica) -> Micros:
    """Last time at which the follower had everything; a fetch without the partition counts."""
    at = remote.last_caught_up_us
    if remote.clock is not None and remote.log_end_offset == replica.log.log_end_offset:
        at = max(at, remote.clock.last_fetch_us)
    return at


def follower_for_reader(
    hosted: HostedPartitions, partition: TopicPartition, error: ErrorCode
) -> Replica | ErrorCode:
    """This broker's follower of the partition, if there is one; else the error.

    A consumer may fetch from any replica since its requests carry a rack, even an empty one
    (version 11).
    """
    if error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
        return error
    replica = hosted.replicas.get(partition)
    return error if replica is None else replica
