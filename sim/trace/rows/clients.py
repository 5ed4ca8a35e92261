"""Rows of the tables in :mod:`sim.trace.tables_clients`, as typed tuples.

``row[Table.COLUMN]`` is checked by name and compiled to a constant index;
``Table.row(...)`` makes a row without its instant. Written from the schema by
``python -m tools.trace_rows``.
"""

# fmt: off
from typing import Final, TypeAlias

from sim.trace.emit import Emit


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

    @staticmethod
    def row(
        consumer: str, group: str, topic: str, partition: int, *, base_offset: int,
        last_offset: int, leader_epoch: int, producer_index: int, first_record: int,
        record_count: int, high_watermark: int, read_from: int,
    ) -> Emit:
        """Make a row of ``reads``."""
        return Emit("reads", (
            consumer, group, topic, partition, base_offset, last_offset, leader_epoch,
            producer_index, first_record, record_count, high_watermark, read_from,
        ))


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

    @staticmethod
    def row(
        consumer: str, group: str, topic: str, partition: int, *, offset_before: int, offset: int,
        reason: str,
    ) -> Emit:
        """Make a row of ``positions``."""
        return Emit("positions", (
            consumer, group, topic, partition, offset_before, offset, reason,
        ))


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

    @staticmethod
    def row(
        *, task: str, group: str, producer_index: int, inputs: str, output: str, each: int,
    ) -> Emit:
        """Make a row of ``tasks``."""
        return Emit("tasks", (
            task, group, producer_index, inputs, output, each,
        ))


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

    @staticmethod
    def row(
        *, task: str, producer_index: int, topic: str, partition: int, first_record: int,
        record_count: int, input_topic: str, input_partition: int, input_producer: int,
        input_record: int, ordinal: int, each: int,
    ) -> Emit:
        """Make a row of ``outputs``."""
        return Emit("outputs", (
            task, producer_index, topic, partition, first_record, record_count, input_topic,
            input_partition, input_producer, input_record, ordinal, each,
        ))


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

    @staticmethod
    def row(
        consumer: str, group: str, topic: str, partition: int, *, offset: int, generation: int,
        error: str,
    ) -> Emit:
        """Make a row of ``commits``."""
        return Emit("commits", (
            consumer, group, topic, partition, offset, generation, error,
        ))


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

    @staticmethod
    def row(
        broker: int, group: str, *, state: str, generation: int, members: int, reason: str,
    ) -> Emit:
        """Make a row of ``groups``."""
        return Emit("groups", (
            broker, group, state, generation, members, reason,
        ))


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

    @staticmethod
    def row(
        broker: int, group: str, *, member_id: str, consumer: str, member_epoch: int, state: str,
        assigned: str, pending_revocation: str,
    ) -> Emit:
        """Make a row of ``group_members``."""
        return Emit("group_members", (
            broker, group, member_id, consumer, member_epoch, state, assigned, pending_revocation,
        ))


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

    @staticmethod
    def row(
        broker: int, *, transactional_id: str, producer_id: int, producer_epoch: int, state: str,
        partitions: int, coordinator_epoch: int, reason: str,
    ) -> Emit:
        """Make a row of ``transactions``."""
        return Emit("transactions", (
            broker, transactional_id, producer_id, producer_epoch, state, partitions,
            coordinator_epoch, reason,
        ))


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

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, offset: int, producer_id: int,
        producer_epoch: int, committed: bool, coordinator_epoch: int,
    ) -> Emit:
        """Make a row of ``markers``."""
        return Emit("markers", (
            broker, topic, partition, offset, producer_id, producer_epoch, committed,
            coordinator_epoch,
        ))


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

    @staticmethod
    def row(
        broker: int, topic: str, partition: int, *, leader_epoch: int, last_stable_offset: int,
        high_watermark: int,
    ) -> Emit:
        """Make a row of ``stable_offsets``."""
        return Emit("stable_offsets", (
            broker, topic, partition, leader_epoch, last_stable_offset, high_watermark,
        ))


StableOffsetsRow: TypeAlias = tuple[int, int, str, int, int, int, int]


class Assignments:
    """Columns of ``assignments``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    MEMBER_ID: Final = 3
    GENERATION: Final = 4
    PARTITIONS: Final = 5

    @staticmethod
    def row(
        consumer: str, group: str, *, member_id: str, generation: int, partitions: str,
    ) -> Emit:
        """Make a row of ``assignments``."""
        return Emit("assignments", (
            consumer, group, member_id, generation, partitions,
        ))


AssignmentsRow: TypeAlias = tuple[int, str, str, str, int, str]


class Revocations:
    """Columns of ``revocations``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    GENERATION: Final = 3
    PARTITIONS: Final = 4

    @staticmethod
    def row(
        consumer: str, group: str, *, generation: int, partitions: str,
    ) -> Emit:
        """Make a row of ``revocations``."""
        return Emit("revocations", (
            consumer, group, generation, partitions,
        ))


RevocationsRow: TypeAlias = tuple[int, str, str, int, str]


class ConsumerErrors:
    """Columns of ``consumer_errors``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2
    ERROR: Final = 3

    @staticmethod
    def row(
        consumer: str, group: str, *, error: str,
    ) -> Emit:
        """Make a row of ``consumer_errors``."""
        return Emit("consumer_errors", (
            consumer, group, error,
        ))


ConsumerErrorsRow: TypeAlias = tuple[int, str, str, str]


class CommittedReaders:
    """Columns of ``committed_readers``."""

    T_US: Final = 0
    CONSUMER: Final = 1
    GROUP: Final = 2

    @staticmethod
    def row(
        consumer: str, group: str,
    ) -> Emit:
        """Make a row of ``committed_readers``."""
        return Emit("committed_readers", (
            consumer, group,
        ))


CommittedReadersRow: TypeAlias = tuple[int, str, str]


class StableLag:
    """Columns of ``stable_lag``."""

    T_US: Final = 0
    GROUP: Final = 1
    TOPIC: Final = 2
    PARTITION: Final = 3
    POSITION: Final = 4
    LAST_STABLE_OFFSET: Final = 5

    @staticmethod
    def row(
        group: str, topic: str, partition: int, *, position: int, last_stable_offset: int,
    ) -> Emit:
        """Make a row of ``stable_lag``."""
        return Emit("stable_lag", (
            group, topic, partition, position, last_stable_offset,
        ))


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

    @staticmethod
    def row(
        *, producer: str, transactional_id: str, transaction: int, producer_id: int,
        producer_epoch: int, begun_us: int, outcome: str, error: str, records: int,
    ) -> Emit:
        """Make a row of ``transaction_outcomes``."""
        return Emit("transaction_outcomes", (
            producer, transactional_id, transaction, producer_id, producer_epoch, begun_us,
            outcome, error, records,
        ))


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

    @staticmethod
    def row(
        *, producer: str, transactional_id: str, transaction: int, producer_index: int, topic: str,
        partition: int, first_record: int, last_record: int,
    ) -> Emit:
        """Make a row of ``transaction_records``."""
        return Emit("transaction_records", (
            producer, transactional_id, transaction, producer_index, topic, partition,
            first_record, last_record,
        ))


TransactionRecordsRow: TypeAlias = tuple[int, str, str, int, int, str, int, int, int]
