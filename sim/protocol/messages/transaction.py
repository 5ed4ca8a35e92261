"""Transactions: what clients, partition leaders and the transaction coordinator say to each other.

Source: ``clients/src/main/resources/common/message`` (4.1): AddPartitionsToTxn, AddOffsetsToTxn,
TxnOffsetCommit, EndTxn, WriteTxnMarkers (KIP-98, KIP-447, KIP-890). InitProducerId and
FindCoordinator serve idempotent producers and groups too, and are with theirs.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnRequest(Request):
    """Partitions that a transaction is about to write to.

    A client of transaction version 0 sends it before its first batch to each partition. A partition
    leader sends it on a client's behalf: with ``verify_only`` it asks whether the partition is in
    the transaction (version 0), without it adds the partition (version 2, KIP-890).
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    partitions: tuple[TopicPartition, ...]
    verify_only: bool = False

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 20 + 30 * len(self.partitions)


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResponse(Response):
    """One error for all partitions: the coordinator adds or verifies them together."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnRequest(Request):
    """Offsets of the group will be committed in the transaction (version 0 only)."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    group: str


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnResponse(Response):
    """As :class:`AddPartitionsToTxnResponse`."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitRequest(Request):
    """Positions to commit with the transaction, to the group's coordinator (KIP-447).

    ``member_id`` and ``generation`` are those of the consumer that read them, or empty and -1.
    """

    transactional_id: str
    group: str
    producer_id: ProducerId
    producer_epoch: int
    member_id: str
    generation: int
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]
    instance_id: str = ""
    """``group.instance.id`` of that consumer."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 40 + 40 * len(self.offsets) + len(self.instance_id)


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponse(Response):
    """One error for all: offsets of one request are appended together."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class EndTxnRequest(Request):
    """Commit, or abort."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    committed: bool


@dataclass(frozen=True, slots=True)
class EndTxnResponse(Response):
    """Transaction version 2: the id and epoch of the next transaction; -1 and -1 before it."""

    error: ErrorCode
    producer_id: ProducerId = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class WriteTxnMarkersRequest(Request):
    """The coordinator's outcome of one transaction, to a leader of partitions it wrote to."""

    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: LeaderEpoch
    committed: bool
    partitions: tuple[TopicPartition, ...]
    version: int = 0
    """Version of the transaction (KIP-1228); 0 before 4.2."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 20 + 30 * len(self.partitions)


@dataclass(frozen=True, slots=True)
class WriteTxnMarkersResponse(Response):
    """An error for each partition; the coordinator tries those again that may yet succeed."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 30 * len(self.errors)
