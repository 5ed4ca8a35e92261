"""Transactions: what clients, partition leaders and the transaction coordinator say to each other.

Source: ``clients/src/main/resources/common/message`` (4.1): AddPartitionsToTxn, AddOffsetsToTxn,
TxnOffsetCommit, EndTxn, WriteTxnMarkers (KIP-98, KIP-447, KIP-890). InitProducerId and
FindCoordinator serve idempotent producers and groups too, and are with theirs.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from sim.protocol.messages.base import ANSWERS, Echo, Request, Response
from sim.protocol.messages.sizes import transaction as sizes
from sim.protocol.messages.sizes.encoding import by_topic
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
        transaction = (self.transactional_id, by_topic(self.partitions).items())
        return sizes.add_partitions_to_txn_request(transactions=(transaction,))


@dataclass(frozen=True, slots=True)
class AddPartitionsToTxnResponse(Echo):
    """One error for all partitions: the coordinator adds or verifies them together."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, AddPartitionsToTxnRequest), ANSWERS
        result = (self.request.transactional_id, by_topic(self.request.partitions).items())
        return sizes.add_partitions_to_txn_response(results_by_transaction=(result,))


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnRequest(Request):
    """Offsets of the group will be committed in the transaction (version 0 only)."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    group: str

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.add_offsets_to_txn_request(
            transactional_id=self.transactional_id, group_id=self.group
        )


@dataclass(frozen=True, slots=True)
class AddOffsetsToTxnResponse(sizes.AddOffsetsToTxnResponse):
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
        return sizes.txn_offset_commit_request(
            transactional_id=self.transactional_id,
            group_id=self.group,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=by_topic(partition for partition, _, _ in self.offsets).items(),
        )


@dataclass(frozen=True, slots=True)
class TxnOffsetCommitResponse(Echo):
    """One error for all: offsets of one request are appended together."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, TxnOffsetCommitRequest), ANSWERS
        topics = by_topic(partition for partition, _, _ in self.request.offsets)
        return sizes.txn_offset_commit_response(topics=topics.items())


@dataclass(frozen=True, slots=True)
class EndTxnRequest(Request):
    """Commit, or abort."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    committed: bool

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.end_txn_request(transactional_id=self.transactional_id)


@dataclass(frozen=True, slots=True)
class EndTxnResponse(sizes.EndTxnResponse):
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
        return sizes.write_txn_markers_request(markers=(by_topic(self.partitions).items(),))


@dataclass(frozen=True, slots=True)
class WriteTxnMarkersResponse(Response):
    """An error for each partition; the coordinator tries those again that may yet succeed."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.errors)
        return sizes.write_txn_markers_response(markers=(topics.items(),))
