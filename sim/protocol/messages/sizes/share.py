"""Sizes of the messages in :mod:`sim.protocol.messages.share`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def initialize_share_group_state_request(*, group_id: str, topics: Collection[int]) -> Bytes:
    """InitializeShareGroupStateRequest 0."""
    size = 26 + wire.text(group_id) + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.numbers(partitions_1, 17)
    return size


def initialize_share_group_state_response(*, results: Collection[int]) -> Bytes:
    """InitializeShareGroupStateResponse 0."""
    size = 10 + wire.uvarint(len(results) + 1)
    for partitions_1 in results:
        size += 17 + wire.numbers(partitions_1, 8)
    return size


def read_share_group_state_request(*, group_id: str, topics: Collection[int]) -> Bytes:
    """ReadShareGroupStateRequest 0."""
    size = 26 + wire.text(group_id) + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.numbers(partitions_1, 9)
    return size


def read_share_group_state_response(*, results: Collection[Collection[int]]) -> Bytes:
    """ReadShareGroupStateResponse 0."""
    size = 10 + wire.uvarint(len(results) + 1)
    for partitions_1 in results:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for state_batches_2 in partitions_1:
            size += 20 + wire.numbers(state_batches_2, 20)
    return size


def share_acknowledge_request(
    *,
    group_id: str | None = None, member_id: str | None = None,
    topics: Collection[Collection[Collection[int]]],
) -> Bytes:
    """ShareAcknowledgeRequest 2."""
    size = 31 + wire.text(group_id) + wire.text(member_id) + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for acknowledgement_batches_2 in partitions_1:
            size += 5 + wire.uvarint(len(acknowledgement_batches_2) + 1)
            for acknowledge_types_3 in acknowledgement_batches_2:
                size += 17 + wire.numbers(acknowledge_types_3, 1)
    return size


def share_acknowledge_response(
    *,
    error_message: str | None = None, responses: Collection[int], node_endpoints: Collection[str],
) -> Bytes:
    """ShareAcknowledgeResponse 2."""
    size = (
        20 + wire.text(error_message) + wire.uvarint(len(responses) + 1) +
        wire.uvarint(len(node_endpoints) + 1)
    )
    for partitions_1 in responses:
        size += 17 + wire.numbers(partitions_1, 17)
    for host_3 in node_endpoints:
        size += 10 + wire.text(host_3)
    return size


def share_fetch_request(
    *,
    group_id: str | None = None, member_id: str | None = None,
    topics: Collection[Collection[Collection[int]]], forgotten_topics_data: Collection[int],
) -> Bytes:
    """ShareFetchRequest 2."""
    size = (
        52 + wire.text(group_id) + wire.text(member_id) + wire.uvarint(len(topics) + 1) +
        wire.uvarint(len(forgotten_topics_data) + 1)
    )
    for partitions_1 in topics:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for acknowledgement_batches_2 in partitions_1:
            size += 5 + wire.uvarint(len(acknowledgement_batches_2) + 1)
            for acknowledge_types_3 in acknowledgement_batches_2:
                size += 17 + wire.numbers(acknowledge_types_3, 1)
    for partitions_4 in forgotten_topics_data:
        size += 17 + wire.numbers(partitions_4, 4)
    return size


def share_fetch_response(
    *,
    error_message: str | None = None, responses: Collection[Collection[tuple[Bytes, int]]],
    node_endpoints: Collection[str],
) -> Bytes:
    """ShareFetchResponse 2."""
    size = (
        20 + wire.text(error_message) + wire.uvarint(len(responses) + 1) +
        wire.uvarint(len(node_endpoints) + 1)
    )
    for partitions_1 in responses:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for records_2, acquired_records_2 in partitions_1:
            size += 20 + wire.blob(records_2) + wire.numbers(acquired_records_2, 19)
    for host_4 in node_endpoints:
        size += 10 + wire.text(host_4)
    return size


def share_group_heartbeat_request(
    *,
    group_id: str, member_id: str, rack_id: str | None = None,
    subscribed_topic_names: Collection[str] = (),
) -> Bytes:
    """ShareGroupHeartbeatRequest 1."""
    size = (
        30 + wire.text(group_id) + wire.text(member_id) + wire.text(rack_id) +
        wire.uvarint(len(subscribed_topic_names) + 1)
    )
    for each in subscribed_topic_names:
        size += wire.text(each)
    return size


def share_group_heartbeat_response(
    *,
    error_message: str | None = None, member_id: str | None = None, assignment: Bytes = 0,
) -> Bytes:
    """ShareGroupHeartbeatResponse 1."""
    return 24 + wire.text(error_message) + wire.text(member_id) + 1 + assignment


def share_group_heartbeat_response_assignment(*, topic_partitions: Collection[int]) -> Bytes:
    """Assignment in ShareGroupHeartbeatResponse 1."""
    size = 1 + wire.uvarint(len(topic_partitions) + 1)
    for partitions_1 in topic_partitions:
        size += 17 + wire.numbers(partitions_1, 4)
    return size


def write_share_group_state_request(
    *,
    group_id: str, topics: Collection[Collection[int]],
) -> Bytes:
    """WriteShareGroupStateRequest 1."""
    size = 26 + wire.text(group_id) + wire.uvarint(len(topics) + 1)
    for partitions_1 in topics:
        size += 17 + wire.uvarint(len(partitions_1) + 1)
        for state_batches_2 in partitions_1:
            size += 25 + wire.numbers(state_batches_2, 20)
    return size


def write_share_group_state_response(*, results: Collection[int]) -> Bytes:
    """WriteShareGroupStateResponse 1."""
    size = 10 + wire.uvarint(len(results) + 1)
    for partitions_1 in results:
        size += 17 + wire.numbers(partitions_1, 8)
    return size
