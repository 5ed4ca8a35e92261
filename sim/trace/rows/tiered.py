"""Rows of the tables in :mod:`sim.trace.tables_tiered`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


class LocalLogStarts:
    """Columns of ``local_log_starts``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FROM_OFFSET: Final = 4
    TO_OFFSET: Final = 5
    LOG_START_OFFSET: Final = 6
    REASON: Final = 7

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, from_offset: int, to_offset: int,
        log_start_offset: int, reason: str,
    ) -> Emit:
        """Make a row of ``local_log_starts``."""
        return Emit("local_log_starts", (
            broker, topic, partition, from_offset, to_offset, log_start_offset, reason,
        ))


LocalLogStartsRow: TypeAlias = tuple[int, int, str, int, int, int, int, str]


class RemoteSegments:
    """Columns of ``remote_segments``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    SEGMENT: Final = 4
    STATE: Final = 5
    START_OFFSET: Final = 6
    END_OFFSET: Final = 7
    LEADER_EPOCHS: Final = 8
    SIZE_BYTES: Final = 9

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, segment: str, state: str, start_offset: int,
        end_offset: int, leader_epochs: str, size_bytes: int,
    ) -> Emit:
        """Make a row of ``remote_segments``."""
        return Emit("remote_segments", (
            broker, topic, partition, segment, state, start_offset, end_offset, leader_epochs,
            size_bytes,
        ))


RemoteSegmentsRow: TypeAlias = tuple[int, int, str, int, str, str, int, int, str, int]


class ObjectRequests:
    """Columns of ``object_requests``."""

    T_US: Final = 0
    NODE: Final = 1
    OPERATION: Final = 2
    NAME: Final = 3
    SIZE_BYTES: Final = 4
    STARTED_US: Final = 5
    STATUS: Final = 6

    @staticmethod
    def row(
        node: str, *, operation: str, name: str, size_bytes: int, started_us: int, status: int,
    ) -> Emit:
        """Make a row of ``object_requests``."""
        return Emit("object_requests", (
            node, operation, name, size_bytes, started_us, status,
        ))


ObjectRequestsRow: TypeAlias = tuple[int, str, str, str, int, int, int]
