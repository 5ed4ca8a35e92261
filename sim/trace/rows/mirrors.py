"""Rows of the tables in :mod:`sim.trace.tables_mirrors`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


class Mirrored:
    """Columns of ``mirrored``."""

    T_US: Final = 0
    MIRROR: Final = 1
    PRODUCER_INDEX: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    FIRST_RECORD: Final = 5
    RECORD_COUNT: Final = 6
    SOURCE_TOPIC: Final = 7
    SOURCE_PARTITION: Final = 8
    SOURCE_PRODUCER: Final = 9
    SOURCE_RECORD: Final = 10
    SOURCE_OFFSET: Final = 11


MirroredRow: TypeAlias = tuple[int, str, int, str, int, int, int, str, int, int, int, int]


class OffsetSyncs:
    """Columns of ``offset_syncs``."""

    T_US: Final = 0
    MIRROR: Final = 1
    SOURCE_TOPIC: Final = 2
    PARTITION: Final = 3
    UPSTREAM: Final = 4
    DOWNSTREAM: Final = 5


OffsetSyncsRow: TypeAlias = tuple[int, str, str, int, int, int]


class Checkpoints:
    """Columns of ``checkpoints``."""

    T_US: Final = 0
    MIRROR: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    UPSTREAM: Final = 5
    DOWNSTREAM: Final = 6


CheckpointsRow: TypeAlias = tuple[int, str, str, str, int, int, int]
