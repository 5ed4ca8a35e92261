"""Metadata and producer ids, as clients request them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, ProducerId
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class MetadataRequest(Request):
    """The topics a client uses; ``None``: all that there are."""

    topics: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as a broker's own image has it; ``leader`` is NO_LEADER when it has none."""

    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True)
class MetadataResponse(Response):
    """Brokers alive in the answering broker's image, and the topics that it knows of those asked.

    ``topics`` has each topic's partitions in order; a topic the broker does not know is absent.
    ``racks`` names the rack of each of the brokers that is in one.
    """

    brokers: tuple[NodeId, ...]
    topics: Mapping[str, tuple[PartitionMetadata, ...]]
    controller: NodeId = NO_LEADER
    racks: Mapping[NodeId, str] = field(default_factory=dict)
    unauthorized: tuple[str, ...] = ()
    """Topics with TOPIC_AUTHORIZATION_FAILED: whether they exist is not said."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return (
            HEADER_BYTES + 30 * len(self.brokers) + sum(40 * len(p) for p in self.topics.values())
        )


@dataclass(frozen=True, slots=True)
class InitProducerIdRequest(Request):
    """An identity for a producer: of any broker without, of the coordinator with transactional id.

    ``producer_id`` and ``producer_epoch`` are the current ones of a producer that requests the next
    epoch (KIP-360), else -1; ``timeout_us`` is ``transaction.timeout.ms``.
    """

    transactional_id: str = ""
    timeout_us: Micros = 0
    producer_id: ProducerId = -1
    producer_epoch: int = -1


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse(Response):
    """``producer_epoch`` is 0 for a new id."""

    error: ErrorCode
    producer_id: ProducerId = -1
    producer_epoch: int = -1

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of the transactional id that an administrator fences."""
        return (("", self.error),)
