"""Names and numbers of the parts of a cluster.

Source: Kafka's own terms. Servers (brokers and controllers) have whole numbers, as ``node.id``;
clients have names, as ``client.id``.
"""

import base64
import hashlib
from typing import NamedTuple, TypeAlias

NodeId: TypeAlias = int
"""``node.id`` of a broker or a controller; likewise of a ZooKeeper server."""

Offset: TypeAlias = int
"""Position of a record in a partition; an end offset is exclusive."""

LeaderEpoch: TypeAlias = int
"""Grows with each leadership of a partition; in the metadata log, with each quorum leader."""

BrokerEpoch: TypeAlias = int
"""Offset of the registration record of a broker's present registration."""

ProducerId: TypeAlias = int
"""Idempotent producer's identity; -1 for none."""

NO_LEADER: NodeId = -1
"""Kafka's leader id of a partition without a leader."""

NO_EPOCH: LeaderEpoch = -1
"""Undefined leader epoch."""

NO_OFFSET: Offset = -1
"""Undefined offset."""

FIRST_CONTROLLER_ID: NodeId = 3001
"""Controllers are numbered from here, brokers from 1."""

FIRST_ZOOKEEPER_ID: NodeId = 5001
"""ZooKeeper servers are numbered from here."""

OBJECT_STORE_ID: NodeId = 7001
"""The object store of tiered storage."""


class TopicPartition(NamedTuple):
    """A partition of a topic, printed ``orders-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


METADATA_PARTITION = TopicPartition("__cluster_metadata", 0)
"""The metadata log of the KRaft quorum."""

OFFSETS_TOPIC = "__consumer_offsets"
"""Topic of committed offsets and group metadata."""

TRANSACTIONS_TOPIC = "__transaction_state"
"""Topic of the transaction coordinators' transactional ids."""

REMOTE_LOG_METADATA_TOPIC = "__remote_log_metadata"
"""Topic of the events of remote log segments (KIP-405)."""

SHARE_STATE_TOPIC = "__share_group_state"
"""Topic of the share coordinators' share-partition states (KIP-932)."""


def server_name(node: NodeId) -> str:
    """The printed name of a server: ``broker-1``, ``controller-1``, ``object-store``."""
    if node == OBJECT_STORE_ID:
        return "object-store"
    if node >= FIRST_ZOOKEEPER_ID:
        return f"zookeeper-{node - FIRST_ZOOKEEPER_ID + 1}"
    if node >= FIRST_CONTROLLER_ID:
        return f"controller-{node - FIRST_CONTROLLER_ID + 1}"
    return f"broker-{node}"


def uuid_text(name: str) -> str:
    """A 128-bit id in Kafka's printed form, the same for the same name.

    URL-safe base64 without padding, 22 characters, never beginning with ``-`` and never one of the
    ids that Kafka reserves. Source: ``org.apache.kafka.common.Uuid``.
    """
    attempt = name
    while True:
        digest = hashlib.sha256(attempt.encode()).digest()[:16]
        text = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if not text.startswith("-") and any(digest[:8]):
            return text
        attempt += "'"


class SnapshotId(NamedTuple):
    """Identity of a snapshot of the metadata (KIP-630)."""

    offset: Offset
    """It holds the state of all records below it."""
    epoch: LeaderEpoch
    """Epoch of the record just below the offset."""
