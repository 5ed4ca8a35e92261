"""An application that creates a producer for each request: a client library for every record.

Each record has its own connections, metadata, producer id and ``close()``; the next one is sent
after the producer before is closed, as by a thread that serves one request after the other.
Requests that come meanwhile wait, and their latency counts from their arrival.
"""

from collections.abc import Sequence
from typing import Any

from sim.nodes.clients.producer import ProducerNode
from sim.nodes.clients.workload import Workload
from sim.nodes.process.port import Port
from sim.protocol.clients.producer.events import ArrivalBlock, ArrivalSource, BatchDone
from sim.protocol.clients.producer.producer import Producer
from sim.units import LONG_AGO, NEVER, Micros

_CORRELATIONS_PER_REQUEST = 1 << 12


class RequestQueue:
    """A workload, one record at a time."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._block: ArrivalBlock | None = workload.next_block()
        self._next = 0

    @property
    def next_instant(self) -> Micros:
        """Intended time of the next record; NEVER after the last."""
        return NEVER if self._block is None else int(self._block.instants_us[self._next])

    def take(self) -> "OneRecord":
        """The next record, as the only one of its client library."""
        block = self._block
        assert block is not None, "the workload has no more records"
        first = self._next
        self._next += 1
        if self._next == len(block.instants_us):
            self._block, self._next = self._workload.next_block(), 0
        keys, sizes = block.key_ids, block.value_sizes
        one = slice(first, first + 1)
        return OneRecord(
            self._workload,
            ArrivalBlock(
                block.instants_us[one],
                None if keys is None else keys[one],
                None if sizes is None else sizes[one],
            ),
        )


class OneRecord:
    """The source of one client library: satisfies ``ArrivalSource``."""

    def __init__(self, workload: Workload, block: ArrivalBlock) -> None:
        self.value_bytes = workload.value_bytes
        self.keyed = workload.keyed
        self.header_count = workload.header_count
        self.header_bytes = workload.header_bytes
        self._block: ArrivalBlock | None = block

    def next_block(self) -> ArrivalBlock | None:
        """The record, and then nothing."""
        block, self._block = self._block, None
        return block


class Closed:
    """Replaces the machine of a closed client library; ignores every event."""

    def handle(self, event: Any, now: Micros) -> Sequence[Any]:  # noqa: ANN401, ARG002 - a machine
        """Ignores the event."""
        return []


class PerRequestProducerNode(ProducerNode):
    """A :class:`ProducerNode` whose application closes its producer after each record."""

    def boot(self) -> None:
        """Waits for the first request."""
        self._compressor_free_at = LONG_AGO
        self._requests: RequestQueue | None = RequestQueue(
            Workload(self.spec, self.streams, self.name, self.kernel.now())
        )
        self._served = 0
        self._paused_at: Micros = NEVER
        self._await_request()

    @property
    def is_idle(self) -> bool:
        """True if every request has come and is completed."""
        if not self.incarnation or self._requests is None:
            return True
        return self._machine is None and self._requests.next_instant >= NEVER

    def pause(self) -> None:
        """Pauses; requests that come meanwhile wait."""
        if self.running and not self.paused:
            self._paused_at = self.kernel.now()
        super().pause()

    def resume(self) -> None:
        """Resumes the open request, then serves those that wait."""
        self._paused_at = NEVER
        super().resume()

    def finish(self) -> None:
        """Writes outcomes of open batches; requests that still wait were never sent."""
        super().finish()
        if not self.incarnation:
            return
        requests, self._requests = self._requests, None
        until = min(self.kernel.now(), self._paused_at)
        while requests is not None and requests.next_instant <= until:
            self._machine = self._make(requests.take())
            self._port = Port("producer", self._machine, serial=False)
            super().finish()

    def _await_request(self) -> None:
        at = NEVER if self._requests is None else self._requests.next_instant
        if at < NEVER:
            self.call_at(max(at, self.kernel.now()), self._begin)

    def _begin(self) -> None:
        assert self._requests is not None, "the process runs"
        self.begin(self._make(self._requests.take()))

    def _make(self, source: ArrivalSource) -> Producer:
        self._served += 1
        return self.make_machine(source, self.setup(self._served * _CORRELATIONS_PER_REQUEST))

    def _batch_done(self, port: Port, done: BatchDone) -> None:
        super()._batch_done(port, done)
        if self._machine is not None:
            self.call_at(self.kernel.now(), self._close)

    def _close(self) -> None:
        """``KafkaProducer.close()``: its connections are closed, later events ignored."""
        machine, port = self._machine, self._port
        if machine is None or port is None:
            return
        self.remember(machine)
        self._machine = self._port = None
        port.machine = Closed()
        for timer in port.timers.values():
            timer.cancel()
        channels = list(self._channels.values())
        self.ports.clear()
        self._channels.clear()
        for channel in channels:
            channel.disconnect()
        self._await_request()
