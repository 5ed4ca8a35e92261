"""OffsetForLeaderEpoch: the end of a leader epoch in a leader's log (KIP-101)."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.messages.base import Request, Response
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
