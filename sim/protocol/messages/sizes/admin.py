"""Sizes of the messages in :mod:`sim.protocol.messages.admin`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class UnregisterBrokerRequest(Request):
    """UnregisterBrokerRequest 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 30


class UnregisterBrokerResponse(Response):
    """UnregisterBrokerResponse 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 17


def alter_client_quotas_request(
    *,
    entries: Collection[tuple[Collection[tuple[str, str | None]], Collection[str]]],
) -> Bytes:
    """AlterClientQuotasRequest 1."""
    size = 27 + wire.uvarint(len(entries) + 1)
    for entity_1, ops_1 in entries:
        size += 1 + wire.uvarint(len(entity_1) + 1) + wire.uvarint(len(ops_1) + 1)
        for entity_type_2, entity_name_2 in entity_1:
            size += 1 + wire.text(entity_type_2) + wire.text(entity_name_2)
        for key_3 in ops_1:
            size += 10 + wire.text(key_3)
    return size


def alter_client_quotas_response(
    *,
    entries: Collection[Collection[tuple[str, str | None]]],
) -> Bytes:
    """AlterClientQuotasResponse 1."""
    size = 14 + wire.uvarint(len(entries) + 1)
    for entity_1 in entries:
        size += 4 + wire.uvarint(len(entity_1) + 1)
        for entity_type_2, entity_name_2 in entity_1:
            size += 1 + wire.text(entity_type_2) + wire.text(entity_name_2)
    return size


def alter_partition_reassignments_request(
    *,
    topics: Collection[tuple[str, Collection[int]]],
) -> Bytes:
    """AlterPartitionReassignmentsRequest 1."""
    size = 31 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.uvarint(len(partitions_1) + 1)
        for replicas_2 in partitions_1:
            size += 5 + wire.numbers(replicas_2, 4)
    return size


def alter_partition_reassignments_response(
    *,
    error_message: str | None = None, responses: Collection[tuple[str, int]],
) -> Bytes:
    """AlterPartitionReassignmentsResponse 1."""
    size = 17 + wire.text(error_message) + wire.uvarint(len(responses) + 1)
    for name_1, partitions_1 in responses:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 8)
    return size


def create_partitions_request(*, topics: Collection[tuple[str, Collection[int]]]) -> Bytes:
    """CreatePartitionsRequest 3."""
    size = 31 + wire.uvarint(len(topics) + 1)
    for name_1, assignments_1 in topics:
        size += 5 + wire.text(name_1) + wire.uvarint(len(assignments_1) + 1)
        for broker_ids_2 in assignments_1:
            size += 1 + wire.numbers(broker_ids_2, 4)
    return size


def create_partitions_response(*, results: Collection[str]) -> Bytes:
    """CreatePartitionsResponse 3."""
    size = 14 + wire.uvarint(len(results) + 1)
    for name_1 in results:
        size += 4 + wire.text(name_1)
    return size


def delete_topics_request(*, topics: Collection[str | None]) -> Bytes:
    """DeleteTopicsRequest 6."""
    size = 30 + wire.uvarint(len(topics) + 1)
    for name_1 in topics:
        size += 17 + wire.text(name_1)
    return size


def delete_topics_response(*, responses: Collection[str | None]) -> Bytes:
    """DeleteTopicsResponse 6."""
    size = 14 + wire.uvarint(len(responses) + 1)
    for name_1 in responses:
        size += 20 + wire.text(name_1)
    return size


def elect_leaders_request(*, topic_partitions: Collection[tuple[str, int]] = ()) -> Bytes:
    """ElectLeadersRequest 2."""
    size = 31 + wire.uvarint(len(topic_partitions) + 1)
    for topic_1, partitions_1 in topic_partitions:
        size += 1 + wire.text(topic_1) + wire.numbers(partitions_1, 4)
    return size


def elect_leaders_response(*, replica_election_results: Collection[tuple[str, int]]) -> Bytes:
    """ElectLeadersResponse 2."""
    size = 16 + wire.uvarint(len(replica_election_results) + 1)
    for topic_1, partition_result_1 in replica_election_results:
        size += 1 + wire.text(topic_1) + wire.numbers(partition_result_1, 8)
    return size


def incremental_alter_configs_request(
    *,
    resources: Collection[tuple[str, Collection[tuple[str, str | None]]]],
) -> Bytes:
    """IncrementalAlterConfigsRequest 1."""
    size = 27 + wire.uvarint(len(resources) + 1)
    for resource_name_1, configs_1 in resources:
        size += 2 + wire.text(resource_name_1) + wire.uvarint(len(configs_1) + 1)
        for name_2, value_2 in configs_1:
            size += 2 + wire.text(name_2) + wire.text(value_2)
    return size


def incremental_alter_configs_response(*, responses: Collection[str]) -> Bytes:
    """IncrementalAlterConfigsResponse 1."""
    size = 14 + wire.uvarint(len(responses) + 1)
    for resource_name_1 in responses:
        size += 5 + wire.text(resource_name_1)
    return size


def update_features_request(*, feature_updates: Collection[str]) -> Bytes:
    """UpdateFeaturesRequest 2."""
    size = 31 + wire.uvarint(len(feature_updates) + 1)
    for feature_1 in feature_updates:
        size += 4 + wire.text(feature_1)
    return size


def update_features_response(*, error_message: str | None = None) -> Bytes:
    """UpdateFeaturesResponse 2."""
    return 16 + wire.text(error_message)
