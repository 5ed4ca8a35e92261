"""Rows of the tables in :mod:`sim.trace.tables_mirrors`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


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

    @staticmethod
    def row(
        *, mirror: str, producer_index: int, topic: str, partition: int, first_record: int,
        record_count: int, source_topic: str, source_partition: int, source_producer: int,
        source_record: int, source_offset: int,
    ) -> Emit:
        """Make a row of ``mirrored``."""
        return Emit("mirrored", (
            mirror, producer_index, topic, partition, first_record, record_count, source_topic,
            source_partition, source_producer, source_record, source_offset,
        ))


MirroredRow: TypeAlias = tuple[int, str, int, str, int, int, int, str, int, int, int, int]


class OffsetSyncs:
    """Columns of ``offset_syncs``."""

    T_US: Final = 0
    MIRROR: Final = 1
    SOURCE_TOPIC: Final = 2
    PARTITION: Final = 3
    UPSTREAM: Final = 4
    DOWNSTREAM: Final = 5

    @staticmethod
    def row(
        *, mirror: str, source_topic: str, partition: int, upstream: int, downstream: int,
    ) -> Emit:
        """Make a row of ``offset_syncs``."""
        return Emit("offset_syncs", (
            mirror, source_topic, partition, upstream, downstream,
        ))


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

    @staticmethod
    def row(
        *, mirror: str, group: str, topic: str, partition: int, upstream: int, downstream: int,
    ) -> Emit:
        """Make a row of ``checkpoints``."""
        return Emit("checkpoints", (
            mirror, group, topic, partition, upstream, downstream,
        ))


CheckpointsRow: TypeAlias = tuple[int, str, str, str, int, int, int]
