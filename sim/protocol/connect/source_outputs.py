"""Records of a source task for Kafka, and the producers that send them.

A record's intended time is its append to the external log, and it is sent when a poll finds it: the
wait in between counts as latency.

Source: ``connect.runtime.{WorkerSourceTask,ExactlyOnceWorkerSourceTask}``; KIP-618.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.consumer.work import WorkTaken
from sim.protocol.clients.producer.events import ArrivalBlock, ProducerEvent, TransactionsReady
from sim.protocol.clients.producer.outcomes import ProducerEffect
from sim.protocol.clients.producer.transaction_requests import TransactionState
from sim.protocol.streams.outputs import TaskOutputs
from sim.protocol.streams.producers import TaskProducer, TransactionalTaskProducer
from sim.units import Bytes, Micros

Appeared: TypeAlias = Callable[[int, int], NDArray[np.int64]]
"""Append times of records, by the scenario's clock: the first position, and how many."""


class SourceOutputs(TaskOutputs):
    """Satisfies ``producer_events.ArrivalSource``: one record of Kafka for each external one.

    Args:
        value_bytes: Size of each record's value.
        appeared: Append times of external records.
    """

    def __init__(self, value_bytes: Bytes, appeared: Appeared) -> None:
        super().__init__(value_bytes, 1)
        self._appeared = appeared

    def take(self, work: WorkTaken, clock_offset_us: Micros) -> None:  # noqa: ARG002 - no clock
        """A poll has returned external records."""
        for piece in work.pieces:
            first, count = self._next, piece.record_count
            self.pieces.append(piece)
            self._starts.append(first)
            self._next += count
            instants = self._appeared(piece.first_record, count)
            numbers = np.arange(first, self._next, dtype=np.int64)
            self._blocks.append(ArrivalBlock(instants, numbers))

    def positions(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in the external log of the records of these numbers."""
        return self.origins(outputs).records


class SourceProducer(TaskProducer):
    """The producer of a source task that delivers at least once."""

    def _dispatch(self, event: ProducerEvent) -> None:
        if isinstance(event, WorkTaken):
            # Nothing is sent before it is found.
            self._gate.resume_at(self._now - self._gate.offset_us)
        super()._dispatch(event)


class TransactionalSourceProducer(TransactionalTaskProducer):
    """The producer of a source task that delivers exactly once."""

    _is_ready = False

    def handle(self, event: ProducerEvent, now: Micros) -> list[ProducerEffect]:
        """Handles an event; returns effects in order. ``now`` is the host's clock."""
        out = super().handle(event, now)
        if not self._is_ready and self._manager.state is TransactionState.READY:
            self._is_ready = True
            out.append(TransactionsReady())
        return out

    def _dispatch(self, event: ProducerEvent) -> None:
        if isinstance(event, WorkTaken):
            self._task_gate.resume_at(self._now - self._task_gate.offset_us)
        super()._dispatch(event)
