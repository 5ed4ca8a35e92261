"""Sizes of the messages in :mod:`sim.protocol.messages.leader_epochs`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def offset_for_leader_epoch_request(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """OffsetForLeaderEpochRequest 4."""
    size = 30 + wire.uvarint(len(topics) + 1)
    for topic_1, partitions_1 in topics:
        size += 1 + wire.text(topic_1) + wire.numbers(partitions_1, 13)
    return size


def offset_for_leader_epoch_response(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """OffsetForLeaderEpochResponse 4."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for topic_1, partitions_1 in topics:
        size += 1 + wire.text(topic_1) + wire.numbers(partitions_1, 19)
    return size
