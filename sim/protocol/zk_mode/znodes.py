"""What Kafka keeps in ZooKeeper, and what controller and brokers say to each other in that mode.

Approximate: the data of nodes are values, not JSON text; intermediate nodes that hold nothing are
not made; a topic's settings are in the topic's own node, and travel to brokers with the requests of
the controller, where Kafka has ``/config/topics``, which each broker reads.

Source: ``kafka.zk.ZkData``, ``kafka.api.LeaderAndIsr``, LeaderAndIsr, UpdateMetadata, StopReplica
and ControlledShutdown requests (3.9).
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.units import Bytes

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
PRODUCER_IDS = "/latest_producer_id_block"
ISR_CHANGES = "/isr_change_notification"
ROOTS = ("/brokers", BROKER_IDS, TOPICS, ISR_CHANGES)
"""Persistent nodes that every broker makes if they are not there."""


def broker_path(broker: NodeId) -> str:
    """A broker's ephemeral node; its ``czxid`` is the broker's epoch (KIP-380)."""
    return f"{BROKER_IDS}/{broker}"


def topic_path(topic: str) -> str:
    """A topic's assignment."""
    return f"{TOPICS}/{topic}"


def state_path(partition: TopicPartition) -> str:
    """A partition's leader and ISR; its version is the partition epoch."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}/state"


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Data of a broker's node."""

    broker: NodeId
    rack: str = ""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What a topic is beside its replicas."""

    topic_id: str = ""
    """Empty before 2.8 (KIP-516)."""
    configs: tuple[tuple[str, str], ...] = ()
    """Its settings, in Kafka's names."""


NO_FACTS = TopicFacts()
"""Of a topic without an id and without settings of its own."""


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Data of a topic's node: replicas of each partition."""

    replicas: tuple[tuple[NodeId, ...], ...]
    facts: TopicFacts = NO_FACTS


@dataclass(init=False, slots=True, unsafe_hash=True)
class LeaderIsr:
    """Data of a partition's state node."""

    leader: Final[NodeId]
    leader_epoch: Final[LeaderEpoch]
    in_sync: Final[tuple[NodeId, ...]]
    controller_epoch: Final[int]

    def __init__(
        self,
        leader: NodeId,
        leader_epoch: LeaderEpoch,
        in_sync: tuple[NodeId, ...],
        controller_epoch: int,
    ) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.in_sync = in_sync
        self.controller_epoch = controller_epoch


class PartitionEntry(NamedTuple):
    """One partition in a request of the controller, and in its memory."""

    partition: TopicPartition
    state: LeaderIsr
    version: int
    """The state node's version (``zkVersion``)."""
    replicas: tuple[NodeId, ...]
    facts: TopicFacts = NO_FACTS


@dataclass(frozen=True, slots=True)
class ControlRequest(Request):
    """What every request of a controller to a broker says: who asks, and which process is meant."""

    controller: NodeId
    controller_epoch: int
    broker_epoch: BrokerEpoch
    """-1 skips the check (before KIP-380)."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest(ControlRequest):
    """Lead or follow these partitions."""

    partitions: tuple[PartitionEntry, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest(ControlRequest):
    """Tell clients this of partitions and brokers."""

    partitions: tuple[PartitionEntry, ...]
    brokers: tuple[BrokerInfo, ...]
    """Who is alive."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class StopReplicaRequest(ControlRequest):
    """Stop fetching these partitions."""

    partitions: tuple[TopicPartition, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 10 * len(self.partitions)


CONTROL_REQUESTS: tuple[type[ControlRequest], ...] = (
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
    StopReplicaRequest,
)
"""What only a controller of ZooKeeper mode asks of brokers."""


@dataclass(frozen=True, slots=True)
class ControlResponse(Response):
    """NONE, STALE_CONTROLLER_EPOCH or STALE_BROKER_EPOCH."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequest(Request):
    """A broker asks the controller to take its partitions away before it stops."""

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class ControlledShutdownResponse(Response):
    """How many partitions it still leads."""

    error: ErrorCode
    remaining: int = 0
