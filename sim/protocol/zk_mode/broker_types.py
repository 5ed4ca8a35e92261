"""Types of a broker's control plane in ZooKeeper mode: settings, events and effects."""

from dataclasses import dataclass, field

from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol import events as ev
from sim.protocol.broker.replication.events import IsrWritesRequested
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    AlterPartitionResponse,
    CreateTopicsRequest,
)
from sim.protocol.zk_mode.controller_types import ZkControllerConfig
from sim.protocol.zk_mode.znodes import (
    ControlledShutdownRequest,
    LeaderAndIsrRequest,
    PartitionEntry,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from sim.protocol.zookeeper.session import SessionConfig
from sim.units import MS, SECOND, Micros

ZK_BROKER_REQUESTS: tuple[type[Request], ...] = (
    LeaderAndIsrRequest,
    UpdateMetadataRequest,
    StopReplicaRequest,
    ControlledShutdownRequest,
    AlterPartitionRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    CreatePartitionsRequest,
    AllocateProducerIdsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
)
"""Requests that the machine answers."""

REGISTER_AGAIN_US: Micros = 1 * SECOND
ISR_CHECK_US: Micros = 2_500 * MS
"""Interval at which ISR changes are checked for announcing; a constant in Kafka."""
ISR_QUIET_US: Micros = 5 * SECOND
"""They are announced when the last is this old,"""
ISR_LATEST_US: Micros = 60 * SECOND
"""or when the last announcement is."""


@dataclass(frozen=True, slots=True)
class ZkBrokerConfig:
    """Settings, with Kafka's defaults."""

    session: SessionConfig = field(default_factory=SessionConfig)
    controller: ZkControllerConfig = field(default_factory=ZkControllerConfig)
    rack: str = ""
    """``broker.rack``; empty for none."""
    shutdown_retries: int = 3
    """``controlled.shutdown.max.retries``."""
    shutdown_timeout_us: Micros = 30 * SECOND
    """``controller.socket.timeout.ms``."""
    shutdown_backoff_us: Micros = 5 * SECOND
    """``controlled.shutdown.retry.backoff.ms``."""
    resumes: bool = False
    """True if an event in progress when the session ended continues in the next one, as before 1.1
    (KAFKA-3083, KAFKA-5642)."""
    breaks_off: bool = False
    """True if a change of roles without a connection to ZooKeeper fails half-way (KAFKA-9307)."""


@dataclass(frozen=True, slots=True)
class IsrUpdate:
    """A leader's new ISR, to be written to ZooKeeper; before 2.7."""

    partition: TopicPartition
    in_sync: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class LogDirFailed:
    """A log directory has failed; these replicas are offline, with all before."""

    offline: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ShutdownRequested:
    """The process is to shut down in good order."""


@dataclass(frozen=True, slots=True)
class LeaderAndIsrApplied:
    """The broker leads or follows these partitions from now on."""

    entries: tuple[PartitionEntry, ...]
    breaks_off: bool = False
    """True if coordinators do not learn of it."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The broker's node exists; its ``czxid`` is the broker's epoch (KIP-380)."""

    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class MetadataUpdated:
    """New metadata for clients, and the controller that sent it."""

    request: UpdateMetadataRequest


@dataclass(frozen=True, slots=True)
class IsrWritesDone:
    """ZooKeeper has answered all writes of one batch."""

    correlation: int
    response: AlterPartitionResponse


@dataclass(frozen=True, slots=True)
class ReplicasStopped:
    """The broker does not follow these partitions any more."""

    partitions: tuple[TopicPartition, ...]
    deleted: tuple[TopicPartition, ...] = ()
    """Those whose logs it deletes."""


@dataclass(frozen=True, slots=True)
class ReplicasOffline:
    """These replicas may be in a log directory that failed before this process started."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class ConfigsRead:
    """Settings of a topic, or with no topic of a broker, as they are in ZooKeeper now."""

    topic: str
    configs: tuple[tuple[str, str], ...]
    broker: NodeId = NO_LEADER
    """Without a topic: the one broker, or -1 for every broker."""


@dataclass(frozen=True, slots=True)
class ShutDownGranted:
    """Controlled shutdown is granted, or its retries are used up: the process may end."""

    remaining: int


ZkBrokerEvent = (
    ev.RequestReceived
    | ev.ResponseReceived
    | ev.RequestFailed
    | ev.NotificationReceived
    | ev.ConnectionLost
    | ev.TimerFired
    | ev.Flushed
    | IsrUpdate
    | IsrWritesRequested
    | LogDirFailed
    | ShutdownRequested
)
"""Events of the machine. Begins with ``ZkBroker.begin``."""
