"""Rows of the tables in :mod:`sim.trace.tables_run`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


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

    @staticmethod
    def row(
        *, fault: int, kind: str, phase: str, target: str, resolved: str, took_effect: bool,
        effect: str,
    ) -> Emit:
        """Make a row of ``faults``."""
        return Emit("faults", (
            fault, kind, phase, target, resolved, took_effect, effect,
        ))


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

    @staticmethod
    def row(
        node: str, *, network_threads_ratio: int, request_handlers_ratio: int, disk_ratio: int,
        disk_written_bytes: int, dirty_bytes: int, sent_bytes: int, requests: int,
    ) -> Emit:
        """Make a row of ``load``."""
        return Emit("load", (
            node, network_threads_ratio, request_handlers_ratio, disk_ratio, disk_written_bytes,
            dirty_bytes, sent_bytes, requests,
        ))


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

    @staticmethod
    def row(
        group: str, topic: str, partition: int, *, position: int, committed: int,
        high_watermark: int,
    ) -> Emit:
        """Make a row of ``lag``."""
        return Emit("lag", (
            group, topic, partition, position, committed, high_watermark,
        ))


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

    @staticmethod
    def row(
        node: int, *, kind: str, client: str, correlation: int, sent_us: int, arrived_us: int,
        started_us: int, decided_us: int, request_bytes: int, response_bytes: int,
    ) -> Emit:
        """Make a row of ``requests``."""
        return Emit("requests", (
            node, kind, client, correlation, sent_us, arrived_us, started_us, decided_us,
            request_bytes, response_bytes,
        ))


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

    @staticmethod
    def row(
        *, sender: str, receiver: str, kind: str, size_bytes: int, sent_us: int, delayed_by: str,
    ) -> Emit:
        """Make a row of ``messages``."""
        return Emit("messages", (
            sender, receiver, kind, size_bytes, sent_us, delayed_by,
        ))


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

    @staticmethod
    def row(
        node: str, *, directory: int, operation: str, size_bytes: int, started_us: int, file: str,
    ) -> Emit:
        """Make a row of ``disk_io``."""
        return Emit("disk_io", (
            node, directory, operation, size_bytes, started_us, file,
        ))


DiskIoRow: TypeAlias = tuple[int, str, int, str, int, int, str]
