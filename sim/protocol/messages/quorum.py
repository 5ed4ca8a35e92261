"""Inside the metadata quorum (KRaft)."""

from dataclasses import dataclass
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import (
    METADATA_PARTITION,
    NO_LEADER,
    LeaderEpoch,
    NodeId,
    Offset,
    SnapshotId,
    server_name,
)
from sim.protocol.messages.base import CLUSTER_ID, CONTROLLER_LISTENER, Request, Response
from sim.protocol.messages.sizes import quorum as sizes
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes, Micros

_METADATA: Final = ((METADATA_PARTITION.topic, 1),)
"""The topic of each message, with its one partition."""


def _host(leader: NodeId) -> tuple[str, ...]:
    """Endpoint of a leader that is known (``RaftUtil.singletonVoteResponse``, and such)."""
    return () if leader == NO_LEADER else (server_name(leader),)


@dataclass(frozen=True, slots=True)
class VoteRequest(Request):
    """A candidate, or a prospective one (pre-vote, KIP-996), requests a vote."""

    candidate: NodeId
    epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    last_offset: Offset
    """The candidate's log end offset."""
    pre_vote: bool
    directory: str = ""
    """The candidate's ``directory.id``; empty in a static quorum, here and in all that follow."""
    voter_directory: str = ""
    """That of the voter it is meant for; empty: any with the id (KIP-853)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.vote_request(cluster_id=CLUSTER_ID, topics=_METADATA)


@dataclass(frozen=True, slots=True)
class VoteResponse(Response):
    """The voter's answer, with the leader and epoch it knows."""

    error: ErrorCode
    granted: bool
    leader: NodeId
    epoch: LeaderEpoch

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.vote_response(topics=_METADATA, node_endpoints=_host(self.leader))


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest(Request):
    """A new leader introduces itself to a voter."""

    leader: NodeId
    epoch: LeaderEpoch
    voter_directory: str = ""
    """``directory.id`` of the voter it is meant for; empty: any with the id (KIP-853)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.begin_quorum_epoch_request(
            cluster_id=CLUSTER_ID,
            topics=_METADATA,
            leader_endpoints=((CONTROLLER_LISTENER, server_name(self.leader)),),
        )


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest(Request):
    """A leader resigns; voters in the order in which they should become candidates."""

    leader: NodeId
    epoch: LeaderEpoch
    preferred: tuple[NodeId, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.end_quorum_epoch_request(
            cluster_id=CLUSTER_ID,
            topics=((METADATA_PARTITION.topic, (len(self.preferred),)),),
            leader_endpoints=((CONTROLLER_LISTENER, server_name(self.leader)),),
        )


@dataclass(frozen=True, slots=True)
class QuorumEpochResponse(Response):
    """Answer to BeginQuorumEpoch and EndQuorumEpoch."""

    error: ErrorCode
    leader: NodeId
    epoch: LeaderEpoch

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.begin_quorum_epoch_response(
            topics=_METADATA, node_endpoints=_host(self.leader)
        )


@dataclass(frozen=True, slots=True)
class QuorumFetchRequest(Request):
    """A voter's or observer's fetch of the metadata log (KIP-595, KIP-1166)."""

    replica: NodeId
    epoch: LeaderEpoch
    fetch_offset: Offset
    last_fetched_epoch: LeaderEpoch
    high_watermark: Offset
    max_wait_us: Micros
    directory: str = ""
    """The replica's ``directory.id`` (KIP-853)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        partition = sizes.fetch_request_fetch_partition(
            replica_directory_id=self.directory != "", high_watermark=True
        )
        return sizes.fetch_request(
            cluster_id=CLUSTER_ID,
            replica_state=True,
            topics=(1,),
            partitions=partition,
            forgotten_topics_data=(),
            rack_id="",
        )


@dataclass(frozen=True, slots=True)
class QuorumFetchResponse(Response):
    """Records, or where the logs part, or which snapshot to fetch first, or who leads."""

    error: ErrorCode
    leader: NodeId
    epoch: LeaderEpoch
    high_watermark: Offset = -1
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd = NO_EPOCH_END
    snapshot: SnapshotId | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        partition = sizes.fetch_response_partition_data(
            diverging_epoch=self.diverging != NO_EPOCH_END,
            current_leader=True,
            snapshot_id=self.snapshot is not None,
            records=sum([batch.size_bytes for batch in self.batches]),
        )
        return sizes.fetch_response(
            responses=(1,), partitions=partition, node_endpoints=_host(self.leader)
        )


@dataclass(frozen=True, slots=True)
class FetchSnapshotRequest(Request):
    """A follower or observer requests a slice of a snapshot (KIP-630)."""

    replica: NodeId
    epoch: LeaderEpoch
    snapshot: SnapshotId
    position: Bytes
    max_bytes: Bytes
    directory: str = ""
    """The replica's ``directory.id`` (KIP-853)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        partition = sizes.fetch_snapshot_request_partition_snapshot(
            replica_directory_id=self.directory != ""
        )
        return sizes.fetch_snapshot_request(
            cluster_id=CLUSTER_ID, topics=_METADATA, partitions=partition
        )


@dataclass(frozen=True, slots=True)
class FetchSnapshotResponse(Response):
    """The slice, or why there is none."""

    error: ErrorCode
    leader: NodeId
    epoch: LeaderEpoch
    snapshot: SnapshotId | None = None
    size: Bytes = 0
    """Bytes of the whole snapshot."""
    position: Bytes = 0
    data: bytes = b""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        partition = sizes.fetch_snapshot_response_partition_snapshot(
            current_leader=True, unaligned_records=len(self.data)
        )
        return sizes.fetch_snapshot_response(
            topics=_METADATA, partitions=partition, node_endpoints=_host(self.leader)
        )
