"""The state of a transactional producer, and its requests to the transaction coordinator.

At most one such request is in flight, and while one is, no batch is sent. The next is the waiting
one of highest priority; a retried one waits ``retry.backoff.ms`` when its turn comes. With
``transaction.version`` 2 a transaction begins with its first batch and each has an epoch of its own
(KIP-890); with version 0 every partition is added at the coordinator before its first batch.

Left out: two-phase commit (KIP-939), a change of version while the client runs.

Source: ``clients/producer/internals/TransactionManager.java`` (4.1); KIP-98, KIP-360, KIP-447,
KIP-890.
"""

from collections.abc import Callable
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.clients.producer.transaction_requests import (
    CoordinatorKind,
    CoordinatorRequest,
    Priority,
    TransactionState,
)
from sim.protocol.clients.producer.transaction_sequences import TransactionSequences
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.group import FindCoordinatorRequest, FindCoordinatorResponse
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from sim.units import MS, Micros

ADD_PARTITIONS_BACKOFF_US: Micros = 20 * MS
"""``ADD_PARTITIONS_RETRY_BACKOFF_MS``: while the former transaction is still being completed."""

Offsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]
"""Positions to commit with a transaction."""


_OPEN = frozenset({TransactionState.IN_TRANSACTION, TransactionState.COMMITTING_TRANSACTION})
_ERROR = frozenset({TransactionState.ABORTABLE_ERROR, TransactionState.FATAL_ERROR})
_COORDINATOR_LOST = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
_MEMBER_LOST = frozenset(
    {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}
)
_UNAUTHORIZED = frozenset(
    {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED}
)
_FATAL_TO_BATCHES = _UNAUTHORIZED | {
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
_ALWAYS_FATAL = _UNAUTHORIZED | {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
}
_ABORTABLE = frozenset(
    {
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    }
)


class TransactionManager:
    """State of one transactional producer; events in, requests out.

    Args:
        transactional_id: ``transactional.id``, not empty.
        timeout_us: ``transaction.timeout.ms``.
        retry_backoff_us: ``retry.backoff.ms``.
        version: ``transaction.version`` of the cluster: 2, or 0.
        adds_partitions: True if every partition is added at the coordinator (version 0). A client
            without that adds a transaction's first one and writes to the others without adding
            them: the defect against which KIP-890 protects brokers.
    """

    def __init__(
        self,
        transactional_id: str,
        timeout_us: Micros,
        retry_backoff_us: Micros,
        version: int,
        *,
        adds_partitions: bool = True,
    ) -> None:
        assert transactional_id, "a transactional producer has a transactional id"
        self.transactional_id = transactional_id
        self.state = TransactionState.UNINITIALIZED
        self.error = ErrorCode.NONE
        """Error of the state, or of the transaction that is being aborted."""
        self.outcome = ""
        """``committed`` or ``aborted`` after the coordinator's response; cleared by the owner."""
        self.commit_in_doubt = False
        """True if a request to commit the present transaction was sent, and may have been applied
        without a response."""
        self.sequences = TransactionSequences(self.fail, self.may_send)
        self.in_flight: CoordinatorRequest | None = None
        self._timeout_us = timeout_us
        self._backoff_us = retry_backoff_us
        self._version = version
        self._adds_partitions = adds_partitions
        self._coordinators: dict[CoordinatorKind, NodeId] = {}
        self._group = ""
        self._pending: list[CoordinatorRequest] = []
        self._partitions: dict[int, None] = {}
        self._new: dict[int, TopicPartition] = {}
        self._adding: tuple[TopicPartition, ...] = ()
        self._offsets: TxnOffsetCommitRequest | None = None
        self._started = False
        self._bump_required = False

    # -- calls of the application ------------------------------------------------------------------

    def initialize(self) -> None:
        """``initTransactions()``."""
        self._move(TransactionState.INITIALIZING, TransactionState.UNINITIALIZED)
        self._enqueue_init(Priority.INIT_PRODUCER_ID, -1, -1)

    def begin(self) -> None:
        """``beginTransaction()``: only the client knows of it."""
        self._move(TransactionState.IN_TRANSACTION, TransactionState.READY)
        self.commit_in_doubt = False
        self.outcome = ""

    def add_partition(self, partition: TopicPartition) -> None:
        """The first record of the transaction for this partition was sent by the application."""
        number = partition.partition
        if self._version >= 2:
            self._partitions[number] = None
            self._started = True
        elif not self._adds_partitions and self.partition_count:
            self._partitions[number] = None
        elif number not in self._partitions and partition not in self._adding:
            self._new[number] = partition

    def has_partition(self, partition: int) -> bool:
        """True if the partition is in the transaction, or about to be."""
        return (
            partition in self._partitions
            or partition in self._new
            or any(each.partition == partition for each in self._adding)
        )

    def send_offsets(
        self, group: str, member: str, generation: int, offsets: Offsets, instance: str = ""
    ) -> None:
        """``sendOffsetsToTransaction()``; done when :attr:`sends_offsets` is false again."""
        assert self.state is TransactionState.IN_TRANSACTION, "no transaction is open"
        sequences = self.sequences
        identity = (sequences.producer_id, sequences.producer_epoch)
        if group != self._group:
            self._group = group
            self._coordinators.pop("group", None)
        self._offsets = TxnOffsetCommitRequest(
            self.transactional_id, group, *identity, member, generation, offsets, instance
        )
        if self._version >= 2:
            self._started = True
            self._enqueue_offsets()
        else:
            request = AddOffsetsToTxnRequest(self.transactional_id, *identity, group)
            self._enqueue(Priority.ADD_PARTITIONS_OR_OFFSETS, request, "transaction")

    def commit(self) -> None:
        """``commitTransaction()``."""
        self._move(TransactionState.COMMITTING_TRANSACTION, TransactionState.IN_TRANSACTION)
        self._begin_completing(committed=True)

    def abort(self) -> None:
        """``abortTransaction()``: partitions unknown to the coordinator are left out."""
        self._move(
            TransactionState.ABORTING_TRANSACTION,
            TransactionState.IN_TRANSACTION,
            TransactionState.ABORTABLE_ERROR,
        )
        self._new.clear()
        self._begin_completing(committed=False)

    # -- views of the sender -----------------------------------------------------------------------

    @property
    def is_completing(self) -> bool:
        """True if everything is being flushed, to commit or to abort."""
        return self.state in (
            TransactionState.COMMITTING_TRANSACTION,
            TransactionState.ABORTING_TRANSACTION,
        )

    @property
    def drops_unsent(self) -> bool:
        """True if batches that were never sent are dropped."""
        return self.state in (
            TransactionState.ABORTABLE_ERROR,
            TransactionState.ABORTING_TRANSACTION,
        )

    @property
    def sends_offsets(self) -> bool:
        """True if offsets wait to be added to the transaction."""
        return self._offsets is not None

    @property
    def is_commit_in_flight(self) -> bool:
        """True if a request to commit is in flight."""
        return self.in_flight is not None and _is_commit(self.in_flight.request)

    @property
    def partition_count(self) -> int:
        """Partitions of the transaction that are added or being added at the coordinator."""
        return len(self._partitions) + len(self._new) + len(self._adding)

    def may_send(self, partition: int) -> bool:
        """True if batches of the partition may be sent (``isSendToPartitionAllowed``)."""
        return self.state is not TransactionState.FATAL_ERROR and partition in self._partitions

    def coordinator(self, kind: CoordinatorKind) -> NodeId:
        """The known coordinator; NO_LEADER without one."""
        return self._coordinators.get(kind, NO_LEADER)

    def next_request(self, *, has_incomplete: bool) -> CoordinatorRequest | None:
        """Removes and returns the next waiting request.

        Args:
            has_incomplete: True if batches have no outcome yet: then a transaction cannot end.
        """
        if self._new:
            self._enqueue_partitions()
        while self._pending:
            queued = self._pending[0]
            is_end = queued.priority is Priority.END_TXN
            if is_end and has_incomplete:
                return None
            del self._pending[0]
            if self.state in _ERROR and not (
                queued.priority is Priority.FIND_COORDINATOR
                and self.state is TransactionState.ABORTABLE_ERROR
            ):
                continue
            if is_end and not self._started:
                # No partition was added at the coordinator: there is nothing to end.
                self._complete(committed=self.state is TransactionState.COMMITTING_TRANSACTION)
                continue
            return queued
        return None

    def look_up(self, queued: CoordinatorRequest) -> None:
        """The request's coordinator is unknown, or unreachable: looks it up, then retries."""
        assert queued.coordinator is not None, "it goes to any broker"
        self._lose(queued.coordinator)
        self._again(queued)

    # -- outcomes ----------------------------------------------------------------------------------

    def on_disconnect(self) -> None:
        """The request in flight got no response."""
        queued = self._landed()
        if _is_commit(queued.request):
            self.commit_in_doubt = True
        if queued.coordinator is not None:
            self._lose(queued.coordinator)
        self._again(queued)

    def on_response(self, response: Response) -> None:
        """The request in flight was answered."""
        queued = self._landed()
        if isinstance(response, FindCoordinatorResponse):
            self._on_coordinator(queued, response)
        elif isinstance(response, InitProducerIdResponse):
            self._on_identity(queued, response)
        elif isinstance(response, AddPartitionsToTxnResponse):
            self._on_partitions(queued, response.error)
        elif isinstance(response, AddOffsetsToTxnResponse):
            self._on_offsets_added(queued, response.error)
        elif isinstance(response, TxnOffsetCommitResponse):
            self._on_offsets(queued, response.error)
        else:
            assert isinstance(response, EndTxnResponse), f"not asked for: {response}"
            self._on_end(queued, response)

    def fail(self, error: ErrorCode) -> None:
        """A batch failed, or ``send()`` did (``maybeTransitionToErrorState``)."""
        if error in _FATAL_TO_BATCHES or error.is_authentication:
            self._fatal(error)
            return
        if self._version < 2 and self.state is TransactionState.IN_TRANSACTION:
            self._bump_required = True
        self._abortable(error)

    # -- responses ---------------------------------------------------------------------------------

    def _on_coordinator(
        self, queued: CoordinatorRequest, response: FindCoordinatorResponse
    ) -> None:
        request = queued.request
        assert isinstance(request, FindCoordinatorRequest)
        if response.error is ErrorCode.NONE:
            self._coordinators[request.kind] = response.coordinator
        else:
            self._on_error(queued, response.error)

    def _on_identity(self, queued: CoordinatorRequest, response: InitProducerIdResponse) -> None:
        if response.error is not ErrorCode.NONE:
            self._on_error(queued, response.error)
            return
        self.sequences.identify(response.producer_id, response.producer_epoch)
        if queued.priority is Priority.EPOCH_BUMP:
            self.sequences.reset()
        self._move(TransactionState.READY, TransactionState.INITIALIZING)
        self.error = ErrorCode.NONE

    def _on_partitions(self, queued: CoordinatorRequest, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            for partition in self._adding:
                self._partitions[partition.partition] = None
            self._adding = ()
            self._started = True
            return
        soon = error is ErrorCode.CONCURRENT_TRANSACTIONS and not self._partitions
        queued.backoff_us = min(
            self._backoff_us, ADD_PARTITIONS_BACKOFF_US if soon else self._backoff_us
        )
        if not error.retriable:
            self._adding = ()
        self._on_error(queued, error, otherwise=self._abortable)

    def _on_offsets_added(self, queued: CoordinatorRequest, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._started = True
            self._enqueue_offsets()
        else:
            self._on_error(queued, error)

    def _on_offsets(self, queued: CoordinatorRequest, error: ErrorCode) -> None:
        if error is ErrorCode.NONE:
            self._offsets = None
        elif error is ErrorCode.REQUEST_TIMED_OUT:
            self.look_up(queued)
        elif error in _MEMBER_LOST:
            self._abortable(error)
        else:
            self._on_error(queued, error)

    def _on_end(self, queued: CoordinatorRequest, response: EndTxnResponse) -> None:
        request = queued.request
        assert isinstance(request, EndTxnRequest)
        if response.error is ErrorCode.NONE:
            if response.producer_id >= 0:
                self.sequences.identify(response.producer_id, response.producer_epoch)
                self.sequences.reset()
            self._complete(committed=request.committed)
            return
        if request.committed and response.error in _COORDINATOR_LOST:
            # The coordinator's write may have failed after it reached the log.
            self.commit_in_doubt = True
        self._on_error(queued, response.error)

    def _on_error(
        self,
        queued: CoordinatorRequest,
        error: ErrorCode,
        otherwise: Callable[[ErrorCode], None] | None = None,
    ) -> None:
        """Common part of Kafka's handlers; ``otherwise``: for other errors."""
        if error in _COORDINATOR_LOST and queued.coordinator is not None:
            self.look_up(queued)
        elif error.retriable:
            self._again(queued)
        elif error in _FENCED:
            self._fatal(ErrorCode.PRODUCER_FENCED)
        elif error in _ABORTABLE:
            if self._version < 2 and error is ErrorCode.UNKNOWN_PRODUCER_ID:
                self._bump_required = True
            self._abortable(error)
        elif otherwise is not None and error not in _ALWAYS_FATAL:
            otherwise(error)
        else:
            self._fatal(error)

    # -- states -----------------------------------------------------------------------------------

    def _move(self, target: TransactionState, *sources: TransactionState) -> None:
        assert self.state in sources, f"no way from {self.state.value} to {target.value}"
        self.state = target

    def _abortable(self, error: ErrorCode) -> None:
        """Only an abort helps; an abort in progress continues."""
        if self.state in _OPEN:
            self.state = TransactionState.ABORTABLE_ERROR
            self.error = error
            self._offsets = None
            finds = Priority.FIND_COORDINATOR
            self._pending = [queued for queued in self._pending if queued.priority is finds]
        elif self.state is TransactionState.INITIALIZING:
            self._fatal(error)

    def _fatal(self, error: ErrorCode) -> None:
        if self.state is not TransactionState.FATAL_ERROR:
            self.state = TransactionState.FATAL_ERROR
            self.error = error
            self._offsets = None
            self._pending.clear()

    def _begin_completing(self, *, committed: bool) -> None:
        if self._new:
            self._enqueue_partitions()
        sequences = self.sequences
        identity = (sequences.producer_id, sequences.producer_epoch)
        request = EndTxnRequest(self.transactional_id, *identity, committed)
        self._enqueue(Priority.END_TXN, request, "transaction")
        if self._bump_required:
            self._enqueue_init(Priority.EPOCH_BUMP, *identity)

    def _complete(self, *, committed: bool) -> None:
        if self._bump_required:
            self.state = TransactionState.INITIALIZING
        else:
            self.state = TransactionState.READY
        self.outcome = "committed" if committed else "aborted"
        self._bump_required = self._started = False
        self._partitions.clear()
        self._new.clear()
        self._adding = ()
        self._offsets = None

    # -- requests ---------------------------------------------------------------------------------

    def _landed(self) -> CoordinatorRequest:
        queued, self.in_flight = self.in_flight, None
        assert queued is not None, "no request is in flight"
        return queued

    def _again(self, queued: CoordinatorRequest) -> None:
        queued.is_retry = True
        self._insert(queued)

    def _lose(self, kind: CoordinatorKind) -> None:
        self._coordinators.pop(kind, None)
        key = self.transactional_id if kind == "transaction" else self._group
        self._enqueue(Priority.FIND_COORDINATOR, FindCoordinatorRequest(key, kind), None)

    def _enqueue_init(self, priority: Priority, producer_id: int, producer_epoch: int) -> None:
        request = InitProducerIdRequest(
            self.transactional_id, self._timeout_us, producer_id, producer_epoch
        )
        self._enqueue(priority, request, "transaction")

    def _enqueue_partitions(self) -> None:
        sequences = self.sequences
        self._adding = (*self._adding, *self._new.values())
        request = AddPartitionsToTxnRequest(
            self.transactional_id,
            sequences.producer_id,
            sequences.producer_epoch,
            tuple(self._new.values()),
        )
        self._new.clear()
        self._enqueue(Priority.ADD_PARTITIONS_OR_OFFSETS, request, "transaction")

    def _enqueue_offsets(self) -> None:
        assert self._offsets is not None, "offsets were given"
        self._enqueue(Priority.ADD_PARTITIONS_OR_OFFSETS, self._offsets, "group")

    def _enqueue(
        self, priority: Priority, request: Request, coordinator: CoordinatorKind | None
    ) -> None:
        self._insert(
            CoordinatorRequest(priority, request, coordinator, backoff_us=self._backoff_us)
        )

    def _insert(self, queued: CoordinatorRequest) -> None:
        """Inserts after those of its priority."""
        place = 0
        for other in self._pending:
            if other.priority.value > queued.priority.value:
                break
            place += 1
        self._pending.insert(place, queued)


def _is_commit(request: Request) -> bool:
    return isinstance(request, EndTxnRequest) and request.committed
