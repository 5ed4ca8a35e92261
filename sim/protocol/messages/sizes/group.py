"""Sizes of the messages in :mod:`sim.protocol.messages.group`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class HeartbeatResponse(Response):
    """HeartbeatResponse 4: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 16


def consumer_protocol_assignment(
    *,
    assigned_partitions: Collection[tuple[str, int]], user_data: Bytes = 0,
) -> Bytes:
    """ConsumerProtocolAssignment 3."""
    size = 2 + 4 + 4 + user_data
    for topic_1, partitions_1 in assigned_partitions:
        size += 0 + wire.plain_text(topic_1) + 4 + partitions_1 * 4
    return size


def consumer_protocol_subscription(
    *,
    topics: Collection[str], user_data: Bytes = 0, owned_partitions: Collection[tuple[str, int]],
    rack_id: str | None = None,
) -> Bytes:
    """ConsumerProtocolSubscription 3."""
    size = 6 + 4 + 4 + user_data + 4 + wire.plain_text(rack_id)
    for each in topics:
        size += wire.plain_text(each)
    for topic_1, partitions_1 in owned_partitions:
        size += 0 + wire.plain_text(topic_1) + 4 + partitions_1 * 4
    return size


def find_coordinator_request(*, coordinator_keys: Collection[str]) -> Bytes:
    """FindCoordinatorRequest 6."""
    size = 27 + wire.uvarint(len(coordinator_keys) + 1)
    for each in coordinator_keys:
        size += wire.text(each)
    return size


def find_coordinator_response(*, coordinators: Collection[tuple[str, str]]) -> Bytes:
    """FindCoordinatorResponse 6."""
    size = 14 + wire.uvarint(len(coordinators) + 1)
    for key_1, host_1 in coordinators:
        size += 12 + wire.text(key_1) + wire.text(host_1)
    return size


def heartbeat_request(
    *,
    group_id: str, member_id: str, group_instance_id: str | None = None,
) -> Bytes:
    """HeartbeatRequest 4."""
    return 30 + wire.text(group_id) + wire.text(member_id) + wire.text(group_instance_id)


def join_group_request(
    *,
    group_id: str, member_id: str, group_instance_id: str | None = None, protocol_type: str,
    protocols: Collection[tuple[str, Bytes]], reason: str | None = None,
) -> Bytes:
    """JoinGroupRequest 9."""
    size = (
        34 + wire.text(group_id) + wire.text(member_id) + wire.text(group_instance_id) +
        wire.text(protocol_type) + wire.uvarint(len(protocols) + 1) + wire.text(reason)
    )
    for name_1, metadata_1 in protocols:
        size += 1 + wire.text(name_1) + wire.blob(metadata_1)
    return size


def join_group_response(
    *,
    protocol_type: str | None = None, protocol_name: str | None = None, leader: str,
    member_id: str, members: Collection[tuple[str, str | None, Bytes]],
) -> Bytes:
    """JoinGroupResponse 9."""
    size = (
        21 + wire.text(protocol_type) + wire.text(protocol_name) + wire.text(leader) +
        wire.text(member_id) + wire.uvarint(len(members) + 1)
    )
    for member_id_1, group_instance_id_1, metadata_1 in members:
        size += 1 + wire.text(member_id_1) + wire.text(group_instance_id_1)
        size += wire.blob(metadata_1)
    return size


def leave_group_request(*, group_id: str, members: Collection[tuple[str, str | None]]) -> Bytes:
    """LeaveGroupRequest 5."""
    size = 26 + wire.text(group_id) + wire.uvarint(len(members) + 1)
    for member_id_1, group_instance_id_1 in members:
        size += 2 + wire.text(member_id_1) + wire.text(group_instance_id_1)
    return size


def leave_group_response(*, members: Collection[tuple[str, str | None]]) -> Bytes:
    """LeaveGroupResponse 5."""
    size = 16 + wire.uvarint(len(members) + 1)
    for member_id_1, group_instance_id_1 in members:
        size += 3 + wire.text(member_id_1) + wire.text(group_instance_id_1)
    return size


def offset_commit_request(
    *,
    group_id: str, member_id: str, group_instance_id: str | None = None, topics: Collection[int],
) -> Bytes:
    """OffsetCommitRequest 10."""
    size = (
        30 + wire.text(group_id) + wire.text(member_id) + wire.text(group_instance_id) +
        wire.uvarint(len(topics) + 1)
    )
    for partitions_1 in topics:
        size += 17 + wire.numbers(partitions_1, 18)
    return size


def offset_commit_response(*, topics: Collection[int]) -> Bytes:
    """OffsetCommitResponse 10."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.numbers(partitions_1, 7)
    return size


def offset_fetch_request(*, groups: Collection[tuple[str, Collection[int]]]) -> Bytes:
    """OffsetFetchRequest 10."""
    size = 27 + wire.uvarint(len(groups) + 1)
    for group_id_1, topics_1 in groups:
        size += 6 + wire.text(group_id_1) + wire.uvarint(len(topics_1) + 1)
        for partition_indexes_2 in topics_1:
            size += 17 + wire.numbers(partition_indexes_2, 4)
    return size


def offset_fetch_response(*, groups: Collection[tuple[str, Collection[int]]]) -> Bytes:
    """OffsetFetchResponse 10."""
    size = 14 + wire.uvarint(len(groups) + 1)
    for group_id_1, topics_1 in groups:
        size += 3 + wire.text(group_id_1) + wire.uvarint(len(topics_1) + 1)
        for partitions_2 in topics_1:
            size += 17 + wire.numbers(partitions_2, 20)
    return size


def sync_group_request(
    *,
    group_id: str, member_id: str, group_instance_id: str | None = None,
    protocol_type: str | None = None, protocol_name: str | None = None,
    assignments: Collection[tuple[str, Bytes]],
) -> Bytes:
    """SyncGroupRequest 5."""
    size = (
        30 + wire.text(group_id) + wire.text(member_id) + wire.text(group_instance_id) +
        wire.text(protocol_type) + wire.text(protocol_name) + wire.uvarint(len(assignments) + 1)
    )
    for member_id_1, assignment_1 in assignments:
        size += 1 + wire.text(member_id_1) + wire.blob(assignment_1)
    return size


def sync_group_response(
    *,
    protocol_type: str | None = None, protocol_name: str | None = None, assignment: Bytes,
) -> Bytes:
    """SyncGroupResponse 5."""
    return 16 + wire.text(protocol_type) + wire.text(protocol_name) + wire.blob(assignment)
