"""Producers of stream tasks: they send outputs, and end the round.

One sends in transactions with the input's offsets (KIP-447); the other flushes.

Source: ``org.apache.kafka.streams.processor.internals.StreamsProducer``,
``RecordCollectorImpl.flush``; ``examples.ExactlyOnceMessageProcessor``.
"""

from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import (
    BatchDone,
    ProducerEvent,
    ProducerStopped,
)
from sim.protocol.clients.producer.outcomes import ProducerEffect
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.clients.producer.transaction_requests import TransactionState
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.protocol.streams.outputs import ROUNDS, TaskAccumulator, TaskOutputs
from sim.units import LONG_AGO, Micros


class TaskProducer(Producer):
    """The producer of a task without transactions.

    Args:
        setup: As for :class:`Producer`.
        the: Difference of the application.
        gate: Instead of an accumulator of its own.
    """

    def __init__(
        self,
        setup: ProducerSetup,
        outputs: TaskOutputs,
        gate: TaskAccumulator | None = None,
    ) -> None:
        self._gate = gate or TaskAccumulator(setup, outputs)
        super().__init__(setup, outputs, accumulator=self._gate)
        self._gate.open(LONG_AGO)
        self._outputs = outputs
        self._round = 0
        self._flushes = False
        self._failed = False

    @property
    def next_round(self) -> int:
        """Number of the present round."""
        return self._round

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Handles an event; returns effects in order. ``now`` is the host's clock."""
        out = super().handle(event, now)
        for effect in out:
            if isinstance(effect, BatchDone) and effect.outcome != "ok":
                self._failed = True
        if self._flushes and self.is_idle:
            self._end_round(ok=not self._failed)
        return out

    def _dispatch(self, event: ProducerEvent) -> None:
        if isinstance(event, WorkTaken):
            if event.round == self._round:
                if self.is_idle:
                    self._outputs.forget()
                self._outputs.take(event, self._gate.offset_us)
                self._gate.take_more()
                self._gate.absorb(self._now - self._gate.offset_us)
        elif isinstance(event, WorkEnding):
            if event.round == self._round and event.commits:
                self._flushes = True
            elif event.round == self._round:
                self._end_round(ok=False)
        else:
            super()._dispatch(event)

    def _take_turn(self) -> bool:
        """One turn of the sender's loop; a flush makes every batch sendable."""
        if self._flushes and self._gate.is_open and self._gate.is_spent:
            self._gate.close()
        sent = super()._take_turn()
        self._held |= self._flushes
        return sent

    def _end_round(self, *, ok: bool) -> None:
        self._out.append(WorkEnded(self._round, ok))
        self._round += 1
        self._flushes = self._failed = False
        self._gate.open(self._now - self._gate.offset_us)


class TransactionalTaskProducer(TransactionalProducer):
    """The producer of a task whose rounds are transactions.

    Args:
        setup: As for :class:`Producer`; its settings have a transactional id.
        the: Outputs of the application.
        version: ``transaction.version`` of the cluster: 2, or 0.
        first_round: Rounds are numbered from here.
    """

    def __init__(
        self,
        setup: ProducerSetup,
        outputs: TaskOutputs,
        version: int,
        first_round: int = 0,
    ) -> None:
        self._task_gate = gate = TaskAccumulator(setup, outputs)
        super().__init__(setup, outputs, ROUNDS, version, gate)
        self._outputs = outputs
        self._round = first_round
        self._ending: WorkEnding | None = None
        self._offers_offsets = False

    @property
    def next_round(self) -> int:
        """Number of the present round."""
        return self._round

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Handles an event; ``now``: the host's clock. :class:`ProducerStopped` comes last."""
        out = super().handle(event, now)
        if out and isinstance(out[-1], ProducerStopped):
            out.insert(len(out) - 1, WorkEnded(self._round, ok=False, is_fenced=True))
            self._round += 1
        return out

    def _dispatch(self, event: ProducerEvent) -> None:
        if isinstance(event, WorkTaken):
            if event.round == self._round:
                self._outputs.take(event, self._gate.offset_us)
                self._task_gate.take_more()
                self._gate.absorb(self._now - self._gate.offset_us)
        elif isinstance(event, WorkEnding):
            if event.round == self._round:
                self._ending = event
        else:
            super()._dispatch(event)

    # -- the application --------------------------------------------------------------------------

    def _has_work(self, limit: Micros) -> bool:
        """Let the application send; a round that is to be committed is work, too."""
        gate, ending = self._gate, self._ending
        if not gate.is_open:
            gate.open(limit)
            gate.absorb(limit)
        if ending is not None and gate.begun_us is None:
            if not ending.commits:
                self._end_round(ok=False)
                return False
            gate.begun_us = limit  # no outputs: the transaction has only offsets
        return gate.begun_us is not None

    def _on_end(self, outcome: str) -> None:
        super()._on_end(outcome)
        self._end_round(ok=outcome == "committed")

    def _send_on(self, limit: Micros) -> None:  # noqa: ARG002 - rounds do not end by time
        """Adds new partitions; at the end of the round sends its offsets, then commits."""
        manager, gate, ending = self._manager, self._gate, self._ending
        if ending is not None and not ending.commits:
            self._give_up()
            return
        self._note_sends()
        if ending is None or manager.state is not TransactionState.IN_TRANSACTION:
            return
        if not gate.is_spent or manager.sends_offsets:
            return
        if ending.offsets and not self._offers_offsets:
            self._offers_offsets = True
            member = ending.group, ending.member, ending.generation
            manager.send_offsets(*member, ending.offsets, ending.instance)
            return
        gate.close()
        manager.commit()

    def _give_up(self) -> None:
        self._task_gate.discard()
        super()._give_up()

    def _end_round(self, *, ok: bool) -> None:
        if not ok:
            # Outputs made while the transaction was being aborted.
            self._task_gate.discard()
        self._out.append(WorkEnded(self._round, ok))
        self._round += 1
        self._ending = None
        self._offers_offsets = False
        self._outputs.forget()
