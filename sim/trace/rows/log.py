"""Rows of the tables in :mod:`sim.trace.tables_log`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.trace.emit import Emit


class ClientBatches:
    """Columns of ``client_batches``."""

    T_US: Final = 0
    PRODUCER: Final = 1
    PRODUCER_INDEX: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    FIRST_RECORD: Final = 5
    RECORD_COUNT: Final = 6
    SIZE_BYTES: Final = 7
    ACKS: Final = 8
    CREATED_US: Final = 9
    FIRST_SENT_US: Final = 10
    LAST_SENT_US: Final = 11
    ATTEMPTS: Final = 12
    OUTCOME: Final = 13
    ERROR: Final = 14
    BASE_OFFSET: Final = 15
    ANSWERED_BY: Final = 16
    CORRELATION: Final = 17
    LATENCY_US: Final = 18

    @staticmethod
    def row(
        *, producer: str, producer_index: int, topic: str, partition: int, first_record: int,
        record_count: int, size_bytes: int, acks: int, created_us: int, first_sent_us: int,
        last_sent_us: int, attempts: int, outcome: str, error: str, base_offset: int,
        answered_by: int, correlation: int, latency_us: NDArray[np.int32] | Sequence[int],
    ) -> Emit:
        """Make a row of ``client_batches``."""
        return Emit("client_batches", (
            producer, producer_index, topic, partition, first_record, record_count, size_bytes,
            acks, created_us, first_sent_us, last_sent_us, attempts, outcome, error, base_offset,
            answered_by, correlation, latency_us,
        ))


ClientBatchesRow: TypeAlias = tuple[
    int, str, int, str, int, int, int, int, int, int, int, int, int, str, str, int, int, int,
    NDArray[np.int32]
]


class Appends:
    """Columns of ``appends``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    BASE_OFFSET: Final = 4
    LAST_OFFSET: Final = 5
    LEADER_EPOCH: Final = 6
    AS_LEADER: Final = 7
    SIZE_BYTES: Final = 8
    CRC: Final = 9
    PRODUCER_INDEX: Final = 10
    FIRST_RECORD: Final = 11
    RECORD_COUNT: Final = 12
    PRODUCER_ID: Final = 13
    PRODUCER_EPOCH: Final = 14
    BASE_SEQUENCE: Final = 15

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, base_offset: int, last_offset: int,
        leader_epoch: int, as_leader: bool, size_bytes: int, crc: int, producer_index: int,
        first_record: int, record_count: int, producer_id: int, producer_epoch: int,
        base_sequence: int,
    ) -> Emit:
        """Make a row of ``appends``."""
        return Emit("appends", (
            broker, topic, partition, base_offset, last_offset, leader_epoch, as_leader,
            size_bytes, crc, producer_index, first_record, record_count, producer_id,
            producer_epoch, base_sequence,
        ))


AppendsRow: TypeAlias = tuple[
    int, int, str, int, int, int, int, bool, int, int, int, int, int, int, int, int
]


class HighWatermarks:
    """Columns of ``high_watermarks``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER_EPOCH: Final = 4
    HIGH_WATERMARK: Final = 5
    LOG_END_OFFSET: Final = 6
    IN_SYNC_COUNT: Final = 7
    MIN_IN_SYNC: Final = 8
    LOWEST_IN_SYNC_END: Final = 9

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, leader_epoch: int, high_watermark: int,
        log_end_offset: int, in_sync_count: int, min_in_sync: int, lowest_in_sync_end: int,
    ) -> Emit:
        """Make a row of ``high_watermarks``."""
        return Emit("high_watermarks", (
            broker, topic, partition, leader_epoch, high_watermark, log_end_offset, in_sync_count,
            min_in_sync, lowest_in_sync_end,
        ))


HighWatermarksRow: TypeAlias = tuple[int, int, str, int, int, int, int, int, int, int]


class FollowerWatermarks:
    """Columns of ``follower_watermarks``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER_EPOCH: Final = 4
    HIGH_WATERMARK: Final = 5
    LOG_END_OFFSET: Final = 6
    SENT_BY_LEADER: Final = 7

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, leader_epoch: int, high_watermark: int,
        log_end_offset: int, sent_by_leader: int,
    ) -> Emit:
        """Make a row of ``follower_watermarks``."""
        return Emit("follower_watermarks", (
            broker, topic, partition, leader_epoch, high_watermark, log_end_offset, sent_by_leader,
        ))


FollowerWatermarksRow: TypeAlias = tuple[int, int, str, int, int, int, int, int]


class Acknowledgements:
    """Columns of ``acknowledgements``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER_EPOCH: Final = 4
    ACKS: Final = 5
    ERROR: Final = 6
    BASE_OFFSET: Final = 7
    LAST_OFFSET: Final = 8
    HIGH_WATERMARK: Final = 9
    MAXIMAL_IN_SYNC_COUNT: Final = 10
    MIN_IN_SYNC: Final = 11

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, leader_epoch: int, acks: int, error: str,
        base_offset: int, last_offset: int, high_watermark: int, maximal_in_sync_count: int,
        min_in_sync: int,
    ) -> Emit:
        """Make a row of ``acknowledgements``."""
        return Emit("acknowledgements", (
            broker, topic, partition, leader_epoch, acks, error, base_offset, last_offset,
            high_watermark, maximal_in_sync_count, min_in_sync,
        ))


AcknowledgementsRow: TypeAlias = tuple[int, int, str, int, int, int, str, int, int, int, int, int]


class Truncations:
    """Columns of ``truncations``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FROM_OFFSET: Final = 4
    TO_OFFSET: Final = 5
    HIGH_WATERMARK: Final = 6
    LEADER_EPOCH: Final = 7
    REASON: Final = 8

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, from_offset: int, to_offset: int,
        high_watermark: int, leader_epoch: int, reason: str,
    ) -> Emit:
        """Make a row of ``truncations``."""
        return Emit("truncations", (
            broker, topic, partition, from_offset, to_offset, high_watermark, leader_epoch, reason,
        ))


TruncationsRow: TypeAlias = tuple[int, int, str, int, int, int, int, int, str]


class RaftConfigurations:
    """Columns of ``raft_configurations``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER_EPOCH: Final = 4
    OFFSET: Final = 5
    VOTERS: Final = 6
    OLD: Final = 7
    LEARNERS: Final = 8

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, leader_epoch: int, offset: int, voters: str,
        old: str, learners: str,
    ) -> Emit:
        """Make a row of ``raft_configurations``."""
        return Emit("raft_configurations", (
            broker, topic, partition, leader_epoch, offset, voters, old, learners,
        ))


RaftConfigurationsRow: TypeAlias = tuple[int, int, str, int, int, int, str, str, str]


class LogStarts:
    """Columns of ``log_starts``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FROM_OFFSET: Final = 4
    TO_OFFSET: Final = 5
    REASON: Final = 6

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, from_offset: int, to_offset: int, reason: str,
    ) -> Emit:
        """Make a row of ``log_starts``."""
        return Emit("log_starts", (
            broker, topic, partition, from_offset, to_offset, reason,
        ))


LogStartsRow: TypeAlias = tuple[int, int, str, int, int, int, str]


class LogDirMoves:
    """Columns of ``log_dir_moves``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    PHASE: Final = 4
    FROM_DIRECTORY: Final = 5
    TO_DIRECTORY: Final = 6
    FUTURE_END: Final = 7
    LOG_END_OFFSET: Final = 8

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, phase: str, from_directory: str,
        to_directory: str, future_end: int, log_end_offset: int,
    ) -> Emit:
        """Make a row of ``log_dir_moves``."""
        return Emit("log_dir_moves", (
            broker, topic, partition, phase, from_directory, to_directory, future_end,
            log_end_offset,
        ))


LogDirMovesRow: TypeAlias = tuple[int, int, str, int, str, str, str, int, int]


class Cleanings:
    """Columns of ``cleanings``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FIRST_DIRTY_OFFSET: Final = 4
    END_OFFSET: Final = 5
    RECORDS_BEFORE: Final = 6
    RECORDS_AFTER: Final = 7
    TOMBSTONES_REMOVED: Final = 8
    BYTES_BEFORE: Final = 9
    BYTES_AFTER: Final = 10

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, first_dirty_offset: int, end_offset: int,
        records_before: int, records_after: int, tombstones_removed: int, bytes_before: int,
        bytes_after: int,
    ) -> Emit:
        """Make a row of ``cleanings``."""
        return Emit("cleanings", (
            broker, topic, partition, first_dirty_offset, end_offset, records_before,
            records_after, tombstones_removed, bytes_before, bytes_after,
        ))


CleaningsRow: TypeAlias = tuple[int, int, str, int, int, int, int, int, int, int, int]


class LogContents:
    """Columns of ``log_contents``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    BASE_OFFSET: Final = 4
    LAST_OFFSET: Final = 5
    KEPT: Final = 6
    HOW: Final = 7
    STARTED_US: Final = 8
    DELETE_RETENTION_MS: Final = 9

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, base_offset: int, last_offset: int,
        kept: NDArray[np.int32] | Sequence[int], how: str, started_us: int,
        delete_retention_ms: int,
    ) -> Emit:
        """Make a row of ``log_contents``."""
        return Emit("log_contents", (
            broker, topic, partition, base_offset, last_offset, kept, how, started_us,
            delete_retention_ms,
        ))


LogContentsRow: TypeAlias = tuple[int, int, str, int, int, int, NDArray[np.int32], str, int, int]


class RecordKeys:
    """Columns of ``record_keys``."""

    T_US: Final = 0
    PRODUCER_INDEX: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FIRST_RECORD: Final = 4
    RECORD_COUNT: Final = 5
    KEYS: Final = 6
    TOMBSTONES: Final = 7

    @staticmethod
    def row(
        *, producer_index: int, topic: str, partition: int, first_record: int, record_count: int,
        keys: NDArray[np.int32] | Sequence[int], tombstones: NDArray[np.int32] | Sequence[int],
    ) -> Emit:
        """Make a row of ``record_keys``."""
        return Emit("record_keys", (
            producer_index, topic, partition, first_record, record_count, keys, tombstones,
        ))


RecordKeysRow: TypeAlias = tuple[int, int, str, int, int, int, NDArray[np.int32], NDArray[np.int32]]


class LogHoles:
    """Columns of ``log_holes``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FROM_OFFSET: Final = 4
    TO_OFFSET: Final = 5

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, from_offset: int, to_offset: int,
    ) -> Emit:
        """Make a row of ``log_holes``."""
        return Emit("log_holes", (
            broker, topic, partition, from_offset, to_offset,
        ))


LogHolesRow: TypeAlias = tuple[int, int, str, int, int, int]


class Recoveries:
    """Columns of ``recoveries``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    CLEAN: Final = 4
    RECOVERY_POINT: Final = 5
    LOG_END_OFFSET: Final = 6
    SCANNED_BYTES: Final = 7
    TRUNCATED_BYTES: Final = 8
    READ_BYTES: Final = 9
    TOOK_US: Final = 10

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, clean: bool, recovery_point: int,
        log_end_offset: int, scanned_bytes: int, truncated_bytes: int, read_bytes: int,
        took_us: int,
    ) -> Emit:
        """Make a row of ``recoveries``."""
        return Emit("recoveries", (
            broker, topic, partition, clean, recovery_point, log_end_offset, scanned_bytes,
            truncated_bytes, read_bytes, took_us,
        ))


RecoveriesRow: TypeAlias = tuple[int, int, str, int, bool, int, int, int, int, int, int]
