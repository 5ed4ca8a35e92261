"""A machine in its process: timers, and events that wait."""

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from sim.kernel import Timer
from sim.units import Micros


class Machine(Protocol):
    """A state machine: events in, effects out; no clock, no chance, no SimPy."""

    def handle(self, event: Any, now: Micros) -> Sequence[Any]:  # noqa: ANN401 - its own union
        """Handles an event; returns effects in order."""


class Port:
    """A machine in its process: its timers, and events that wait while effects take time."""

    __slots__ = ("backlog", "busy", "machine", "name", "serial", "timers")

    def __init__(self, name: str, machine: Machine, *, serial: bool) -> None:
        self.name = name
        self.machine = machine
        self.serial = serial
        self.timers: dict[str, Timer] = {}
        self.busy = False
        self.backlog: deque[Any] = deque()
