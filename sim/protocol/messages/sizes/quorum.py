"""Sizes of the messages in :mod:`sim.protocol.messages.quorum`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def begin_quorum_epoch_request(
    *,
    cluster_id: str | None = None, topics: Collection[tuple[str, int]],
    leader_endpoints: Collection[tuple[str, str]],
) -> Bytes:
    """BeginQuorumEpochRequest 1."""
    size = (
        30 + wire.text(cluster_id) + wire.uvarint(len(topics) + 1) +
        wire.uvarint(len(leader_endpoints) + 1)
    )
    for topic_name_1, partitions_1 in topics:
        size += 1 + wire.text(topic_name_1) + wire.numbers(partitions_1, 29)
    for name_3, host_3 in leader_endpoints:
        size += 3 + wire.text(name_3) + wire.text(host_3)
    return size


def begin_quorum_epoch_response(
    *,
    topics: Collection[tuple[str, int]], node_endpoints: Collection[str] = (),
) -> Bytes:
    """BeginQuorumEpochResponse 1."""
    size = 12 + wire.uvarint(len(topics) + 1)
    for topic_name_1, partitions_1 in topics:
        size += 1 + wire.text(topic_name_1) + wire.numbers(partitions_1, 15)
    if node_endpoints:
        tagged = wire.uvarint(len(node_endpoints) + 1)
        for host_3 in node_endpoints:
            tagged += 7 + wire.text(host_3)
        size += wire.tagged(tagged)
    return size


def end_quorum_epoch_request(
    *,
    cluster_id: str | None = None, topics: Collection[tuple[str, Collection[int]]],
    leader_endpoints: Collection[tuple[str, str]],
) -> Bytes:
    """EndQuorumEpochRequest 1."""
    size = (
        26 + wire.text(cluster_id) + wire.uvarint(len(topics) + 1) +
        wire.uvarint(len(leader_endpoints) + 1)
    )
    for topic_name_1, partitions_1 in topics:
        size += 1 + wire.text(topic_name_1) + wire.uvarint(len(partitions_1) + 1)
        for preferred_candidates_2 in partitions_1:
            size += 13 + wire.numbers(preferred_candidates_2, 21)
    for name_4, host_4 in leader_endpoints:
        size += 3 + wire.text(name_4) + wire.text(host_4)
    return size


def fetch_request(
    *,
    cluster_id: str | None = None, replica_state: bool = False, topics: Collection[int],
    partitions: Bytes, forgotten_topics_data: Collection[int], rack_id: str,
) -> Bytes:
    """FetchRequest 18."""
    size = (
        47 + (wire.tagged(wire.text(cluster_id)) if cluster_id else 0) +
        (15 if replica_state else 0) + wire.uvarint(len(topics) + 1) + partitions +
        wire.uvarint(len(forgotten_topics_data) + 1) + wire.text(rack_id)
    )
    for partitions_1 in topics:
        size += 17 + wire.uvarint(partitions_1 + 1)
    for partitions_2 in forgotten_topics_data:
        size += 17 + wire.numbers(partitions_2, 4)
    return size


def fetch_request_fetch_partition(
    *,
    replica_directory_id: bool = False, high_watermark: bool = False,
) -> Bytes:
    """FetchPartition in FetchRequest 18."""
    return 33 + (18 if replica_directory_id else 0) + (10 if high_watermark else 0)


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


def fetch_snapshot_request(
    *,
    cluster_id: str | None = None, topics: Collection[tuple[str, int]], partitions: Bytes,
) -> Bytes:
    """FetchSnapshotRequest 1."""
    size = (
        34 + (wire.tagged(wire.text(cluster_id)) if cluster_id else 0) +
        wire.uvarint(len(topics) + 1) + partitions
    )
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.uvarint(partitions_1 + 1)
    return size


def fetch_snapshot_request_partition_snapshot(*, replica_directory_id: bool = False) -> Bytes:
    """PartitionSnapshot in FetchSnapshotRequest 1."""
    return 30 + (18 if replica_directory_id else 0)


def fetch_snapshot_response(
    *,
    topics: Collection[tuple[str, int]], partitions: Bytes, node_endpoints: Collection[str] = (),
) -> Bytes:
    """FetchSnapshotResponse 1."""
    size = 16 + wire.uvarint(len(topics) + 1) + partitions
    for name_1, partitions_1 in topics:
        size += 1 + wire.text(name_1) + wire.uvarint(partitions_1 + 1)
    if node_endpoints:
        tagged = wire.uvarint(len(node_endpoints) + 1)
        for host_2 in node_endpoints:
            tagged += 7 + wire.text(host_2)
        size += wire.tagged(tagged)
    return size


def fetch_snapshot_response_partition_snapshot(
    *,
    current_leader: bool = False, unaligned_records: Bytes,
) -> Bytes:
    """PartitionSnapshot in FetchSnapshotResponse 1."""
    return 36 + (11 if current_leader else 0) + wire.blob(unaligned_records)


def vote_request(*, cluster_id: str | None = None, topics: Collection[tuple[str, int]]) -> Bytes:
    """VoteRequest 2."""
    size = 30 + wire.text(cluster_id) + wire.uvarint(len(topics) + 1)
    for topic_name_1, partitions_1 in topics:
        size += 1 + wire.text(topic_name_1) + wire.numbers(partitions_1, 58)
    return size


def vote_response(
    *,
    topics: Collection[tuple[str, int]], node_endpoints: Collection[str] = (),
) -> Bytes:
    """VoteResponse 2."""
    size = 12 + wire.uvarint(len(topics) + 1)
    for topic_name_1, partitions_1 in topics:
        size += 1 + wire.text(topic_name_1) + wire.numbers(partitions_1, 16)
    if node_endpoints:
        tagged = wire.uvarint(len(node_endpoints) + 1)
        for host_3 in node_endpoints:
            tagged += 7 + wire.text(host_3)
        size += wire.tagged(tagged)
    return size
