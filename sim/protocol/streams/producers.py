"""The producers of tasks: they send what the application makes, and say when a round is over.

One sends in transactions and takes the input's offsets into them (KIP-447); the other flushes.

Source: ``org.apache.kafka.streams.processor.internals.StreamsProducer``,
``RecordCollectorImpl.flush``; ``examples.ExactlyOnceMessageProcessor``.
"""

from collections.abc import Callable, Sequence

from sim.ids import NodeId
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.clients.producer.events import (
    BatchDone,
    Connections,
    ProducerEvent,
    ProducerStopped,
)
from sim.protocol.clients.producer.outcomes import ProducerEffect
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.clients.producer.transaction_requests import TransactionState
from sim.protocol.clients.producer.transaction_workload import TransactionPlan
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.protocol.streams.outputs import TaskAccumulator, TaskOutputs
from sim.units import LONG_AGO, NEVER, Micros


class TaskProducer(Producer):
    """The producer of a task without transactions; arguments as for :class:`Producer`.

    Args:
        topic: Where the outputs go.
        config: Kafka's settings.
        outputs: What the application makes.
        connections: Which connections are established.
        unit: Chance, uniform in [0, 1).
        bootstrap: ``bootstrap.servers``.
        clock_offset: What the host's clock shows beyond the scenario's, in microseconds.
        next_records: Per partition, the first record number not used by an earlier process.
        refused_records: The same for records without a partition.
        first_correlation: Requests are numbered from here.
        gate: Instead of an accumulator of its own.
    """

    def __init__(
        self,
        topic: str,
        config: ProducerConfig,
        outputs: TaskOutputs,
        connections: Connections,
        unit: Callable[[], float],
        *,
        bootstrap: tuple[NodeId, ...],
        clock_offset: Callable[[], Micros],
        next_records: Sequence[int] = (),
        refused_records: int = 0,
        first_correlation: int = 0,
        gate: TaskAccumulator | None = None,
    ) -> None:
        self._gate = gate or TaskAccumulator(config, outputs, unit, next_records)
        super().__init__(
            topic,
            config,
            outputs,
            connections,
            unit,
            bootstrap=bootstrap,
            clock_offset=clock_offset,
            refused_records=refused_records,
            first_correlation=first_correlation,
            accumulator=self._gate,
        )
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
        """Decide. ``now`` is the host's clock."""
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
        topic: Where the outputs go.
        config: Kafka's settings, with a transactional id.
        outputs: What the application makes.
        connections: Which connections are established.
        unit: Chance, uniform in [0, 1).
        version: ``transaction.version`` of the cluster: 2, or 0.
        bootstrap: ``bootstrap.servers``.
        clock_offset: What the host's clock shows beyond the scenario's, in microseconds.
        next_records: Per partition, the first record number not used by an earlier producer.
        refused_records: The same for records without a partition.
        first_correlation: Requests are numbered from here.
        first_transaction: Transactions are numbered from here.
        first_round: Rounds are numbered from here.
    """

    def __init__(
        self,
        topic: str,
        config: ProducerConfig,
        outputs: TaskOutputs,
        connections: Connections,
        unit: Callable[[], float],
        *,
        version: int,
        bootstrap: tuple[NodeId, ...],
        clock_offset: Callable[[], Micros],
        next_records: Sequence[int] = (),
        refused_records: int = 0,
        first_correlation: int = 0,
        first_transaction: int = 0,
        first_round: int = 0,
    ) -> None:
        self._task_gate = gate = TaskAccumulator(config, outputs, unit, next_records)
        super().__init__(
            topic,
            config,
            outputs,
            connections,
            unit,
            plan=TransactionPlan(0, NEVER, _never),
            version=version,
            bootstrap=bootstrap,
            clock_offset=clock_offset,
            refused_records=refused_records,
            first_correlation=first_correlation,
            first_transaction=first_transaction,
            gate=gate,
        )
        self._outputs = outputs
        self._round = first_round
        self._ending: WorkEnding | None = None
        self._offers_offsets = False

    @property
    def next_round(self) -> int:
        """Number of the present round."""
        return self._round

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Decide. ``now`` is the host's clock. Nothing more after :class:`ProducerStopped`."""
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

    def _step(self) -> None:
        """What the application does now, as far as it does not have to wait."""
        manager, gate = self._manager, self._gate
        limit = self._now - gate.offset_us
        if manager.state is TransactionState.FATAL_ERROR:
            self._stop()
            return
        if manager.outcome:
            self._out.append(self._told(manager.outcome))
            self._end_round(ok=manager.outcome == "committed")
            manager.outcome = ""
        ending = self._ending
        if manager.state is TransactionState.READY:
            if not gate.is_open:
                gate.open(limit)
                gate.absorb(limit)
            if ending is not None and gate.begun_us is None:
                if not ending.commits:
                    self._end_round(ok=False)
                    return
                gate.begun_us = limit  # nothing came of what was read, and its offsets go in alone
            if gate.begun_us is None:
                return
            manager.begin()
            self._begin()
        if manager.state is TransactionState.IN_TRANSACTION:
            if ending is not None and not ending.commits:
                self._give_up()
            else:
                self._send_on(limit)
        if manager.state is TransactionState.ABORTABLE_ERROR:
            self._why = manager.error
            self._give_up()

    def _send_on(self, limit: Micros) -> None:  # noqa: ARG002 - rounds do not end by time
        """Tell of new partitions; at the end of the round send its offsets, then commit."""
        manager, gate = self._manager, self._gate
        self._note_sends()
        ending = self._ending
        if ending is None or manager.state is not TransactionState.IN_TRANSACTION:
            return
        if not gate.is_spent or manager.sends_offsets:
            return
        if ending.offsets and not self._offers_offsets:
            self._offers_offsets = True
            manager.send_offsets(ending.group, ending.member, ending.generation, ending.offsets)
            return
        gate.close()
        manager.commit()

    def _give_up(self) -> None:
        self._task_gate.discard()
        self._gate.close()
        self._manager.abort()

    def _end_round(self, *, ok: bool) -> None:
        if not ok:
            # What the application made while the transaction was being aborted.
            self._task_gate.discard()
        self._out.append(WorkEnded(self._round, ok))
        self._round += 1
        self._ending = None
        self._offers_offsets = False
        self._outputs.forget()


def _never() -> bool:
    return False
