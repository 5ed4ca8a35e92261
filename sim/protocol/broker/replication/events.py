"""Events of a replica manager, and its own effects.

Source: ``kafka.server.ReplicaManager``.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from sim.protocol.broker.tiered.ports import AuxStateDone, RemoteReadDone
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
    """The broker's image has new metadata.

    ``changed`` names the changed partitions, and ``reconfigured`` the topics whose settings
    changed, each in log order.
    """

    image: MetadataImage
    changed: tuple[TopicPartition, ...]
    reconfigured: tuple[str, ...] = ()
    breaks_off: bool = False
    """True if roles change and coordinators do not learn of it (KAFKA-9307)."""


@dataclass(frozen=True, slots=True)
class ControllerChanged:
    """The controller that receives ISR changes from now on; -1 if none is known."""

    controller: NodeId


@dataclass(frozen=True, slots=True)
class RegisteredWithEpoch:
    """Broker epoch of fetches and ISR changes."""

    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class VerifyInternal:
    """A coordinator is to write for a transaction; answered by one ``InternalVerified``."""

    token: int
    partition: TopicPartition
    transaction: InTransaction


@dataclass(frozen=True, slots=True)
class AppendInternal:
    """A coordinator's append; ``guard``: of the batch's transaction. See ``AppendRecords``."""

    token: int
    partition: TopicPartition
    batch: Batch
    timeout_us: Micros
    guard: int = NO_GUARD
    follows_watermark: bool = False


@dataclass(frozen=True, slots=True)
class ShutdownBegun:
    """Controlled shutdown began: partitions without a leader are no longer fetched."""


@dataclass(frozen=True, slots=True)
class DirectoryFailed:
    """A log directory has failed: its replicas are offline until the process starts again."""

    partitions: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class LogStartMoved:
    """Event: retention has deleted segments, and the log start has moved."""

    partition: TopicPartition
    before: Offset
    after: Offset
    reason: str
    """As in the trace's table ``log_starts``."""


@dataclass(frozen=True, slots=True)
class FetchingStopped:
    """Event: these partitions are no longer to be followed (StopReplica)."""

    partitions: tuple[TopicPartition, ...]
    deleted: tuple[TopicPartition, ...] = ()
    """Those that are to be deleted, hosted or not."""


@dataclass(frozen=True, slots=True)
class AlterLogDirsTurn:
    """Event: turn of a thread that copies replicas between log directories."""

    thread: int


@dataclass(frozen=True, slots=True)
class FollowerRead:
    """The response to a follower's fetch begins to wait for the disk, or its records are read.

    A session has one response at a time.
    """

    session_id: int
    begins: bool


BrokerNews = (
    ControllerChanged
    | RegisteredWithEpoch
    | ShutdownBegun
    | DirectoryFailed
    | LogStartMoved
    | FetchingStopped
    | RemoteReadDone
    | AuxStateDone
    | FollowerRead
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
"""Events of a replica manager."""


@dataclass(frozen=True, slots=True)
class LeadershipApplied:
    """Effect: this broker became or ceased to be leader of a partition, for coordinators."""

    partition: TopicPartition
    is_leader: bool
    leader_epoch: int
    takes_over: bool = False
    """True if it did not lead before."""


@dataclass(frozen=True, slots=True)
class HighWatermarkMoved:
    """Effect: the high watermark of a watched partition has advanced.

    Also an event of the broker's share partitions.
    """

    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class IsrWritesRequested:
    """Effect: these ISRs are to be written over this broker's session with ZooKeeper (before 2.7).

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
    """Effect: a log directory failed under this partition."""

    partition: TopicPartition
    reason: str


@dataclass(frozen=True, slots=True)
class ReplicaRemoved:
    """Effect: the broker no longer hosts the partition; its log is to be deleted."""

    partition: TopicPartition
    was_hosted: bool = True
    """False if only its log was there: this process has had no role for it."""


class CopyTurn(NamedTuple):
    """Effect: costs of a thread's turn; :class:`AlterLogDirsTurn` follows when they are paid."""

    thread: int
    partition: TopicPartition | None
    """Partition that was read, or is to be flushed; ``None``: none."""
    size_bytes: Bytes
    """Bytes that were read."""
    pause_us: Micros
    """Pause of the thread before."""
    flush: bool
    """True if the future log is to be made durable first."""


class FutureBroke(NamedTuple):
    """Effect: the disk under a future log has failed."""

    partition: TopicPartition
    reason: str


class FormerBroke(NamedTuple):
    """Effect: the disk under a replaced log has failed."""

    directory: int
    """Number of the log directory."""
    reason: str
