"""Requests of administrators to the controller, besides new topics.

Source: ``clients/src/main/resources/common/message`` (4.1): DeleteTopics, CreatePartitions,
IncrementalAlterConfigs, AlterClientQuotas (KIP-546), AlterPartitionReassignments (KIP-455),
ElectLeaders (KIP-460), UnregisterBroker.
"""

from dataclasses import dataclass
from typing import Literal

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest(Request):
    """Topics to delete, by name."""

    topics: tuple[str, ...]

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return DeleteTopicsResponse(tuple((name, error) for name in self.topics))


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse(Response):
    """An error for each topic."""

    errors: tuple[tuple[str, ErrorCode], ...]
    throttle_us: Micros = 0
    """``throttle_time_ms`` of a quota of changes (KIP-599)."""

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return self.errors


@dataclass(frozen=True, slots=True)
class CreatePartitionsRequest(Request):
    """``count``: how many partitions the topic shall have in all.

    ``assignment`` has the replicas of each new partition; empty: the controller places them.
    """

    topic: str
    count: int
    assignment: tuple[tuple[NodeId, ...], ...] = ()

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return CreatePartitionsResponse(error)


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse(Response):
    """NONE if the topic was extended."""

    error: ErrorCode
    throttle_us: Micros = 0
    """``throttle_time_ms`` of a quota of changes (KIP-599)."""

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsRequest(Request):
    """Settings to set, or with ``None`` to forget, of one resource; without any of the cluster."""

    topic: str
    changes: tuple[tuple[str, str | None], ...]
    broker: NodeId = NO_LEADER
    """The one broker whose settings these are."""
    group: str = ""
    """The one group."""

    @property
    def resource(self) -> str:
        """``ResourceName``."""
        return self.topic or self.group if self.broker == NO_LEADER else str(self.broker)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return IncrementalAlterConfigsResponse(error)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse(Response):
    """NONE if the settings were changed."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRequest(Request):
    """A broker whose registration is to be removed (KIP-631)."""

    broker: NodeId

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return UnregisterBrokerResponse(error)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerResponse(Response):
    """NONE if the broker is not registered any more."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """Quotas of one entity to set, or with ``None`` to remove; ``entity`` as in the records."""

    entity: tuple[tuple[str, str | None], ...]
    changes: tuple[tuple[str, float | None], ...]


def quota_entity_text(entity: tuple[tuple[str, str | None], ...]) -> str:
    """An entity as people read it: ``user ANONYMOUS, client-id <default>``."""
    return ", ".join(f"{kind} {'<default>' if name is None else name}" for kind, name in entity)


@dataclass(frozen=True, slots=True)
class AlterClientQuotasRequest(Request):
    """Quotas of clients (KIP-546)."""

    entries: tuple[QuotaAlteration, ...]

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AlterClientQuotasResponse(
            tuple((quota_entity_text(entry.entity), error) for entry in self.entries)
        )


@dataclass(frozen=True, slots=True)
class AlterClientQuotasResponse(Response):
    """An error for each entity, printed."""

    errors: tuple[tuple[str, ErrorCode], ...]

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return self.errors


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsRequest(Request):
    """The replicas that partitions shall have, in order; ``None`` cancels what is under way."""

    items: tuple[tuple[TopicPartition, tuple[NodeId, ...] | None], ...]
    allow_replication_factor_change: bool = True

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AlterPartitionReassignmentsResponse(
            tuple((partition, error) for partition, _ in self.items)
        )


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse(Response):
    """An error for each partition."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return tuple((str(partition), error) for partition, error in self.errors)


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest(Request):
    """Elections at once, of the preferred leader or an unclean one; no partitions: all.

    A requested unclean election happens whatever ``unclean.leader.election.enable`` says.
    """

    kind: Literal["preferred", "unclean"]
    partitions: tuple[TopicPartition, ...]

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return ElectLeadersResponse(tuple((p, error) for p in self.partitions))


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse(Response):
    """An error for each requested partition; of all partitions, for those that needed one."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return tuple((str(partition), error) for partition, error in self.errors)


@dataclass(frozen=True, slots=True)
class UpdateFeaturesRequest(Request):
    """Upgrades of finalized feature levels, all of them or none (KIP-584)."""

    updates: tuple[tuple[str, int], ...]
    """Name and new level of each."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES - 18 + sum(len(name) + 5 for name, _ in self.updates)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return UpdateFeaturesResponse(error)


@dataclass(frozen=True, slots=True)
class UpdateFeaturesResponse(Response):
    """NONE if every level is finalized now."""

    error: ErrorCode
    reason: str = ""
    """Reason of a refusal: who does not support which level."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES - 33 + len(self.reason)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of the whole request, with its reason."""
        return ((self.reason, self.error),)
