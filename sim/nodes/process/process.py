"""A process on a host: its life, its clock, and what it does later.

A crash drops everything that was still to come: each start of the process has its own incarnation,
and calls for an earlier one are ignored. A process that is stopped, by a signal or for a garbage
collection, handles nothing; what comes meanwhile is handled afterwards, in its order.
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
    """What a process may know of the others: where a server is."""

    kernel: Kernel
    network: Network
    trace: Trace
    streams: Streams

    def server(self, node: NodeId) -> Endpoint | None:
        """The process behind a ``node.id``."""


class Process:
    """A process, whatever it runs.

    Args:
        name: Printed name.
        host: Where it runs.
        world: Clock, trace and chance.
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
        """Whether a signal (SIGSTOP) has stopped it."""
        self.collecting = False
        """Whether its collector has stopped everything."""
        self.still = False
        """Whether it handles nothing, for either reason."""
        self._brief = False
        """Whether it stops for a moment only, which is no state of the process."""
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._coroutines: list[Coroutine] = []

    @property
    def host_name(self) -> str:
        """The host it runs on."""
        return self.host.name

    def now(self) -> Micros:
        """What the host's clock shows."""
        return self.kernel.now() + self.host.clock_offset_us

    def note_state(self, state: str) -> None:
        """Write the process's state to the trace."""
        row = NodeStates.row(self.name, state=state, incarnation=self.incarnation)
        self.trace.write(self.kernel.now(), row)

    # -- life -------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Stop (SIGSTOP): its sockets still accept, nothing is handled."""
        self.paused = True
        self._stand_still()

    def resume(self) -> None:
        """Go on, working off what came meanwhile, in its order."""
        self.paused = False
        self._go_on_with_all()

    def collect(self) -> None:
        """The collector stops everything: nothing is handled, as after SIGSTOP."""
        self.collecting = True
        self._stand_still()

    def collected(self) -> None:
        """The collector is done: go on, unless a signal has stopped the process meanwhile."""
        self.collecting = False
        self._go_on_with_all()

    def stop_for(self, pause_us: Micros) -> None:
        """Stop everything for a moment, as a young collection does; no row says so."""
        if self.still:
            return
        self.still = self.collecting = self._brief = True
        # By the kernel's clock, for the process cannot wake itself.
        self.kernel.call_at(self.kernel.time + pause_us, self._moment_over, self.incarnation)

    def _moment_over(self, incarnation: int) -> None:
        if self.running and self.incarnation == incarnation:
            self.collected()

    def _stand_still(self) -> None:
        if not self.still or self._brief:
            self.still = True
            self._brief = False
            self.note_state("paused")

    def _go_on_with_all(self) -> None:
        if self.paused or self.collecting:
            return
        self.still = False
        if not self._brief:
            self.note_state("resumed")
        self._brief = False
        held, self._held = self._held, []
        for index, (fn, args) in enumerate(held):
            if self.still:
                self._held = held[index:]
            if self.still or not self.running:
                return
            self._call(fn, args)

    def _die(self, state: str) -> None:
        self.running = False
        self.paused = self.collecting = self.still = self._brief = False
        for coroutine in self._coroutines:
            if coroutine.is_alive:
                coroutine.interrupt()
        self._coroutines = []
        self.note_state(state)

    # -- time -------------------------------------------------------------------------------------

    def call_at(self, at: Micros, fn: Callable[..., object], *args: Any) -> Call:  # noqa: ANN401
        """Call at the (true) instant, unless this incarnation is over; held back while paused."""
        return self.kernel.call_at(at, self._guarded, self.incarnation, fn, args)

    def spawn(self, task: Task) -> None:
        """Start a coroutine of this process; it ends with this incarnation."""
        self._coroutines.append(self.kernel.spawn(self.name, task))

    def timer(self, fn: Callable[..., object], *args: Any) -> Timer:  # noqa: ANN401
        """An alarm of this incarnation, not yet set; held back while paused."""
        incarnation = self.incarnation
        return self.kernel.timer(lambda: self._guarded(incarnation, fn, args))

    def _guarded(self, incarnation: int, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        if incarnation != self.incarnation or not self.running:
            return
        if self.still:
            self._held.append((fn, args))
            return
        self._call(fn, args)

    def _call(self, fn: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            fn(*args)
        except StorageFailed as failure:
            self.storage_failed(failure)

    def storage_failed(self, failure: StorageFailed) -> None:
        """A disk refused in the middle of something; a process with a disk says what that means."""
        raise failure
