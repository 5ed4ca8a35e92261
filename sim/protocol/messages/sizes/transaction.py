"""Sizes of the messages in :mod:`sim.protocol.messages.transaction`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class AddOffsetsToTxnResponse(Response):
    """AddOffsetsToTxnResponse 4: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 16


class EndTxnResponse(Response):
    """EndTxnResponse 5: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 26


def add_offsets_to_txn_request(*, transactional_id: str, group_id: str) -> Bytes:
    """AddOffsetsToTxnRequest 4."""
    return 36 + wire.text(transactional_id) + wire.text(group_id)


def add_partitions_to_txn_request(
    *,
    transactions: Collection[tuple[str, Collection[tuple[str, int]]]],
) -> Bytes:
    """AddPartitionsToTxnRequest 5."""
    size = 26 + wire.uvarint(len(transactions) + 1)
    for transactional_id_1, topics_1 in transactions:
        size += 12 + wire.text(transactional_id_1) + wire.uvarint(len(topics_1) + 1)
        for name_2, partitions_2 in topics_1:
            size += 1 + wire.text(name_2) + wire.numbers(partitions_2, 4)
    return size


def add_partitions_to_txn_response(
    *,
    results_by_transaction: Collection[tuple[str, Collection[tuple[str, int]]]],
) -> Bytes:
    """AddPartitionsToTxnResponse 5."""
    size = 16 + wire.uvarint(len(results_by_transaction) + 1)
    for transactional_id_1, topic_results_1 in results_by_transaction:
        size += 1 + wire.text(transactional_id_1) + wire.uvarint(len(topic_results_1) + 1)
        for name_2, results_by_partition_2 in topic_results_1:
            size += 1 + wire.text(name_2) + wire.numbers(results_by_partition_2, 7)
    return size


def end_txn_request(*, transactional_id: str) -> Bytes:
    """EndTxnRequest 5."""
    return 37 + wire.text(transactional_id)


def txn_offset_commit_request(
    *,
    transactional_id: str, group_id: str, member_id: str, group_instance_id: str | None = None,
    topics: Collection[tuple[str, int]],
) -> Bytes:
    """TxnOffsetCommitRequest 5."""
    size = (
        40 + wire.text(transactional_id) + wire.text(group_id) + wire.text(member_id) +
        wire.text(group_instance_id) + wire.uvarint(len(topics) + 1)
    )
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 18)
    return size


def txn_offset_commit_response(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """TxnOffsetCommitResponse 5."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 7)
    return size


def write_txn_markers_request(*, markers: Collection[Collection[tuple[str, int]]]) -> Bytes:
    """WriteTxnMarkersRequest 2."""
    size = 26 + wire.uvarint(len(markers) + 1)
    for topics_1 in markers:
        size += 17 + wire.uvarint(len(topics_1) + 1)
        for name_2, partition_indexes_2 in topics_1:
            size += 1 + wire.text(name_2) + wire.numbers(partition_indexes_2, 4)
    return size


def write_txn_markers_response(*, markers: Collection[Collection[tuple[str, int]]]) -> Bytes:
    """WriteTxnMarkersResponse 2."""
    size = 10 + wire.uvarint(len(markers) + 1)
    for topics_1 in markers:
        size += 9 + wire.uvarint(len(topics_1) + 1)
        for name_2, partitions_2 in topics_1:
            size += 1 + wire.text(name_2) + wire.numbers(partitions_2, 7)
    return size
