"""A MirrorMaker process: it reads one cluster and writes to another.

It has two halves, one with connections to the source cluster and one with connections to the target
cluster, each in the world and the trace of its cluster. They start and end together, and call each
other within the same instant. Offset syncs and checkpoints, which a new process would read back
from its topics in Kafka, are kept by the halves.

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
    SyncsWritten,
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
    """Settings of one mirror.

    Attributes:
        source: Topic of the source cluster.
        target: Its name in the target cluster.
        value_bytes: Size of each record's value, at least ``OUTPUT_BYTES_MIN``.
        lag_max: ``offset.lag.max``.
        task: Commits of its input.
        checkpoints: Groups whose offsets it translates; ``None``: none.
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
    """The half that writes. It starts and ends with the other half."""

    def __init__(
        self, name: str, host: Host, world: World, client: ProducerClient, plan: MirrorPlan
    ) -> None:
        super().__init__(name, host, world, client, plan.target, plan.value_bytes)
        self.plan = plan
        self.source: MirrorNode | None = None
        """The other half."""
        self.emitted: dict[tuple[str, TopicPartition], Checkpoint] = {}
        """Last checkpoint of each group and partition of the target cluster."""
        self._copies = MirrorOutputs(plan.value_bytes)
        self._writer = OffsetSyncWriter(plan.lag_max, extrapolates=plan.extrapolates)
        self._originals: dict[tuple[int, int], np.ndarray[tuple[int], np.dtype[np.int64]]] = {}
        """Offsets of the records of each open batch, by partition and first record."""
        self._groups: Port | None = None
        self._mirrored: TableWriter[MirroredRow] = world.trace.table("mirrored")
        self._syncs: TableWriter[OffsetSyncsRow] = world.trace.table("offset_syncs")
        self._checkpoints: TableWriter[CheckpointsRow] = world.trace.table("checkpoints")

    def boot(self) -> None:
        """Creates the producer, and the client that commits groups' offsets."""
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
        """Stops in good order, with the other half."""
        self.finish()
        self.shut_down()

    def take_checkpoints(self, found: Checkpoints) -> None:
        """Commits group offsets that the other half has translated."""
        assert self._groups is not None, "a mirror without checkpoints translates no offsets"
        for each in found.found:
            row = (found.group, *each.partition, each.upstream, each.downstream)
            self._checkpoints.add((self.kernel.now(), self.name, *row))
        self.deliver(self._groups, found)

    # -- effects ----------------------------------------------------------------------------------

    def remember(self, machine: Producer) -> None:
        """Keeps the state with which the next process begins."""
        super().remember(machine)
        self._originals = {}

    def _pass_to_reader(self, port: Port, effect: WorkEnded) -> None:  # noqa: ARG002
        if effect.ok:
            self._publish_syncs(self._writer.promote())
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
        written: list[OffsetSync] = []
        at = 0
        for part in np.split(offsets, edges):
            base = done.base_offset + at
            written += self._writer.mirrored(source, int(part[0]), base, len(part))
            at += len(part)
        self._publish_syncs(written)

    def _publish_syncs(self, syncs: list[OffsetSync]) -> None:
        if not syncs:
            return
        now = self.kernel.now()
        for sync in syncs:
            self._syncs.add((now, self.name, *sync.partition, sync.upstream, sync.downstream))
        source = self.source
        assert source is not None, "it has another half"
        source.call_at(now, source.take_syncs, tuple(syncs))


class MirrorNode(ConsumerNode):
    """The half that reads; faults and the scenario's run act on it, and it on the other half."""

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
        self.performers[WorkTaken] = self._pass_to_target
        self.performers[WorkEnding] = self._pass_to_target
        self.performers[Checkpoints] = self._pass_checkpoints

    @property
    def is_idle(self) -> bool:
        """True if the target cluster has acknowledged everything that was read."""
        return self.target.is_idle

    def boot(self) -> None:
        """Creates the consumer, and the client that fetches groups' offsets."""
        plan = self.target.plan
        self._consumer = TaskConsumer(self.setup(), plan.task)
        self._begin(self._consumer)
        if plan.checkpoints is not None:
            task = MirrorCheckpointTask(plan.checkpoints, self._bootstrap, self.target.emitted)
            self._checkpoints = self.add_machine("checkpoints", task)
            self.deliver(self._checkpoints, SyncsWritten(tuple(self._latest.values())))
            self.deliver(self._checkpoints, Started())

    # -- life: both halves are one process --------------------------------------------------------

    def start(self) -> None:
        """Starts both halves."""
        super().start()
        if self.target.host.powered:
            self.target.start()
        else:
            self.target.host.power_on()

    def crash(self) -> None:
        """Kills both halves."""
        super().crash()
        if self.target.running:
            self.target.crash()

    def lose_power(self) -> None:
        """Powers both halves off."""
        super().lose_power()
        self.target.host.power_off()

    def shut_down(self) -> None:
        """Shuts both halves down."""
        super().shut_down()
        if self.target.running:
            self.target.stop()

    def pause(self) -> None:
        """Pauses both halves."""
        super().pause()
        self.target.pause()

    def resume(self) -> None:
        """Resumes both halves."""
        super().resume()
        self.target.resume()

    # -- between the halves -----------------------------------------------------------------------

    def take_end(self, event: WorkEnded) -> None:
        """The other half has ended a round."""
        assert self._port is not None, "it has booted"
        self.deliver(self._port, event)

    def take_syncs(self, syncs: tuple[OffsetSync, ...]) -> None:
        """The other half has written offset syncs."""
        for sync in syncs:
            self._latest[sync.partition] = sync
        if self._checkpoints is not None:
            self.deliver(self._checkpoints, SyncsWritten(syncs))

    def _pass_to_target(self, _port: Port, effect: WorkTaken | WorkEnding) -> None:
        self.target.call_at(self.kernel.now(), self.target.take_work, effect)

    def _pass_checkpoints(self, _port: Port, effect: Checkpoints) -> None:
        self.target.call_at(self.kernel.now(), self.target.take_checkpoints, effect)

    def _stopped(self, port: Port, effect: Stopped) -> None:
        super()._stopped(port, effect)
        if self.target.running:
            self.target.stop()
