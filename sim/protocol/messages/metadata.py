"""Metadata and producer ids, as clients request them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, ProducerId, server_name
from sim.protocol.messages.base import CLUSTER_ID, Request, Response
from sim.protocol.messages.sizes import metadata as sizes
from sim.units import Bytes, Micros

NO_RACKS: Final[Mapping[NodeId, str]] = {}
"""No broker is in a rack."""


@dataclass(frozen=True, slots=True)
class MetadataRequest(Request):
    """The topics a client uses; ``None``: all that there are."""

    topics: tuple[str, ...] | None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.metadata_request(topics=self.topics or ())


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """One partition as a broker's own image has it; ``leader`` is NO_LEADER when it has none."""

    partition: int
    leader: NodeId
    leader_epoch: LeaderEpoch
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]

    def counts(self, alive: tuple[NodeId, ...]) -> tuple[int, int, int]:
        """Numbers of its replicas, of those in sync, and of those offline."""
        offline = [1 for replica in self.replicas if replica not in alive]
        return len(self.replicas), len(self.in_sync), len(offline)


@dataclass(init=False, slots=True, unsafe_hash=True)
class MetadataResponse(Response):
    """Brokers alive in the answering broker's image, and the topics that it knows of those asked.

    ``topics`` has each topic's partitions in order; a topic the broker does not know is absent.
    ``racks`` names the rack of each of the brokers that is in one.
    """

    brokers: Final[tuple[NodeId, ...]]
    topics: Final[Mapping[str, tuple[PartitionMetadata, ...]]]
    controller: Final[NodeId]
    racks: Final[Mapping[NodeId, str]]
    unauthorized: Final[tuple[str, ...]]
    """Topics with TOPIC_AUTHORIZATION_FAILED: whether they exist is not said."""
    sent_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size on the wire; read at every hop, so kept."""

    def __init__(
        self,
        brokers: tuple[NodeId, ...],
        topics: Mapping[str, tuple[PartitionMetadata, ...]],
        controller: NodeId = NO_LEADER,
        racks: Mapping[NodeId, str] = NO_RACKS,
        unauthorized: tuple[str, ...] = (),
    ) -> None:
        self.brokers = brokers
        self.topics = topics
        self.controller = controller
        self.racks = racks
        self.unauthorized = unauthorized
        sent = [(name, [each.counts(brokers) for each in topics[name]]) for name in topics]
        sent += [(name, []) for name in unauthorized]
        self.sent_bytes = sizes.metadata_response(
            brokers=[(server_name(each), racks.get(each)) for each in brokers],
            cluster_id=CLUSTER_ID,
            topics=sent,
        )

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.sent_bytes


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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.init_producer_id_request(transactional_id=self.transactional_id)


@dataclass(frozen=True, slots=True)
class InitProducerIdResponse(sizes.InitProducerIdResponse):
    """``producer_epoch`` is 0 for a new id."""

    error: ErrorCode
    producer_id: ProducerId = -1
    producer_epoch: int = -1

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of the transactional id that an administrator fences."""
        return (("", self.error),)
