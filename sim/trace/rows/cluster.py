"""Rows of the tables in :mod:`sim.trace.tables_cluster`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


class Leadership:
    """Columns of ``leadership``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    ROLE: Final = 4
    LEADER: Final = 5
    LEADER_EPOCH: Final = 6
    PARTITION_EPOCH: Final = 7
    IN_SYNC: Final = 8
    LOG_END_OFFSET: Final = 9
    HIGH_WATERMARK: Final = 10

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, role: str, leader: int, leader_epoch: int,
        partition_epoch: int, in_sync: str, log_end_offset: int, high_watermark: int,
    ) -> Emit:
        """Make a row of ``leadership``."""
        return Emit("leadership", (
            broker, topic, partition, role, leader, leader_epoch, partition_epoch, in_sync,
            log_end_offset, high_watermark,
        ))


LeadershipRow: TypeAlias = tuple[int, int, str, int, str, int, int, int, str, int, int]


class PartitionChanges:
    """Columns of ``partition_changes``."""

    T_US: Final = 0
    CONTROLLER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER: Final = 4
    LEADER_EPOCH: Final = 5
    PARTITION_EPOCH: Final = 6
    IN_SYNC: Final = 7
    ELIGIBLE: Final = 8
    REPLICAS: Final = 9
    UNCLEAN: Final = 10

    @staticmethod
    def row(
        controller: int, topic: str, partition: int, *, leader: int, leader_epoch: int,
        partition_epoch: int, in_sync: str, eligible: str, replicas: str, unclean: bool,
    ) -> Emit:
        """Make a row of ``partition_changes``."""
        return Emit("partition_changes", (
            controller, topic, partition, leader, leader_epoch, partition_epoch, in_sync, eligible,
            replicas, unclean,
        ))


PartitionChangesRow: TypeAlias = tuple[int, int, str, int, int, int, int, str, str, str, bool]


class Quorum:
    """Columns of ``quorum``."""

    T_US: Final = 0
    NODE: Final = 1
    ROLE: Final = 2
    EPOCH: Final = 3
    LEADER: Final = 4
    VOTED_FOR: Final = 5
    LOG_END_OFFSET: Final = 6
    HIGH_WATERMARK: Final = 7

    @staticmethod
    def row(
        node: int, *, role: str, epoch: int, leader: int, voted_for: int, log_end_offset: int,
        high_watermark: int,
    ) -> Emit:
        """Make a row of ``quorum``."""
        return Emit("quorum", (
            node, role, epoch, leader, voted_for, log_end_offset, high_watermark,
        ))


QuorumRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]


class BrokerStates:
    """Columns of ``broker_states``."""

    T_US: Final = 0
    CONTROLLER: Final = 1
    BROKER: Final = 2
    STATE: Final = 3
    BROKER_EPOCH: Final = 4

    @staticmethod
    def row(
        controller: int, broker: int, *, state: str, broker_epoch: int,
    ) -> Emit:
        """Make a row of ``broker_states``."""
        return Emit("broker_states", (
            controller, broker, state, broker_epoch,
        ))


BrokerStatesRow: TypeAlias = tuple[int, int, int, str, int]


class TopicDeletions:
    """Columns of ``topic_deletions``."""

    T_US: Final = 0
    CONTROLLER: Final = 1
    TOPIC: Final = 2
    TOPIC_ID: Final = 3

    @staticmethod
    def row(
        controller: int, topic: str, *, topic_id: str,
    ) -> Emit:
        """Make a row of ``topic_deletions``."""
        return Emit("topic_deletions", (
            controller, topic, topic_id,
        ))


TopicDeletionsRow: TypeAlias = tuple[int, int, str, str]


class Controllers:
    """Columns of ``controllers``."""

    T_US: Final = 0
    BROKER: Final = 1
    STATE: Final = 2
    EPOCH: Final = 3
    PARTITIONS: Final = 4

    @staticmethod
    def row(
        broker: int, *, state: str, epoch: int, partitions: int,
    ) -> Emit:
        """Make a row of ``controllers``."""
        return Emit("controllers", (
            broker, state, epoch, partitions,
        ))


ControllersRow: TypeAlias = tuple[int, int, str, int, int]


class NodeStates:
    """Columns of ``node_states``."""

    T_US: Final = 0
    NODE: Final = 1
    STATE: Final = 2
    INCARNATION: Final = 3

    @staticmethod
    def row(
        node: str, *, state: str, incarnation: int,
    ) -> Emit:
        """Make a row of ``node_states``."""
        return Emit("node_states", (
            node, state, incarnation,
        ))


NodeStatesRow: TypeAlias = tuple[int, str, str, int]


class Halts:
    """Columns of ``halts``."""

    T_US: Final = 0
    NODE: Final = 1
    REASON: Final = 2

    @staticmethod
    def row(
        node: str, *, reason: str,
    ) -> Emit:
        """Make a row of ``halts``."""
        return Emit("halts", (
            node, reason,
        ))


HaltsRow: TypeAlias = tuple[int, str, str]


class Heaps:
    """Columns of ``heaps``."""

    T_US: Final = 0
    BROKER: Final = 1
    EVENT: Final = 2
    LIVE_BYTES: Final = 3
    SIZE_BYTES: Final = 4
    PRODUCERS: Final = 5
    CONNECTIONS: Final = 6
    PAUSE_US: Final = 7

    @staticmethod
    def row(
        broker: int, *, event: str, live_bytes: int, size_bytes: int, producers: int,
        connections: int, pause_us: int,
    ) -> Emit:
        """Make a row of ``heaps``."""
        return Emit("heaps", (
            broker, event, live_bytes, size_bytes, producers, connections, pause_us,
        ))


HeapsRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]


class Throttles:
    """Columns of ``throttles``."""

    T_US: Final = 0
    BROKER: Final = 1
    CLIENT: Final = 2
    CLIENT_ID: Final = 3
    REQUEST: Final = 4
    QUOTA: Final = 5
    THROTTLE_US: Final = 6

    @staticmethod
    def row(
        broker: int, *, client: str, client_id: str, request: str, quota: str, throttle_us: int,
    ) -> Emit:
        """Make a row of ``throttles``."""
        return Emit("throttles", (
            broker, client, client_id, request, quota, throttle_us,
        ))


ThrottlesRow: TypeAlias = tuple[int, int, str, str, str, str, int]


class Principals:
    """Columns of ``principals``."""

    T_US: Final = 0
    BROKER: Final = 1
    CLIENT: Final = 2
    PRINCIPAL: Final = 3
    HOST: Final = 4
    PRODUCER_INDEX: Final = 5
    PRIVILEGED: Final = 6
    DEFAULT_ALLOW: Final = 7

    @staticmethod
    def row(
        broker: int, *, client: str, principal: str, host: str, producer_index: int,
        privileged: bool, default_allow: bool,
    ) -> Emit:
        """Make a row of ``principals``."""
        return Emit("principals", (
            broker, client, principal, host, producer_index, privileged, default_allow,
        ))


PrincipalsRow: TypeAlias = tuple[int, int, str, str, str, int, bool, bool]


class AclChanges:
    """Columns of ``acl_changes``."""

    T_US: Final = 0
    BROKER: Final = 1
    CHANGE: Final = 2
    VERSION: Final = 3
    PRINCIPAL: Final = 4
    HOST: Final = 5
    OPERATION: Final = 6
    PERMISSION: Final = 7
    RESOURCE_TYPE: Final = 8
    RESOURCE_NAME: Final = 9
    PATTERN: Final = 10

    @staticmethod
    def row(
        broker: int, *, change: str, version: int, principal: str, host: str, operation: str,
        permission: str, resource_type: str, resource_name: str, pattern: str,
    ) -> Emit:
        """Make a row of ``acl_changes``."""
        return Emit("acl_changes", (
            broker, change, version, principal, host, operation, permission, resource_type,
            resource_name, pattern,
        ))


AclChangesRow: TypeAlias = tuple[int, int, str, int, str, str, str, str, str, str, str]


class Authentications:
    """Columns of ``authentications``."""

    T_US: Final = 0
    BROKER: Final = 1
    CLIENT: Final = 2
    CONNECTION: Final = 3
    EVENT: Final = 4
    PROTOCOL: Final = 5
    MECHANISM: Final = 6
    PRINCIPAL: Final = 7
    ERROR: Final = 8
    EXPIRES_US: Final = 9

    @staticmethod
    def row(
        broker: int, *, client: str, connection: int, event: str, protocol: str, mechanism: str,
        principal: str, error: str, expires_us: int,
    ) -> Emit:
        """Make a row of ``authentications``."""
        return Emit("authentications", (
            broker, client, connection, event, protocol, mechanism, principal, error, expires_us,
        ))


AuthenticationsRow: TypeAlias = tuple[int, int, str, int, str, str, str, str, str, int]


class AdmittedRequests:
    """Columns of ``admitted_requests``."""

    T_US: Final = 0
    BROKER: Final = 1
    CLIENT: Final = 2
    CONNECTION: Final = 3
    REQUEST: Final = 4
    ARRIVED_US: Final = 5

    @staticmethod
    def row(
        broker: int, *, client: str, connection: int, request: str, arrived_us: int,
    ) -> Emit:
        """Make a row of ``admitted_requests``."""
        return Emit("admitted_requests", (
            broker, client, connection, request, arrived_us,
        ))


AdmittedRequestsRow: TypeAlias = tuple[int, int, str, int, str, int]


class DelegationTokens:
    """Columns of ``delegation_tokens``."""

    T_US: Final = 0
    BROKER: Final = 1
    CHANGE: Final = 2
    TOKEN: Final = 3
    OWNER: Final = 4
    EXPIRES_US: Final = 5
    CLIENT: Final = 6
    CONNECTION: Final = 7

    @staticmethod
    def row(
        broker: int, *, change: str, token: str, owner: str, expires_us: int, client: str,
        connection: int,
    ) -> Emit:
        """Make a row of ``delegation_tokens``."""
        return Emit("delegation_tokens", (
            broker, change, token, owner, expires_us, client, connection,
        ))


DelegationTokensRow: TypeAlias = tuple[int, int, str, str, str, int, str, int]


class Denials:
    """Columns of ``denials``."""

    T_US: Final = 0
    BROKER: Final = 1
    CLIENT: Final = 2
    PRINCIPAL: Final = 3
    REQUEST: Final = 4
    OPERATION: Final = 5
    RESOURCE_TYPE: Final = 6
    RESOURCE_NAME: Final = 7
    ERROR: Final = 8

    @staticmethod
    def row(
        broker: int, *, client: str, principal: str, request: str, operation: str,
        resource_type: str, resource_name: str, error: str,
    ) -> Emit:
        """Make a row of ``denials``."""
        return Emit("denials", (
            broker, client, principal, request, operation, resource_type, resource_name, error,
        ))


DenialsRow: TypeAlias = tuple[int, int, str, str, str, str, str, str, str]
