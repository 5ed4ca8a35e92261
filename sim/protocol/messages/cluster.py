"""Between brokers, administrators and the controller."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import (
    NO_LEADER,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerId,
    TopicPartition,
    server_name,
)
from sim.protocol.messages.base import (
    ANSWERS,
    CLUSTER_ID,
    CONTROLLER_LISTENER,
    LISTENER,
    Echo,
    Request,
    Response,
)
from sim.protocol.messages.sizes import cluster as sizes
from sim.protocol.messages.sizes.encoding import grouped, topic_counts
from sim.protocol.metadata.versions import SUPPORTED, SupportedFeatures
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class IsrMember:
    """An ISR member with its broker epoch; -1 skips the controller's check (KIP-903)."""

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class AlterPartitionItem:
    """A leader's request for one partition's ISR."""

    partition: TopicPartition
    leader_epoch: LeaderEpoch
    partition_epoch: int
    in_sync: tuple[IsrMember, ...]


@dataclass(frozen=True, slots=True)
class AlterPartitionRequest(Request):
    """All pending ISR changes of one broker, batched (KIP-497)."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    items: tuple[AlterPartitionItem, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = grouped((item.partition, len(item.in_sync)) for item in self.items)
        return sizes.alter_partition_request(topics=topics.values())

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AlterPartitionResponse(error)


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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = grouped((result.partition, len(result.in_sync)) for result in self.results)
        return sizes.alter_partition_response(topics=topics.values())


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest(Request):
    """A broker process introduces itself; ``incarnation`` is new with each process start."""

    broker: NodeId
    incarnation: str
    rack: str
    previous_broker_epoch: BrokerEpoch
    """From the clean-shutdown file; -1 after an unclean stop."""
    directories: tuple[str, ...] = ()
    features: SupportedFeatures = SUPPORTED
    """Features that it supports."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.broker_registration_request(
            cluster_id=CLUSTER_ID,
            listeners=((LISTENER, server_name(self.broker)),),
            features=[name for name, _, _ in self.features],
            rack=self.rack,
            log_dirs=len(self.directories),
        )

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return BrokerRegistrationResponse(error)


@dataclass(frozen=True, slots=True)
class BrokerRegistrationResponse(sizes.BrokerRegistrationResponse):
    """The registration's broker epoch."""

    error: ErrorCode
    broker_epoch: BrokerEpoch = -1


@dataclass(frozen=True, slots=True)
class ControllerRegistrationRequest(Request):
    """A controller process introduces itself (KIP-919)."""

    controller: NodeId
    incarnation: str
    features: SupportedFeatures

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.controller_registration_request(
            listeners=((CONTROLLER_LISTENER, server_name(self.controller)),),
            features=[name for name, _, _ in self.features],
        )

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return ControllerRegistrationResponse(error)


@dataclass(frozen=True, slots=True)
class ControllerRegistrationResponse(sizes.ControllerRegistrationResponse):
    """NONE once the registration is committed."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatRequest(Request):
    """A broker's heartbeat, and its request to be fenced or to shut down."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    metadata_offset: Offset
    want_fence: bool
    want_shut_down: bool
    offline_directories: tuple[str, ...] = ()
    cordoned_directories: tuple[str, ...] | None = None
    """Directories that get no new replicas; ``None``: it says nothing of them (KIP-1066)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.broker_heartbeat_request(
            offline_log_dirs=len(self.offline_directories),
            cordoned_log_dirs=len(self.cordoned_directories or ()),
        )

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return BrokerHeartbeatResponse(error)


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatResponse(sizes.BrokerHeartbeatResponse):
    """The controller's view of the broker."""

    error: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


@dataclass(frozen=True, slots=True)
class DirectoryAssignment:
    """In which of its log directories a broker has put a replica; the topic's id says which."""

    partition: TopicPartition
    topic_id: str
    directory: str


def _by_directory(items: tuple[DirectoryAssignment, ...]) -> list[list[int]]:
    """Numbers of replicas in each directory, by topic."""
    found: dict[str, list[TopicPartition]] = {}
    for item in items:
        found.setdefault(item.directory, []).append(item.partition)
    return [topic_counts(partitions) for partitions in found.values()]


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirsRequest(Request):
    """Placements of a broker, for the controller to record (KIP-858)."""

    broker: NodeId
    broker_epoch: BrokerEpoch
    items: tuple[DirectoryAssignment, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.assign_replicas_to_dirs_request(directories=_by_directory(self.items))

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AssignReplicasToDirsResponse(error)


@dataclass(frozen=True, slots=True)
class AssignReplicasToDirsResponse(Echo):
    """``error`` at the top; else one error per replica, in the order asked."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, AssignReplicasToDirsRequest), ANSWERS
        items = self.request.items if self.results else ()
        return sizes.assign_replicas_to_dirs_response(directories=_by_directory(items))


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsRequest(sizes.AllocateProducerIdsRequest):
    """A broker's request for a block of 1,000 producer ids."""

    broker: NodeId
    broker_epoch: BrokerEpoch

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AllocateProducerIdsResponse(error)


@dataclass(frozen=True, slots=True)
class AllocateProducerIdsResponse(sizes.AllocateProducerIdsResponse):
    """Ids ``first`` to ``first + count - 1``."""

    error: ErrorCode
    first: ProducerId = -1
    count: int = 0


@dataclass(frozen=True, slots=True)
class CreateTopicsRequest(Request):
    """An administrator's request for topics; ``configs`` in Kafka's names, values as text."""

    topics: tuple["NewTopic", ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = [
            (each.name, [len(replicas) for replicas in each.assignment], each.configs)
            for each in self.topics
        ]
        return sizes.create_topics_request(topics=topics)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return CreateTopicsResponse(tuple((topic.name, error) for topic in self.topics))


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
    throttle_us: Micros = 0
    """``throttle_time_ms`` of a quota of changes (KIP-599)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.create_topics_response(topics=[name for name, _ in self.errors])

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return self.errors
