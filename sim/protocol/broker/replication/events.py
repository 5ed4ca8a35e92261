"""What happens to a replica manager, and the effects that are its own.

Source: ``kafka.server.ReplicaManager``.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from sim.protocol.coordinator.log import InTransaction
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.messages.cluster import AlterPartitionRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.ports import NO_GUARD, Batch
from sim.protocol.preemption import Resumed
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class MetadataApplied:
    """The broker's image has moved on.

    ``changed`` names the partitions that did, and ``reconfigured`` the topics whose settings did,
    each in log order.
    """

    image: MetadataImage
    changed: tuple[TopicPartition, ...]
    reconfigured: tuple[str, ...] = ()
    breaks_off: bool = False
    """Whether roles change and coordinators are not told of it (KAFKA-9307)."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """Where ISR changes go from now on; -1 if nobody knows."""

    controller: NodeId


@dataclass(frozen=True, slots=True)
class RegisteredWithEpoch:
    """The broker epoch that goes into fetches and ISR changes."""

    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class VerifyInternal:
    """A coordinator is to write for a transaction; answered by one ``InternalVerified``."""

    token: int
    partition: TopicPartition
    transaction: InTransaction


@dataclass(frozen=True, slots=True)
class AppendInternal:
    """A coordinator writes; answered by ``InternalAppended``, as ``AppendRecords`` says.

    ``guard`` is what the verification gave of the transaction to which the batch belongs.
    """

    token: int
    partition: TopicPartition
    batch: Batch
    timeout_us: Micros
    guard: int = NO_GUARD
    follows_watermark: bool = False


@dataclass(frozen=True, slots=True)
class Stopping:
    """Controlled shutdown began: partitions without a leader are no longer fetched."""


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    """A log directory has failed: its replicas are offline until the process starts again."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Event: the storage engine has let segments go, and the log begins later than before."""

    partition: TopicPartition
    before: Offset
    after: Offset
    reason: str
    """As in the trace's table ``log_starts``."""


@dataclass(frozen=True, slots=True)
class FetchingStopped:
    """Event: the controller wants these partitions not to be followed any more (StopReplica)."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class AlterLogDirsTurn:
    """Event: a thread that copies replicas between log directories goes on."""

    thread: int


BrokerNews = (
    ControllerChanged
    | RegisteredWithEpoch
    | Stopping
    | DirectoryFailed
    | LogStartMoved
    | FetchingStopped
)
"""Events of the broker itself, which come seldom."""

ReplicaManagerEvent = (
    RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | Flushed
    | MetadataApplied
    | VerifyInternal
    | AppendInternal
    | AlterLogDirsTurn
    | Resumed
    | BrokerNews
)
"""What can happen to a replica manager."""


@dataclass(frozen=True, slots=True)
class LeadershipApplied:
    """Effect: this broker began or ceased to lead a partition (coordinators want to know)."""

    partition: TopicPartition
    is_leader: bool
    leader_epoch: int
    takes_over: bool = False
    """Whether it did not lead before."""


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """Effect: more of a led partition is committed, and somebody asked to be told.

    Also an event of the broker's share partitions.
    """

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class IsrWritesWanted:
    """Effect: this broker's own session with ZooKeeper shall write these ISRs (before 2.7).

    Answered by a ``ResponseReceived`` with the correlation, as if the controller had answered.
    """

    correlation: int
    request: AlterPartitionRequest


@dataclass(frozen=True, slots=True)
class InternalAppended:
    """Effect: the outcome of an ``AppendInternal``; another one follows if it is not ``final``."""

    token: int
    error: ErrorCode
    base_offset: Offset
    final: bool = True


@dataclass(frozen=True, slots=True)
class InternalVerified:
    """Effect: the outcome of a ``VerifyInternal``."""

    token: int
    error: ErrorCode
    guard: int


@dataclass(frozen=True, slots=True)
class StorageBroke:
    """Effect: a log directory failed under this partition; the broker decides what that means."""

    partition: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicaRemoved:
    """Effect: the broker holds the partition no more; its log is to be deleted."""

    partition: TopicPartition


class CopyTurn(NamedTuple):
    """Effect: a thread has done something; give it :class:`AlterLogDirsTurn` when it is paid."""

    thread: int
    partition: TopicPartition | None
    """What was read, or is to be flushed; ``None``: nothing."""
    size_bytes: Bytes
    """How much was read."""
    pause_us: Micros
    """How long the thread rests first."""
    flush: bool
    """Whether the future log is to be made durable first."""


class FutureBroke(NamedTuple):
    """Effect: the disk under a future log has refused."""

    partition: TopicPartition
    reason: str


class FormerBroke(NamedTuple):
    """Effect: the disk under a log that was moved away has refused."""

    directory: int
    """Number of the log directory."""
    reason: str
