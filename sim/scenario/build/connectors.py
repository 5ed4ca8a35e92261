"""Connectors of a run: from their parts to processes, and what the run does with them."""

from collections.abc import Callable
from dataclasses import replace

from sim.ids import Offset, TopicPartition
from sim.nodes.apps.connectors import (
    ExternalLog,
    ExternalTable,
    SinkSpec,
    SinkTaskNode,
    SourceSpec,
    SourceTaskNode,
)
from sim.nodes.clients.producer import ProducerClient
from sim.nodes.process.base import Node
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.connect.sink_task import SinkPlan
from sim.protocol.connect.source_task import SourcePlan
from sim.scenario.build import client_configs, translate
from sim.scenario.build.cluster import Builder
from sim.scenario.model.apps import ConnectorSpec
from sim.units import Micros

Reader = tuple[
    ConsumerConfig, Callable[[TopicPartition], Offset], Callable[[TopicPartition], Offset]
]
"""Settings of a group's member, its position and its committed offset in a partition."""


def source_plan(spec: ConnectorSpec, number: int, task: int) -> SourcePlan:
    """Plan of one task of a source."""
    config = spec.config
    boundary: Micros = 0
    if config.text("transaction.boundary") == "interval":
        name = "transaction.boundary.interval.ms"
        given = config.optional_number(name) is not None
        boundary = config.micros(name if given else "offset.flush.interval.ms")
    return SourcePlan(
        spec.name,
        number,
        task,
        spec.topics[0],
        spec.group,
        spec.poll_us,
        spec.batch,
        "inside" if spec.is_exactly_once else "acked",
        config.micros("offset.flush.interval.ms"),
        config.micros("offset.flush.timeout.ms"),
        boundary,
    )


def sink_plan(spec: ConnectorSpec) -> SinkPlan:
    """Plan of a sink's tasks."""
    return SinkPlan(
        spec.config.micros("offset.flush.interval.ms"),
        spec.config.micros("offset.flush.timeout.ms"),
        spec.buffer,
        spec.delivery == "exactly-once",
    )


class Connectors:
    """Every connector of a run, on hosts of their own; none runs yet.

    Args:
        builder: Of the cluster.
        first_index: Sources are numbered among producers from here.
    """

    def __init__(self, builder: Builder, first_index: int) -> None:
        self._builder = builder
        self._specs: list[ConnectorSpec] = []
        """Of each task, in the order of the file."""
        self.sources: list[SourceTaskNode] = []
        self.sinks: list[SinkTaskNode] = []
        self._nodes: list[SourceTaskNode | SinkTaskNode] = []
        for number, spec in enumerate(builder.scenario.connectors):
            table = ExternalTable()
            for task in range(spec.tasks):
                node: SourceTaskNode | SinkTaskNode
                if spec.is_source:
                    node = self._source(spec, number, task, first_index + len(self.sources))
                    self.sources.append(node)
                else:
                    node = self._sink(spec, task, table)
                    self.sinks.append(node)
                builder.connect_by(node, spec.client)
                builder.cluster.add(node)
                self._nodes.append(node)
                self._specs.append(spec)

    def _source(self, spec: ConnectorSpec, number: int, task: int, index: int) -> SourceTaskNode:
        builder = self._builder
        behaviours = builder.scenario.client_behaviours(spec.config.version)
        config = client_configs.producer_config(spec.client, behaviours)
        ids, name = spec.transactional_ids, spec.client_names[task]
        return SourceTaskNode(
            name,
            builder.client_host(name, spec.rack),
            builder.cluster,
            ProducerClient(
                index,
                replace(config, transactional_id=ids[task] if ids else ""),
                builder.bootstrap,
            ),
            SourceSpec(
                source_plan(spec, number, task),
                ExternalLog(spec.rate_per_s, spec.stop_us),
                spec.record_size,
                translate.transaction_version(behaviours),
            ),
        )

    def _sink(self, spec: ConnectorSpec, task: int, table: ExternalTable) -> SinkTaskNode:
        builder, name = self._builder, spec.client_names[task]
        return SinkTaskNode(
            name,
            builder.client_host(name, spec.rack),
            builder.cluster,
            client_configs.sink_consumer_config(
                spec, builder.scenario.client_behaviours(spec.config.version)
            ),
            builder.bootstrap,
            SinkSpec(spec.name, task, sink_plan(spec), table),
        )

    def arm(self, start_at: Callable[[Micros, Node], None]) -> None:
        """Have them start when they are to, and external logs end when they are complete."""
        for spec, node in zip(self._specs, self._nodes, strict=True):
            start_at(spec.start_us, node)
            if isinstance(node, SourceTaskNode):
                node.kernel.call_at(spec.stop_us, node.note_length)

    @property
    def is_idle(self) -> bool:
        """True if everything that they were to deliver is delivered, as far as they run."""
        return all(node.is_idle for node in self._nodes if node.running)

    def close(self) -> None:
        """Have them end in good order."""
        for node in self._nodes:
            if node.running:
                node.close()

    def finish(self) -> None:
        """Write rows of what is still open at the end of the run."""
        for source in self.sources:
            source.finish()

    def readers(self) -> list[Reader]:
        """The members of sinks' groups."""
        return [(sink.config, sink.position, sink.committed) for sink in self.sinks]

    @property
    def committed_groups(self) -> list[str]:
        """Groups of sinks that read committed data only."""
        specs = self._builder.scenario.connectors
        return [spec.group for spec in specs if spec.reads_committed]
