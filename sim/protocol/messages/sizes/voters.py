"""Sizes of the messages in :mod:`sim.protocol.messages.voters`.

Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.
"""

# fmt: off
from collections.abc import Collection

from sim.protocol.messages.base import Response
from sim.protocol.messages.sizes import encoding as wire
from sim.units import Bytes


class AddRaftVoterResponse(Response):
    """AddRaftVoterResponse 1: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 17


class RemoveRaftVoterResponse(Response):
    """RemoveRaftVoterResponse 0: always of this size."""

    __slots__ = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return 17


def add_raft_voter_request(
    *,
    cluster_id: str | None = None, listeners: Collection[tuple[str, str]],
) -> Bytes:
    """AddRaftVoterRequest 1."""
    size = 51 + wire.text(cluster_id) + wire.uvarint(len(listeners) + 1)
    for name_1, host_1 in listeners:
        size += 3 + wire.text(name_1) + wire.text(host_1)
    return size


def api_versions_request(*, client_software_name: str, client_software_version: str) -> Bytes:
    """ApiVersionsRequest 4."""
    return 26 + wire.text(client_software_name) + wire.text(client_software_version)


def api_versions_response(
    *,
    api_keys: int, supported_features: Collection[str] = (),
    finalized_features_epoch: bool = False, finalized_features: Collection[str] = (),
    zk_migration_ready: bool = False,
) -> Bytes:
    """ApiVersionsResponse 4."""
    size = (
        15 + wire.numbers(api_keys, 7) + (10 if finalized_features_epoch else 0) +
        (3 if zk_migration_ready else 0)
    )
    if supported_features:
        tagged = wire.uvarint(len(supported_features) + 1)
        for name_2 in supported_features:
            tagged += 5 + wire.text(name_2)
        size += wire.tagged(tagged)
    if finalized_features:
        tagged = wire.uvarint(len(finalized_features) + 1)
        for name_3 in finalized_features:
            tagged += 5 + wire.text(name_3)
        size += wire.tagged(tagged)
    return size


def remove_raft_voter_request(*, cluster_id: str | None = None) -> Bytes:
    """RemoveRaftVoterRequest 0."""
    return 46 + wire.text(cluster_id)
