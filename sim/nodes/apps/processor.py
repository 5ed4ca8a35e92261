"""A stream task's process: a consumer and a producer, and the calls between them.

A process that crashes loses its round; the next one begins at the committed offsets of the group. A
producer that was fenced is replaced by a new one with the same transactional id, as in a stream
thread. The two machines pass each other events of rounds within the same instant.

Source: ``org.apache.kafka.streams.processor.internals.{StreamThread,StreamsProducer}``.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId, Offset, TopicPartition
from sim.nodes.apps.output_batches import output_batch
from sim.nodes.apps.task import TaskNode
from sim.nodes.clients.consumer import read_row
from sim.nodes.clients.producer import ProducerClient
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol import effects as fx
from sim.protocol.clients.consumer.config import ConsumerConfig, ConsumerSetup
from sim.protocol.clients.consumer.consumer import CloseConsumer, Start
from sim.protocol.clients.consumer.effects import Deliver, Stopped
from sim.protocol.clients.producer.events import ProducerBatchDraft, ProducerStopped
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.streams.consumer import TaskConsumer, TaskPlan
from sim.protocol.streams.outputs import Origins, TaskOutputs
from sim.protocol.streams.producers import TaskProducer, TransactionalTaskProducer
from sim.substrate.host import Host
from sim.trace.rows.clients import CommittedReadersRow, OutputsRow, ReadsRow, TasksRow
from sim.trace.writer import TableWriter
from sim.units import LONG_AGO, Bytes, Micros
from sim.wire.record_batch import RecordBatch

_CORRELATIONS_PER_PRODUCER = 1 << 28


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """Settings of one task.

    Attributes:
        topic: Where its outputs go.
        value_bytes: Size of each output's value, at least ``OUTPUT_BYTES_MIN``.
        each: Outputs of each input record.
        plan: Its commits.
        version: ``transaction.version`` of the cluster.
    """

    topic: str
    value_bytes: Bytes
    each: int
    plan: TaskPlan
    version: int


class ProcessorNode(TaskNode):
    """One task on a host; it starts with its process, and ends with it or with :meth:`close`.

    Args:
        name: Printed name.
        host: Where it runs.
        world: The other processes.
        client: Its producer.
        task: What it does.
        consumer: Its consumer's settings.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        client: ProducerClient,
        task: TaskSpec,
        consumer: ConsumerConfig,
    ) -> None:
        super().__init__(name, host, world, client, task.topic, task.value_bytes)
        self.task = task
        self.consumer_config = consumer
        self.error = ErrorCode.NONE
        """Error of its consumer's poll; NONE before one."""
        self._outputs = TaskOutputs(task.value_bytes, task.each)
        self._consumer: TaskConsumer | None = None
        self._producers = 0
        self._made: TableWriter[OutputsRow] = world.trace.table("outputs")
        self._reads: TableWriter[ReadsRow] = world.trace.table("reads")
        self.performers[Deliver] = self._deliver_records
        self.performers[Stopped] = self._stopped
        self.performers[ProducerStopped] = self._replace_producer

    def boot(self) -> None:
        """Creates both clients and begins to poll."""
        self._compressor_free_at = LONG_AGO
        self.error = ErrorCode.NONE
        self._producers = 0
        self._begin_producer(0)
        unit = self.streams.named(f"consumer/{self.name}").unit
        config = self.consumer_config
        reads = ConsumerSetup(self.name, config, self._bootstrap, unit)
        self._consumer = TaskConsumer(reads, self.task.plan)
        self._reader = self.add_machine("consumer", self._consumer)
        self.deliver(self._reader, Start())
        self.note_state("running")
        topics = ",".join(config.topics)
        prefix = (self.kernel.now(), self.name, config.group_id, self.index, topics)
        table: TableWriter[TasksRow] = self.trace.table("tasks")
        table.add((*prefix, self.task.topic, self.task.each))
        if config.isolation_level == "read_committed":
            began: TableWriter[CommittedReadersRow] = self.trace.table("committed_readers")
            began.add((self.kernel.now(), self.name, config.group_id))

    def close(self) -> None:
        """Commits, leaves the group, and stops; a paused process closes when it resumes."""
        self.call_at(self.kernel.now(), self._close)

    @property
    def is_idle(self) -> bool:
        """True if everything that was read is processed, written and committed."""
        return super().is_idle and (self._consumer is None or self._consumer.is_idle)

    # -- views of the consumer --------------------------------------------------------------------

    def position(self, partition: TopicPartition) -> Offset:
        """Next offset in the partition; -1 if it is not assigned or not known yet."""
        if not self.running or self._consumer is None:
            return -1
        return self._consumer.position(partition)

    def committed(self, partition: TopicPartition) -> Offset:
        """Last offset acknowledged as committed; -1 for none."""
        return self._consumer.committed().get(partition, -1) if self._consumer is not None else -1

    # -- the producer -----------------------------------------------------------------------------

    def _begin_producer(self, first_round: int) -> None:
        self._outputs = TaskOutputs(self.task.value_bytes, self.task.each)
        setup = self.setup(self._producers * _CORRELATIONS_PER_PRODUCER)
        self._producers += 1
        machine: Producer
        if self._transactional:
            version = self.task.version
            machine = TransactionalTaskProducer(setup, self._outputs, version, first_round)
        else:
            machine = TaskProducer(setup, self._outputs)
        self.begin(machine)

    def _replace_producer(self, port: Port, effect: ProducerStopped) -> None:  # noqa: ARG002
        machine = self._machine
        assert isinstance(machine, TransactionalTaskProducer), "only a transactional one is fenced"
        self.finish()
        self._begin_producer(machine.next_round)

    def _encode(self, draft: ProducerBatchDraft) -> RecordBatch:
        assert draft.key_ids is not None, "outputs are numbered"
        origins = self._outputs.origins(draft.key_ids)
        self._write_origins(draft, origins)
        return output_batch(self.index, self.spec.value_bytes, self.config, draft, origins)

    def _write_origins(self, draft: ProducerBatchDraft, origins: Origins) -> None:
        now, each = self.kernel.now(), self.task.each
        for start, stop in origins.runs(each):
            self._made.add(
                (
                    now,
                    self.name,
                    self.index,
                    draft.partition.topic,
                    draft.partition.partition,
                    draft.first_record + start,
                    stop - start,
                    origins.topics[start],
                    int(origins.partitions[start]),
                    int(origins.producers[start]),
                    int(origins.records[start]),
                    int(origins.ordinals[start]),
                    each,
                )
            )

    # -- the consumer -----------------------------------------------------------------------------

    def _close(self) -> None:
        assert self._reader is not None, "a process that runs has booted"
        self.deliver(self._reader, CloseConsumer())

    def _deliver_records(self, _port: Port, effect: Deliver) -> None:
        group = self.consumer_config.group_id
        self._reads.add(read_row(self.kernel.now(), self.name, group, effect))

    def _stopped(self, _port: Port, effect: Stopped) -> None:
        self.error = effect.error
        self.finish()
        self.end()

    # -- connections: each client has its own -----------------------------------------------------

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """Mutes the producer's client library; the consumer's requests wait in their channel."""
        if port.name != "consumer":
            super().throttled(port, server, until)

    def _send(self, port: Port, effect: fx.Send) -> None:
        self.channel(effect.to, _label(port, effect.channel)).send(
            port, effect.correlation, effect.request, effect.timeout_us
        )

    def _disconnect(self, port: Port, effect: fx.Disconnect) -> None:
        channel = self._channels.get((effect.to, _label(port, effect.channel)))
        if channel is not None:
            channel.disconnect()


def _label(port: Port, channel: str) -> str:
    """Prefixes the consumer's channels, which distinguishes them from the producer's."""
    return f"consumer/{channel}" if port.name == "consumer" else channel
