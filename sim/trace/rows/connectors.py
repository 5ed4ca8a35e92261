"""Rows of the tables in :mod:`sim.trace.tables_connectors`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


class ConnectorTasks:
    """Columns of ``connector_tasks``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    KIND: Final = 2
    TASK: Final = 3
    NUMBER: Final = 4
    PRODUCER_INDEX: Final = 5
    TOPICS: Final = 6


ConnectorTasksRow: TypeAlias = tuple[int, str, str, str, int, int, str]


class ExternalLogs:
    """Columns of ``external_logs``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    SOURCE_PARTITION: Final = 2
    RECORDS: Final = 3


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


SourcedRow: TypeAlias = tuple[int, str, int, str, int, int, int, int, int]


class SourceOffsets:
    """Columns of ``source_offsets``."""

    T_US: Final = 0
    CONNECTOR: Final = 1
    SOURCE_PARTITION: Final = 2
    POSITION: Final = 3
    WHAT: Final = 4


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


ExternalWritesRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int]
