"""A process on a host: its life, its clock, and its scheduled calls.

A crash drops all scheduled calls: each start of the process has its own incarnation, and calls of
an earlier one are ignored. A process that is stopped, by a signal or for a garbage collection,
handles nothing; events that come meanwhile are handled afterwards, in order.
"""

from collections.abc import Callable
from typing import Any, Protocol

from sim.errors import StorageFailed
from sim.ids import NodeId
from sim.kernel import Call, Kernel, Task, Timer
from sim.kernel import Process as Coroutine
from sim.rng import Streams
from sim.substrate.host import Host
from sim.substrate.network import Endpoint, Network
from sim.trace.rows.cluster import NodeStates
from sim.trace.writer import Trace
from sim.units import Micros


class World(Protocol):
    """World of a process: clock, trace, random streams, and the addresses of servers."""

    kernel: Kernel
    network: Network
    trace: Trace
    streams: Streams

    def server(self, node: NodeId) -> Endpoint | None:
        """Server with a ``node.id``."""

    def advertised(self, node: NodeId) -> Endpoint | None:
        """Server that answers at a server's advertised name; ``None``: the name has no address."""


class Process:
    """A process on a host, whatever it runs.

    Args:
        name: Printed name.
        host: Where it runs.
        world: Clock, trace and random streams.
    """

    def __init__(self, name: str, host: Host, world: World) -> None:
        self.name = name
        self.host = host
        self.kernel = world.kernel
        self.trace = world.trace
        self.streams = world.streams
        self.incarnation = 0
        self.running = False
        self.paused = False
        """True if a signal (SIGSTOP) has stopped it."""
        self.collecting = False
        """True during a stop-the-world collection."""
        self.frozen = False
        """True if it handles nothing, for either reason."""
        self._short_stop = False
        """True during a short stop, which is no state of the process."""
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._coroutines: list[Coroutine] = []

    @property
    def host_name(self) -> str:
        """Its host's name."""
        return self.host.name

    def now(self) -> Micros:
        """Present time by the host's clock."""
        return self.kernel.now() + self.host.clock_offset_us

    def note_state(self, state: str) -> None:
        """Writes the process's state to the trace."""
        row = NodeStates.row(self.name, state=state, incarnation=self.incarnation)
        self.trace.write(self.kernel.now(), row)

    # -- life -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stops (SIGSTOP): its sockets still accept, nothing is handled."""
        self.paused = True
        self._stop_handling()

    def resume(self) -> None:
        """Resumes; handles the events that came meanwhile, in order."""
        self.paused = False
        self._handle_held()

    def collect(self) -> None:
        """Begins a full collection: nothing is handled, as after SIGSTOP."""
        self.collecting = True
        self._stop_handling()

    def collected(self) -> None:
        """Ends the collection: resumes, unless a signal has stopped the process meanwhile."""
        self.collecting = False
        self._handle_held()

    def stop_for(self, pause_us: Micros) -> None:
        """Stops everything for a moment, as a young collection does; no row is written."""
        if self.frozen:
            return
        self.frozen = self.collecting = self._short_stop = True
        # By the kernel's clock, for the process cannot wake itself.
        self.kernel.call_at(self.kernel.time + pause_us, self._end_short_stop, self.incarnation)

    def _end_short_stop(self, incarnation: int) -> None:
        if self.running and self.incarnation == incarnation:
            self.collected()

    def _stop_handling(self) -> None:
        if not self.frozen or self._short_stop:
            self.frozen = True
            self._short_stop = False
            self.note_state("paused")

    def _handle_held(self) -> None:
        if self.paused or self.collecting:
            return
        self.frozen = False
        if not self._short_stop:
            self.note_state("resumed")
        self._short_stop = False
        held, self._held = self._held, []
        for index, (fn, args) in enumerate(held):
            if self.frozen:
                self._held = held[index:]
            if self.frozen or not self.running:
                return
            self._call(fn, args)

    def _die(self, state: str) -> None:
        self.running = False
        self.paused = self.collecting = self.frozen = self._short_stop = False
        for coroutine in self._coroutines:
            if coroutine.is_alive:
                coroutine.interrupt()
        self._coroutines = []
        self.note_state(state)

    # -- time -------------------------------------------------------------------------------------

    def call_at(self, at: Micros, fn: Callable[..., object], *args: Any) -> Call:  # noqa: ANN401
        """Calls at the (true) instant, unless this incarnation has ended; delayed while paused."""
        return self.kernel.call_at(at, self._guarded, self.incarnation, fn, args)

    def spawn(self, task: Task) -> None:
        """Starts a coroutine of this process; it ends with this incarnation."""
        self._coroutines.append(self.kernel.spawn(self.name, task))

    def timer(self, fn: Callable[..., object], *args: Any) -> Timer:  # noqa: ANN401
        """Creates an alarm of this incarnation, not yet set; delayed while paused."""
        incarnation = self.incarnation
        return self.kernel.timer(lambda: self._guarded(incarnation, fn, args))

    def _guarded(self, incarnation: int, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        if incarnation != self.incarnation or not self.running:
            return
        if self.frozen:
            self._held.append((fn, args))
            return
        self._call(fn, args)

    def _call(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            fn(*args)
        except StorageFailed as failure:
            self.storage_failed(failure)

    def storage_failed(self, failure: StorageFailed) -> None:
        """Handles a failed disk in the middle of a step; processes with disks override it."""
        raise failure
