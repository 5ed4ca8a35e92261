"""Closed loops: so many clients of one producer, each of which sends after its last answer.

A client thinks, sends one record, and waits for its outcome, whatever that is. An overload slows
closed loops down, as it does users who wait for a page; the rate of open ones does not notice it.
"""

import numpy as np

from sim.nodes.clients.producer import ProducerClient, ProducerNode
from sim.nodes.clients.workload import RecordDraw, WorkloadSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.producer.events import ApplicationSends, ArrivalBlock, BatchDone
from sim.substrate.host import Host
from sim.units import LONG_AGO, Micros
from sim.wire.rows import encoded_headers_bytes


class DueSends:
    """Records that clients send now; satisfies ``ArrivalSource``."""

    def __init__(self, spec: WorkloadSpec, draw: RecordDraw) -> None:
        self.value_bytes = spec.value_bytes
        self.keyed = spec.keys is not None
        self.header_count = spec.header_count
        self.header_bytes = encoded_headers_bytes(spec.style)
        self._draw = draw
        self._due: list[Micros] = []

    def add(self, at: Micros, count: int) -> None:
        """Adds sends of one instant, not before that of earlier ones."""
        self._due += [at] * count

    def next_block(self) -> ArrivalBlock | None:
        """Every send so far; ``None`` if there is none, until there is one again."""
        if not self._due:
            return None
        instants, self._due = np.array(self._due, dtype=np.int64), []
        return ArrivalBlock(instants, *self._draw.draw(len(instants)))


class ClosedLoopNode(ProducerNode):
    """A :class:`ProducerNode` whose application is clients that wait for their answers.

    Args:
        name: Printed name.
        host: Where it runs.
        world: The other processes.
        client: Its number and its bootstrap.
        spec: Its workload config, with clients.
    """

    def __init__(
        self, name: str, host: Host, world: World, client: ProducerClient, spec: WorkloadSpec
    ) -> None:
        super().__init__(name, host, world, client, spec)
        # The draws of a process continue those of the one before.
        self._draw = RecordDraw(spec, world.streams, name)
        self._think = world.streams.vector(f"workload/{name}/think")

    def boot(self) -> None:
        """Begins with every client at a place of its own in its thinking."""
        self._compressor_free_at = LONG_AGO
        self._source = DueSends(self.spec, self._draw)
        self.begin(self.make_machine(self._source, self.setup()))
        first = max(self.kernel.now(), self.spec.start_us)
        for unit in self._think.units(self.spec.clients).tolist():
            self._send_at(first + int(unit * self.spec.think_us), 1)

    def _send_at(self, at: Micros, count: int) -> None:
        if at < self.spec.end_us:
            self.call_at(at, self._clients_send, count)

    def _clients_send(self, count: int) -> None:
        if self._machine is not None and self._port is not None:
            self._source.add(self.kernel.now(), count)
            self.deliver(self._port, ApplicationSends())

    def _batch_done(self, port: Port, done: BatchDone) -> None:
        super()._batch_done(port, done)
        if self._machine is None:
            return  # the process ends, and its clients with it
        now, spec = self.kernel.now(), self.spec
        if not spec.thinks_at_random or not spec.think_us:
            self._send_at(now + max(spec.pause_us, spec.think_us), done.record_count)
            return
        thinks = -np.log1p(-self._think.units(done.record_count)) * spec.think_us
        for think in thinks.tolist():
            self._send_at(now + max(spec.pause_us, int(think)), 1)
