"""A producer with a transactional id, and the application that begins and ends its transactions.

The application learns of an error at once, aborts if possible, and continues with the next
transaction. After a fatal error (above all if it was fenced) it closes the producer and exits.

Left out: ``max.block.ms`` of a waiting application, which calls again here.

Source: ``Sender.{runOnce,maybeSendAndPollTransactionalRequest}``, ``KafkaProducer``; KIP-98.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER
from sim.protocol.clients.producer.batch import NO_SEQUENCE
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import (
    ArrivalSource,
    BatchDone,
    ProducerEvent,
    ProducerStopped,
    TransactionDone,
)
from sim.protocol.clients.producer.network import Peer
from sim.protocol.clients.producer.outcomes import ProducerEffect
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.clients.producer.transaction_manager import TransactionManager
from sim.protocol.clients.producer.transaction_requests import CoordinatorRequest, TransactionState
from sim.protocol.clients.producer.transaction_workload import (
    TransactionalAccumulator,
    TransactionPlan,
    partitions_between,
)
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.units import NEVER, Micros

TRANSACTION_ABORTED = "TRANSACTION_ABORTED"
"""Kafka's ``TransactionAbortedException``, which has no code on the wire."""

_REQUEST = "transaction"

_REFUSALS = {
    error.name: error
    for error in (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
}
"""Reasons of ``send()``; it has timed out for any other."""


class TransactionalProducer(Producer):
    """The machine of one transactional producer of one topic.

    Args:
        setup: As for :class:`Producer`; its settings have a transactional id.
        source: What the application sends, and when.
        plan: How the application cuts that into transactions.
        version: ``transaction.version`` of the cluster: 2, or 0.
        gate: Instead of an accumulator of its own.
    """

    def __init__(
        self,
        setup: ProducerSetup,
        source: ArrivalSource,
        plan: TransactionPlan,
        version: int,
        gate: TransactionalAccumulator | None = None,
    ) -> None:
        config = setup.config
        self._manager = manager = TransactionManager(
            config.transactional_id,
            config.transaction_timeout_us,
            config.retry_backoff_us,
            version,
            adds_partitions=plan.adds_partitions,
        )
        if gate is None:
            gate = TransactionalAccumulator(setup, source, plan)
        self._gate = gate
        super().__init__(setup, source, accumulator=gate, sequences=manager.sequences)
        self._plan = plan
        self._version = version
        self._queued: CoordinatorRequest | None = None
        self._sleeps_until: Micros | None = None
        self._stopped = False
        self.next_transaction = setup.first_transaction
        """Number of the next transaction, or of the present one."""
        self._is_begun = False
        self._aborts = False
        self._identity = (-1, -1)
        self._why = ErrorCode.NONE
        # The manager requests the identity, not the sender.
        self._identifying = True
        manager.initialize()

    @property
    def state(self) -> TransactionState:
        """State of its transaction manager."""
        return self._manager.state

    @property
    def is_idle(self) -> bool:
        """True if the workload and its last transaction have ended."""
        if self._stopped:
            return True
        return super().is_idle and self._manager.state is TransactionState.READY

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Handles an event; ``now``: the host's clock. :class:`ProducerStopped` comes last."""
        if self._stopped:
            return []
        out = super().handle(event, now)
        if self._manager.state is not TransactionState.FATAL_ERROR:
            return out
        reported = [each for each in out if isinstance(each, BatchDone | TransactionDone)]
        return [*reported, ProducerStopped(self._manager.error)]

    def finish_transaction(self) -> TransactionDone | None:
        """After :meth:`finish`: outcome of the open transaction; ``None`` if none is open.

        A transaction without a request to commit is never committed.
        """
        if self._stopped or self._gate.begun_us is None:
            return None
        if not self._is_begun:
            self._begin()
        manager = self._manager
        in_doubt = manager.commit_in_doubt or manager.is_commit_in_flight
        return self._transaction_done("unknown" if in_doubt else "aborted")

    # -- the application --------------------------------------------------------------------------

    def _step(self) -> None:
        """Continues the application, until it has to wait."""
        manager = self._manager
        limit = self._now - self._gate.offset_us
        if manager.state is TransactionState.FATAL_ERROR:
            self._stop()
            return
        if manager.outcome:
            outcome, manager.outcome = manager.outcome, ""
            self._on_end(outcome)
        if manager.state is TransactionState.READY:
            if not self._has_work(limit):
                return
            manager.begin()
            self._begin()
        if manager.state is TransactionState.IN_TRANSACTION:
            self._send_on(limit)
        if manager.state is TransactionState.ABORTABLE_ERROR:
            self._why = manager.error
            self._give_up()

    def _has_work(self, limit: Micros) -> bool:
        """Let the application send if it may; whether there is something for a transaction."""
        gate = self._gate
        if not gate.is_open and not gate.is_spent:
            gate.open(limit)
            gate.absorb(limit)
        return gate.begun_us is not None

    def _on_end(self, outcome: str) -> None:
        """The transaction is committed or aborted."""
        self._out.append(self._transaction_done(outcome))

    def _give_up(self) -> None:
        """Abort the open transaction."""
        self._gate.close()
        self._manager.abort()

    def _begin(self) -> None:
        sequences = self._manager.sequences
        self._is_begun = True
        self._identity = (sequences.producer_id, sequences.producer_epoch)
        self._why = ErrorCode.NONE
        self._aborts = self._plan.aborts()

    def _send_on(self, limit: Micros) -> None:
        self._note_sends()
        if self._gate.is_full(limit) and self._manager.state is TransactionState.IN_TRANSACTION:
            self._end_transaction()

    def _note_sends(self) -> None:
        """Adds new partitions at the manager, or reports refused sends."""
        manager, gate = self._manager, self._gate
        if gate.refused:
            manager.fail(_REFUSALS.get(gate.refused[0].error, ErrorCode.REQUEST_TIMED_OUT))
            return
        for partition, _, _ in partitions_between(gate.starts, gate.next_record_numbers):
            if not manager.has_partition(partition):
                manager.add_partition(self._partitions[partition])

    def _end_transaction(self) -> None:
        """Commits or aborts, as planned by the application."""
        self._gate.close()
        if self._aborts:
            self._manager.abort()
        else:
            self._manager.commit()

    def _transaction_done(self, outcome: str) -> TransactionDone:
        gate = self._gate
        assert gate.begun_us is not None, "a transaction was open"
        done = TransactionDone(
            self.next_transaction,
            *self._identity,
            gate.begun_us,
            outcome,
            self._why.name,
            tuple(partitions_between(gate.starts, gate.next_record_numbers)),
        )
        self.next_transaction += 1
        self._is_begun = False
        gate.begun_us = None
        return done

    def _stop(self) -> None:
        """Closes the producer after a fatal error: ends all batches and the application."""
        if self._stopped:
            return
        self._stopped = True
        self._gate.close()
        manager = self._manager
        self._why = manager.error
        self._outcomes.give_up_all(self._network.open.values(), manager.error.name)
        self._network.open.clear()
        if not self._is_begun:
            return
        outcome = "aborted"
        if manager.commit_in_doubt:
            outcome = "unknown"
        elif manager.error is ErrorCode.PRODUCER_FENCED:
            outcome = "fenced"
        self._out.append(self._transaction_done(outcome))

    # -- the sender's turn ------------------------------------------------------------------------

    def _take_turn(self) -> bool:
        """One turn of the sender's loop; it only waits while a transactional request is open."""
        waits = self._advance()
        if self._stopped:
            return False
        if waits:
            self._held = True
            self._look_at = NEVER
            return False
        sent = super()._take_turn()
        if self._manager.state is not TransactionState.IN_TRANSACTION:
            self._held = True
        return sent

    def _advance(self) -> bool:
        """Continues application and manager until they wait; true if for a request."""
        manager = self._manager
        while True:
            self._step()
            if self._stopped:
                return True
            before = manager.state
            if self._serve():
                return True
            if manager.state is before:
                return False

    def _serve(self) -> bool:
        """Sends the manager's next request; true if the sender has to wait for it."""
        manager = self._manager
        while manager.in_flight is None:
            if manager.drops_unsent:
                self._drop_unsent()
            if self._queued is None:
                incomplete = manager.is_completing and self._has_incomplete()
                self._queued = manager.next_request(has_incomplete=incomplete)
            if self._queued is None:
                return False
            if not self._put(self._queued):
                return True
        return True

    def _put(self, queued: CoordinatorRequest) -> bool:
        """Sends the request, or looks its coordinator up; ``False`` if it must wait.

        Source: ``Sender.maybeSendAndPollTransactionalRequest``.
        """
        kind = queued.coordinator
        node = NO_LEADER if kind is None else self._manager.coordinator(kind)
        if kind is not None and node == NO_LEADER:
            self._look_up(queued)
            return True
        if queued.is_retry:
            if self._sleeps_until is None:
                self._sleeps_until = self._now + queued.backoff_us
            if self._now < self._sleeps_until:
                return False
        peer: Peer | None
        if kind is None:
            peer = self._least_loaded()
        else:
            peer = self._network.peer(node)
            if not self._network.is_connected(peer):
                return self._connect(queued, peer)
            if not self._network.has_capacity(peer):
                return False
        if peer is None:
            return False
        self._out.append(self._network.send(_REQUEST, peer, queued.request))
        self._manager.in_flight = queued
        self._queued = None
        self._sleeps_until = None
        return True

    def _connect(self, queued: CoordinatorRequest, peer: Peer) -> bool:
        """Makes the connection to the coordinator; if that failed, looks it up again."""
        if peer.connecting:
            return False
        handshake = self._network.connect(peer, self._now)
        if handshake is None:
            self._look_up(queued)
            return True
        self._out.append(handshake)
        return False

    def _look_up(self, queued: CoordinatorRequest) -> None:
        self._queued = None
        self._sleeps_until = None
        self._manager.look_up(queued)

    def _has_incomplete(self) -> bool:
        """True if a batch has no outcome yet."""
        if self._gate.backlog.queues():
            return True
        requests = self._network.open.values()
        return any(not batch.done for request in requests for batch in request.batches)

    def _drop_unsent(self) -> None:
        """Drops batches that were never sent; a retried one must get its outcome.

        Source: ``RecordAccumulator.abortUndrainedBatches``.
        """
        for queue in self._gate.backlog.queues():
            unsent = [batch for batch in queue.batches if batch.base_sequence == NO_SEQUENCE]
            for batch in unsent:
                queue.batches.remove(batch)
                batch.error = TRANSACTION_ABORTED
                self._outcomes.end(batch, "failed")

    # -- events -----------------------------------------------------------------------------------

    def _on_response(self, event: ResponseReceived) -> None:
        request = self._network.open.get(event.correlation)
        if request is None or request.kind != _REQUEST:
            super()._on_response(event)
            return
        self._network.end(event.correlation)
        self._network.on_answer(request)
        self._manager.on_response(event.response)

    def _on_failed(self, event: RequestFailed) -> None:
        request = self._network.open.get(event.correlation)
        super()._on_failed(event)
        if request is None:
            return
        waits = request.kind == _REQUEST or (
            request.kind == "handshake" and self._queued is not None
        )
        if event.error.is_authentication and waits:
            # Source: ``TransactionManager.authenticationFailed``.
            self._manager.fail(event.error)
        elif request.kind == _REQUEST:
            self._manager.on_disconnect()
        elif request.kind == "handshake" and self._queued is not None:
            kind = self._queued.coordinator
            if kind is not None and self._manager.coordinator(kind) == request.peer.node:
                self._look_up(self._queued)

    def _set_wake(self, offset: Micros) -> None:
        gate = self._gate
        if self._queued is not None:
            asleep = self._sleeps_until
            wakes = asleep is not None and asleep > self._now
            at = asleep if asleep is not None and wakes else self._network.retry_at
            self._look_at = min(self._look_at, at)
        elif self._version < 2 and self._manager.partition_count < len(gate.queues):
            # A partition's first record wakes the sender, which adds it at the coordinator.
            self._look_at = min(self._look_at, gate.first_send() + offset)
        super()._set_wake(offset)
