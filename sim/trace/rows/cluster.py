"""Rows of the tables in :mod:`sim.trace.tables_cluster`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


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


QuorumRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]


class BrokerStates:
    """Columns of ``broker_states``."""

    T_US: Final = 0
    CONTROLLER: Final = 1
    BROKER: Final = 2
    STATE: Final = 3
    BROKER_EPOCH: Final = 4


BrokerStatesRow: TypeAlias = tuple[int, int, int, str, int]


class TopicDeletions:
    """Columns of ``topic_deletions``."""

    T_US: Final = 0
    CONTROLLER: Final = 1
    TOPIC: Final = 2
    TOPIC_ID: Final = 3


TopicDeletionsRow: TypeAlias = tuple[int, int, str, str]


class Controllers:
    """Columns of ``controllers``."""

    T_US: Final = 0
    BROKER: Final = 1
    STATE: Final = 2
    EPOCH: Final = 3
    PARTITIONS: Final = 4


ControllersRow: TypeAlias = tuple[int, int, str, int, int]


class NodeStates:
    """Columns of ``node_states``."""

    T_US: Final = 0
    NODE: Final = 1
    STATE: Final = 2
    INCARNATION: Final = 3


NodeStatesRow: TypeAlias = tuple[int, str, str, int]


class Halts:
    """Columns of ``halts``."""

    T_US: Final = 0
    NODE: Final = 1
    REASON: Final = 2


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


ThrottlesRow: TypeAlias = tuple[int, int, str, str, str, str, int]
