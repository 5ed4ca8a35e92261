"""Rows of the tables in :mod:`sim.trace.tables_share`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


class ShareConsumers:
    """Columns of ``share_consumers``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2

    @staticmethod
    def row(
        consumer: str, group: str,
    ) -> Emit:
        """Make a row of ``share_consumers``."""
        return Emit("share_consumers", (
            consumer, group,
        ))


ShareConsumersRow: TypeAlias = tuple[int, str, str]


class SharePartitions:
    """Columns of ``share_partitions``."""

    T_US: Final = 0
    BROKER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    LEADER_EPOCH: Final = 5
    START_OFFSET: Final = 6
    END_OFFSET: Final = 7
    DELIVERY_LIMIT: Final = 8
    REASON: Final = 9

    @staticmethod
    def row(
        broker: int, group: str, topic: str, partition: int, *, leader_epoch: int,
        start_offset: int, end_offset: int, delivery_limit: int, reason: str,
    ) -> Emit:
        """Make a row of ``share_partitions``."""
        return Emit("share_partitions", (
            broker, group, topic, partition, leader_epoch, start_offset, end_offset,
            delivery_limit, reason,
        ))


SharePartitionsRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, int, str]


class ShareStates:
    """Columns of ``share_states``."""

    T_US: Final = 0
    BROKER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    LEADER_EPOCH: Final = 5
    FIRST_OFFSET: Final = 6
    LAST_OFFSET: Final = 7
    STATE: Final = 8
    DELIVERY_COUNT: Final = 9
    CONSUMER: Final = 10
    REASON: Final = 11

    @staticmethod
    def row(
        broker: int, group: str, topic: str, partition: int, *, leader_epoch: int,
        first_offset: int, last_offset: int, state: str, delivery_count: int, consumer: str,
        reason: str,
    ) -> Emit:
        """Make a row of ``share_states``."""
        return Emit("share_states", (
            broker, group, topic, partition, leader_epoch, first_offset, last_offset, state,
            delivery_count, consumer, reason,
        ))


ShareStatesRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, str, int, str, str]


class ShareRenewals:
    """Columns of ``share_renewals``."""

    T_US: Final = 0
    BROKER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    LEADER_EPOCH: Final = 5
    FIRST_OFFSET: Final = 6
    LAST_OFFSET: Final = 7
    CONSUMER: Final = 8
    UNTIL_US: Final = 9

    @staticmethod
    def row(
        broker: int, group: str, topic: str, partition: int, *, leader_epoch: int,
        first_offset: int, last_offset: int, consumer: str, until_us: int,
    ) -> Emit:
        """Make a row of ``share_renewals``."""
        return Emit("share_renewals", (
            broker, group, topic, partition, leader_epoch, first_offset, last_offset, consumer,
            until_us,
        ))


ShareRenewalsRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, str, int]


class ShareAcknowledgements:
    """Columns of ``share_acknowledgements``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    FIRST_OFFSET: Final = 5
    LAST_OFFSET: Final = 6
    TYPES: Final = 7
    ERROR: Final = 8

    @staticmethod
    def row(
        consumer: str, group: str, topic: str, partition: int, *, first_offset: int,
        last_offset: int, types: str, error: str,
    ) -> Emit:
        """Make a row of ``share_acknowledgements``."""
        return Emit("share_acknowledgements", (
            consumer, group, topic, partition, first_offset, last_offset, types, error,
        ))


ShareAcknowledgementsRow: TypeAlias = tuple[int, str, str, str, int, int, int, str, str]
