"""Inside the metadata quorum (KRaft)."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, SnapshotId
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes, Micros


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


@dataclass(frozen=True, slots=True)
class VoteResponse(Response):
    """The voter's answer, with the leader and epoch it knows."""

    error: ErrorCode
    granted: bool
    leader: NodeId
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class BeginQuorumEpochRequest(Request):
    """A new leader introduces itself to a voter."""

    leader: NodeId
    epoch: LeaderEpoch
    voter_directory: str = ""
    """``directory.id`` of the voter it is meant for; empty: any with the id (KIP-853)."""


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest(Request):
    """A leader resigns; voters in the order in which they should become candidates."""

    leader: NodeId
    epoch: LeaderEpoch
    preferred: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class QuorumEpochResponse(Response):
    """Answer to BeginQuorumEpoch and EndQuorumEpoch."""

    error: ErrorCode
    leader: NodeId
    epoch: LeaderEpoch


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
        return HEADER_BYTES + PARTITION_BYTES + sum(b.size_bytes for b in self.batches)


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
        return HEADER_BYTES + PARTITION_BYTES + len(self.data)
