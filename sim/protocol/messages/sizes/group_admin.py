"""Sizes of the messages in :mod:`sim.protocol.messages.group_admin`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def delete_groups_request(*, groups_names: Collection[str]) -> Bytes:
    """DeleteGroupsRequest 2."""
    size = 26 + wire.uvarint(len(groups_names) + 1)
    for each in groups_names:
        size += wire.text(each)
    return size


def delete_groups_response(*, results: Collection[str]) -> Bytes:
    """DeleteGroupsResponse 2."""
    size = 14 + wire.uvarint(len(results) + 1)
    for group_id_1 in results:
        size += 3 + wire.text(group_id_1)
    return size


def describe_groups_request(*, groups: Collection[str]) -> Bytes:
    """DescribeGroupsRequest 6."""
    size = 27 + wire.uvarint(len(groups) + 1)
    for each in groups:
        size += wire.text(each)
    return size


def describe_groups_response(*, groups: Collection[tuple[str, str, str, str]]) -> Bytes:
    """DescribeGroupsResponse 6."""
    size = 14 + wire.uvarint(len(groups) + 1)
    for group_id_1, group_state_1, protocol_type_1, protocol_data_1 in groups:
        size += 9 + wire.text(group_id_1) + wire.text(group_state_1)
        size += wire.text(protocol_type_1)
        size += wire.text(protocol_data_1)
    return size


def offset_delete_request(*, group_id: str, topics: Collection[tuple[str, int]]) -> Bytes:
    """OffsetDeleteRequest 0."""
    size = 24 + wire.plain_text(group_id) + 4
    for name_1, partitions_1 in topics:
        size += 0 + wire.plain_text(name_1) + 4 + partitions_1 * 4
    return size


def offset_delete_response(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """OffsetDeleteResponse 0."""
    size = 14 + 4
    for name_1, partitions_1 in topics:
        size += 0 + wire.plain_text(name_1) + 4 + partitions_1 * 6
    return size
