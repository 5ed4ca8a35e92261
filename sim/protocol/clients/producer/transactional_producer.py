"""A producer with a transactional id, and the application that begins and ends its transactions.

The application learns of an error at once, aborts where that helps, and goes on with the next
transaction. After a fatal error (it was fenced, above all) it closes the producer and ends.

Left out: an application that gives up waiting after ``max.block.ms``; this one calls again.

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
from sim.protocol.clients.producer.transaction_requests import TransactionAsk, TransactionState
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


class TransactionalProducer(Producer):
    """The mind of one transactional producer of one topic.

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
        self._ask: TransactionAsk | None = None
        self._sleeps_until: Micros | None = None
        self._stopped = False
        self.next_transaction = setup.first_transaction
        """Number of the next transaction, or of the present one."""
        self._is_begun = False
        self._aborts = False
        self._identity = (-1, -1)
        self._why = ErrorCode.NONE
        # The manager asks for the identity, not the sender.
        self._identifying = True
        manager.initialize()

    @property
    def state(self) -> TransactionState:
        """Of its transaction manager."""
        return self._manager.state

    @property
    def is_idle(self) -> bool:
        """Whether the workload is over and its last transaction has ended."""
        if self._stopped:
            return True
        return super().is_idle and self._manager.state is TransactionState.READY

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Decide. ``now`` is the host's clock. Nothing more after :class:`ProducerStopped`."""
        if self._stopped:
            return []
        out = super().handle(event, now)
        if self._manager.state is not TransactionState.FATAL_ERROR:
            return out
        told = [each for each in out if isinstance(each, BatchDone | TransactionDone)]
        return [*told, ProducerStopped(self._manager.error)]

    def finish_transaction(self) -> TransactionDone | None:
        """After :meth:`finish`: what is known of the open transaction; ``None`` if none is open.

        A transaction that nobody asked to commit will never be committed.
        """
        if self._stopped or self._gate.begun_us is None:
            return None
        if not self._is_begun:
            self._begin()
        manager = self._manager
        in_doubt = manager.commit_in_doubt or manager.is_commit_in_flight
        return self._told("unknown" if in_doubt else "aborted")

    # -- the application --------------------------------------------------------------------------

    def _step(self) -> None:
        """What the application does now, as far as it does not have to wait."""
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
        self._out.append(self._told(outcome))

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
        """Tell the manager of new partitions, or that the application could not send."""
        manager, gate = self._manager, self._gate
        if gate.refused:
            too_large = gate.refused[0].error == ErrorCode.MESSAGE_TOO_LARGE.name
            manager.fail(ErrorCode.MESSAGE_TOO_LARGE if too_large else ErrorCode.REQUEST_TIMED_OUT)
            return
        for partition, _, _ in partitions_between(gate.starts, gate.next_record_numbers):
            if not manager.has_partition(partition):
                manager.add_partition(self._partitions[partition])

    def _end_transaction(self) -> None:
        """Commit or abort, as the application had in mind from the beginning."""
        self._gate.close()
        if self._aborts:
            self._manager.abort()
        else:
            self._manager.commit()

    def _told(self, outcome: str) -> TransactionDone:
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
        """The producer is of no more use: everything open is given up, and the application ends."""
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
        self._out.append(self._told(outcome))

    # -- the sender's turn ------------------------------------------------------------------------

    def _take_turn(self) -> bool:
        """One turn of the sender's loop; while a transactional request is open it only waits."""
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
        """Let application and manager go on until they wait; whether a request makes them."""
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
        """Send what the manager asks for; whether the sender has to wait for it."""
        manager = self._manager
        while manager.in_flight is None:
            if manager.drops_unsent:
                self._drop_unsent()
            if self._ask is None:
                incomplete = manager.is_completing and self._has_incomplete()
                self._ask = manager.next_ask(has_incomplete=incomplete)
            if self._ask is None:
                return False
            if not self._put(self._ask):
                return True
        return True

    def _put(self, ask: TransactionAsk) -> bool:
        """Send the request, or go and look for its coordinator; ``False`` if it must wait.

        Source: ``Sender.maybeSendAndPollTransactionalRequest``.
        """
        kind = ask.coordinator
        node = NO_LEADER if kind is None else self._manager.coordinator(kind)
        if kind is not None and node == NO_LEADER:
            self._look_up(ask)
            return True
        if ask.is_retry:
            if self._sleeps_until is None:
                self._sleeps_until = self._now + ask.backoff_us
            if self._now < self._sleeps_until:
                return False
        peer: Peer | None
        if kind is None:
            peer = self._least_loaded()
        else:
            peer = self._network.peer(node)
            if not self._network.is_connected(peer):
                return self._connect(ask, peer)
            if not self._network.has_room(peer):
                return False
        if peer is None:
            return False
        self._out.append(self._network.send(_REQUEST, peer, ask.request))
        self._manager.in_flight = ask
        self._ask = None
        self._sleeps_until = None
        return True

    def _connect(self, ask: TransactionAsk, peer: Peer) -> bool:
        """Make the connection to the coordinator; where that failed, look for another one."""
        if peer.connecting:
            return False
        handshake = self._network.connect(peer, self._now)
        if handshake is None:
            self._look_up(ask)
            return True
        self._out.append(handshake)
        return False

    def _look_up(self, ask: TransactionAsk) -> None:
        self._ask = None
        self._sleeps_until = None
        self._manager.look_up(ask)

    def _has_incomplete(self) -> bool:
        """Whether a batch has no outcome yet."""
        if any(queue.batches for queue in self._gate.queues):
            return True
        requests = self._network.open.values()
        return any(not batch.done for request in requests for batch in request.batches)

    def _drop_unsent(self) -> None:
        """Give up batches that were never sent; a retried one must find out what became of it.

        Source: ``RecordAccumulator.abortUndrainedBatches``.
        """
        for queue in self._gate.queues:
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
        if request.kind == _REQUEST:
            self._manager.on_disconnect()
        elif request.kind == "handshake" and self._ask is not None:
            kind = self._ask.coordinator
            if kind is not None and self._manager.coordinator(kind) == request.peer.node:
                self._look_up(self._ask)

    def _set_wake(self, offset: Micros) -> None:
        gate = self._gate
        if self._ask is not None:
            asleep = self._sleeps_until
            wakes = asleep is not None and asleep > self._now
            at = asleep if asleep is not None and wakes else self._network.retry_at
            self._look_at = min(self._look_at, at)
        elif self._version < 2 and self._manager.partition_count < len(gate.queues):
            # A partition's first record wakes the sender, which tells the coordinator of it.
            self._look_at = min(self._look_at, gate.first_send() + offset)
        super()._set_wake(offset)
