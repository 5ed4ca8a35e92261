"""What a coordinator and its broker say to each other about the coordinator's log partitions.

A coordinator (of groups, of transactions) keeps its state in an internal topic. It serves the
partitions that its broker leads: read whole when leadership comes, appended to with acks=all.
Records are of the kind that the topic holds; their bytes are the business of the node.

Source: ``CoordinatorRuntime``, ``TransactionStateManager``.
"""

from dataclasses import dataclass
from typing import Any

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, ProducerId
from sim.protocol.ports import NO_GUARD
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class PartitionLoading:
    """This broker leads a partition of the coordinator's topic, and reads it: not ready yet."""

    partition: int
    epoch: LeaderEpoch
    takes_over: bool = False
    """Whether this broker did not lead it before."""


@dataclass(frozen=True, slots=True)
class PartitionElected:
    """The partition is read; ``records`` are all of it, in log order."""

    partition: int
    epoch: LeaderEpoch
    records: tuple[Any, ...]
    is_whole: bool = True
    """Whether all could be read; if not, ``records`` end with the last batch before the damage."""


@dataclass(frozen=True, slots=True)
class PartitionResigned:
    """This broker no longer leads the partition."""

    partition: int


@dataclass(frozen=True, slots=True)
class InTransaction:
    """The transaction to which records belong; its coordinator must know of the partition."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class VerifyTransaction:
    """Effect: ask the transaction's coordinator whether records of it may go to the partition.

    Answered by exactly one :class:`TransactionVerified`, at once if the transaction is known there.
    """

    partition: int
    token: int
    transaction: InTransaction


@dataclass(frozen=True, slots=True)
class TransactionVerified:
    """The outcome of :class:`VerifyTransaction`; ``guard`` is what records are appended with."""

    token: int
    error: ErrorCode
    guard: int


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Effect: append the records as one batch to that partition of the topic.

    Answered by :class:`RecordsAppended`, with REQUEST_TIMED_OUT after ``timeout_us``. Batches of
    one partition are appended in the order given. Those of a transaction bring the guard that its
    verification gave.
    """

    partition: int
    token: int
    records: tuple[Any, ...]
    timeout_us: Micros
    transaction: InTransaction | None = None
    guard: int = NO_GUARD
    follows_watermark: bool = False
    """Written whatever is in sync, and told again when it is committed after its time; otherwise
    acks=all."""


@dataclass(frozen=True, slots=True)
class RecordsAppended:
    """The outcome of :class:`AppendRecords`: NONE when the high watermark has passed it.

    REQUEST_TIMED_OUT means that it was appended and may yet be committed; any other error, that
    it counts as not written. Who follows the high watermark is told the end after that, too.
    """

    token: int
    error: ErrorCode


def error_for_client(error: ErrorCode) -> ErrorCode:
    """What a client of a coordinator is told of a failed write.

    Source: ``GroupMetadataManager.appendGroupMetadataErrorToResponseError``,
    ``TransactionStateManager.appendTransactionToLog``.
    """
    if error in _NOT_AVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if error in _MOVED:
        return ErrorCode.NOT_COORDINATOR
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return error


_NOT_AVAILABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
