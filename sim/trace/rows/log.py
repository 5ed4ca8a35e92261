"""Rows of the tables in :mod:`sim.trace.tables_log`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray


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


ClientBatchesRow: TypeAlias = tuple[
    int, str, int, str, int, int, int, int, int, int, int, int, int, str, str, int, int, int,
    NDArray[np.int32]
]  # fmt: skip


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


AppendsRow: TypeAlias = tuple[
    int, int, str, int, int, int, int, bool, int, int, int, int, int, int, int, int
]  # fmt: skip


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


RecordKeysRow: TypeAlias = tuple[int, int, str, int, int, int, NDArray[np.int32], NDArray[np.int32]]


class LogHoles:
    """Columns of ``log_holes``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    FROM_OFFSET: Final = 4
    TO_OFFSET: Final = 5


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


RecoveriesRow: TypeAlias = tuple[int, int, str, int, bool, int, int, int, int, int, int]
