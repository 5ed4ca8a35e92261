"""Events and effects between a coordinator and its broker about its log partitions.

A coordinator (of groups, of transactions) keeps its state in an internal topic. It serves the
partitions that its broker leads: loaded as a whole when leadership begins, appended to with
acks=all. Records are those of the topic; ``sim.records`` encodes them.

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
    """This broker leads a partition of the coordinator's topic, and loads it: not ready yet."""

    partition: int
    epoch: LeaderEpoch
    takes_over: bool = False
    """True if this broker did not lead it before."""


@dataclass(frozen=True, slots=True)
class PartitionElected:
    """The partition is loaded; ``records`` are all of it, in log order."""

    partition: int
    epoch: LeaderEpoch
    records: tuple[Any, ...]
    is_whole: bool = True
    """True if all could be read; if not, ``records`` end with the last batch before the damage."""


@dataclass(frozen=True, slots=True)
class PartitionResigned:
    """This broker no longer leads the partition."""

    partition: int


@dataclass(frozen=True, slots=True)
class InTransaction:
    """Transaction of records; its coordinator must know of the partition."""

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int


@dataclass(frozen=True, slots=True)
class VerifyTransaction:
    """Effect: verifies at the transaction's coordinator that records of it may be appended.

    Answered by exactly one :class:`TransactionVerified`, at once if the transaction is known there.
    """

    partition: int
    token: int
    transaction: InTransaction


@dataclass(frozen=True, slots=True)
class TransactionVerified:
    """Outcome of :class:`VerifyTransaction`; ``guard``: verification guard of the append."""

    token: int
    error: ErrorCode
    guard: int


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """Effect: appends the records as one batch to that partition of the topic.

    Answered by :class:`RecordsAppended`, with REQUEST_TIMED_OUT after ``timeout_us``. Batches of
    one partition are appended in the order given. Those of a transaction have their verification
    guard.
    """

    partition: int
    token: int
    records: tuple[Any, ...]
    timeout_us: Micros
    transaction: InTransaction | None = None
    guard: int = NO_GUARD
    follows_watermark: bool = False
    """True if it is appended whatever is in sync, and reported again when it is committed after its
    timeout; otherwise acks=all."""


@dataclass(frozen=True, slots=True)
class RecordsAppended:
    """Outcome of :class:`AppendRecords`: NONE when the high watermark has passed it.

    REQUEST_TIMED_OUT means that it was appended and may yet be committed; any other error, that it
    counts as not written. With ``follows_watermark`` the final outcome follows.
    """

    token: int
    error: ErrorCode


def error_for_client(error: ErrorCode) -> ErrorCode:
    """Error for a coordinator's client after a failed write.

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
