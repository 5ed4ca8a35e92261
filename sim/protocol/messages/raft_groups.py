"""Between the members of one partition's Raft group, and from its leader to the controller.

Not Kafka's: brokers exchange these only under ``cluster.replication: raft``. Heartbeats of all
groups that two brokers share travel together.

Source: Raft, figure 2; Redpanda's ``raft/types.h``.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class RaftVoteRequest(Request):
    """A candidate, or one that only tests whether it could win (pre-vote), requests a vote."""

    partition: TopicPartition
    candidate: NodeId
    term: LeaderEpoch
    """The term it would lead."""
    last_term: LeaderEpoch
    last_offset: Offset
    """The candidate's log end offset."""
    pre_vote: bool
    transfer: bool = False
    """The leader itself has started the election: voters need not miss it first."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES


@dataclass(frozen=True, slots=True)
class RaftVoteResponse(Response):
    """The voter's answer, with its own term."""

    partition: TopicPartition
    term: LeaderEpoch
    granted: bool


@dataclass(frozen=True, slots=True)
class RaftAppend:
    """Append of a leader to one follower: records that follow a known place, or none."""

    partition: TopicPartition
    term: LeaderEpoch
    prev_offset: Offset
    """The follower's log should end here, or have these very records from here on."""
    prev_term: LeaderEpoch
    """Term of the record before; -1 for none."""
    commit: Offset
    visible: Offset
    """Consumers may read below it."""
    log_start: Offset
    flush: bool = False
    """True if the response waits for an fsync."""
    batches: tuple[Batch, ...] = ()

    @property
    def end(self) -> Offset:
        """End up to which the follower's log agrees, once it has appended this."""
        return self.batches[-1].last_offset + 1 if self.batches else self.prev_offset


@dataclass(frozen=True, slots=True)
class RaftAnswer:
    """A follower's response to one :class:`RaftAppend`."""

    partition: TopicPartition
    term: LeaderEpoch
    """The follower's; 0 if it does not have the partition."""
    end: Offset = -1
    """Its log agrees with the leader's below; -1 if the logs part before."""
    flushed: Offset = -1
    """End of what is durable of that."""
    parts: EpochEnd = NO_EPOCH_END
    """Without agreement: the largest of its terms not above the one asked, and where it ends."""


@dataclass(frozen=True, slots=True)
class RaftAppendRequest(Request):
    """Records of one partition from its leader."""

    leader: NodeId
    append: RaftAppend

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES + sum(b.size_bytes for b in self.append.batches)


@dataclass(frozen=True, slots=True)
class RaftAppendResponse(Response):
    """The answer to a :class:`RaftAppendRequest`."""

    answer: RaftAnswer


@dataclass(frozen=True, slots=True)
class RaftHeartbeatRequest(Request):
    """A sign of life for every group that the sender leads and the receiver is a member of."""

    leader: NodeId
    appends: tuple[RaftAppend, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.appends)


@dataclass(frozen=True, slots=True)
class RaftHeartbeatResponse(Response):
    """The answers, in the order of the request."""

    answers: tuple[RaftAnswer, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.answers)


@dataclass(frozen=True, slots=True)
class RaftTimeoutNowRequest(Request):
    """The leader asks a follower that has everything to start an election at once."""

    partition: TopicPartition
    leader: NodeId
    term: LeaderEpoch


@dataclass(frozen=True, slots=True)
class RaftTimeoutNowResponse(Response):
    """The follower's term after that."""

    partition: TopicPartition
    term: LeaderEpoch


@dataclass(frozen=True, slots=True)
class RaftLeader:
    """The leader of a partition, as it reports itself."""

    partition: TopicPartition
    term: LeaderEpoch
    voters: tuple[NodeId, ...] = ()
    """Members whose votes count, old voters among them while members change."""
    has_arrived: bool = False
    """True once the members are those that the controller has assigned."""


@dataclass(frozen=True, slots=True)
class RaftLeadersRequest(Request):
    """A broker reports to the controller the groups that it leads now."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    leaders: tuple[RaftLeader, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.leaders)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return RaftLeadersResponse(error)


@dataclass(frozen=True, slots=True)
class RaftLeadersResponse(Response):
    """NONE if the controller has recorded it."""

    error: ErrorCode
