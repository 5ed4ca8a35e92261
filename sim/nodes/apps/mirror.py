"""A mirror's process: it reads one cluster and writes what it read to another.

It has two halves, one with connections to the source cluster and one with connections to the
target cluster, each in the world and the trace of its cluster. They live and die together, and
tell each other of things at the same instant. What a new process would read back from its topics in
Kafka (offset syncs, checkpoints) is kept by the halves themselves.

Source: ``connect.mirror.{MirrorSourceTask,MirrorCheckpointTask}``; KIP-382, KIP-545.
"""

from dataclasses import dataclass

import numpy as np

from sim.ids import NodeId, TopicPartition
from sim.nodes.apps.output_batches import output_batch
from sim.nodes.apps.task import TaskNode
from sim.nodes.clients.consumer import ConsumerNode
from sim.nodes.clients.producer import ProducerClient
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.consumer.consumer import Stopped
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.protocol.clients.producer.events import BatchDone, ProducerBatchDraft
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.mirror.checkpoints import (
    Checkpoint,
    CheckpointPlan,
    Checkpoints,
    MirrorCheckpointTask,
    MirrorGroupSync,
    Started,
    SyncsTold,
)
from sim.protocol.mirror.offsets import OffsetSync, OffsetSyncWriter
from sim.protocol.mirror.outputs import MirrorAccumulator, MirrorOutputs
from sim.protocol.streams.consumer import TaskConsumer, TaskPlan
from sim.protocol.streams.producers import TaskProducer
from sim.substrate.host import Host
from sim.trace.rows.mirrors import CheckpointsRow, MirroredRow, OffsetSyncsRow
from sim.trace.writer import TableWriter
from sim.units import LONG_AGO, Bytes
from sim.wire.record_batch import RecordBatch


@dataclass(frozen=True, slots=True)
class MirrorPlan:
    """What one mirror does.

    Attributes:
        source: Topic of the source cluster.
        target: Its name in the target cluster.
        value_bytes: Size of each record's value, at least ``OUTPUT_BYTES_MIN``.
        lag_max: ``offset.lag.max``.
        task: How it commits what it has read.
        checkpoints: What it translates; ``None``: nothing.
        extrapolates: See :class:`~sim.protocol.mirror.offsets.OffsetSyncWriter`.
    """

    source: str
    target: str
    value_bytes: Bytes
    lag_max: int
    task: TaskPlan
    checkpoints: CheckpointPlan | None
    extrapolates: bool = False


class MirrorTargetNode(TaskNode):
    """The half that writes. It starts and ends with its other half."""

    def __init__(
        self, name: str, host: Host, world: World, client: ProducerClient, plan: MirrorPlan
    ) -> None:
        super().__init__(name, host, world, client, plan.target, plan.value_bytes)
        self.plan = plan
        self.source: MirrorNode | None = None
        """The other half."""
        self.emitted: dict[tuple[str, TopicPartition], Checkpoint] = {}
        """The last checkpoint of each group and partition of the target cluster."""
        self._copies = MirrorOutputs(plan.value_bytes)
        self._writer = OffsetSyncWriter(plan.lag_max, extrapolates=plan.extrapolates)
        self._originals: dict[tuple[int, int], np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        """Offsets of the records of each batch under way, by partition and first record."""
        self._groups: Port | None = None
        self._mirrored: TableWriter[MirroredRow] = world.trace.table("mirrored")
        self._syncs: TableWriter[OffsetSyncsRow] = world.trace.table("offset_syncs")
        self._checkpoints: TableWriter[CheckpointsRow] = world.trace.table("checkpoints")

    def boot(self) -> None:
        """Make the producer, and what commits groups' offsets."""
        plan = self.plan
        self._compressor_free_at = LONG_AGO
        self._copies = MirrorOutputs(plan.value_bytes)
        self._writer = OffsetSyncWriter(plan.lag_max, extrapolates=plan.extrapolates)
        self._originals = {}
        setup = self.setup()
        self.begin(TaskProducer(setup, self._copies, MirrorAccumulator(setup, self._copies)))
        if plan.checkpoints is not None:
            sync = MirrorGroupSync(plan.checkpoints, self._bootstrap, self.name, self.emitted)
            self._groups = self.add_machine("groups", sync)
            self.deliver(self._groups, Started())

    def stop(self) -> None:
        """End in good order, with the other half."""
        self.finish()
        self.shut_down()

    def take_checkpoints(self, found: Checkpoints) -> None:
        """The other half has translated a group's offsets."""
        assert self._groups is not None, "checkpoints are made where they are wanted"
        for each in found.found:
            row = (found.group, *each.partition, each.upstream, each.downstream)
            self._checkpoints.add((self.kernel.now(), self.name, *row))
        self.deliver(self._groups, found)

    # -- effects ----------------------------------------------------------------------------------

    def remember(self, mind: Producer) -> None:
        """Keep what the next process begins with."""
        super().remember(mind)
        self._originals = {}

    def _pass_to_reader(self, port: Port, effect: WorkEnded) -> None:  # noqa: ARG002
        if effect.ok:
            self._tell_syncs(self._writer.promote())
        source = self.source
        assert source is not None, "it has another half"
        source.call_at(self.kernel.now(), source.take_end, effect)

    def _encode(self, draft: ProducerBatchDraft) -> RecordBatch:
        numbers = draft.key_ids
        assert numbers is not None, "copies are numbered"
        origins, offsets = self._copies.origins(numbers), self._copies.offsets_of(numbers)
        partition = draft.partition.partition
        self._originals[partition, draft.first_record] = offsets
        for start, stop in origins.runs(1):
            self._mirrored.add(
                (
                    self.kernel.now(),
                    self.name,
                    self.index,
                    draft.partition.topic,
                    partition,
                    draft.first_record + start,
                    stop - start,
                    self.plan.source,
                    partition,
                    int(origins.producers[start]),
                    int(origins.records[start]),
                    int(offsets[start]),
                )
            )
        return output_batch(self.index, self.spec.value_bytes, self.config, draft, origins)

    def _batch_done(self, port: Port, done: BatchDone) -> None:
        super()._batch_done(port, done)
        offsets = self._originals.pop((done.partition, done.first_record), None)
        if offsets is None or done.outcome != "ok":
            return
        source = TopicPartition(self.plan.source, done.partition)
        edges = np.flatnonzero(np.diff(offsets) != 1) + 1
        told: list[OffsetSync] = []
        at = 0
        for part in np.split(offsets, edges):
            base = done.base_offset + at
            told += self._writer.mirrored(source, int(part[0]), base, len(part))
            at += len(part)
        self._tell_syncs(told)

    def _tell_syncs(self, syncs: list[OffsetSync]) -> None:
        if not syncs:
            return
        now = self.kernel.now()
        for sync in syncs:
            self._syncs.add((now, self.name, *sync.partition, sync.upstream, sync.downstream))
        source = self.source
        assert source is not None, "it has another half"
        source.call_at(now, source.take_syncs, tuple(syncs))


class MirrorNode(ConsumerNode):
    """The half that reads; faults and the run deal with it, and it with the other half."""

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        config: ConsumerConfig,
        bootstrap: tuple[NodeId, ...],
        target: MirrorTargetNode,
    ) -> None:
        super().__init__(name, host, world, config, bootstrap)
        self.target = target
        target.source = self
        self._checkpoints: Port | None = None
        self._latest: dict[TopicPartition, OffsetSync] = {}
        self.performers[WorkTaken] = self._tell_target
        self.performers[WorkEnding] = self._tell_target
        self.performers[Checkpoints] = self._tell_checkpoints

    @property
    def is_idle(self) -> bool:
        """Whether everything that was read is acknowledged by the target cluster."""
        return self.target.is_idle

    def boot(self) -> None:
        """Make the consumer, and what asks for groups' offsets."""
        plan = self.target.plan
        self._consumer = TaskConsumer(self.setup(), plan.task)
        self._begin(self._consumer)
        if plan.checkpoints is not None:
            task = MirrorCheckpointTask(plan.checkpoints, self._bootstrap, self.target.emitted)
            self._checkpoints = self.add_machine("checkpoints", task)
            self.deliver(self._checkpoints, SyncsTold(tuple(self._latest.values())))
            self.deliver(self._checkpoints, Started())

    # -- life: both halves are one process --------------------------------------------------------

    def start(self) -> None:
        """Start both halves."""
        super().start()
        if self.target.host.powered:
            self.target.start()
        else:
            self.target.host.power_on()

    def crash(self) -> None:
        """Both die at once."""
        super().crash()
        if self.target.running:
            self.target.crash()

    def lose_power(self) -> None:
        """Both go dark."""
        super().lose_power()
        self.target.host.power_off()

    def shut_down(self) -> None:
        """Both end."""
        super().shut_down()
        if self.target.running:
            self.target.stop()

    def pause(self) -> None:
        """Both stop."""
        super().pause()
        self.target.pause()

    def resume(self) -> None:
        """Both go on."""
        super().resume()
        self.target.resume()

    # -- between the halves -----------------------------------------------------------------------

    def take_end(self, event: WorkEnded) -> None:
        """A round is over on the other side."""
        assert self._port is not None, "it has booted"
        self.deliver(self._port, event)

    def take_syncs(self, syncs: tuple[OffsetSync, ...]) -> None:
        """The other half has told offset syncs."""
        for sync in syncs:
            self._latest[sync.partition] = sync
        if self._checkpoints is not None:
            self.deliver(self._checkpoints, SyncsTold(syncs))

    def _tell_target(self, _port: Port, effect: WorkTaken | WorkEnding) -> None:
        self.target.call_at(self.kernel.now(), self.target.take_work, effect)

    def _tell_checkpoints(self, _port: Port, effect: Checkpoints) -> None:
        self.target.call_at(self.kernel.now(), self.target.take_checkpoints, effect)

    def _stopped(self, port: Port, effect: Stopped) -> None:
        super()._stopped(port, effect)
        if self.target.running:
            self.target.stop()
