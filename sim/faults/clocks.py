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

    def begin(self) -> None:
        """Move the clocks."""
        for host in self._hosts:
            host.clock_offset_us += self._by_us
            self._jumped.append(host)

    def heal(self) -> bool:
        """Move the clocks back."""
        for host in self._jumped:
            host.clock_offset_us -= self._by_us
        self._jumped = []
        return True

    def evidence(self) -> Evidence:
        """Which clocks moved."""
        names = ", ".join(host.name for host in self._hosts)
        way = "forward" if self._by_us > 0 else "backward"
        return Evidence(bool(self._hosts), f"{names}: {show_duration(abs(self._by_us))} {way}")
