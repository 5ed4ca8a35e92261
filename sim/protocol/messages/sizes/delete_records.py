"""Sizes of the messages in :mod:`sim.protocol.messages.delete_records`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def delete_records_request(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """DeleteRecordsRequest 2."""
    size = 30 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 13)
    return size


def delete_records_response(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """DeleteRecordsResponse 2."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 15)
    return size
