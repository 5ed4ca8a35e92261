"""Requests of administrators to the controller, besides new topics.

Source: ``clients/src/main/resources/common/message`` (4.1): DeleteTopics, CreatePartitions,
IncrementalAlterConfigs, AlterClientQuotas (KIP-546), AlterPartitionReassignments (KIP-455),
ElectLeaders (KIP-460), UnregisterBroker.
"""

from dataclasses import dataclass
from typing import Literal

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.messages.base import ANSWERS, Echo, Request, Response
from sim.protocol.messages.sizes import admin as sizes
from sim.protocol.messages.sizes.encoding import by_topic, grouped
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class DeleteTopicsRequest(Request):
    """Topics to delete, by name."""

    topics: tuple[str, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.delete_topics_request(topics=self.topics)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return DeleteTopicsResponse(tuple((name, error) for name in self.topics))


@dataclass(frozen=True, slots=True)
class DeleteTopicsResponse(Response):
    """An error for each topic."""

    errors: tuple[tuple[str, ErrorCode], ...]
    throttle_us: Micros = 0
    """``throttle_time_ms`` of a quota of changes (KIP-599)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.delete_topics_response(responses=[name for name, _ in self.errors])

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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        replicas = [len(each) for each in self.assignment]
        return sizes.create_partitions_request(topics=((self.topic, replicas),))

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return CreatePartitionsResponse(error)


@dataclass(frozen=True, slots=True)
class CreatePartitionsResponse(Echo):
    """NONE if the topic was extended."""

    error: ErrorCode
    throttle_us: Micros = 0
    """``throttle_time_ms`` of a quota of changes (KIP-599)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, CreatePartitionsRequest), ANSWERS
        return sizes.create_partitions_response(results=(self.request.topic,))

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
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.incremental_alter_configs_request(resources=((self.resource, self.changes),))

    @property
    def resource(self) -> str:
        """``ResourceName``."""
        return self.topic or self.group if self.broker == NO_LEADER else str(self.broker)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return IncrementalAlterConfigsResponse(error)


@dataclass(frozen=True, slots=True)
class IncrementalAlterConfigsResponse(Echo):
    """NONE if the settings were changed."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, IncrementalAlterConfigsRequest), ANSWERS
        return sizes.incremental_alter_configs_response(responses=(self.request.resource,))

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerRequest(sizes.UnregisterBrokerRequest):
    """A broker whose registration is to be removed (KIP-631)."""

    broker: NodeId

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return UnregisterBrokerResponse(error)


@dataclass(frozen=True, slots=True)
class UnregisterBrokerResponse(sizes.UnregisterBrokerResponse):
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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        entries = [(entry.entity, [key for key, _ in entry.changes]) for entry in self.entries]
        return sizes.alter_client_quotas_request(entries=entries)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AlterClientQuotasResponse(
            tuple((quota_entity_text(entry.entity), error) for entry in self.entries)
        )


@dataclass(frozen=True, slots=True)
class AlterClientQuotasResponse(Echo):
    """An error for each entity, printed."""

    errors: tuple[tuple[str, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, AlterClientQuotasRequest), ANSWERS
        entries = [entry.entity for entry in self.request.entries]
        return sizes.alter_client_quotas_response(entries=entries)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return self.errors


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsRequest(Request):
    """The replicas that partitions shall have, in order; ``None`` cancels what is under way."""

    items: tuple[tuple[TopicPartition, tuple[NodeId, ...] | None], ...]
    allow_replication_factor_change: bool = True

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = grouped((partition, len(replicas or ())) for partition, replicas in self.items)
        return sizes.alter_partition_reassignments_request(topics=topics.items())

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return AlterPartitionReassignmentsResponse(
            tuple((partition, error) for partition, _ in self.items)
        )


@dataclass(frozen=True, slots=True)
class AlterPartitionReassignmentsResponse(Response):
    """An error for each partition."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.errors)
        return sizes.alter_partition_reassignments_response(responses=topics.items())

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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.elect_leaders_request(topic_partitions=by_topic(self.partitions).items())

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return ElectLeadersResponse(tuple((p, error) for p in self.partitions))


@dataclass(frozen=True, slots=True)
class ElectLeadersResponse(Response):
    """An error for each requested partition; of all partitions, for those that needed one."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.errors)
        return sizes.elect_leaders_response(replica_election_results=topics.items())

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
        return sizes.update_features_request(feature_updates=[name for name, _ in self.updates])

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
        return sizes.update_features_response(error_message=self.reason)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of the whole request, with its reason."""
        return ((self.reason, self.error),)
