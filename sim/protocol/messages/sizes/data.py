"""Sizes of the messages in :mod:`sim.protocol.messages.data`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def fetch_request(
    *,
    cluster_id: str | None = None, replica_state: bool = False, topics: Collection[int],
    forgotten_topics_data: Collection[int], rack_id: str,
) -> Bytes:
    """FetchRequest 18."""
    size = (
        47 + (wire.tagged(wire.text(cluster_id)) if cluster_id else 0) +
        (15 if replica_state else 0) + wire.uvarint(len(topics) + 1) +
        wire.uvarint(len(forgotten_topics_data) + 1) + wire.text(rack_id)
    )
    for partitions_1 in topics:
        size += 17 + wire.numbers(partitions_1, 33)
    for partitions_3 in forgotten_topics_data:
        size += 17 + wire.numbers(partitions_3, 4)
    return size


def fetch_response(
    *,
    responses: Collection[int], partitions: Bytes, node_endpoints: Collection[str] = (),
) -> Bytes:
    """FetchResponse 18."""
    size = 20 + wire.uvarint(len(responses) + 1) + partitions
    for partitions_1 in responses:
        size += 17 + wire.uvarint(partitions_1 + 1)
    if node_endpoints:
        tagged = wire.uvarint(len(node_endpoints) + 1)
        for host_2 in node_endpoints:
            tagged += 10 + wire.text(host_2)
        size += wire.tagged(tagged)
    return size


def fetch_response_partition_data(
    *,
    diverging_epoch: bool = False, current_leader: bool = False, snapshot_id: bool = False,
    aborted_transactions: int = 0, records: Bytes = 0,
) -> Bytes:
    """PartitionData in FetchResponse 18."""
    return (
        35 + (15 if diverging_epoch else 0) + (11 if current_leader else 0) +
        (15 if snapshot_id else 0) + wire.numbers(aborted_transactions, 17) + wire.blob(records)
    )


def list_offsets_request(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """ListOffsetsRequest 11."""
    size = 35 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 17)
    return size


def list_offsets_response(*, topics: Collection[tuple[str, int]]) -> Bytes:
    """ListOffsetsResponse 11."""
    size = 14 + wire.uvarint(len(topics) + 1)
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.numbers(partitions_1, 27)
    return size


def produce_request(
    *,
    transactional_id: str | None = None, topic_data: Collection[int], partition_data: Bytes,
) -> Bytes:
    """ProduceRequest 13."""
    size = 32 + wire.text(transactional_id) + wire.uvarint(len(topic_data) + 1) + partition_data
    for partition_data_1 in topic_data:
        size += 17 + wire.uvarint(partition_data_1 + 1)
    return size


def produce_request_partition_produce_data(*, records: Bytes = 0) -> Bytes:
    """PartitionProduceData in ProduceRequest 13."""
    return 5 + wire.blob(records)


def produce_response(
    *,
    responses: Collection[int], partition_responses: Bytes, node_endpoints: Collection[str] = (),
) -> Bytes:
    """ProduceResponse 13."""
    size = 14 + wire.uvarint(len(responses) + 1) + partition_responses
    for partition_responses_1 in responses:
        size += 17 + wire.uvarint(partition_responses_1 + 1)
    if node_endpoints:
        tagged = wire.uvarint(len(node_endpoints) + 1)
        for host_2 in node_endpoints:
            tagged += 10 + wire.text(host_2)
        size += wire.tagged(tagged)
    return size


def produce_response_partition_produce_response(*, current_leader: bool = False) -> Bytes:
    """PartitionProduceResponse in ProduceResponse 13."""
    return 33 + (11 if current_leader else 0)
