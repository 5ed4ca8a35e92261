"""A process whose producer sends, in rounds, what its application makes of what it reads.

Source: ``org.apache.kafka.streams.processor.internals.StreamThread``, ``connect.runtime.Worker``.
"""

from sim.nodes.clients.producer import ProducerClient
from sim.nodes.clients.transacting import TransactingNode
from sim.nodes.clients.workload import Rate, Steady, WorkloadSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.consumer.work import WorkEnded, WorkEnding, WorkTaken
from sim.substrate.host import Host
from sim.units import Bytes


class TaskNode(TransactingNode):
    """The half of a task that writes, and the events between it and the half that reads.

    They pass each other events of rounds within the same instant.

    Args:
        name: Printed name.
        host: Where it runs.
        world: The other processes.
        client: Its producer.
        topic: Where its outputs go.
        value_bytes: Size of each output's value, at least ``OUTPUT_BYTES_MIN``.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        client: ProducerClient,
        topic: str,
        value_bytes: Bytes,
    ) -> None:
        outputs = WorkloadSpec(topic, Steady(Rate(0, 1)), value_bytes)
        super().__init__(name, host, world, client, outputs)
        self._reader: Port | None = None
        """Port of the machine that reads; ``None`` if that is another process."""
        self.performers[WorkTaken] = self._pass_to_producer
        self.performers[WorkEnding] = self._pass_to_producer
        self.performers[WorkEnded] = self._pass_to_reader

    def take_work(self, event: WorkTaken | WorkEnding) -> None:
        """Passes records that were read, or the end of a round, to the producer."""
        assert self._port is not None, "it has booted"
        self.deliver(self._port, event)

    def to_reader(self, event: object) -> None:
        """Passes an event to the half that reads, at this instant, after the present one."""
        assert self._reader is not None, "it has booted"
        self.call_at(self.kernel.now(), self.deliver, self._reader, event)

    def _pass_to_producer(self, port: Port, effect: WorkTaken | WorkEnding) -> None:  # noqa: ARG002
        self.call_at(self.kernel.now(), self.take_work, effect)

    def _pass_to_reader(self, port: Port, effect: WorkEnded) -> None:  # noqa: ARG002
        self.to_reader(effect)
