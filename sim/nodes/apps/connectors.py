"""Processes of Connect tasks, and the external systems that they read and write.

An external system is not part of the cluster: it is always available, outlives every process, and
stores writes at once. An external log grows at its rate whether it is read or not.

Source: ``connect.runtime.{WorkerSourceTask,WorkerSinkTask}``; KIP-618.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.ids import NodeId, Offset, TopicPartition
from sim.nodes.apps.output_batches import output_batch
from sim.nodes.apps.task import TaskNode
from sim.nodes.clients.consumer import ConsumerNode
from sim.nodes.clients.producer import ProducerClient
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.consumer.effects import Deliver, ExternalWrite
from sim.protocol.clients.producer.events import (
    BatchDone,
    ProducerBatchDraft,
    ProducerStopped,
    TransactionsReady,
)
from sim.protocol.connect.sink_task import SinkPlan, SinkTask
from sim.protocol.connect.source_outputs import (
    SourceOutputs,
    SourceProducer,
    TransactionalSourceProducer,
)
from sim.protocol.connect.source_task import (
    SourceAcked,
    SourceClosing,
    SourceEnded,
    SourcePlan,
    SourceRefused,
    SourceStarted,
    SourceTask,
)
from sim.substrate.host import Host
from sim.trace.rows.connectors import (
    ConnectorTasksRow,
    ExternalLogsRow,
    ExternalWritesRow,
    SourcedRow,
)
from sim.trace.writer import TableWriter
from sim.units import LONG_AGO, SECOND, Bytes, Micros
from sim.wire.record_batch import RecordBatch


@dataclass(frozen=True, slots=True)
class ExternalLog:
    """A log of records at positions 0, 1, 2, …; read only for everyone but its owner."""

    per_s: int
    """Records appended per second, the first one a period after the scenario's zero."""
    stop_us: Micros
    """No record is appended from then on."""

    def length(self, now: Micros) -> int:
        """Records appended by the instant."""
        return max(0, min(now, self.stop_us)) * self.per_s // SECOND

    def appeared(self, first: int, count: int) -> NDArray[np.int64]:
        """Append times of records: int64, shape (count,), scenario clock."""
        numbers = np.arange(first + 1, first + count + 1, dtype=np.int64)
        return -(-numbers * SECOND // self.per_s)


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source task: its task, its external log, and the size of its records."""

    plan: SourcePlan
    log: ExternalLog
    value_bytes: Bytes
    version: int
    """``transaction.version`` of the cluster."""


class SourceTaskNode(TaskNode):
    """One source task on a host of its own.

    Args:
        name: Printed name.
        host: Where it runs.
        world: The other processes.
        client: Its producer; with a transactional id it delivers exactly once.
        source: What it does.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        client: ProducerClient,
        source: SourceSpec,
    ) -> None:
        super().__init__(name, host, world, client, source.plan.topic, source.value_bytes)
        self.source = source
        self._outputs = SourceOutputs(source.value_bytes, source.log.appeared)
        self._task: SourceTask | None = None
        self._sent: dict[tuple[int, int], NDArray[np.int64]] = {}
        """Positions of the records of each batch under way, by partition and first record."""
        self._sourced: TableWriter[SourcedRow] = world.trace.table("sourced")
        self.performers[TransactionsReady] = self._begin_task
        self.performers[ProducerStopped] = self._producer_stopped
        self.performers[SourceEnded] = self._task_ended

    def boot(self) -> None:
        """Creates producer and task; with transactions, the task begins after InitProducerId."""
        plan, log = self.source.plan, self.source.log
        self._compressor_free_at = LONG_AGO
        self._sent = {}
        self._outputs = SourceOutputs(self.source.value_bytes, log.appeared)
        self._task = SourceTask(plan, self._bootstrap, lambda: log.length(self.kernel.now()))
        self._reader = self.add_machine("source", self._task)
        self.note_state("running")
        row = (plan.connector, "source", self.name, plan.task, self.index, plan.topic)
        table: TableWriter[ConnectorTasksRow] = self.trace.table("connector_tasks")
        table.add((self.kernel.now(), *row))
        setup = self.setup()
        if self._transactional:
            self.begin(TransactionalSourceProducer(setup, self._outputs, self.source.version))
        else:
            self.begin(SourceProducer(setup, self._outputs))
            self.deliver(self._reader, SourceStarted())

    def note_length(self) -> None:
        """Writes the external log's present length to the trace."""
        plan, now = self.source.plan, self.kernel.now()
        length = self.source.log.length(now)
        table: TableWriter[ExternalLogsRow] = self.trace.table("external_logs")
        table.add((now, plan.connector, plan.task, length))

    def close(self) -> None:
        """Writes everything that was read, stores the position, and stops."""
        self.to_reader(SourceClosing())

    @property
    def is_idle(self) -> bool:
        """True if every appended record is written."""
        return super().is_idle and (self._task is None or self._task.is_idle)

    # -- the producer -----------------------------------------------------------------------------

    def _producer_stopped(self, port: Port, effect: ProducerStopped) -> None:
        """The task has learned it already: the end of its round came first."""

    def _encode(self, draft: ProducerBatchDraft) -> RecordBatch:
        assert draft.key_ids is not None, "records of a source are numbered"
        origins = self._outputs.origins(draft.key_ids)
        partition = draft.partition.partition
        self._sent[partition, draft.first_record] = origins.records
        for start, stop in origins.runs(1):
            self._sourced.add(
                (
                    self.kernel.now(),
                    self.name,
                    self.index,
                    draft.partition.topic,
                    partition,
                    draft.first_record + start,
                    stop - start,
                    self.source.plan.task,
                    int(origins.records[start]),
                )
            )
        return output_batch(self.index, self.spec.value_bytes, self.config, draft, origins)

    def _batch_done(self, port: Port, done: BatchDone) -> None:
        super()._batch_done(port, done)
        positions = self._sent.pop((done.partition, done.first_record), None)
        if self._transactional:
            return  # written at the end of the transaction
        if done.outcome != "ok" or positions is None:
            self.to_reader(SourceRefused())
            return
        edges = np.flatnonzero(np.diff(positions) != 1) + 1
        parts = np.split(positions, edges)
        self.to_reader(SourceAcked(tuple([(int(part[0]), int(part[-1]) + 1) for part in parts])))

    # -- the task ---------------------------------------------------------------------------------

    def _begin_task(self, port: Port, effect: TransactionsReady) -> None:  # noqa: ARG002
        self.to_reader(SourceStarted())

    def _task_ended(self, port: Port, effect: SourceEnded) -> None:  # noqa: ARG002
        self.finish()
        self.end("failed" if effect.failed else "stopped")


class ExternalTable:
    """State of a sink's external system; next offsets if its connector keeps them there."""

    def __init__(self) -> None:
        self._next: dict[TopicPartition, Offset] = {}

    def next_offset(self, partition: TopicPartition) -> Offset:
        """Offset after the last record of the partition; -1 if it has none."""
        return self._next.get(partition, -1)

    def take(self, piece: Deliver) -> int:
        """Stores records; returns how many of the first ones it already had."""
        had = max(0, min(self.next_offset(piece.partition) - piece.base_offset, piece.record_count))
        if had < piece.record_count:
            self._next[piece.partition] = piece.last_offset + 1
        return had


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """A sink task: connector, index, delivery guarantee, and external table."""

    connector: str
    task: int
    plan: SinkPlan
    table: ExternalTable


class SinkTaskNode(ConsumerNode):
    """One sink task on a host of its own."""

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        config: ConsumerConfig,
        bootstrap: tuple[NodeId, ...],
        sink: SinkSpec,
    ) -> None:
        super().__init__(name, host, world, config, bootstrap)
        self.sink = sink
        self._task: SinkTask | None = None
        self._written: TableWriter[ExternalWritesRow] = world.trace.table("external_writes")
        self.performers[ExternalWrite] = self._write

    def boot(self) -> None:
        """Creates the consumer and begins to poll."""
        sink = self.sink
        topics = ",".join(self.config.topics)
        row = (sink.connector, "sink", self.name, sink.task, -1, topics)
        table: TableWriter[ConnectorTasksRow] = self.trace.table("connector_tasks")
        table.add((self.kernel.now(), *row))
        self._task = SinkTask(self.setup(), sink.plan, sink.table.next_offset)
        self._begin(self._task)

    @property
    def is_idle(self) -> bool:
        """True if every polled record is in the external system."""
        return self._task is None or self._task.is_idle

    def _write(self, port: Port, effect: ExternalWrite) -> None:  # noqa: ARG002 - a performer
        sink, now = self.sink, self.kernel.now()
        for piece in effect.pieces:
            had = sink.table.take(piece) if sink.plan.exactly_once else 0
            count = piece.record_count - had
            if count:
                self._written.add(
                    (
                        now,
                        sink.connector,
                        self.name,
                        *piece.partition,
                        piece.base_offset + had,
                        piece.producer_index,
                        piece.first_record + had,
                        count,
                    )
                )
