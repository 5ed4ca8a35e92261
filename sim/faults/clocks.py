"""Faults of clocks: a jump, forward or backward.

Timers that run go on as before; whatever a process decides by comparing instants, or stamps on a
record, sees the jump. (A JVM takes some of these from its monotonic clock.)

Source: the failure catalogue D5; Jepsen's clock nemesis.
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.surface import Host
from sim.units import Micros, show_duration


class ClockJump:
    """The clocks of some hosts jump; healing brings them back to where they would be."""

    def __init__(self, hosts: Sequence[Host], by_us: Micros) -> None:
        self._hosts = hosts
        self._by_us = by_us
        self._jumped: list[Host] = []
        self._read_by: list[str] = []
        """Hosts on which a process ran when the clock jumped, or was set right."""

    def begin(self) -> None:
        """Move the clocks."""
        for host in self._hosts:
            host.clock_offset_us += self._by_us
            self._jumped.append(host)
        self._note()

    def heal(self) -> bool:
        """Move the clocks back."""
        self._note()
        for host in self._jumped:
            host.clock_offset_us -= self._by_us
        self._jumped = []
        return True

    def evidence(self) -> Evidence:
        """Which clocks moved that a process could read."""
        self._note()
        if not self._read_by:
            return Evidence(took_effect=False, effect="no process ran there that could read it")
        way = "forward" if self._by_us > 0 else "backward"
        told = f"{', '.join(self._read_by)}: {show_duration(abs(self._by_us))} {way}"
        return Evidence(took_effect=True, effect=told)

    def _note(self) -> None:
        for host in self._jumped:
            if host.in_use and host.name not in self._read_by:
                self._read_by.append(host.name)
