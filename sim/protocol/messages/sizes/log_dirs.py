"""Sizes of the messages in :mod:`sim.protocol.messages.log_dirs`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


def alter_replica_log_dirs_request(
    *,
    dirs: Collection[tuple[str, Collection[tuple[str, int]]]],
) -> Bytes:
    """AlterReplicaLogDirsRequest 2."""
    size = 26 + wire.uvarint(len(dirs) + 1)
    for path_1, topics_1 in dirs:
        size += 1 + wire.text(path_1) + wire.uvarint(len(topics_1) + 1)
        for name_2, partitions_2 in topics_1:
            size += 1 + wire.text(name_2) + wire.numbers(partitions_2, 4)
    return size


def alter_replica_log_dirs_response(*, results: Collection[tuple[str, int]]) -> Bytes:
    """AlterReplicaLogDirsResponse 2."""
    size = 14 + wire.uvarint(len(results) + 1)
    for topic_name_1, partitions_1 in results:
        size += 1 + wire.text(topic_name_1) + wire.numbers(partitions_1, 7)
    return size
