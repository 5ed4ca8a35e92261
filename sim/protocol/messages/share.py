"""Share groups (KIP-932): heartbeats, fetches, acknowledgements, and the states that leaders keep.

Partitions go by topic names between clients and leaders; Kafka's go by topic ids. An answer to a
share fetch says the leader's high watermark, which Kafka's does not: no decision depends on it, the
trace has it.

Source: ``ShareGroupHeartbeatRequest.json``, ``ShareFetchRequest.json``,
``ShareAcknowledgeRequest.json``, ``ReadShareGroupStateRequest.json``,
``WriteShareGroupStateRequest.json`` and their answers.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.protocol.messages.data import LeaderHint
from sim.protocol.messages.share_records import Acknowledgement, Acquired, ShareKey, StateBatch
from sim.protocol.ports import Batch
from sim.units import Bytes, Micros

INITIAL_EPOCH = 0
"""The epoch with which a share session begins."""

FINAL_EPOCH = -1
"""The epoch with which a member closes its share session."""

_BATCH_BYTES = 19
"""Of an acknowledgement of a batch, or of its state."""


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeatRequest(Request):
    """A member's heartbeat; ``None``: as in its last one."""

    group: str
    member_id: str
    member_epoch: int
    topics: tuple[str, ...] | None = None
    rack_id: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + len(self.member_id)


@dataclass(frozen=True, slots=True)
class ShareGroupHeartbeatResponse(Response):
    """``assignment`` is ``None`` where the member already has it."""

    error: ErrorCode
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_us: Micros = 0
    assignment: tuple[TopicPartition, ...] | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + len(self.member_id) + 4 * len(self.assignment or ())


@dataclass(frozen=True, slots=True)
class PartitionAcknowledgements:
    """Acknowledgements of a member's records of one partition, in the order of the log."""

    partition: TopicPartition
    said: tuple[Acknowledgement, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return PARTITION_BYTES + sum(_BATCH_BYTES + len(each.types) for each in self.said)


@dataclass(frozen=True, slots=True)
class ShareFetchRequest(Request):
    """A fetch in a member's share session: only partitions that are new to it are listed.

    ``acknowledgements`` are of records that earlier fetches of the session brought.
    """

    group: str
    member_id: str
    session_epoch: int
    max_wait_us: Micros
    max_bytes: Bytes
    max_records: int
    partitions: tuple[TopicPartition, ...] = ()
    forgotten: tuple[TopicPartition, ...] = ()
    acknowledgements: tuple[PartitionAcknowledgements, ...] = ()
    record_limit: bool = False
    """True if ``max_records`` is no approximate number (KIP-1206)."""
    renews: bool = False
    """``IsRenewAck``: it renews locks, and fetches nothing (KIP-1222)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        places = len(self.partitions) + len(self.forgotten)
        sent = sum(each.size_bytes for each in self.acknowledgements)
        return HEADER_BYTES + len(self.member_id) + PARTITION_BYTES * places + sent


@dataclass(frozen=True, slots=True)
class ShareFetchResult:
    """One partition's part of a :class:`ShareFetchResponse`."""

    partition: TopicPartition
    error: ErrorCode = ErrorCode.NONE
    acknowledge_error: ErrorCode = ErrorCode.NONE
    batches: tuple[Batch, ...] = ()
    acquired: tuple[Acquired, ...] = ()
    """Offsets of the batches that the member has acquired."""
    high_watermark: Offset = -1
    hint: LeaderHint | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        read = sum(batch.size_bytes for batch in self.batches)
        return PARTITION_BYTES + read + _BATCH_BYTES * len(self.acquired)


@dataclass(frozen=True, slots=True)
class ShareFetchResponse(Response):
    """With an ``error`` of the session it has no partitions."""

    error: ErrorCode
    results: tuple[ShareFetchResult, ...] = ()
    lock_us: Micros = 0

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + sum(result.size_bytes for result in self.results)


@dataclass(frozen=True, slots=True)
class ShareAcknowledgeRequest(Request):
    """Acknowledgements without a fetch; the final epoch closes the session and gives back all."""

    group: str
    member_id: str
    session_epoch: int
    acknowledgements: tuple[PartitionAcknowledgements, ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        sent = sum(each.size_bytes for each in self.acknowledgements)
        return HEADER_BYTES + len(self.member_id) + sent


@dataclass(frozen=True, slots=True)
class ShareAcknowledgeResponse(Response):
    """Error of each partition's acknowledgements."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.results)


@dataclass(frozen=True, slots=True)
class ReadShareGroupStateRequest(Request):
    """A leader takes a share partition up."""

    key: ShareKey
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class ReadShareGroupStateResponse(Response):
    """``start_offset`` is -1 if nobody has fetched from the share partition yet."""

    error: ErrorCode
    state_epoch: int = 0
    start_offset: Offset = -1
    batches: tuple[StateBatch, ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES + _BATCH_BYTES * len(self.batches)


@dataclass(frozen=True, slots=True)
class WriteShareGroupStateRequest(Request):
    """A leader's share partition has changed."""

    key: ShareKey
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    complete_count: int = -1
    """Number of completed records from the start offset on; -1: not counted, as before 4.2."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES + _BATCH_BYTES * len(self.batches)


@dataclass(frozen=True, slots=True)
class WriteShareGroupStateResponse(Response):
    """The change is committed, or why it is not."""

    error: ErrorCode
