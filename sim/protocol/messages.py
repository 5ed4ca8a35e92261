"""Requests and responses: the fields that carry meaning, and their size on the wire.

Frozen, and shared between nodes by reference. Field names are Kafka's. ``size_bytes`` is an
estimate good to a few bytes for the fixed parts and exact for record batches: it is what bandwidth
and copying are charged for.

Source: ``clients/src/main/resources/common/message`` (4.1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import (
    NO_LEADER, BrokerEpoch, LeaderEpoch, NodeId, Offset, ProducerId, TopicPartition,
)
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes, Micros

HEADER_BYTES: Bytes = 50
"""Request or response header with length, api key, correlation id and client id."""

PARTITION_BYTES: Bytes = 40
"""A partition's fixed fields in a produce or fetch message."""


@dataclass(frozen=True, slots=True)
class Request:
    """Something a node asks of a server."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Response:
    """A server's answer."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES


# -- data path ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ProduceRequest(Request):
    """``acks`` is 0, 1 or -1 (all); one batch per partition."""

    acks: int
    timeout_us: Micros
    batches: tuple[tuple[TopicPartition, Batch], ...]

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + sum(PARTITION_BYTES + b.size_bytes for _, b in self.batches)


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """Current leader as a broker knows it, sent with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader: NodeId
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """One partition's part of a :class:`ProduceResponse`."""

    partition: TopicPartition
    error: ErrorCode
    base_offset: Offset = -1
    log_start_offset: Offset = -1
    hint: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class ProduceResponse(Response):
    """Not sent for acks=0."""

    results: tuple[ProduceResult, ...]

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + PARTITION_BYTES * len(self.results)


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """What is asked of one partition. ``last_fetched_epoch`` is -1 for clients before KIP-595."""

    partition: TopicPartition
    fetch_offset: Offset
    leader_epoch: LeaderEpoch
    last_fetched_epoch: LeaderEpoch = -1
    log_start_offset: Offset = -1
    max_bytes: Bytes = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchRequest(Request):
    """An incremental fetch (KIP-227): only partitions that are new or changed are listed.

    ``replica_id`` is -1 for consumers. ``session_epoch`` 0 opens a session with all partitions;
    -1 is a fetch without session.
    """

    replica_id: NodeId
    replica_epoch: BrokerEpoch
    max_wait_us: Micros
    min_bytes: Bytes
    max_bytes: Bytes
    session_id: int
    session_epoch: int
    partitions: tuple[FetchPartition, ...]
    forgotten: tuple[TopicPartition, ...] = ()
    rack: str = ""
    isolation_level: str = "read_uncommitted"

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """One partition's part of a :class:`FetchResponse`."""

    partition: TopicPartition
    error: ErrorCode
    high_watermark: Offset = -1
    log_start_offset: Offset = -1
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd = NO_EPOCH_END
    hint: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class FetchResponse(Response):
    """``error`` is the session's; a failed session is reopened with epoch 0."""

    error: ErrorCode
    session_id: int
    results: tuple[FetchResult, ...]

    @property
    def size_bytes(self) -> Bytes:
        size = HEADER_BYTES
        for result in self.results:
            size += PARTITION_BYTES
            for batch in result.batches:
                size += batch.size_bytes
        return size


LATEST_TIMESTAMP = -1
"""ListOffsets: the high watermark, for a client."""

EARLIEST_TIMESTAMP = -2
"""ListOffsets: the log start offset."""


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest(Request):
    """``timestamp`` is LATEST_TIMESTAMP or EARLIEST_TIMESTAMP; ``replica_id`` -1 for clients."""

    partition: TopicPartition
    timestamp: int
    leader_epoch: LeaderEpoch = -1
    replica_id: NodeId = -1


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse(Response):
    """Offset and the leader epoch it belongs to."""

    partition: TopicPartition
    error: ErrorCode
    offset: Offset = -1
    leader_epoch: LeaderEpoch = -1


# -- metadata -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MetadataRequest(Request):
    """The topics a client uses."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as a broker's own image has it; ``leader`` is NO_LEADER when it has none."""

    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class MetadataResponse(Response):
    """Brokers alive in the answering broker's image, and the topics that it knows of those asked.

    ``topics`` has each topic's partitions in order; a topic that the broker does not know is absent.
    """

    brokers: tuple[NodeId, ...]
    topics: Mapping[str, tuple[PartitionMetadata, ...]]
    controller: NodeId = NO_LEADER

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + 30 * len(self.brokers) + sum(40 * len(p) for p in self.topics.values())


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest(Request):
    """A new identity for an idempotent producer (no transactional id)."""


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse(Response):
    """``producer_epoch`` is 0 for a new id."""

    error: ErrorCode
    producer_id: ProducerId = -1
    producer_epoch: int = -1


# -- group coordination (classic protocol) --------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest(Request):
    """Which broker coordinates a group."""

    group: str


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse(Response):
    """``COORDINATOR_NOT_AVAILABLE`` while the group's offsets partition has no leader."""

    error: ErrorCode
    coordinator: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class JoinGroupRequest(Request):
    """``member_id`` is empty for a new member; ``protocols`` are assignor names in order of choice."""

    group: str
    member_id: str
    client_id: str
    topics: tuple[str, ...]
    protocols: tuple[str, ...]
    session_timeout_us: Micros
    rebalance_timeout_us: Micros
    owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class JoinGroupResponse(Response):
    """``members`` (member id, topics, owned partitions) is filled for the leader only."""

    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    members: tuple[tuple[str, tuple[str, ...], tuple[TopicPartition, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class SyncGroupRequest(Request):
    """``assignments`` is filled by the leader only."""

    group: str
    member_id: str
    generation: int
    assignments: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SyncGroupResponse(Response):
    """The member's own partitions."""

    error: ErrorCode
    assignment: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatRequest(Request):
    """A member's sign of life."""

    group: str
    member_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(Response):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest(Request):
    """A member leaves of its own will."""

    group: str
    member_id: str


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse(Response):
    """Whether the member was known."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest(Request):
    """Positions to remember: partition, next offset to read, leader epoch of the last record read."""

    group: str
    member_id: str
    generation: int
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + 40 * len(self.offsets)


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse(Response):
    """One error for all: commits of one request are appended together."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest(Request):
    """Committed offsets of a group for the partitions named."""

    group: str
    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse(Response):
    """Offset -1 where the group has committed nothing."""

    error: ErrorCode
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...] = ()


# -- brokers and controller -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IsrMember:
    """An ISR member with its broker epoch; -1 skips the controller's check (KIP-903)."""

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    """A leader's wish for one partition's ISR."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    partition_epoch: int
    in_sync: tuple[IsrMember, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest(Request):
    """All wishes of one broker that wait, batched (KIP-497)."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    items: tuple[AlterPartitionItem, ...]

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + 60 * len(self.items)


@dataclass(frozen=True, slots=True)
class AlterPartitionResult:
    """One partition's part of an :class:`AlterPartitionResponse`."""

    partition: TopicPartition
    error: ErrorCode
    leader: NodeId = NO_LEADER
    leader_epoch: LeaderEpoch = -1
    in_sync: tuple[NodeId, ...] = ()
    partition_epoch: int = -1


@dataclass(frozen=True, slots=True)
class AlterPartitionResponse(Response):
    """``error`` at the top: STALE_BROKER_EPOCH, NOT_CONTROLLER."""

    error: ErrorCode
    results: tuple[AlterPartitionResult, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest(Request):
    """A broker process introduces itself; ``incarnation`` is new with each process start."""

    broker: NodeId
    incarnation: str
    rack: str
    previous_broker_epoch: BrokerEpoch
    """From the clean-shutdown file; -1 after an unclean stop."""
    directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse(Response):
    """The registration's broker epoch."""

    error: ErrorCode
    broker_epoch: BrokerEpoch = -1


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatRequest(Request):
    """A broker's sign of life, and its wish to be fenced or to shut down."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    metadata_offset: Offset
    want_fence: bool
    want_shut_down: bool
    offline_directories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse(Response):
    """The controller's view of the broker."""

    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsRequest(Request):
    """A broker's wish for a block of 1,000 producer ids."""

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse(Response):
    """Ids ``first`` to ``first + count - 1``."""

    error: ErrorCode
    first: ProducerId = -1
    count: int = 0


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest(Request):
    """An administrator's wish for topics; ``configs`` in Kafka's names, values as text."""

    topics: tuple["NewTopic", ...]


@dataclass(frozen=True, slots=True)
class NewTopic:
    """One topic of a :class:`CreateTopicsRequest`; ``assignment`` overrides placement."""

    name: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str], ...] = ()
    assignment: tuple[tuple[NodeId, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTopicsResponse(Response):
    """One error per topic, in the order asked; all topics are committed when it is sent."""

    errors: tuple[tuple[str, ErrorCode], ...]


# -- the metadata quorum (KRaft) ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VoteRequest(Request):
    """A candidate, or a prospective one (pre-vote, KIP-996), asks for a vote."""

    candidate: NodeId
    epoch: LeaderEpoch
    last_epoch: LeaderEpoch
    last_offset: Offset
    """The candidate's log end offset."""
    pre_vote: bool


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


@dataclass(frozen=True, slots=True)
class EndQuorumEpochRequest(Request):
    """A leader resigns; voters in the order in which they should stand."""

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


@dataclass(frozen=True, slots=True)
class QuorumFetchResponse(Response):
    """Records, or where the logs part, or who leads."""

    error: ErrorCode
    leader: NodeId
    epoch: LeaderEpoch
    high_watermark: Offset = -1
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd = NO_EPOCH_END

    @property
    def size_bytes(self) -> Bytes:
        return HEADER_BYTES + PARTITION_BYTES + sum(b.size_bytes for b in self.batches)
