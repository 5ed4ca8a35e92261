"""The transaction coordinator of one broker: producer ids, epochs, and ends of transactions.

A producer gets its id and epoch here, partitions are added to its transaction, and commit or abort
is decided. The decision is durable in the log before any response; then markers carry it to every
partition. Requests during a pending change get CONCURRENT_TRANSACTIONS.

Left out: two-phase commit (KIP-939).

Source: ``TransactionCoordinator``; KIP-98, KIP-360, KIP-890.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import OFFSETS_TOPIC, NodeId, ProducerId, TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.log import (
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.ends import end_verdict
from sim.protocol.coordinator.transaction.markers import TIMER as MARKERS_TIMER
from sim.protocol.coordinator.transaction.markers import MarkerSender
from sim.protocol.coordinator.transaction.records import (
    MetadataPublished,
    ProducerIdAllocated,
    ProducerIdRequested,
    TransactionEffect,
    TransactionEvent,
    TransactionState,
)
from sim.protocol.coordinator.transaction.state import Transaction, is_exhausted
from sim.protocol.coordinator.transaction.store import TransactionStore
from sim.protocol.effects import SetTimer
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.base import Response
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    WriteTxnMarkersResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.preemption import Resumed, Threads
from sim.units import MS, Micros, timestamp_ms

TransactionRequest = (
    InitProducerIdRequest | AddPartitionsToTxnRequest | AddOffsetsToTxnRequest | EndTxnRequest
)
"""Requests that a transaction coordinator answers; FindCoordinator is answered from the
metadata."""

TRANSACTION_REQUESTS = (AddPartitionsToTxnRequest, AddOffsetsToTxnRequest, EndTxnRequest)
"""Those routed to it directly; InitProducerId comes through the metadata API."""

TIMEOUTS_TIMER = "timed-out"
"""Timer of the check for timed-out transactions."""

EXPIRY_TIMER = "expired"
"""Timer of the check for expired transactional ids."""

_NOW_DECIDED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_IDLE = (
    TransactionState.EMPTY,
    TransactionState.COMPLETE_COMMIT,
    TransactionState.COMPLETE_ABORT,
)

_Answer = Callable[[ErrorCode], Response]


class TransactionCoordinator:
    """Transactional ids of one broker.

    Args:
        broker: This broker's id.
        started: Start of its process, which is the phase of its periodic tasks.
        config: Settings.
    """

    def __init__(self, broker: NodeId, started: Micros, config: TransactionConfig) -> None:
        self.config = config
        self._started = started
        self._store = TransactionStore(broker, config)
        self._threads = Threads[TransactionEffect]()
        self._markers = MarkerSender(self._store, self._threads)
        self._image = MetadataImage()
        self._id_requests: dict[int, Callable[[ProducerId, Micros], None]] = {}
        self._next_request = 0
        self._looks = False

    def handle(self, event: TransactionEvent, now: Micros) -> list[TransactionEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case RequestReceived():
                self._request(event, now)
            case RecordsAppended(token, error):
                self._store.appended(token, error, now)
            case ResponseReceived():
                assert isinstance(event.response, WriteTxnMarkersResponse), "nothing else is asked"
                self._markers.answered(event.correlation, event.response, now)
            case RequestFailed():
                self._markers.failed(event.correlation, now)
            case TimerFired(name):
                self._ring(name, now)
            case MetadataPublished(image):
                self._image = image
                self._markers.published(image)
            case ProducerIdAllocated(token, producer_id):
                self._id_requests.pop(token)(producer_id, now)
            case PartitionLoading() | PartitionElected() | PartitionResigned():
                self._partition(event, now)
            case Resumed(token):
                self._threads.resumed(token, now, self._store.out)
            case _:
                assert_never(event)
        return self._store.take()

    # -- views -------------------------------------------------------------------------------------

    def transaction(self, transactional_id: str) -> Transaction | None:
        """The transaction of an id; ``None`` if it is not loaded here. Not to be changed."""
        return self._store.transactions.get(transactional_id)

    def active_partitions(self) -> tuple[int, ...]:
        """Partitions of the log that are loaded here, sorted."""
        return self._store.active_partitions()

    # -- requests ----------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros) -> None:
        request = event.request
        match request:
            case InitProducerIdRequest():
                self._init(request, event.token, now)
            case AddPartitionsToTxnRequest():
                answer: _Answer = AddPartitionsToTxnResponse
                if request.verify_only:
                    self._store.reply(event.token, answer(self._verify(request)))
                else:
                    self._add(request, request.partitions, event.token, answer, now)
            case AddOffsetsToTxnRequest():
                count = self._image.partition_counts.get(OFFSETS_TOPIC, 0)
                if not count:
                    error = ErrorCode.COORDINATOR_NOT_AVAILABLE
                    self._store.reply(event.token, AddOffsetsToTxnResponse(error))
                    return
                place = TopicPartition(OFFSETS_TOPIC, partition_for_group(request.group, count))
                self._add(request, (place,), event.token, AddOffsetsToTxnResponse, now)
            case EndTxnRequest():
                self._end(request, event.token, now)
            case _:
                raise AssertionError(f"not for a transaction coordinator: {request}")

    def _request_id(self, then: Callable[[ProducerId, Micros], None]) -> None:
        self._next_request += 1
        self._id_requests[self._next_request] = then
        self._store.out.append(ProducerIdRequested(self._next_request))

    # -- InitProducerId ----------------------------------------------------------------------------

    def _init(
        self, request: InitProducerIdRequest, token: int, now: Micros, fresh: ProducerId = -1
    ) -> None:
        """InitProducerId: the next epoch; ``fresh`` is a new id, if one was needed."""
        store, name = self._store, request.transactional_id
        error = store.refusal(name)
        if error is ErrorCode.NONE and not 0 < request.timeout_us <= self.config.timeout_us_max:
            error = ErrorCode.INVALID_TRANSACTION_TIMEOUT
        if error is not ErrorCode.NONE:
            store.reply(token, InitProducerIdResponse(error))
            return
        transaction = store.transactions.get(name)
        expected = request.producer_epoch if request.producer_id >= 0 else None
        if fresh < 0 and (transaction is None or _rotates(transaction, expected)):
            self._request_id(lambda given, at: self._init(request, token, at, given))
            return
        if transaction is None:
            transaction = store.create(name, fresh, request.timeout_us, timestamp_ms(now))
        error = _init_refusal(transaction, request, expected)
        if error is not ErrorCode.NONE:
            store.reply(token, InitProducerIdResponse(error))
        elif transaction.state is not TransactionState.ONGOING:
            self._take_over(transaction, request, token, now, fresh)
        elif transaction.cannot_be_fenced:
            store.reply(token, InitProducerIdResponse(ErrorCode.UNKNOWN_SERVER_ERROR))
        else:
            self._fence(
                transaction, "fenced by InitProducerId", now, partial(self._init_fenced, token)
            )

    def _take_over(
        self,
        transaction: Transaction,
        request: InitProducerIdRequest,
        token: int,
        now: Micros,
        fresh: ProducerId,
    ) -> None:
        store = self._store
        expected = request.producer_epoch if request.producer_id >= 0 else None
        stamp = timestamp_ms(now)
        if _rotates(transaction, expected):
            record = transaction.prepare_rotation(
                fresh, request.timeout_us, stamp, keep_last=expected is not None
            )
        else:
            epochs = transaction.next_epoch(expected)
            if isinstance(epochs, ErrorCode):
                store.reply(token, InitProducerIdResponse(epochs))
                return
            record = transaction.prepare_empty(epochs, request.timeout_us, stamp)

        def outcome(error: ErrorCode, _now: Micros) -> None:
            if error is ErrorCode.NONE:
                response = InitProducerIdResponse(error, record.producer_id, record.producer_epoch)
            else:
                response = InitProducerIdResponse(error)
            store.reply(token, response)

        store.append(transaction, record, "InitProducerId", outcome)

    def _init_fenced(self, token: int, error: ErrorCode, _now: Micros) -> None:
        """The former producer is fenced: the new one retries until that has ended."""
        reply_error = ErrorCode.CONCURRENT_TRANSACTIONS if error is ErrorCode.NONE else error
        self._store.reply(token, InitProducerIdResponse(reply_error))

    def _fence(
        self,
        transaction: Transaction,
        reason: str,
        now: Micros,
        done: Callable[[ErrorCode, Micros], None],
    ) -> None:
        """Aborts an ongoing transaction against its producer, whose epoch is fenced.

        With version 2 the abort's record bumps the epoch (KAFKA-19367).

        Source: ``TransactionCoordinator.endTransaction`` with PrepareEpochFence.
        """
        takes_epoch = transaction.version < 2 or self.config.bumps_before_end
        if takes_epoch:
            fence = transaction.prepare_fence(repeats=self.config.repeats_fences)
            transaction.abandon_fence(fence.producer_epoch)
        record = transaction.prepare_end(
            TransactionState.PREPARE_ABORT, timestamp_ms(now), transaction.version, -1
        )

        def outcome(error: ErrorCode, at: Micros) -> None:
            if error is ErrorCode.NONE:
                self._complete(transaction, at)
            elif takes_epoch:
                transaction.failed_fence = True
            done(error, at)

        self._store.append(transaction, record, reason, outcome)

    # -- partitions of a transaction ---------------------------------------------------------------

    def _add(
        self,
        request: AddPartitionsToTxnRequest | AddOffsetsToTxnRequest,
        partitions: tuple[TopicPartition, ...],
        token: int,
        answer: _Answer,
        now: Micros,
    ) -> None:
        """AddPartitionsToTxn."""
        store = self._store
        error = store.refusal(request.transactional_id)
        transaction = store.transactions.get(request.transactional_id)
        if error is ErrorCode.NONE and transaction is not None and transaction.pending is not None:
            error = ErrorCode.CONCURRENT_TRANSACTIONS
        if error is ErrorCode.NONE:
            error = _check_producer_identity(
                transaction, request.producer_id, request.producer_epoch
            )
        if error is not ErrorCode.NONE:
            store.reply(token, answer(error))
            return
        assert transaction is not None, "a stranger would have been refused"
        if transaction.state in _NOW_DECIDED:
            store.reply(token, answer(ErrorCode.CONCURRENT_TRANSACTIONS))
            return
        ongoing = transaction.state is TransactionState.ONGOING
        if ongoing and all(place in transaction.partitions for place in partitions):
            store.reply(token, answer(ErrorCode.NONE))
            return
        record = transaction.prepare_add(partitions, timestamp_ms(now), self.config.version)
        reason = type(request).__name__.removesuffix("Request")
        store.append(transaction, record, reason, lambda e, _: store.reply(token, answer(e)))

    def _verify(self, request: AddPartitionsToTxnRequest) -> ErrorCode:
        """Verifies that the partitions are in the transaction; a pending change does not matter."""
        error = self._store.refusal(request.transactional_id)
        if error is not ErrorCode.NONE:
            return error
        transaction = self._store.transactions.get(request.transactional_id)
        error = _check_producer_identity(transaction, request.producer_id, request.producer_epoch)
        if error is not ErrorCode.NONE:
            return error
        assert transaction is not None, "a stranger would have been refused"
        if transaction.state in _NOW_DECIDED:
            return ErrorCode.CONCURRENT_TRANSACTIONS
        if all(place in transaction.partitions for place in request.partitions):
            return ErrorCode.NONE
        return ErrorCode.TRANSACTION_ABORTABLE

    # -- EndTxn ------------------------------------------------------------------------------------

    def _end(self, request: EndTxnRequest, token: int, now: Micros, fresh: ProducerId = -1) -> None:
        """EndTxn: commits or aborts; ``fresh`` is a new id, if one was needed."""
        store, version = self._store, self.config.version
        error = store.refusal(request.transactional_id)
        transaction = store.transactions.get(request.transactional_id)
        if error is ErrorCode.NONE and transaction is None:
            error = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if error is not ErrorCode.NONE or transaction is None:
            store.reply(token, EndTxnResponse(error))
            return
        verdict = end_verdict(transaction, request, version)
        if isinstance(verdict, ErrorCode):
            if verdict is ErrorCode.NONE and version >= 2:
                ids = transaction.producer_id, transaction.producer_epoch
                store.reply(token, EndTxnResponse(verdict, *ids))
            else:
                store.reply(token, EndTxnResponse(verdict))
            return
        if version >= 2 and fresh < 0 and is_exhausted(transaction.producer_epoch):
            self._request_id(lambda given, at: self._end(request, token, at, given))
            return
        record = transaction.prepare_end(verdict, timestamp_ms(now), version, fresh)

        def outcome(failure: ErrorCode, at: Micros) -> None:
            if failure is not ErrorCode.NONE:
                store.reply(token, EndTxnResponse(failure))
                return
            producer_id, epoch = self._complete(transaction, at)
            if version >= 2:
                store.reply(token, EndTxnResponse(failure, producer_id, epoch))
            else:
                store.reply(token, EndTxnResponse(failure))

        store.append(transaction, record, "EndTxn", outcome)

    def _complete(self, transaction: Transaction, now: Micros) -> tuple[ProducerId, int]:
        """The decision is durable: sends markers. Returns the next transaction's id and epoch.

        Source: ``TransactionMarkerChannelManager.addTxnMarkersToSend``.
        """
        record = transaction.prepare_complete(timestamp_ms(now))
        self._markers.begin(transaction, record)
        return record.producer_id, record.producer_epoch

    # -- time --------------------------------------------------------------------------------------

    def _ring(self, name: str, now: Micros) -> None:
        if name == MARKERS_TIMER:
            self._markers.wake()
        elif name == TIMEOUTS_TIMER:
            self._abort_timed_out(now)
            self._store.out.append(SetTimer(name, now + self.config.abort_interval_us))
        else:
            self._expire(now)
            self._store.out.append(SetTimer(name, now + self.config.expiration_interval_us))

    def _abort_timed_out(self, now: Micros) -> None:
        """Aborts transactions beyond their producer's timeout.

        Source: ``TransactionCoordinator.abortTimedOutTransactions``.
        """
        stamp = timestamp_ms(now)
        for transaction in list(self._store.transactions.values()):
            ongoing = transaction.state is TransactionState.ONGOING and transaction.pending is None
            if ongoing and transaction.start_ms + transaction.timeout_us // MS < stamp:
                if transaction.cannot_be_fenced:
                    return  # of the exception that Kafka throws: this round has ended
                self._fence(transaction, "timed out", now, lambda _error, _now: None)

    def _expire(self, now: Micros) -> None:
        """Removes ids unused for ``transactional.id.expiration.ms``.

        Source: ``TransactionStateManager.removeExpiredTransactionalIds``.
        """
        oldest = timestamp_ms(now) - self.config.expiration_us // MS
        for transaction in list(self._store.transactions.values()):
            idle = transaction.state in _IDLE and transaction.pending is None
            if idle and transaction.last_update_ms <= oldest:
                record = transaction.prepare_dead()
                self._store.append(transaction, record, "expired", lambda _error, _now: None)

    # -- partitions of the log ---------------------------------------------------------------------

    def _partition(
        self,
        event: PartitionLoading | PartitionElected | PartitionResigned,
        now: Micros,
    ) -> None:
        if isinstance(event, PartitionLoading):
            if event.takes_over and self.config.reloads and self._store.serves(event.partition):
                self._resigned(event.partition, now)
            self._store.load(event.partition, event.epoch, takes_over=event.takes_over)
            self._begin_to_look(now)
        elif isinstance(event, PartitionElected):
            for transaction in self._store.elected(event):
                self._complete(transaction, now)
        else:
            self._resigned(event.partition, now)

    def _resigned(self, partition: int, now: Micros) -> None:
        self._markers.resigned(partition)
        self._store.resigned(partition, now)

    def _begin_to_look(self, now: Micros) -> None:
        """Starts the periodic tasks with the process; without ids they find nothing."""
        if self._looks:
            return
        self._looks = True
        for name, interval in (
            (TIMEOUTS_TIMER, self.config.abort_interval_us),
            (EXPIRY_TIMER, self.config.expiration_interval_us),
        ):
            passed = (now - self._started) % interval
            self._store.out.append(SetTimer(name, now + interval - passed))


def _check_producer_identity(
    transaction: Transaction | None, producer_id: ProducerId, epoch: int
) -> ErrorCode:
    """Error for a producer that is not the present one of its transactional id; NONE if it is."""
    if transaction is None or transaction.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if transaction.producer_epoch != epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def _rotates(transaction: Transaction, expected: int | None) -> bool:
    """True if the next producer needs a new id."""
    return (
        transaction.state in _IDLE
        and transaction.pending is None
        and is_exhausted(transaction.producer_epoch)
        and expected in (None, transaction.producer_epoch)
    )


def _init_refusal(
    transaction: Transaction, request: InitProducerIdRequest, expected: int | None
) -> ErrorCode:
    """Error for a producer that cannot have its next epoch now.

    Source: ``TransactionCoordinator.prepareInitProducerIdTransit``.
    """
    if transaction.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    known = transaction.is_known_producer(request.producer_id, request.producer_epoch)
    if expected is not None and not known:
        return ErrorCode.PRODUCER_FENCED
    if transaction.state in _NOW_DECIDED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return ErrorCode.NONE
