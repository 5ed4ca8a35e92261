"""Rows of the tables in :mod:`sim.trace.tables_clients`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index. Written by
``python -m tools.trace_rows`` from the schema.
"""

from typing import Final, TypeAlias


class Reads:
    """Columns of ``reads``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    BASE_OFFSET: Final = 5
    LAST_OFFSET: Final = 6
    LEADER_EPOCH: Final = 7
    PRODUCER_INDEX: Final = 8
    FIRST_RECORD: Final = 9
    RECORD_COUNT: Final = 10
    HIGH_WATERMARK: Final = 11
    READ_FROM: Final = 12


ReadsRow: TypeAlias = tuple[int, str, str, str, int, int, int, int, int, int, int, int, int]


class Positions:
    """Columns of ``positions``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    OFFSET_BEFORE: Final = 5
    OFFSET: Final = 6
    REASON: Final = 7


PositionsRow: TypeAlias = tuple[int, str, str, str, int, int, int, str]


class Tasks:
    """Columns of ``tasks``."""

    T_US: Final = 0
    TASK: Final = 1
    GROUP: Final = 2
    PRODUCER_INDEX: Final = 3
    INPUTS: Final = 4
    OUTPUT: Final = 5
    EACH: Final = 6


TasksRow: TypeAlias = tuple[int, str, str, int, str, str, int]


class Outputs:
    """Columns of ``outputs``."""

    T_US: Final = 0
    TASK: Final = 1
    PRODUCER_INDEX: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    FIRST_RECORD: Final = 5
    RECORD_COUNT: Final = 6
    INPUT_TOPIC: Final = 7
    INPUT_PARTITION: Final = 8
    INPUT_PRODUCER: Final = 9
    INPUT_RECORD: Final = 10
    ORDINAL: Final = 11
    EACH: Final = 12


OutputsRow: TypeAlias = tuple[int, str, int, str, int, int, int, str, int, int, int, int, int]


class Commits:
    """Columns of ``commits``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    TOPIC: Final = 3
    PARTITION: Final = 4
    OFFSET: Final = 5
    GENERATION: Final = 6
    ERROR: Final = 7


CommitsRow: TypeAlias = tuple[int, str, str, str, int, int, int, str]


class Groups:
    """Columns of ``groups``."""

    T_US: Final = 0
    BROKER: Final = 1
    GROUP: Final = 2
    STATE: Final = 3
    GENERATION: Final = 4
    MEMBERS: Final = 5
    REASON: Final = 6


GroupsRow: TypeAlias = tuple[int, int, str, str, int, int, str]


class GroupMembers:
    """Columns of ``group_members``."""

    T_US: Final = 0
    BROKER: Final = 1
    GROUP: Final = 2
    MEMBER_ID: Final = 3
    CONSUMER: Final = 4
    MEMBER_EPOCH: Final = 5
    STATE: Final = 6
    ASSIGNED: Final = 7
    PENDING_REVOCATION: Final = 8


GroupMembersRow: TypeAlias = tuple[int, int, str, str, str, int, str, str, str]


class Transactions:
    """Columns of ``transactions``."""

    T_US: Final = 0
    BROKER: Final = 1
    TRANSACTIONAL_ID: Final = 2
    PRODUCER_ID: Final = 3
    PRODUCER_EPOCH: Final = 4
    STATE: Final = 5
    PARTITIONS: Final = 6
    COORDINATOR_EPOCH: Final = 7
    REASON: Final = 8


TransactionsRow: TypeAlias = tuple[int, int, str, int, int, str, int, int, str]


class Markers:
    """Columns of ``markers``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    OFFSET: Final = 4
    PRODUCER_ID: Final = 5
    PRODUCER_EPOCH: Final = 6
    COMMITTED: Final = 7
    COORDINATOR_EPOCH: Final = 8


MarkersRow: TypeAlias = tuple[int, int, str, int, int, int, int, bool, int]


class StableOffsets:
    """Columns of ``stable_offsets``."""

    T_US: Final = 0
    BROKER: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    LEADER_EPOCH: Final = 4
    LAST_STABLE_OFFSET: Final = 5
    HIGH_WATERMARK: Final = 6


StableOffsetsRow: TypeAlias = tuple[int, int, str, int, int, int, int]


class Assignments:
    """Columns of ``assignments``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    MEMBER_ID: Final = 3
    GENERATION: Final = 4
    PARTITIONS: Final = 5


AssignmentsRow: TypeAlias = tuple[int, str, str, str, int, str]


class Revocations:
    """Columns of ``revocations``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    GENERATION: Final = 3
    PARTITIONS: Final = 4


RevocationsRow: TypeAlias = tuple[int, str, str, int, str]


class CommittedReaders:
    """Columns of ``committed_readers``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2


CommittedReadersRow: TypeAlias = tuple[int, str, str]


class StableLag:
    """Columns of ``stable_lag``."""

    T_US: Final = 0
    GROUP: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    POSITION: Final = 4
    LAST_STABLE_OFFSET: Final = 5


StableLagRow: TypeAlias = tuple[int, str, str, int, int, int]


class TransactionOutcomes:
    """Columns of ``transaction_outcomes``."""

    T_US: Final = 0
    PRODUCER: Final = 1
    TRANSACTIONAL_ID: Final = 2
    TRANSACTION: Final = 3
    PRODUCER_ID: Final = 4
    PRODUCER_EPOCH: Final = 5
    BEGUN_US: Final = 6
    OUTCOME: Final = 7
    ERROR: Final = 8
    RECORDS: Final = 9


TransactionOutcomesRow: TypeAlias = tuple[int, str, str, int, int, int, int, str, str, int]


class TransactionRecords:
    """Columns of ``transaction_records``."""

    T_US: Final = 0
    PRODUCER: Final = 1
    TRANSACTIONAL_ID: Final = 2
    TRANSACTION: Final = 3
    PRODUCER_INDEX: Final = 4
    TOPIC: Final = 5
    PARTITION: Final = 6
    FIRST_RECORD: Final = 7
    LAST_RECORD: Final = 8


TransactionRecordsRow: TypeAlias = tuple[int, str, str, int, int, str, int, int, int]
