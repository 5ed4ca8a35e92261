"""Rows of the tables in :mod:`sim.trace.tables_run`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


class Faults:
    """Columns of ``faults``."""

    T_US: Final = 0
    FAULT: Final = 1
    KIND: Final = 2
    PHASE: Final = 3
    TARGET: Final = 4
    RESOLVED: Final = 5
    TOOK_EFFECT: Final = 6
    EFFECT: Final = 7


FaultsRow: TypeAlias = tuple[int, int, str, str, str, str, bool, str]


class Load:
    """Columns of ``load``."""

    T_US: Final = 0
    NODE: Final = 1
    NETWORK_THREADS_RATIO: Final = 2
    REQUEST_HANDLERS_RATIO: Final = 3
    DISK_RATIO: Final = 4
    DISK_WRITTEN_BYTES: Final = 5
    DIRTY_BYTES: Final = 6
    SENT_BYTES: Final = 7
    REQUESTS: Final = 8


LoadRow: TypeAlias = tuple[int, str, int, int, int, int, int, int, int]


class Lag:
    """Columns of ``lag``."""

    T_US: Final = 0
    GROUP: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    POSITION: Final = 4
    COMMITTED: Final = 5
    HIGH_WATERMARK: Final = 6


LagRow: TypeAlias = tuple[int, str, str, int, int, int, int]


class Requests:
    """Columns of ``requests``."""

    T_US: Final = 0
    NODE: Final = 1
    KIND: Final = 2
    CLIENT: Final = 3
    CORRELATION: Final = 4
    SENT_US: Final = 5
    ARRIVED_US: Final = 6
    STARTED_US: Final = 7
    DECIDED_US: Final = 8
    REQUEST_BYTES: Final = 9
    RESPONSE_BYTES: Final = 10


RequestsRow: TypeAlias = tuple[int, int, str, str, int, int, int, int, int, int, int]


class Messages:
    """Columns of ``messages``."""

    T_US: Final = 0
    SENDER: Final = 1
    RECEIVER: Final = 2
    KIND: Final = 3
    SIZE_BYTES: Final = 4
    SENT_US: Final = 5
    DELAYED_BY: Final = 6


MessagesRow: TypeAlias = tuple[int, str, str, str, int, int, str]


class DiskIo:
    """Columns of ``disk_io``."""

    T_US: Final = 0
    NODE: Final = 1
    DIRECTORY: Final = 2
    OPERATION: Final = 3
    SIZE_BYTES: Final = 4
    STARTED_US: Final = 5
    FILE: Final = 6


DiskIoRow: TypeAlias = tuple[int, str, int, str, int, int, str]
