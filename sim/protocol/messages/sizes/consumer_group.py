"""Sizes of the messages in :mod:`sim.protocol.messages.consumer_group`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def consumer_group_heartbeat_request(
    *,
    group_id: str, member_id: str, instance_id: str | None = None, rack_id: str | None = None,
    subscribed_topic_names: Collection[str] = (), subscribed_topic_regex: str | None = None,
    server_assignor: str | None = None, topic_partitions: Collection[int] = (),
) -> Bytes:
    """ConsumerGroupHeartbeatRequest 1."""
    size = (
        34 + wire.text(group_id) + wire.text(member_id) + wire.text(instance_id) +
        wire.text(rack_id) + wire.uvarint(len(subscribed_topic_names) + 1) +
        wire.text(subscribed_topic_regex) + wire.text(server_assignor) +
        wire.uvarint(len(topic_partitions) + 1)
    )
    for each in subscribed_topic_names:
        size += wire.text(each)
    for partitions_1 in topic_partitions:
        size += 17 + wire.numbers(partitions_1, 4)
    return size


def consumer_group_heartbeat_response(
    *,
    error_message: str | None = None, member_id: str | None = None, assignment: Bytes = 0,
) -> Bytes:
    """ConsumerGroupHeartbeatResponse 1."""
    return 24 + wire.text(error_message) + wire.text(member_id) + 1 + assignment


def consumer_group_heartbeat_response_assignment(*, topic_partitions: Collection[int]) -> Bytes:
    """Assignment in ConsumerGroupHeartbeatResponse 1."""
    size = 1 + wire.uvarint(len(topic_partitions) + 1)
    for partitions_1 in topic_partitions:
        size += 17 + wire.numbers(partitions_1, 4)
    return size
