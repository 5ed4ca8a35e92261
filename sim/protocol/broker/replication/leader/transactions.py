"""Transactional batches at a leader: verification, appends, and markers.

The first batch of a transaction in a partition waits until the coordinator has verified it: with
transaction version 2 that also adds the partition to the transaction, before that it is only looked
up. The log gives a verification guard before the request, and accepts the batch only with that
guard: if the transaction has ended meanwhile, the response came too late.

Simplified: each produce request is verified on its own, where Kafka combines all that wait for a
coordinator into one request.

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
"""Channel of leaders to coordinators."""

TIMER = "verification"
"""Timer of the next attempt."""

COORDINATORS_SEQUENCE = 0
"""Sequence of every batch that a coordinator writes for a transaction."""


class Guarded(SpecialWrite):
    """Appends batches with their verification guards."""

    __slots__ = ("_guards",)

    def __init__(self, guards: dict[TopicPartition, int]) -> None:
        self._guards = guards

    def write(self, replica: Replica, batch: Batch | None, now: Micros, out: Effects) -> Appended:
        """Appends with the partition's guard."""
        del out
        assert batch is not None, "only a marker is made by the leader"
        guard = self._guards.get(replica.partition, NO_GUARD)
        return replica.leader_write(batch, now, timestamp_ms(now), guard)


class Marking(SpecialWrite):
    """Appends a coordinator's markers."""

    __slots__ = ("_broker", "_request", "_version")

    def __init__(self, broker: NodeId, request: WriteTxnMarkersRequest, version: int) -> None:
        self._broker = broker
        self._request = request
        # A leader before 4.2 and a coordinator of 4.2 speak the older of their versions (KIP-1228).
        self._version = min(request.version, version)

    def write(self, replica: Replica, batch: Batch | None, now: Micros, out: Effects) -> Appended:
        """Appends the marker, with its trace row."""
        del batch
        request = self._request
        replica.transactional = True
        appended = replica.leader_mark(request, timestamp_ms(now), self._version)
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


OnVerified = Callable[[ErrorCode, tuple[TopicPartition, ...], Micros, Effects], None]
"""Called when the coordinator has answered for the partitions."""


@dataclass(slots=True)
class _Verification:
    """A verification in flight."""

    transaction: InTransaction
    partitions: tuple[TopicPartition, ...]
    began: Micros
    settled: OnVerified
    retries: bool
    """True if the broker retries while the coordinator is busy."""


class TransactionPath:
    """Transactions at one broker's leaders.

    Args:
        hosted: The broker's partitions.
        produce: Appends.
        markers: Open WriteTxnMarkers requests.
    """

    def __init__(
        self, hosted: HostedPartitions, produce: ProducePath, markers: MarkerRequests
    ) -> None:
        self._hosted = hosted
        self._produce = produce
        self._markers = markers
        self._open: dict[int, _Verification] = {}
        self._again: list[tuple[Micros, _Verification]] = []

    # -- appends -----------------------------------------------------------------------------------

    def produce(self, token: int, request: ProduceRequest, now: Micros, out: Effects) -> None:
        """Handles a transactional Produce: appends verified batches, verifies the others first."""
        guards: dict[TopicPartition, int] = {}
        hosted, first = self._hosted, request.batches[0][1]
        transaction = InTransaction(
            request.transactional_id, first.producer_id, first.producer_epoch
        )
        appends = (
            (hosted.led(partition), batch.base_sequence)
            for partition, batch in request.batches
            if batch.is_transactional
        )
        self._verify(
            transaction,
            tuple((replica, first) for replica, first in appends if isinstance(replica, Replica)),
            guards,
            partial(self._produced, token, request, guards),
            now,
            out,
            retries=True,
        )

    def verify_internal(self, event: VerifyInternal, now: Micros, out: Effects) -> None:
        """Verifies offsets that the group coordinator is to append with a transaction (KIP-447)."""
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
        partitions: tuple[TopicPartition, ...],
        now: Micros,
        out: Effects,
    ) -> None:
        del partitions, now
        guard = by_coordinator(guards[event.partition])
        out.append(InternalVerified(event.token, error_for_group(error), guard))

    def _produced(
        self,
        token: int,
        request: ProduceRequest,
        guards: dict[TopicPartition, int],
        error: ErrorCode,
        partitions: tuple[TopicPartition, ...],
        now: Micros,
        out: Effects,
    ) -> None:
        refused: list[ProduceResult] = []
        batches = request.batches
        if error is not ErrorCode.NONE:
            refusal = error_for_producer(error, self._hosted.config.transaction.version)
            refused = [ProduceResult(partition, refusal) for partition in partitions]
            batches = tuple(pair for pair in batches if pair[0] not in partitions)
        timeout = request.timeout_us
        self._produce.special(
            token, request.acks, timeout, Guarded(guards), batches, refused, now, out
        )

    # -- verification ------------------------------------------------------------------------------

    def _verify(
        self,
        transaction: InTransaction,
        appends: tuple[tuple[Replica, int], ...],
        guards: dict[TopicPartition, int],
        settled: OnVerified,
        now: Micros,
        out: Effects,
        *,
        retries: bool,
    ) -> None:
        """Gets guards, and sends the partitions that need one to the coordinator.

        ``appends``: leaders, and the sequence of the first record for each.
        """
        config = self._hosted.config.transaction
        unchecked = not config.verifies and config.version < 2
        producer, epoch = transaction.producer_id, transaction.producer_epoch
        partitions = []
        for replica, sequence in appends:
            replica.transactional = True
            guards[replica.partition] = UNCHECKED_GUARD
            if unchecked:
                continue
            guard = replica.log.transactions.verification_guard(
                producer, epoch, sequence, timestamp_ms(now), bumps=config.version >= 2
            )
            guards[replica.partition] = guard
            if guard != NO_GUARD:
                partitions.append(replica.partition)
        if not partitions:
            settled(ErrorCode.NONE, (), now, out)
            return
        again = retries and config.version >= 2
        self._send(_Verification(transaction, tuple(partitions), now, settled, again), now, out)

    def _send(self, verification: _Verification, now: Micros, out: Effects) -> None:
        hosted = self._hosted
        config = hosted.config.transaction
        image = hosted.image
        count = image.partition_counts.get(TRANSACTIONS_TOPIC, 0)
        leader = -1
        if count:
            number = partition_for_group(verification.transaction.transactional_id, count)
            leader = image.leader_of(TopicPartition(TRANSACTIONS_TOPIC, number))
        registration = image.brokers.get(leader)
        if registration is None or registration.fenced:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            verification.settled(error, verification.partitions, now, out)
            return
        correlation = hosted.next_correlation()
        self._open[correlation] = verification
        request = AddPartitionsToTxnRequest(
            verification.transaction.transactional_id,
            verification.transaction.producer_id,
            verification.transaction.producer_epoch,
            verification.partitions,
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
        """Handles the coordinator's response."""
        verification = self._open.pop(correlation, None)
        if verification is None:
            return
        config = self._hosted.config.transaction
        limit = min(config.retry_us_max, config.request_timeout_us)
        busy = response.error is ErrorCode.CONCURRENT_TRANSACTIONS
        if busy and verification.retries and now - verification.began < limit:
            self._again.append((now + config.retry_backoff_us, verification))
            out.append(fx.SetTimer(TIMER, min(at for at, _ in self._again)))
            return
        verification.settled(response.error, verification.partitions, now, out)

    def failed(self, correlation: int, now: Micros, out: Effects) -> bool:
        """No response came; true if it was a verification of this path."""
        verification = self._open.pop(correlation, None)
        if verification is None:
            return False
        verification.settled(ErrorCode.NETWORK_EXCEPTION, verification.partitions, now, out)
        return True

    def wake(self, now: Micros, out: Effects) -> None:
        """Sends verifications again for which the coordinator was busy."""
        due = [verification for at, verification in self._again if at <= now]
        self._again = [(at, verification) for at, verification in self._again if at > now]
        for verification in due:
            self._send(verification, now, out)
        if self._again:
            out.append(fx.SetTimer(TIMER, min(at for at, _ in self._again)))

    # -- markers -----------------------------------------------------------------------------------

    def write_markers(
        self, token: int, request: WriteTxnMarkersRequest, now: Micros, out: Effects
    ) -> None:
        """WriteTxnMarkers: ends a transaction in partitions led here; acks=all."""
        hosted = self._hosted
        self._markers.add(token, request)
        self._produce.special(
            marker_token(token),
            -1,
            hosted.config.transaction.request_timeout_us,
            Marking(hosted.broker, request, hosted.config.transaction.marker_version),
            tuple((partition, None) for partition in request.partitions),
            [],
            now,
            out,
        )


def error_for_producer(error: ErrorCode, version: int) -> ErrorCode:
    """Error for a producer whose transaction could not be verified.

    A retriable one becomes NOT_ENOUGH_REPLICAS, which clients retry without a metadata update
    first.

    Source: ``ReplicaManager.handleProduceAppend``, ``AddPartitionsToTxnManager``.
    """
    if error is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if error in _TRY_AGAIN or (error is ErrorCode.CONCURRENT_TRANSACTIONS and version < 2):
        return ErrorCode.NOT_ENOUGH_REPLICAS
    return error


def error_for_group(error: ErrorCode) -> ErrorCode:
    """The same for offsets: a retriable error is COORDINATOR_LOAD_IN_PROGRESS.

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
