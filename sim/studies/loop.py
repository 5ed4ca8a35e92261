"""A plain host for machines on the simulator's clock: some threads and one delay.

The studies need millions of decisions and nothing else, so there is no disk, no bandwidth and no
trace: a message takes a constant time, events and effects cost a thread of their process the
study's times, and machines decide as they do on simulated brokers.

Requests to a dead process fail when the reset can have arrived, and listeners learn of it; requests
without a response in time, from a process that is busy or cut off, fail at their timeout.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.kernel import Kernel, Timer
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.messages.base import Notification, Request, Response
from sim.units import NEVER, Micros


class Machine(Protocol):
    """A pure state machine: events in, effects out."""

    def handle(self, event: Any, now: Micros, /) -> Sequence[object]:  # noqa: ANN401 - each knows its events
        """Handles an event; returns effects in order."""


class Costs:
    """Costs of a process's threads, in microseconds: here of one thread, and nothing."""

    def lane(self, machine: str, event: object) -> int:  # noqa: ARG002 - all are alike
        """Thread that takes the event, and pays for its effects."""
        return 0

    def event_us(self, event: object) -> Micros:  # noqa: ARG002 - all cost alike
        """For an event, before it is decided on."""
        return 0

    def effect_us(self, effect: object) -> Micros:  # noqa: ARG002 - all cost alike
        """For an effect, before it and what comes behind it is performed."""
        return 0


FREE = Costs()

LANES = 3
"""Threads of a process."""

Performer = Callable[["Process", str, object, Micros], None]
"""Performs an effect of the named machine, at an instant, that only this kind of process
handles."""


class _OpenRequest:
    """A request on its way, or at its target."""

    __slots__ = ("correlation", "incarnation", "machine", "request", "sender", "target")

    def __init__(
        self, sender: "Process", machine: str, send: fx.Send, target: "Process | None"
    ) -> None:
        self.sender = sender
        self.machine = machine
        self.incarnation = sender.incarnation
        self.correlation = send.correlation
        self.request = send.request
        self.target = target


class Process:
    """One process with its machines, which share its threads."""

    def __init__(self, loop: "Loop", node: NodeId, costs: Costs) -> None:
        self.loop = loop
        self.node = node
        self.costs = costs
        self.incarnation = 0
        self.running = False
        self.machines: dict[str, Machine] = {}
        self.routes: dict[type, str] = {}
        self.performers: dict[type, Performer] = {}
        self.on_arrival: Callable[[Request], None] | None = None
        """Called for a request when it is at the socket, before a thread takes it."""
        self.free_at: list[Micros] = [0] * LANES
        """Time from which each thread is free."""
        self._timers: dict[tuple[str, str], Timer] = {}

    def start(self, machines: Mapping[str, Machine]) -> None:
        """Starts a new incarnation with these machines; drops the former's timers and messages."""
        self.incarnation += 1
        self.running = True
        self.machines = dict(machines)
        self.free_at = [self.loop.now] * LANES
        for timer in self._timers.values():
            timer.cancel()
        self._timers = {}

    def deliver(self, machine: str, event: object) -> None:
        """Lets a thread handle the event when it is free."""
        loop, costs = self.loop, self.costs
        lane = costs.lane(machine, event)
        at = max(loop.now, self.free_at[lane]) + costs.event_us(event)
        self.free_at[lane] = at
        if at <= loop.now:
            self._decide(self.incarnation, machine, event, lane)
        else:
            loop.call_at(at, self._decide, self.incarnation, machine, event, lane)

    def perform(self, machine: str, effects: Sequence[object], lane: int = 0) -> None:
        """Performs effects in order; the cost of one delays those after it."""
        costs, loop = self.costs, self.loop
        at = loop.now
        for effect in effects:
            cost = costs.effect_us(effect)
            if cost:
                at = max(at, self.free_at[lane]) + cost
                self.free_at[lane] = at
            if isinstance(effect, fx.Send):
                loop.send(self, machine, effect, at)
            elif isinstance(effect, fx.Reply):
                loop.reply(self, effect, at)
            elif isinstance(effect, fx.Listen):
                loop.listen(self, machine, effect.to)
            elif isinstance(effect, fx.Disconnect):
                loop.disconnect(self, effect.to)
            elif isinstance(effect, fx.SetTimer):
                self._set_timer(machine, effect)
            elif isinstance(effect, fx.CancelTimer):
                if (machine, effect.name) in self._timers:
                    self._timers[machine, effect.name].cancel()
            elif type(effect) in self.performers:
                self.performers[type(effect)](self, machine, effect, at)

    def _decide(self, incarnation: int, machine: str, event: object, lane: int) -> None:
        if self.running and incarnation == self.incarnation:
            effects = self.machines[machine].handle(event, self.loop.now)
            if effects:
                self.perform(machine, effects, lane)

    def _set_timer(self, machine: str, effect: fx.SetTimer) -> None:
        timer = self._timers.get((machine, effect.name))
        if timer is None:
            due = partial(self.deliver, machine, ev.TimerFired(effect.name))
            timer = self._timers[machine, effect.name] = self.loop.kernel.timer(due)
        timer.set(effect.at)


class Loop:
    """The clock, and the network between processes."""

    def __init__(self, one_way_us: Micros) -> None:
        self.kernel = Kernel()
        self.call_at = self.kernel.call_at
        self.one_way_us = one_way_us
        self.processes: dict[NodeId, Process] = {}
        self._open_requests: dict[int, _OpenRequest] = {}
        self._listeners: dict[tuple[NodeId, NodeId], tuple[str, int]] = {}
        """Machine and incarnation of a process that listens to another."""
        self._token = 0
        self._cut: dict[tuple[NodeId, NodeId], None] = {}

    def add(self, node: NodeId, costs: Costs) -> Process:
        """Adds a process that does not run yet."""
        process = self.processes[node] = Process(self, node, costs)
        return process

    @property
    def now(self) -> Micros:
        """The present instant."""
        return self.kernel.time

    def run(self, until: Micros, stop: Callable[[], bool] | None = None) -> None:
        """Runs to the instant, or until ``stop`` holds; it is evaluated after every event."""
        kernel = self.kernel
        if stop is None:
            kernel.run(until)
        else:
            kernel.run(until, on_beat=lambda: kernel.stop() if stop() else None, beat_events=1)

    # -- faults -----------------------------------------------------------------------------------

    def kill(self, node: NodeId) -> None:
        """``kill -9``: connections are reset, so open requests to it fail at once."""
        process = self.processes[node]
        process.running = False
        for token in [t for t, pending in self._open_requests.items() if pending.target is process]:
            self._fail(token, self.now + self.one_way_us, ErrorCode.NETWORK_EXCEPTION)
        for listener in [one for one, other in self._listeners if other == node]:
            self._send_unrequested(listener, ev.ConnectionLost(node), self.now)

    def cut(self, one: NodeId, other: NodeId) -> None:
        """Cuts two processes off from each other; requests between them time out."""
        self._cut[one, other] = self._cut[other, one] = None

    def heal(self) -> None:
        """Heals all cuts."""
        self._cut = {}

    # -- messages ---------------------------------------------------------------------------------

    def send(self, sender: Process, machine: str, send: fx.Send, at: Micros) -> None:
        """Delivers a request to its target."""
        target = self.processes.get(send.to)
        pending = _OpenRequest(sender, machine, send, target)
        self._token += 1
        token = self._token
        self._open_requests[token] = pending
        if send.timeout_us < NEVER:
            self._fail(token, at + send.timeout_us, ErrorCode.REQUEST_TIMED_OUT)
        if (sender.node, send.to) not in self._cut:
            self.call_at(at + self.one_way_us, self._arrive, token)

    def _arrive(self, token: int) -> None:
        pending = self._open_requests.get(token)
        if pending is None:
            return
        target = pending.target
        if target is None or not target.running:
            self._fail(token, self.now + self.one_way_us, ErrorCode.NETWORK_EXCEPTION)
            return
        if (pending.sender.node, target.node) in self._cut:
            return
        machine = target.routes[type(pending.request)]
        if target.on_arrival is not None:
            target.on_arrival(pending.request)
        sender = str(pending.sender.node)
        target.deliver(machine, ev.RequestReceived(token, sender, pending.request))

    def reply(self, server: Process, effect: fx.Reply, at: Micros) -> None:
        """Delivers a response."""
        pending = self._open_requests.get(effect.token)
        if pending is None or effect.response is None or pending.target is not server:
            return
        if (pending.sender.node, server.node) in self._cut:
            return
        self.call_at(at + self.one_way_us, self._answered, effect.token, effect.response)

    def _answered(self, token: int, response: Response) -> None:
        pending = self._open_requests.pop(token, None)
        if pending is None or pending.target is None:
            return
        sender = pending.sender
        if sender.running and sender.incarnation == pending.incarnation:
            event = ev.ResponseReceived(pending.target.node, pending.correlation, response)
            sender.deliver(pending.machine, event)

    # -- what is sent unrequested -----------------------------------------------------------------

    def listen(self, process: Process, machine: str, to: NodeId) -> None:
        """Lets a machine get what another process sends it unrequested."""
        self._listeners[process.node, to] = machine, process.incarnation

    def disconnect(self, process: Process, to: NodeId) -> None:
        """Ends that; open requests are left alone, as their machine has forgotten them."""
        self._listeners.pop((process.node, to), None)

    def client_of(self, token: int) -> NodeId | None:
        """Process that sent a request; ``None`` if it has failed meanwhile."""
        pending = self._open_requests.get(token)
        return None if pending is None else pending.sender.node

    def notify(self, server: NodeId, to: NodeId, notification: Notification, at: Micros) -> None:
        """Sends a notification to a process, if it listens when it arrives."""
        if (to, server) not in self._cut:
            self._send_unrequested(to, ev.NotificationReceived(server, notification), at)

    def close(self, server: NodeId, to: NodeId, at: Micros) -> None:
        """Closes a server's connection to a process."""
        if (to, server) not in self._cut:
            self._send_unrequested(to, ev.ConnectionLost(server), at)

    def _send_unrequested(
        self, to: NodeId, event: ev.NotificationReceived | ev.ConnectionLost, at: Micros
    ) -> None:
        self.call_at(at + self.one_way_us, self._hear, to, event)

    def _hear(self, node: NodeId, event: ev.NotificationReceived | ev.ConnectionLost) -> None:
        process = self.processes[node]
        machine, incarnation = self._listeners.get((node, event.sender), ("", -1))
        if process.running and process.incarnation == incarnation:
            process.deliver(machine, event)

    # -- failures ---------------------------------------------------------------------------------

    def _fail(self, token: int, at: Micros, error: ErrorCode) -> None:
        self.call_at(at, self._failed, token, error)

    def _failed(self, token: int, error: ErrorCode) -> None:
        pending = self._open_requests.pop(token, None)
        if pending is None:
            return
        sender = pending.sender
        if sender.running and sender.incarnation == pending.incarnation:
            target = -1 if pending.target is None else pending.target.node
            sender.deliver(pending.machine, ev.RequestFailed(target, pending.correlation, error))
