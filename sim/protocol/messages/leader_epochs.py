"""Offsets of logs: ends of leader epochs (KIP-101) and of replicas (KIP-966), and cleaned ones."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.protocol.messages.sizes import leader_epochs as sizes
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochRequest(Request):
    """``current_leader_epoch`` is -1 where the asking side does not fence (before KIP-320)."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    current_leader_epoch: LeaderEpoch = -1
    replica_id: NodeId = -1

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.offset_for_leader_epoch_request(topics=((self.partition.topic, 1),))


@dataclass(frozen=True, slots=True)
class OffsetForLeaderEpochResponse(Response):
    """``leader_epoch`` is the epoch that ``end_offset`` belongs to; both -1 where undefined."""

    partition: TopicPartition
    error: ErrorCode
    leader_epoch: LeaderEpoch = -1
    end_offset: Offset = -1

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.offset_for_leader_epoch_response(topics=((self.partition.topic, 1),))


@dataclass(frozen=True, slots=True)
class GetReplicaLogInfoRequest(Request):
    """The controller asks a broker how far its replicas' logs reach; in no release."""

    broker: NodeId
    partitions: tuple[TopicPartition, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire: a topic id and a number for each partition."""
        return HEADER_BYTES + 4 + sum(22 for _ in self.partitions)


@dataclass(frozen=True, slots=True)
class ReplicaLogInfo:
    """End of one replica's log; the offset is -1 with an error."""

    partition: TopicPartition
    error: ErrorCode
    last_written_epoch: LeaderEpoch = -1
    current_epoch: LeaderEpoch = -1
    log_end_offset: Offset = -1


@dataclass(frozen=True, slots=True)
class GetReplicaLogInfoResponse(Response):
    """``broker_epoch`` is that of the process that answers."""

    broker_epoch: BrokerEpoch
    replicas: tuple[ReplicaLogInfo, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire: a topic id, epochs, an offset and an error for each replica."""
        return HEADER_BYTES + 8 + sum(40 for _ in self.replicas)


@dataclass(frozen=True, slots=True)
class TombstoneOffsetsRequest(Request):
    """A leader hands out below which offsets tombstones may be removed; Redpanda's, not Kafka's."""

    leader: NodeId
    offsets: tuple[tuple[TopicPartition, Offset], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire: a topic id, a number and an offset for each partition."""
        return HEADER_BYTES + 4 + sum(28 for _ in self.offsets)


@dataclass(frozen=True, slots=True)
class TombstoneOffsetsResponse(Response):
    """Offsets to which a replica has cleaned; -1 where its log is not open."""

    cleaned: tuple[tuple[TopicPartition, Offset], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire: a topic id, a number and an offset for each partition."""
        return HEADER_BYTES + sum(28 for _ in self.cleaned)
