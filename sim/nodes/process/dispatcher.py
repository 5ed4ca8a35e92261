"""A process that runs machines: delivers events to them, and performs their effects.

A decision is taken at one instant; effects are performed in their order; other events are handled
in between only if an effect takes time.
"""

from collections.abc import Callable, Sequence
from typing import Any

from sim.errors import StorageFailed
from sim.nodes.process.port import Machine, Port
from sim.nodes.process.process import Process, World
from sim.protocol import effects as fx
from sim.protocol.events import TimerFired
from sim.substrate.host import Host
from sim.trace.emit import Emit
from sim.units import MS, Micros

Performer = Callable[[Port, Any], Micros | None]
"""Performs one effect.

Returns the instant from which later effects are performed, ``None`` for now, or TRY_AGAIN if the
effect could not begin (a stalled disk).
"""

TRY_AGAIN: Micros = -(1 << 61)
"""See :data:`Performer`."""

TRY_AGAIN_US: Micros = 10 * MS
"""Time until the next attempt of an effect that could not begin."""


class Dispatcher(Process):
    """A process with machines, and with timers for them."""

    def __init__(self, name: str, host: Host, world: World) -> None:
        super().__init__(name, host, world)
        self.performers: dict[type, Performer] = {
            fx.SetTimer: self._set_timer,
            fx.CancelTimer: self._cancel_timer,
        }
        self.ports: dict[str, Port] = {}

    def add_machine(self, name: str, machine: Machine, *, serial: bool = False) -> Port:
        """Adds a machine. ``serial``: it gets no event while its last decision is performed."""
        port = self.ports[name] = Port(name, machine, serial=serial)
        return port

    def deliver(self, port: Port, event: object) -> None:
        """Lets the machine handle an event, and performs its effects."""
        if port.busy:
            port.backlog.append(event)
            return
        try:
            effects = port.machine.handle(event, self.kernel.time + self.host.clock_offset_us)
            if effects:
                self.perform(port, effects)
        except StorageFailed as failure:
            self.storage_failed(failure)

    def perform(self, port: Port, effects: Sequence[Any], index: int = 0) -> None:
        """Performs effects in order, from ``index`` on; waits where one takes time."""
        performers = self.performers
        trace = self.trace
        now = self.kernel.time
        for position in range(index, len(effects)):
            effect = effects[position]
            kind = type(effect)
            if kind is Emit:
                trace.write(now, effect)
                continue
            resume = performers[kind](port, effect)
            if resume is None:
                continue
            following = position + 1
            if resume == TRY_AGAIN:
                resume, following = now + TRY_AGAIN_US, position
            if following < len(effects) or port.serial:
                port.busy = port.serial
                self.call_at(resume, self._resume_effects, port, effects, following)
                return

    def _resume_effects(self, port: Port, effects: Sequence[Any], index: int) -> None:
        port.busy = False
        self.perform(port, effects, index)
        while port.backlog and not port.busy:
            self.deliver(port, port.backlog.popleft())

    def _set_timer(self, port: Port, effect: fx.SetTimer) -> None:
        timer = port.timers.get(effect.name)
        if timer is None:
            event = TimerFired(effect.name)
            timer = port.timers[effect.name] = self.timer(self.deliver, port, event)
        host = self.host
        at = effect.at - host.clock_offset_us
        if host.clock_ppm:
            # Its thread waits by the same crystal that its clock counts.
            now = self.kernel.time
            at = now + (at - now) * 1_000_000 // (1_000_000 + host.clock_ppm)
        wakeups = self.host.wakeups
        # A machine schedules the next heartbeat when the one before is made: so they drift.
        timer.set(at if wakeups is None else at + wakeups.draw())

    def _cancel_timer(self, port: Port, effect: fx.CancelTimer) -> None:
        timer = port.timers.get(effect.name)
        if timer is not None:
            timer.cancel()
