"""WriteTxnMarkers of a coordinator to the leaders of a transaction's partitions.

Each partition gets a marker, however long that takes: failed and timed-out ones are sent again.
When the last one is committed, the transaction is complete.

Simplified: one request for each transaction and leader, where Kafka puts all that wait for a broker
into one; a failed request waits :data:`RETRY_US`, where Kafka tries again at once.

Source: ``TransactionMarkerChannelManager``, ``TransactionMarkerRequestCompletionHandler``.
"""

from dataclasses import dataclass
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, ProducerId, TopicPartition
from sim.protocol.coordinator.transaction.records import (
    TransactionEffect,
    TransactionRecord,
    TransactionState,
)
from sim.protocol.coordinator.transaction.state import Transaction
from sim.protocol.coordinator.transaction.store import TransactionStore
from sim.protocol.effects import Send, SetTimer
from sim.protocol.messages.transaction import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.preemption import Threads
from sim.units import MS, Micros

RETRY_US: Micros = 50 * MS
"""Wait before markers are sent again; a modelling choice."""

TIMER = "markers"
"""Timer of that wait."""

CHANNEL = "transactions"
"""Channel of coordinators to leaders."""


@dataclass(slots=True)
class _Ending:
    """A transaction whose markers are being written."""

    transaction: Transaction
    complete: TransactionRecord
    producer_id: ProducerId
    producer_epoch: int
    epoch: LeaderEpoch
    committed: bool
    unsent: dict[TopicPartition, None]
    in_flight: int = 0
    written: bool = False
    """True if all markers are committed; the coordinator's own record is missing."""
    failed: bool = False
    """True if that record could not be written: it is written again."""


class MarkerSender:
    """Ending transactions of one coordinator."""

    def __init__(self, store: TransactionStore, threads: Threads[TransactionEffect]) -> None:
        self._store = store
        self._threads = threads
        self._image = MetadataImage()
        self._endings: dict[str, _Ending] = {}
        self._requests: dict[int, tuple[_Ending, tuple[TopicPartition, ...]]] = {}
        self._correlation = 0
        self._wakes = False

    def begin(self, transaction: Transaction, complete: TransactionRecord) -> None:
        """The Prepare record is committed: sends the markers, then calls ``complete``."""
        name = transaction.transactional_id
        ending = self._endings[name] = _Ending(
            transaction,
            complete,
            transaction.producer_id,
            transaction.producer_epoch,
            self._store.epoch_of(name),
            transaction.state is TransactionState.PREPARE_COMMIT,
            dict(transaction.partitions),
        )
        self._continue(ending)

    def published(self, image: MetadataImage) -> None:
        """Leaders may have changed: sends markers that had no leader."""
        self._image = image
        for ending in list(self._endings.values()):
            if ending.unsent:
                self._continue(ending)

    def wake(self) -> None:
        """Sends failed markers again."""
        self._wakes = False
        for ending in list(self._endings.values()):
            if ending.unsent or ending.failed:
                self._continue(ending)

    def answered(self, correlation: int, response: WriteTxnMarkersResponse, now: Micros) -> None:
        """Handles a leader's response, by partition of a request."""
        found = self._requests.pop(correlation, None)
        if found is None:
            return
        ending, _ = found
        ending.in_flight -= 1
        if not self._is_current(ending):
            return
        for partition, error in response.errors:
            if error in _FENCED:
                # There is another coordinator now, which ends the transaction.
                del self._endings[ending.transaction.transactional_id]
                return
            if error is not ErrorCode.NONE:
                ending.unsent[partition] = None
        if ending.unsent:
            self._retry_later(now)
        else:
            self._continue(ending)

    def failed(self, correlation: int, now: Micros) -> None:
        """A leader did not respond."""
        found = self._requests.pop(correlation, None)
        if found is None:
            return
        ending, partitions = found
        ending.in_flight -= 1
        if self._is_current(ending):
            ending.unsent.update(dict.fromkeys(partitions))
            self._retry_later(now)

    def resigned(self, partition: int) -> None:
        """The ids of the partition have another coordinator."""
        for name in [n for n in self._endings if self._store.partition_of(n) == partition]:
            del self._endings[name]

    def _is_current(self, ending: _Ending) -> bool:
        return self._endings.get(ending.transaction.transactional_id) is ending

    def _continue(self, ending: _Ending) -> None:
        """Sends what can be sent; when nothing is left, writes the last record."""
        by_leader: dict[NodeId, list[TopicPartition]] = {}
        for partition in list(ending.unsent):
            if partition not in self._image.partitions:
                del ending.unsent[partition]  # its topic was deleted
                continue
            leader = self._leader_of(partition)
            if leader != NO_LEADER:
                del ending.unsent[partition]
                by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            self._send(ending, leader, tuple(partitions))
        if not self._store.config.completes_once and not ending.failed:
            self._store.out.append(self._threads.interrupt(partial(self._look, ending)))
        elif _is_due(ending):
            self._write(ending)

    def _write(self, ending: _Ending) -> None:
        ending.written, ending.failed = True, False
        self._store.append(
            ending.transaction,
            ending.complete,
            "markers written",
            lambda error, at: self._completed(ending, error, at),
            stays_pending=True,
        )

    def _look(self, ending: _Ending, now: Micros, out: list[TransactionEffect]) -> None:
        """A thread sees that the last record is due, and writes it when it continues.

        It is not marked in between: other threads find it due, too.

        Source: ``TransactionMarkerChannelManager.maybeWriteTxnCompletion`` before KAFKA-10080,
        called by the thread that began to send markers and for each answer.
        """
        del now
        if self._is_current(ending) and _is_due(ending):
            out.append(self._threads.interrupt(partial(self._write_seen, ending)))

    def _write_seen(self, ending: _Ending, now: Micros, out: list[TransactionEffect]) -> None:
        del now, out
        if self._store.epoch_of(ending.transaction.transactional_id) == ending.epoch:
            self._write(ending)

    def _leader_of(self, partition: TopicPartition) -> NodeId:
        leader = self._image.leader_of(partition)
        registration = self._image.brokers.get(leader)
        return NO_LEADER if registration is None or registration.fenced else leader

    def _send(
        self, ending: _Ending, leader: NodeId, partitions: tuple[TopicPartition, ...]
    ) -> None:
        self._correlation += 1
        self._requests[self._correlation] = ending, partitions
        ending.in_flight += 1
        request = WriteTxnMarkersRequest(
            ending.producer_id,
            ending.producer_epoch,
            ending.epoch,
            ending.committed,
            partitions,
            self._store.config.marker_version,
        )
        timeout = self._store.config.request_timeout_us
        self._store.out.append(Send(leader, self._correlation, request, timeout, CHANNEL))

    def _completed(self, ending: _Ending, error: ErrorCode, now: Micros) -> None:
        if not self._is_current(ending):
            return
        if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            ending.failed = True
            self._retry_later(now)
        else:
            del self._endings[ending.transaction.transactional_id]

    def _retry_later(self, now: Micros) -> None:
        if not self._wakes:
            self._wakes = True
            self._store.out.append(SetTimer(TIMER, now + RETRY_US))


def _is_due(ending: _Ending) -> bool:
    """True if only the coordinator's own record is missing."""
    is_marked = not ending.unsent and not ending.in_flight
    return is_marked and (ending.failed or not ending.written)


_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})
