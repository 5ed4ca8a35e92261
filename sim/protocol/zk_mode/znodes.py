"""Data of Kafka's znodes, and the controller's requests to brokers in ZooKeeper mode.

Approximate: the data of nodes are values, not JSON text; intermediate nodes without data are not
created; a topic's first settings are in the topic's own node, and travel to brokers with the
requests of the controller; its node under ``/config/topics`` comes with the first change.

Source: ``kafka.zk.ZkData``, ``kafka.api.LeaderAndIsr``, LeaderAndIsr, UpdateMetadata, StopReplica
and ControlledShutdown requests (3.9).
"""

import re
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.units import Bytes

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
TOPIC_DELETIONS = "/admin/delete_topics"
TOPIC_CONFIGS = "/config/topics"
BROKER_CONFIGS = "/config/brokers"
LOG_DIR_EVENTS = "/log_dir_event_notification"
CONFIG_CHANGES = "/config/changes"
PRODUCER_IDS = "/latest_producer_id_block"
ISR_CHANGES = "/isr_change_notification"
ROOTS = ("/brokers", BROKER_IDS, TOPICS, ISR_CHANGES)
"""Persistent nodes that every broker creates if they are missing."""


ADMIN_ROOTS = (TOPIC_DELETIONS, TOPIC_CONFIGS, BROKER_CONFIGS, CONFIG_CHANGES)
"""As :data:`ROOTS`, where an administrator may change topics or settings."""

_STATE = re.compile(rf"{TOPICS}/(.+)/partitions/(\d+)/state")

DEFAULT_ENTITY = "<default>"
"""Node of the settings that every broker without its own has."""

Configs: TypeAlias = tuple[tuple[str, str], ...]
"""Settings in Kafka's names."""

LEADER_DURING_DELETE: NodeId = -2
"""Leader in the metadata of a partition whose topic is being deleted: brokers remove it."""

EPOCH_DURING_DELETE: LeaderEpoch = -2
"""Its leader epoch."""


def broker_path(broker: NodeId) -> str:
    """A broker's ephemeral node; its ``czxid`` is the broker's epoch (KIP-380)."""
    return f"{BROKER_IDS}/{broker}"


def topic_path(topic: str) -> str:
    """A topic's assignment."""
    return f"{TOPICS}/{topic}"


def deletion_path(topic: str) -> str:
    """Marks a topic for deletion."""
    return f"{TOPIC_DELETIONS}/{topic}"


def state_path(partition: TopicPartition) -> str:
    """A partition's leader and ISR; its version is the partition epoch."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}/state"


def partition_of(path: str) -> TopicPartition | None:
    """The partition whose state is at the path; ``None``: it is another node."""
    match = _STATE.fullmatch(path)
    return None if match is None else TopicPartition(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """Data of a broker's node."""

    broker: NodeId
    rack: str = ""


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic's id and settings."""

    topic_id: str = ""
    """Empty before 2.8 (KIP-516)."""
    configs: tuple[tuple[str, str], ...] = ()
    """Its settings, in Kafka's names."""


NO_FACTS = TopicFacts()
"""Facts of a topic without an id and without settings of its own."""


class Move(NamedTuple):
    """Replicas of a partition that are added, and those that are removed (KIP-455)."""

    adding: tuple[NodeId, ...] = ()
    removing: tuple[NodeId, ...] = ()


STAYS = Move()
"""Move of a partition that is not reassigned."""


@dataclass(frozen=True, slots=True)
class TopicAssignment:
    """Data of a topic's node: replicas of each partition."""

    replicas: tuple[tuple[NodeId, ...], ...]
    facts: TopicFacts = NO_FACTS
    moves: tuple[tuple[int, Move], ...] = ()
    """Partitions that are being reassigned."""

    def move_of(self, number: int) -> Move:
        """Move of a partition."""
        return next((move for other, move in self.moves if other == number), STAYS)


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
    """One partition in a request of the controller, and in its state."""

    partition: TopicPartition
    state: LeaderIsr
    version: int
    """The state node's version (``zkVersion``)."""
    replicas: tuple[NodeId, ...]
    facts: TopicFacts = NO_FACTS
    move: Move = STAYS


@dataclass(frozen=True, slots=True)
class ControlRequest(Request):
    """Header of every request of a controller to a broker: controller and both epochs."""

    controller: NodeId
    controller_epoch: int
    broker_epoch: BrokerEpoch
    """-1 skips the check (before KIP-380)."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrRequest(ControlRequest):
    """New roles of these partitions."""

    partitions: tuple[PartitionEntry, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class UpdateMetadataRequest(ControlRequest):
    """New metadata of partitions and brokers for clients."""

    partitions: tuple[PartitionEntry, ...]
    brokers: tuple[BrokerInfo, ...]
    """Live brokers."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class StopReplicaRequest(ControlRequest):
    """Stop fetching these partitions, and delete the logs of some."""

    partitions: tuple[TopicPartition, ...]
    deleted: tuple[TopicPartition, ...] = ()
    """Those whose logs are to be deleted."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 10 * len(self.partitions)


CONTROL_REQUESTS: tuple[type[ControlRequest], ...] = (
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
    StopReplicaRequest,
)
"""Requests of a controller of ZooKeeper mode to brokers."""


@dataclass(frozen=True, slots=True)
class ControlResponse(Response):
    """NONE, STALE_CONTROLLER_EPOCH or STALE_BROKER_EPOCH."""

    error: ErrorCode
    errors: tuple[tuple[TopicPartition, ErrorCode], ...] = ()
    """Errors of single partitions."""


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequest(Request):
    """A broker asks the controller to move its leaderships before it stops."""

    broker: NodeId
    broker_epoch: BrokerEpoch

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return ControlledShutdownResponse(error)


@dataclass(frozen=True, slots=True)
class ControlledShutdownResponse(Response):
    """Number of partitions that it still leads."""

    error: ErrorCode
    remaining: int = 0
