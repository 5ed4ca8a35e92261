"""How a leader takes in what belongs to transactions: verified batches, and markers.

The first batch of a transaction in a partition waits until the coordinator has agreed: with
transaction version 2 the leader adds the partition to the transaction by asking, before that it
only asks whether the partition is in it. The log gives a guard before the question, and takes the
batch only with that guard: if the transaction has ended meanwhile, the answer came too late.

Simplified: each produce request asks by itself, where Kafka puts all that wait for a coordinator
into one request.

Source: ``ReplicaManager.handleProduceAppend``, ``AddPartitionsToTxnManager``,
``KafkaApis.handleWriteTxnMarkersRequest``; KIP-98, KIP-890.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TRANSACTIONS_TOPIC, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import InternalVerified, VerifyInternal
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_produces import marker_token
from sim.protocol.broker.replication.leader.markers import MarkerRequests
from sim.protocol.broker.replication.leader.produce import ProducePath, SpecialWrite
from sim.protocol.coordinator.log import InTransaction
from sim.protocol.messages.data import ProduceRequest, ProduceResult
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    WriteTxnMarkersRequest,
)
from sim.protocol.ports import NO_GUARD, UNCHECKED_GUARD, Appended, Batch, by_coordinator
from sim.trace.rows.clients import Markers
from sim.units import Micros, timestamp_ms

CHANNEL = "verification"
"""The connections on which leaders ask coordinators."""

TIMER = "verification"
"""Name of the timer that asks again."""

COORDINATORS_SEQUENCE = 0
"""Of every batch that a coordinator writes for a transaction."""


class Guarded(SpecialWrite):
    """How batches are written that bring guards."""

    __slots__ = ("_guards",)

    def __init__(self, guards: dict[TopicPartition, int]) -> None:
        self._guards = guards

    def write(self, replica: Replica, batch: Batch | None, now: Micros, out: Effects) -> Appended:
        """Append with the partition's guard."""
        del out
        assert batch is not None, "only a marker is made by the leader"
        guard = self._guards.get(replica.partition, NO_GUARD)
        return replica.leader_write(batch, now, timestamp_ms(now), guard)


class Marking(SpecialWrite):
    """How a coordinator's markers are written."""

    __slots__ = ("_broker", "_request")

    def __init__(self, broker: NodeId, request: WriteTxnMarkersRequest) -> None:
        self._broker = broker
        self._request = request

    def write(self, replica: Replica, batch: Batch | None, now: Micros, out: Effects) -> Appended:
        """Append the marker, and say so in the trace."""
        del batch
        request = self._request
        replica.transactional = True
        appended = replica.leader_mark(request, timestamp_ms(now))
        if appended.batch is not None:
            out.append(
                Markers.row(
                    self._broker,
                    *replica.partition,
                    offset=appended.base_offset,
                    producer_id=request.producer_id,
                    producer_epoch=request.producer_epoch,
                    committed=request.committed,
                    coordinator_epoch=request.coordinator_epoch,
                )
            )
        return appended


Settled = Callable[[ErrorCode, tuple[TopicPartition, ...], Micros, Effects], None]
"""What to do when the coordinator has answered for the partitions."""


@dataclass(slots=True)
class _Question:
    """A verification under way."""

    transaction: InTransaction
    asked: tuple[TopicPartition, ...]
    began: Micros
    settled: Settled
    retries: bool
    """Whether the broker asks again by itself while the coordinator is busy."""


class TransactionPath:
    """What one broker's leaders do for transactions.

    Args:
        hosted: The broker's partitions.
        produce: Appends.
        markers: Requests for markers that are not answered.
    """

    def __init__(
        self, hosted: HostedPartitions, produce: ProducePath, markers: MarkerRequests
    ) -> None:
        self._hosted = hosted
        self._produce = produce
        self._markers = markers
        self._questions: dict[int, _Question] = {}
        self._again: list[tuple[Micros, _Question]] = []

    # -- appends -----------------------------------------------------------------------------------

    def produce(self, token: int, request: ProduceRequest, now: Micros, out: Effects) -> None:
        """A transactional producer's request: append what is verified, ask for the rest first."""
        guards: dict[TopicPartition, int] = {}
        hosted, first = self._hosted, request.batches[0][1]
        transaction = InTransaction(
            request.transactional_id, first.producer_id, first.producer_epoch
        )
        wanted = (
            (hosted.led(partition), batch.base_sequence)
            for partition, batch in request.batches
            if batch.is_transactional
        )
        self._verify(
            transaction,
            tuple((replica, first) for replica, first in wanted if isinstance(replica, Replica)),
            guards,
            partial(self._produced, token, request, guards),
            now,
            out,
            retries=True,
        )

    def verify_internal(self, event: VerifyInternal, now: Micros, out: Effects) -> None:
        """Offsets that the group coordinator is to take in with a transaction (KIP-447)."""
        partition, transaction = event.partition, event.transaction
        replica = self._hosted.led(partition)
        if isinstance(replica, ErrorCode):
            out.append(InternalVerified(event.token, replica, NO_GUARD))
            return
        guards: dict[TopicPartition, int] = {}
        self._verify(
            transaction,
            ((replica, COORDINATORS_SEQUENCE),),
            guards,
            partial(self._verified_internally, event, guards),
            now,
            out,
            retries=False,
        )

    @staticmethod
    def _verified_internally(
        event: VerifyInternal,
        guards: dict[TopicPartition, int],
        error: ErrorCode,
        asked: tuple[TopicPartition, ...],
        now: Micros,
        out: Effects,
    ) -> None:
        del asked, now
        guard = by_coordinator(guards[event.partition])
        out.append(InternalVerified(event.token, error_for_group(error), guard))

    def _produced(
        self,
        token: int,
        request: ProduceRequest,
        guards: dict[TopicPartition, int],
        error: ErrorCode,
        asked: tuple[TopicPartition, ...],
        now: Micros,
        out: Effects,
    ) -> None:
        refused: list[ProduceResult] = []
        batches = request.batches
        if error is not ErrorCode.NONE:
            told = error_for_producer(error, self._hosted.config.transaction.version)
            refused = [ProduceResult(partition, told) for partition in asked]
            batches = tuple(pair for pair in batches if pair[0] not in asked)
        timeout = request.timeout_us
        self._produce.special(
            token, request.acks, timeout, Guarded(guards), batches, refused, now, out
        )

    # -- verification ------------------------------------------------------------------------------

    def _verify(
        self,
        transaction: InTransaction,
        wanted: tuple[tuple[Replica, int], ...],
        guards: dict[TopicPartition, int],
        settled: Settled,
        now: Micros,
        out: Effects,
        *,
        retries: bool,
    ) -> None:
        """Get guards, and ask the coordinator for those partitions that need one.

        ``wanted``: leaders, and the sequence of the first record for each.
        """
        config = self._hosted.config.transaction
        unchecked = not config.verifies and config.version < 2
        producer, epoch = transaction.producer_id, transaction.producer_epoch
        asked = []
        for replica, sequence in wanted:
            replica.transactional = True
            guards[replica.partition] = UNCHECKED_GUARD
            if unchecked:
                continue
            guard = replica.log.transactions.verification_guard(
                producer, epoch, sequence, timestamp_ms(now), bumps=config.version >= 2
            )
            guards[replica.partition] = guard
            if guard != NO_GUARD:
                asked.append(replica.partition)
        if not asked:
            settled(ErrorCode.NONE, (), now, out)
            return
        again = retries and config.version >= 2
        self._ask(_Question(transaction, tuple(asked), now, settled, again), now, out)

    def _ask(self, question: _Question, now: Micros, out: Effects) -> None:
        hosted = self._hosted
        config = hosted.config.transaction
        image = hosted.image
        count = image.partition_counts.get(TRANSACTIONS_TOPIC, 0)
        leader = -1
        if count:
            number = partition_for_group(question.transaction.transactional_id, count)
            leader = image.leader_of(TopicPartition(TRANSACTIONS_TOPIC, number))
        registration = image.brokers.get(leader)
        if registration is None or registration.fenced:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            question.settled(error, question.asked, now, out)
            return
        correlation = hosted.next_correlation()
        self._questions[correlation] = question
        request = AddPartitionsToTxnRequest(
            question.transaction.transactional_id,
            question.transaction.producer_id,
            question.transaction.producer_epoch,
            question.asked,
            verify_only=config.version < 2,
        )
        out.append(fx.Send(leader, correlation, request, config.request_timeout_us, CHANNEL))

    def answered(
        self,
        correlation: int,
        response: AddPartitionsToTxnResponse,
        now: Micros,
        out: Effects,
    ) -> None:
        """The coordinator agreed, or not, or has no time now."""
        question = self._questions.pop(correlation, None)
        if question is None:
            return
        config = self._hosted.config.transaction
        limit = min(config.retry_us_max, config.request_timeout_us)
        busy = response.error is ErrorCode.CONCURRENT_TRANSACTIONS
        if busy and question.retries and now - question.began < limit:
            self._again.append((now + config.retry_backoff_us, question))
            out.append(fx.SetTimer(TIMER, min(at for at, _ in self._again)))
            return
        question.settled(response.error, question.asked, now, out)

    def failed(self, correlation: int, now: Micros, out: Effects) -> bool:
        """No answer came; returns whether it was a question of this path."""
        question = self._questions.pop(correlation, None)
        if question is None:
            return False
        question.settled(ErrorCode.NETWORK_EXCEPTION, question.asked, now, out)
        return True

    def wake(self, now: Micros, out: Effects) -> None:
        """Ask again what the coordinator had no time for."""
        due = [question for at, question in self._again if at <= now]
        self._again = [(at, question) for at, question in self._again if at > now]
        for question in due:
            self._ask(question, now, out)
        if self._again:
            out.append(fx.SetTimer(TIMER, min(at for at, _ in self._again)))

    # -- markers -----------------------------------------------------------------------------------

    def write_markers(
        self, token: int, request: WriteTxnMarkersRequest, now: Micros, out: Effects
    ) -> None:
        """A coordinator ends a transaction in partitions led here; acks=all."""
        hosted = self._hosted
        self._markers.add(token, request)
        self._produce.special(
            marker_token(token),
            -1,
            hosted.config.transaction.request_timeout_us,
            Marking(hosted.broker, request),
            tuple((partition, None) for partition in request.partitions),
            [],
            now,
            out,
        )


def error_for_producer(error: ErrorCode, version: int) -> ErrorCode:
    """What a producer is told when its transaction could not be verified.

    What it may simply try again becomes NOT_ENOUGH_REPLICAS, which clients retry without asking for
    metadata first.

    Source: ``ReplicaManager.handleProduceAppend``, ``AddPartitionsToTxnManager``.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _TRY_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < 2):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error


def error_for_group(error: ErrorCode) -> ErrorCode:
    """The same for offsets: what may be tried again is COORDINATOR_LOAD_IN_PROGRESS.

    Source: ``CoordinatorPartitionWriter``, ``GroupMetadataManager.maybeConvertOffsetCommitError``.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error in _TRY_AGAIN else error


_TRY_AGAIN = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
