"""Sizes of the messages in :mod:`sim.protocol.messages.cluster`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class AllocateProducerIdsRequest(Request):
    """AllocateProducerIdsRequest 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 38


class AllocateProducerIdsResponse(Response):
    """AllocateProducerIdsResponse 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 28


class BrokerHeartbeatResponse(Response):
    """BrokerHeartbeatResponse 2: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 19


class BrokerRegistrationResponse(Response):
    """BrokerRegistrationResponse 4: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 24


class ControllerRegistrationResponse(Response):
    """ControllerRegistrationResponse 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 17


def alter_partition_request(*, topics: Collection[Collection[int]]) -> Bytes:
    """AlterPartitionRequest 3."""
    size = 38 + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for new_isr_with_epochs_2 in partitions_1:
            size += 14 + wire.numbers(new_isr_with_epochs_2, 13)
    return size


def alter_partition_response(*, topics: Collection[Collection[int]]) -> Bytes:
    """AlterPartitionResponse 3."""
    size = 16 + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for isr_2 in partitions_1:
            size += 20 + wire.numbers(isr_2, 4)
    return size


def assign_replicas_to_dirs_request(*, directories: Collection[Collection[int]]) -> Bytes:
    """AssignReplicasToDirsRequest 0."""
    size = 38 + wire.uvarint(len(directories) + 1)
    for topics_1 in directories:
        size += 17 + wire.uvarint(len(topics_1) + 1)
        for partitions_2 in topics_1:
            size += 17 + wire.numbers(partitions_2, 5)
    return size


def assign_replicas_to_dirs_response(*, directories: Collection[Collection[int]]) -> Bytes:
    """AssignReplicasToDirsResponse 0."""
    size = 16 + wire.uvarint(len(directories) + 1)
    for topics_1 in directories:
        size += 17 + wire.uvarint(len(topics_1) + 1)
        for partitions_2 in topics_1:
            size += 17 + wire.numbers(partitions_2, 7)
    return size


def broker_heartbeat_request(*, offline_log_dirs: int = 0, cordoned_log_dirs: int = 0) -> Bytes:
    """BrokerHeartbeatRequest 2."""
    return (
        48 + (wire.tagged(wire.numbers(offline_log_dirs, 16)) if offline_log_dirs else 0) +
        (wire.tagged(wire.numbers(cordoned_log_dirs, 16)) if cordoned_log_dirs else 0)
    )


def broker_registration_request(
    *,
    cluster_id: str, listeners: Collection[tuple[str, str]], features: Collection[str],
    rack: str | None = None, log_dirs: int,
) -> Bytes:
    """BrokerRegistrationRequest 4."""
    size = (
        55 + wire.text(cluster_id) + wire.uvarint(len(listeners) + 1) +
        wire.uvarint(len(features) + 1) + wire.text(rack) + wire.numbers(log_dirs, 16)
    )
    for name_1, host_1 in listeners:
        size += 5 + wire.text(name_1) + wire.text(host_1)
    for name_2 in features:
        size += 5 + wire.text(name_2)
    return size


def controller_registration_request(
    *,
    listeners: Collection[tuple[str, str]], features: Collection[str],
) -> Bytes:
    """ControllerRegistrationRequest 0."""
    size = 47 + wire.uvarint(len(listeners) + 1) + wire.uvarint(len(features) + 1)
    for name_1, host_1 in listeners:
        size += 5 + wire.text(name_1) + wire.text(host_1)
    for name_2 in features:
        size += 5 + wire.text(name_2)
    return size


def create_topics_request(
    *,
    topics: Collection[tuple[str, Collection[int], Collection[tuple[str, str | None]]]],
) -> Bytes:
    """CreateTopicsRequest 7."""
    size = 31 + wire.uvarint(len(topics) + 1)
    for name_1, assignments_1, configs_1 in topics:
        size += 7 + wire.text(name_1) + wire.uvarint(len(assignments_1) + 1)
        size += wire.uvarint(len(configs_1) + 1)
        for broker_ids_2 in assignments_1:
            size += 5 + wire.numbers(broker_ids_2, 4)
        for name_3, value_3 in configs_1:
            size += 1 + wire.text(name_3) + wire.text(value_3)
    return size


def create_topics_response(*, topics: Collection[str]) -> Bytes:
    """CreateTopicsResponse 7."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for name_1 in topics:
        size += 27 + wire.text(name_1)
    return size
