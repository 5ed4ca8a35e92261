"""The shell every process shares: it receives, lets its machines decide, and performs the effects.

A decision is taken at one instant; effects are performed in their order; only an effect that takes
time lets other things happen in between. A crash drops everything that was still to come: each
start of the process has its own incarnation, and calls for an earlier one are ignored.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from sim.errors import StorageFailed
from sim.ids import NodeId
from sim.kernel import Call, Kernel, Process, Task, Timer
from sim.nodes.process.channel import Channel, policy_of
from sim.nodes.process.port import Machine, Port
from sim.protocol import effects as fx
from sim.protocol.events import ResponseReceived, TimerFired
from sim.rng import Streams
from sim.substrate.host import Host
from sim.substrate.network import Connection, Message, Network
from sim.substrate.tls import TlsSpec
from sim.trace.rows.cluster import NodeStatesRow
from sim.trace.writer import TableWriter, Trace
from sim.units import MS, Micros

Performer = Callable[[Port, Any], Micros | None]
"""Performs one effect.

Returns the instant from which later effects may go on, ``None`` for now, or TRY_AGAIN if the effect
could not begin (a stalled disk).
"""

TRY_AGAIN: Micros = -(1 << 61)
"""See :data:`Performer`."""

TRY_AGAIN_US: Micros = 10 * MS
"""How long an effect that could not begin waits before the next attempt."""


class World(Protocol):
    """What a node may know of the others: where a server's process is."""

    kernel: Kernel
    network: Network
    trace: Trace
    streams: Streams

    def server(self, node: NodeId) -> "Node | None":
        """The process behind a ``node.id``."""


class Node:
    """A process on a host."""

    def __init__(self, name: str, host: Host, world: World) -> None:
        self.name = name
        self.host = host
        self.world = world
        self.kernel = world.kernel
        self.network = world.network
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
        self.tearing_down = False
        """Whether it is killed and its sockets are still open: what they receive is lost."""
        self.teardown_us: Micros = 0
        """From a kill until the sockets close: the kernel frees the memory first."""
        self._closing: list[Connection] = []
        """Connections of a killed process whose sockets are still open."""
        self._starts_next = False
        self.spare = False
        """Whether it is no part of the cluster yet: then only its addition starts it."""
        self.tls: TlsSpec | None = None
        """Of connections that this process asks for; ``None``: plaintext."""
        self.performers: dict[type, Performer] = {
            fx.Send: self._send,
            fx.SetTimer: self._set_timer,
            fx.CancelTimer: self._cancel_timer,
            fx.Disconnect: self._disconnect,
            fx.Close: self._end_channel,
        }
        self.ports: dict[str, Port] = {}
        self._channels: dict[tuple[NodeId, str], Channel] = {}
        self._by_connection: dict[Connection, Channel] = {}
        self._held: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self._tables: dict[str, TableWriter[Any]] = {}
        self._processes: list[Process] = []
        self._states: TableWriter[NodeStatesRow] = world.trace.table("node_states")
        host.nodes.append(self)

    @property
    def host_name(self) -> str:
        """The host it runs on."""
        return self.host.name

    def now(self) -> Micros:
        """What the host's clock shows."""
        return self.kernel.now() + self.host.clock_offset_us

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the process, with nothing left of the one before.

        Its port is free once the sockets of the one before are closed.
        """
        assert not self.running, f"{self.name} is running"
        if self.tearing_down:
            self._starts_next = True
            return
        self.incarnation += 1
        self.running = True
        self._forget()
        self.note_state("started")
        self.boot()

    def boot(self) -> None:
        """Build the machines and begin; every process overrides it."""
        raise NotImplementedError

    def crash(self) -> None:
        """Die at once (``kill -9``): the page cache stays, connections are reset.

        Not at once: the kernel frees the memory of a process before it closes its files. Until then
        it acknowledges what nobody will read.

        Source: Linux ``do_exit``: ``exit_mm`` comes before ``exit_files``.
        """
        self._die("crashed")
        self._closing = self.open_connections()
        self._forget()
        if self.teardown_us == 0:
            self._close_sockets(self.incarnation)
            return
        self.tearing_down = True
        at = self.kernel.time + self.teardown_us
        self.kernel.call_at(at, self._close_sockets, self.incarnation)

    def lose_power(self) -> None:
        """Go dark with the host: nobody is told."""
        if self.running:
            self._die("powered_off")
        self.tearing_down = self._starts_next = False
        self._closing = []
        self._forget()

    def _close_sockets(self, incarnation: int) -> None:
        """The memory of a killed process is free: its connections are reset."""
        if incarnation != self.incarnation or self.running:
            return
        self.tearing_down = False
        closing, self._closing = self._closing, []
        for connection in closing:
            connection.reset(self)
        if self._starts_next:
            self._starts_next = False
            self.start()

    def connects_in_vain(self, link: Connection) -> None:
        """The kernel of a killed process accepts a connection: it is reset with the others."""
        self._closing.append(link)

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

    def shut_down(self) -> None:
        """Stop in good order (SIGTERM); a process without anything to hand over just ends."""
        self._die("stopped")
        for connection in self.open_connections():
            connection.reset(self)
        self._forget()

    def end(self, state: str = "stopped") -> None:
        """End of its own will: what it had opened it closes."""
        open_connections = self.open_connections()
        self._die(state)
        self._forget()
        for connection in open_connections:
            connection.close(self)

    def accept_again(self) -> None:
        """Its host has file descriptors again; only servers accept anything."""

    def speed_up(self, by: int) -> None:
        """Its host's CPU is as fast as usual again; only servers have work that waits for it."""

    def note_state(self, state: str) -> None:
        """Write the process's state to the trace."""
        self._states.add((self.kernel.now(), self.name, state, self.incarnation))

    def open_connections(self) -> list[Connection]:
        """Every connection of this process."""
        return list(self._by_connection)

    def spawn(self, task: Task) -> None:
        """Start a process of this node; it ends with this incarnation."""
        self._processes.append(self.kernel.spawn(self.name, task))

    def _die(self, state: str) -> None:
        self.running = False
        self.paused = self.collecting = self.still = self._brief = False
        for process in self._processes:
            if process.is_alive:
                process.interrupt()
        self._processes = []
        self.note_state(state)

    def _forget(self) -> None:
        self.ports = {}
        self._channels = {}
        self._by_connection = {}
        self._held = []

    # -- time -------------------------------------------------------------------------------------

    def call_at(self, at: Micros, fn: Callable[..., object], *args: Any) -> Call:  # noqa: ANN401
        """Call at the (true) instant, unless this incarnation is over; held back while paused."""
        return self.kernel.call_at(at, self._guarded, self.incarnation, fn, args)

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

    # -- machines ---------------------------------------------------------------------------------

    def add_machine(self, name: str, machine: Machine, *, serial: bool = False) -> Port:
        """Take a machine in. ``serial``: it sees no event while its last decision is performed."""
        port = self.ports[name] = Port(name, machine, serial=serial)
        return port

    def deliver(self, port: Port, event: object) -> None:
        """Let the machine decide, and perform what it decided."""
        if port.busy:
            port.backlog.append(event)
            return
        try:
            effects = port.machine.handle(event, self.kernel.time + self.host.clock_offset_us)
            if effects:
                self.perform(port, effects)
        except StorageFailed as failure:
            self.storage_failed(failure)

    def receive(self, port: Port, event: ResponseReceived) -> None:
        """An answer to a machine's request; a process that pays for it first overrides this."""
        self.deliver(port, event)

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """A server makes this process wait; what it sends meanwhile waits in its channel."""

    def perform(self, port: Port, effects: Sequence[Any], index: int = 0) -> None:
        """Perform effects in order, from ``index`` on; wait where one takes time."""
        performers = self.performers
        tables = self._tables
        now = self.kernel.time
        for position in range(index, len(effects)):
            effect = effects[position]
            kind = type(effect)
            if kind is fx.Emit:
                name, row = effect
                table = tables.get(name)
                if table is None:
                    table = tables[name] = self.trace.table(name)
                table.add((now, *row))
                continue
            resume = performers[kind](port, effect)
            if resume is None:
                continue
            following = position + 1
            if resume == TRY_AGAIN:
                resume, following = now + TRY_AGAIN_US, position
            if following < len(effects) or port.serial:
                port.busy = port.serial
                self.call_at(resume, self._go_on, port, effects, following)
                return

    def _go_on(self, port: Port, effects: Sequence[Any], index: int) -> None:
        port.busy = False
        self.perform(port, effects, index)
        while port.backlog and not port.busy:
            self.deliver(port, port.backlog.popleft())

    # -- effects of every machine -----------------------------------------------------------------

    def _send(self, port: Port, effect: fx.Send) -> None:
        self.channel(effect.to, effect.channel).send(
            port, effect.correlation, effect.request, effect.timeout_us
        )

    def _set_timer(self, port: Port, effect: fx.SetTimer) -> None:
        timer = port.timers.get(effect.name)
        if timer is None:
            timer = port.timers[effect.name] = self._new_timer(port, effect.name)
        at = effect.at - self.host.clock_offset_us
        wakeups = self.host.wakeups
        # A machine asks for the next beat when the one before was made: so beats drift.
        timer.set(at if wakeups is None else at + wakeups.draw())

    def _new_timer(self, port: Port, name: str) -> Timer:
        incarnation = self.incarnation
        event = TimerFired(name)
        args = (port, event)
        return self.kernel.timer(lambda: self._guarded(incarnation, self.deliver, args))

    def _cancel_timer(self, port: Port, effect: fx.CancelTimer) -> None:
        timer = port.timers.get(effect.name)
        if timer is not None:
            timer.cancel()

    def _disconnect(self, port: Port, effect: fx.Disconnect) -> None:  # noqa: ARG002
        channel = self._channels.get((effect.to, effect.channel))
        if channel is not None:
            channel.disconnect()

    def _end_channel(self, port: Port, effect: fx.Close) -> None:  # noqa: ARG002
        channel = self._channels.pop((effect.to, effect.channel), None)
        if channel is not None:
            channel.disconnect()

    # -- the network ------------------------------------------------------------------------------

    def channel(self, peer: NodeId, label: str = "") -> Channel:
        """This process's connection to a server, made on demand."""
        channel = self._channels.get((peer, label))
        if channel is None:
            unit = self.streams.named(f"channel/{self.name}->{peer}/{label}").unit
            channel = Channel(self, peer, unit, policy_of(label))
            self._channels[peer, label] = channel
        return channel

    def tls_to(self, peer: NodeId) -> TlsSpec | None:  # noqa: ARG002 - brokers look at it
        """What encrypts this process's connections to a server; ``None``: nothing does."""
        return self.tls

    def bind(self, connection: Connection, channel: Channel | None) -> None:
        """Remember which channel a connection belongs to; ``None`` forgets it."""
        if channel is None:
            self._by_connection.pop(connection, None)
        else:
            self._by_connection[connection] = channel

    def on_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        """A message arrived at this process's socket."""
        if self.still:
            self._held.append((self._take_in, (link, message, correlation, sent_us)))
        else:
            self._take_in(link, message, correlation, sent_us)

    def _take_in(
        self,
        link: Connection,
        message: Message,
        correlation: int,
        sent_us: Micros,  # noqa: ARG002
    ) -> None:
        channel = self._by_connection.get(link)
        if channel is not None:
            channel.on_response(message, correlation)

    def on_open(self, link: Connection) -> None:
        """A connection that this process asked for is established."""
        channel = self._by_connection.get(link)
        if channel is not None:
            channel.on_open()

    def on_accept(self, link: Connection) -> None:  # noqa: ARG002 - servers look at it
        """Another process connected; only servers listen."""
        raise AssertionError(f"{self.name} does not listen")

    def on_hello(self, link: Connection) -> None:  # noqa: ARG002 - servers answer it
        """A client begins the TLS handshake; only servers listen."""
        raise AssertionError(f"{self.name} does not listen")

    def on_closed(self, link: Connection) -> None:
        """A connection is over."""
        channel = self._by_connection.pop(link, None)
        if channel is None:
            return
        if self.still:
            self._held.append((channel.on_closed, ()))
        else:
            channel.on_closed()
