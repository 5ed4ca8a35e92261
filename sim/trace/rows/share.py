"""Rows of the tables in :mod:`sim.trace.tables_share`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


class ShareConsumers:
    """Columns of ``share_consumers``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2


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


ShareStatesRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, str, int, str, str]


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


ShareAcknowledgementsRow: TypeAlias = tuple[int, str, str, str, int, int, int, str, str]
