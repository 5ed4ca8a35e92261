"""The log of a tiered partition as a remote log manager sees it; its events and effects.

Source: ``RemoteLogManager``, ``RemoteStorageManager``, ``RemoteLogMetadataManager``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.tiered.segments import Epochs, RemoteEvent, RemoteSegment
from sim.protocol.messages.data import AbortedTransaction
from sim.protocol.ports import Batch
from sim.trace.emit import Emit
from sim.units import MIB, MS, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class TieredConfig:
    """Kafka's settings of a remote log manager."""

    interval_us: Micros = 30 * SECOND
    """``remote.log.manager.task.interval.ms``."""
    copiers: int = 10
    """``remote.log.manager.copier.thread.pool.size``."""
    expirers: int = 10
    """``remote.log.manager.expiration.thread.pool.size``."""
    readers: int = 10
    """``remote.log.reader.threads``."""
    pending_reads_max: int = 100
    """``remote.log.reader.max.pending.tasks``."""
    metadata_partitions: int = 50
    """``remote.log.metadata.topic.num.partitions`` of the metadata manager."""
    deletes_failed: bool = True
    """True if a copy that failed is deleted and its size not counted, as since 3.9
    (KAFKA-17062)."""
    rereads_events: bool = True
    """True if the events of a partition that is assigned later are read again from the start, as
    since 3.8 (KAFKA-16105)."""


class ClosedSegment(NamedTuple):
    """A segment of the local log that may be copied."""

    base_offset: Offset
    next_offset: Offset
    """Base offset of the next segment."""
    size: Bytes
    max_timestamp_ms: int
    lacks_aborted: bool


class TieredLog(Protocol):
    """A replica's log, for its remote log manager."""

    @property
    def epochs(self) -> Epochs:
        """Entries of the epoch cache."""

    @property
    def log_start_offset(self) -> Offset:
        """First offset of the remote or local log."""

    @property
    def local_log_start_offset(self) -> Offset:
        """First offset of the local log."""

    @property
    def log_end_offset(self) -> Offset:
        """Log end offset."""

    @property
    def last_stable_offset(self) -> Offset:
        """Last stable offset: only what is below may be copied."""

    @property
    def retention(self) -> tuple[int, Bytes]:
        """``retention.ms`` and ``retention.bytes``; -1: no limit."""

    def closed_segments(self, start: Offset) -> Sequence[ClosedSegment]:
        """Segments from the one that holds the offset on, without the active one."""

    def only_local_bytes(self) -> Bytes:
        """Bytes of the segments that were not copied yet."""

    def note_copied(self, highest: Offset) -> None:
        """Sets the last offset in the remote log, up to which segments may be deleted locally."""


# -- events ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RoleApplied:
    """Effect of the replica manager: the broker leads or follows a tiered partition."""

    partition: TopicPartition
    topic_id: str
    is_leader: bool
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class PartitionStopped:
    """Effect of the replica manager: a tiered replica is removed from this broker."""

    partition: TopicPartition
    deletes_remote: bool
    """True if its topic is deleted and the broker led it."""


@dataclass(frozen=True, slots=True)
class EventsRead:
    """Events of a metadata partition, with their offsets."""

    metadata_partition: int
    events: tuple[tuple[Offset, RemoteEvent], ...]
    caught_up: bool
    """True if they reach the high watermark."""


@dataclass(frozen=True, slots=True)
class Published:
    """Outcome of a :class:`PublishEvent`: written, and read back by this broker."""

    token: int
    ok: bool


@dataclass(frozen=True, slots=True)
class StorageDone:
    """Outcome of a call of the remote storage."""

    token: int
    ok: bool


@dataclass(frozen=True, slots=True)
class SegmentRead:
    """Outcome of a :class:`ReadSegment`."""

    token: int
    error: ErrorCode
    batches: tuple[Batch, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()


@dataclass(frozen=True, slots=True)
class AuxState:
    """State of a log at the end of a remote segment."""

    next_offset: Offset
    epochs: tuple[tuple[LeaderEpoch, Offset], ...]
    snapshot: bytes
    """The producers' snapshot file; empty without one."""


@dataclass(frozen=True, slots=True)
class RemoteReadRequested:
    """Effect of the replica manager: a consumer's fetch needs the remote log."""

    token: int
    partition: TopicPartition
    offset: Offset
    bytes_max: Bytes = MIB
    committed: bool = False
    """True if the reader skips aborted transactions."""


@dataclass(frozen=True, slots=True)
class RemoteReadCancelled:
    """Effect of the replica manager: the fetch has waited too long."""

    token: int


@dataclass(frozen=True, slots=True)
class RemoteReadDone:
    """Event of the replica manager: outcome of a remote read."""

    token: int
    error: ErrorCode
    batches: tuple[Batch, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()


@dataclass(frozen=True, slots=True)
class AuxStateRequested:
    """Effect of the replica manager: a follower needs the state before an offset of an epoch."""

    token: int
    partition: TopicPartition
    epoch: LeaderEpoch
    offset: Offset


@dataclass(frozen=True, slots=True)
class AuxStateDone:
    """Event of the replica manager: that state; ``None`` if it cannot be had."""

    token: int
    state: AuxState | None


# -- effects --------------------------------------------------------------------------------------


class PublishEvent(NamedTuple):
    """Writes an event to the metadata topic; answered by :class:`Published`."""

    token: int
    event: RemoteEvent


class AssignMetadata(NamedTuple):
    """Reads these partitions of the metadata topic; the named ones from their start."""

    assigned: tuple[int, ...]
    restarted: tuple[int, ...]


class CopySegment(NamedTuple):
    """Copies a segment's files to the object store; answered by :class:`StorageDone`."""

    token: int
    segment: RemoteSegment


class DeleteSegment(NamedTuple):
    """Deletes a segment's objects; answered by :class:`StorageDone`."""

    token: int
    segment: RemoteSegment


class ReadSegment(NamedTuple):
    """Reads batches of a segment; answered by :class:`SegmentRead`."""

    token: int
    segment: RemoteSegment
    offset: Offset
    bytes_max: Bytes
    following: tuple[RemoteSegment, ...]
    """Later segments in which transactions may have been aborted; empty if nobody asks."""
    committed: bool


class CancelRead(NamedTuple):
    """Ends a :class:`ReadSegment` without an answer."""

    token: int


class ReadAuxState(NamedTuple):
    """Reads a segment's leader epochs and producers; the requester gets the outcome."""

    token: int
    segment: RemoteSegment


class RaiseLogStart(NamedTuple):
    """Raises a leader's log start offset, for the reason."""

    partition: TopicPartition
    offset: Offset
    reason: str


TieredEffect: TypeAlias = (
    PublishEvent
    | AssignMetadata
    | CopySegment
    | DeleteSegment
    | ReadSegment
    | CancelRead
    | ReadAuxState
    | AuxStateDone
    | RaiseLogStart
    | RemoteReadDone
    | fx.SetTimer
    | Emit
)
Effects: TypeAlias = list[TieredEffect]
"""List that receives the effects of one decision, in order."""

DELIVERY_TIMEOUT_US: Micros = 120 * SECOND
"""``delivery.timeout.ms`` of the metadata producer, and ``remote.log.metadata.consume.wait.ms``."""

RETRY_US: Micros = 100 * MS
"""``retry.backoff.ms`` of the metadata clients."""
