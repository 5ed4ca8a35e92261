"""A broker's heap over time: sampled every tenth of a second, it may pause or end the process.

During a full collection no request is handled and no heartbeat sent, as after SIGSTOP. An
OutOfMemoryError ends the process; only a fault or the end of the run starts it again, with producer
state rebuilt from its disks.

Simplified: it ends at once, as with ``-XX:+ExitOnOutOfMemoryError``. Without that flag one of its
threads ends after the other, with the same result a little later, or with a broker that does half
its work.

Source: ``kafka-run-class.sh`` (``KAFKA_HEAP_OPTS``); see :mod:`sim.substrate.heap`.
"""

from sim.ids import METADATA_PARTITION
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.log_dirs import Storage
from sim.substrate.heap import Collection, Heap, HeapSpec
from sim.trace.rows.cluster import Heaps
from sim.units import MS, Micros

LOOK_US: Micros = 100 * MS
"""Interval of the samples; a modelling choice."""

NOTE_US: Micros = 1_000 * MS
"""Interval at which heap usage is written to the trace."""


class HeapWatch:
    """The heap of one broker process.

    Args:
        server: The broker's process.
        storage: Its logs.
        spec: Its heap.
    """

    def __init__(self, server: ServerNode, storage: Storage, spec: HeapSpec) -> None:
        self._server = server
        self._storage = storage
        self._heap = Heap(spec)
        self._answered = server.requests_answered
        self._note_at: Micros = server.kernel.time

    def begin(self) -> None:
        """Begins to sample: the logs are loaded, and with them producer state."""
        # Not now: the process is in the middle of its start, and this may end it.
        self._server.call_at(self._server.kernel.time, self._look)

    def _look(self) -> None:
        server = self._server
        if not server.host.memory_is_bounded:
            return
        producers = sum(
            len(log.producers.entries)
            for partition, log in self._storage.manager.logs.items()
            if partition != METADATA_PARTITION
        )
        connections = len(server.open_connections())
        live = self._heap.live_bytes(producers, connections)
        requests = server.requests_answered - self._answered
        self._answered += requests
        verdict = self._heap.look(live, requests)
        if verdict is None:
            if server.kernel.time >= self._note_at:
                self._note(live, producers, connections, "sample", 0)
            server.call_at(server.kernel.time + LOOK_US, self._look)
        elif isinstance(verdict, Collection):
            self._note(live, producers, connections, "collection", verdict.pause_us)
            self._stop(verdict.pause_us)
        else:
            self._note(live, producers, connections, "out_of_memory", 0)
            server.halt("OutOfMemoryError: Java heap space")

    def _note(self, live: int, producers: int, connections: int, event: str, pause: Micros) -> None:
        server = self._server
        now = server.kernel.time
        self._note_at = now + NOTE_US
        row = Heaps.row(
            server.node_id,
            event=event,
            live_bytes=live,
            size_bytes=self._heap.spec.size_bytes,
            producers=producers,
            connections=connections,
            pause_us=pause,
        )
        server.trace.write(now, row)

    def _stop(self, pause_us: Micros) -> None:
        """Stops the world; it resumes by the kernel's clock, for the process cannot wake itself."""
        server = self._server
        server.collect()
        server.kernel.call_at(server.kernel.time + pause_us, self._resume, server.incarnation)

    def _resume(self, incarnation: int) -> None:
        server = self._server
        if not server.running or server.incarnation != incarnation:
            return
        server.call_at(server.kernel.time + LOOK_US, self._look)
        server.collected()
