"""AlterPartitionReassignments at the controller.

Source: ``ReplicationControlManager.alterPartitionReassignments``, ``PartitionReassignmentRevert``
(4.1); KIP-455, KIP-860.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.controller.elections import Assignment, ElectionKind
from sim.protocol.controller.partitions import allows_unclean, change_of
from sim.protocol.controller.topics import directory_for
from sim.protocol.controller.types import Decision
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import PartitionChangeRecord

Nodes = tuple[NodeId, ...]

Change: TypeAlias = Callable[
    [MetadataImage, TopicPartition, PartitionRegistration, Nodes | None],
    PartitionChangeRecord | None,
]


class ReassignmentRefused(Exception):  # noqa: N818 - it names what happened
    """A partition is not reassigned. ``args``: the error code."""


def alter_reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest
) -> Decision:
    """Adds new replicas at once; the others are removed when every new one is in the ISR."""
    return reassignments(image, request, _change)


def reassignments(
    image: MetadataImage, request: AlterPartitionReassignmentsRequest, change: Change
) -> Decision:
    """Reassigns each partition independently; the response comes when the beginning is committed.

    Args:
        image: The state before.
        request: Target replicas by partition.
        change: Builds the record of one partition with valid replicas; ``None`` for replicas
            cancels the reassignment. Raises :class:`ReassignmentRefused`.
    """
    records: list[PartitionChangeRecord] = []
    errors: list[tuple[TopicPartition, ErrorCode]] = []
    for partition, replicas in request.items:
        try:
            registration = _checked(
                image, partition, replicas, request.allow_replication_factor_change
            )
            record = change(image, partition, registration, replicas)
        except ReassignmentRefused as refused:
            errors.append((partition, refused.args[0]))
            continue
        if record is not None:
            records.append(record)
        errors.append((partition, ErrorCode.NONE))
    return Decision(tuple(records), AlterPartitionReassignmentsResponse(tuple(errors)))


def _checked(
    image: MetadataImage,
    partition: TopicPartition,
    replicas: Nodes | None,
    may_change_factor: bool,  # noqa: FBT001 - the request's own field
) -> PartitionRegistration:
    registration = image.partitions.get(partition)
    if registration is None:
        raise ReassignmentRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if replicas is None:
        return registration
    if not replicas or len(dict.fromkeys(replicas)) != len(replicas):
        raise ReassignmentRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if any(broker not in image.brokers for broker in replicas):
        raise ReassignmentRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if not may_change_factor:
        kept = [b for b in registration.replicas if b not in registration.adding]
        if len(replicas) != len(kept):
            raise ReassignmentRefused(ErrorCode.INVALID_REPLICATION_FACTOR)
    return registration


def _change(
    image: MetadataImage,
    partition: TopicPartition,
    registration: PartitionRegistration,
    replicas: Nodes | None,
) -> PartitionChangeRecord | None:
    if replicas is None:
        return _cancel(image, partition, registration)
    removing = tuple(sorted(b for b in registration.replicas if b not in replicas))
    adding = tuple(sorted(b for b in replicas if b not in registration.replicas))
    assignment = Assignment(
        replicas + removing, removing or registration.removing, adding or registration.adding
    )
    return _record(image, partition, assignment, registration.in_sync)


def _cancel(
    image: MetadataImage, partition: TopicPartition, registration: PartitionRegistration
) -> PartitionChangeRecord | None:
    """Reverts to the replicas before; those being added are removed."""
    adding = registration.adding
    if not adding and not registration.removing:
        raise ReassignmentRefused(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(b for b in registration.replicas if b not in adding)
    in_sync = tuple(b for b in registration.in_sync if b not in adding)
    kind = ElectionKind.ONLINE
    if not in_sync:
        # Everyone in the ISR is new: only an unclean election could go back.
        if not replicas or not allows_unclean(image, partition.topic):
            raise ReassignmentRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        in_sync, kind = replicas[:1], ElectionKind.UNCLEAN
    return _record(image, partition, Assignment(replicas), in_sync, kind)


def _record(
    image: MetadataImage,
    partition: TopicPartition,
    assignment: Assignment,
    in_sync: tuple[NodeId, ...],
    kind: ElectionKind = ElectionKind.ONLINE,
) -> PartitionChangeRecord | None:
    change = replace(
        change_of(image, partition, in_sync, kind),
        assignment=assignment,
        directory_for=lambda broker: directory_for(image, broker),
    )
    return change.record(partition.partition)
