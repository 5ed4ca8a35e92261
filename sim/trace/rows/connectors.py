"""Rows of the tables in :mod:`sim.trace.tables_connectors`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


class ConnectorTasks:
    """Columns of ``connector_tasks``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    KIND: Final = 2
    TASK: Final = 3
    NUMBER: Final = 4
    PRODUCER_INDEX: Final = 5
    TOPICS: Final = 6

    @staticmethod
    def row(
        *, connector: str, kind: str, task: str, number: int, producer_index: int, topics: str,
    ) -> Emit:
        """Make a row of ``connector_tasks``."""
        return Emit("connector_tasks", (
            connector, kind, task, number, producer_index, topics,
        ))


ConnectorTasksRow: TypeAlias = tuple[int, str, str, str, int, int, str]


class ExternalLogs:
    """Columns of ``external_logs``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    SOURCE_PARTITION: Final = 2
    RECORDS: Final = 3

    @staticmethod
    def row(
        *, connector: str, source_partition: int, records: int,
    ) -> Emit:
        """Make a row of ``external_logs``."""
        return Emit("external_logs", (
            connector, source_partition, records,
        ))


ExternalLogsRow: TypeAlias = tuple[int, str, int, int]


class Sourced:
    """Columns of ``sourced``."""

    T_US: Final = 0
    TASK: Final = 1
    PRODUCER_INDEX: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    FIRST_RECORD: Final = 5
    RECORD_COUNT: Final = 6
    SOURCE_PARTITION: Final = 7
    POSITION: Final = 8

    @staticmethod
    def row(
        *, task: str, producer_index: int, topic: str, partition: int, first_record: int,
        record_count: int, source_partition: int, position: int,
    ) -> Emit:
        """Make a row of ``sourced``."""
        return Emit("sourced", (
            task, producer_index, topic, partition, first_record, record_count, source_partition,
            position,
        ))


SourcedRow: TypeAlias = tuple[int, str, int, str, int, int, int, int, int]


class SourceOffsets:
    """Columns of ``source_offsets``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    SOURCE_PARTITION: Final = 2
    POSITION: Final = 3
    WHAT: Final = 4

    @staticmethod
    def row(
        *, connector: str, source_partition: int, position: int, what: str,
    ) -> Emit:
        """Make a row of ``source_offsets``."""
        return Emit("source_offsets", (
            connector, source_partition, position, what,
        ))


SourceOffsetsRow: TypeAlias = tuple[int, str, int, int, str]


class ExternalWrites:
    """Columns of ``external_writes``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    TASK: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    BASE_OFFSET: Final = 5
    PRODUCER_INDEX: Final = 6
    FIRST_RECORD: Final = 7
    RECORD_COUNT: Final = 8

    @staticmethod
    def row(
        *, connector: str, task: str, topic: str, partition: int, base_offset: int,
        producer_index: int, first_record: int, record_count: int,
    ) -> Emit:
        """Make a row of ``external_writes``."""
        return Emit("external_writes", (
            connector, task, topic, partition, base_offset, producer_index, first_record,
            record_count,
        ))


ExternalWritesRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int]
