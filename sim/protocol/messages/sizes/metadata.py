"""Sizes of the messages in :mod:`sim.protocol.messages.metadata`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class InitProducerIdResponse(Response):
    """InitProducerIdResponse 5: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 26


def init_producer_id_request(*, transactional_id: str | None = None) -> Bytes:
    """InitProducerIdRequest 5."""
    return 40 + wire.text(transactional_id)


def metadata_request(*, topics: Collection[str | None] = ()) -> Bytes:
    """MetadataRequest 13."""
    size = 28 + wire.uvarint(len(topics) + 1)
    for name_1 in topics:
        size += 17 + wire.text(name_1)
    return size


def metadata_response(
    *,
    brokers: Collection[tuple[str, str | None]], cluster_id: str | None = None,
    topics: Collection[tuple[str | None, Collection[tuple[int, int, int]]]],
) -> Bytes:
    """MetadataResponse 13."""
    size = (
        20 + wire.uvarint(len(brokers) + 1) + wire.text(cluster_id) + wire.uvarint(len(topics) + 1)
    )
    for host_1, rack_1 in brokers:
        size += 9 + wire.text(host_1) + wire.text(rack_1)
    for name_2, partitions_2 in topics:
        size += 24 + wire.text(name_2) + wire.uvarint(len(partitions_2) + 1)
        for replica_nodes_3, isr_nodes_3, offline_replicas_3 in partitions_2:
            size += 15 + wire.numbers(replica_nodes_3, 4) + wire.numbers(isr_nodes_3, 4)
            size += wire.numbers(offline_replicas_3, 4)
    return size
