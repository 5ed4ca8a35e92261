"""Faults of hosts and of a server's resources: power, clock, CPU, file descriptors.

Running timers are not moved by a clock that jumps; decisions that compare instants, and timestamps
of records, are affected. (A JVM takes some of these from its monotonic clock.)

Source: the failure catalogue A10, B1 to B4, D5; Jepsen's clock nemesis; ``EMFILE`` in accept(2) and
open(2).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence
from sim.faults.fault import LATE, NOTHING, Fault, Hits, Outage, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Host
from sim.units import Bytes, Micros, show_bytes, show_duration


class PowerCut:
    """Cuts the power of some hosts; healing boots them.

    Args:
        hosts: The hosts.
        spares_none: True if no page that was not written back has reached a platter by chance.
    """

    def __init__(self, hosts: Sequence[Host], *, spares_none: bool = False) -> None:
        self._hosts = hosts
        self._spares_none = spares_none
        self._darkened: list[Host] = []
        self._lost: Bytes = 0

    def begin(self) -> None:
        """Cuts the power of every target that has it."""
        for host in self._hosts:
            if host.powered:
                self._darkened.append(host)
                self._lost += host.power_off(spares_none=self._spares_none)

    def heal(self) -> bool:
        """Boots hosts that this fault powered off and that nothing else has booted since."""
        for host in self._darkened:
            if not host.powered:
                host.power_on()
        return True

    def evidence(self) -> Evidence:
        """Hosts that had power, and lost page cache."""
        if not self._darkened:
            return Evidence(took_effect=False, effect="had no power")
        names = ", ".join(host.name for host in self._darkened)
        lost = show_bytes(self._lost)
        return Evidence(took_effect=True, effect=f"{names} went dark; {lost} of page cache lost")


@dataclass(frozen=True, kw_only=True)
class PowerLoss(TargetFault):
    """Hosts lose power; what was not flushed is torn or lost, or all (`unflushed: lost`)."""

    kind = "power-loss"
    outage: ClassVar[Outage] = "data"
    proof = "a host was powered; the bytes that were lost are reported"
    may_break = (
        "what was not flushed there: nothing while another in-sync replica exists; "
        "with acks=1 acknowledged records"
    )
    unflushed: str = field(
        default="by chance",
        metadata=key(
            "unflushed", "word", "whether a part of what was not written back reached the disk",
            words=("by chance", "lost"),
        ),
    )  # fmt: skip

    def on(self, names: tuple[str, ...], site: Site) -> PowerCut:
        """Action on the hosts of these processes."""
        return PowerCut(site.hosts(names), spares_none=self.unflushed == "lost")


class ClockShift:
    """Clocks of some hosts jump; healing sets them back to where they would be."""

    def __init__(self, hosts: Sequence[Host], by_us: Micros) -> None:
        self._hosts = hosts
        self._by_us = by_us
        self._jumped: list[Host] = []
        self._read_by: list[str] = []
        """Hosts on which a process ran when the clock jumped, or was set right."""

    def begin(self) -> None:
        """Moves the clocks."""
        for host in self._hosts:
            host.clock_offset_us += self._by_us
            self._jumped.append(host)
        self._note()

    def heal(self) -> bool:
        """Moves the clocks back."""
        self._note()
        for host in self._jumped:
            host.clock_offset_us -= self._by_us
        self._jumped = []
        return True

    def evidence(self) -> Evidence:
        """Moved clocks that a process could read."""
        self._note()
        if not self._read_by:
            return Evidence(took_effect=False, effect="no process ran there that could read it")
        way = "forward" if self._by_us > 0 else "backward"
        text = f"{', '.join(self._read_by)}: {show_duration(abs(self._by_us))} {way}"
        return Evidence(took_effect=True, effect=text)

    def _note(self) -> None:
        for host in self._jumped:
            if host.in_use and host.name not in self._read_by:
                self._read_by.append(host.name)


@dataclass(frozen=True, kw_only=True)
class ClockJump(TargetFault):
    """A host's clock jumps forward, or backward, and stays there until healed."""

    kind = "clock-jump"
    proof = "a process ran there that could read it"
    may_break = "times: of records, of retention, of sessions that are compared by the clock"
    by_us: Micros = field(metadata=key("by", "duration", low=1))
    direction: str = field(
        default="forward", metadata=key("direction", "word", words=("forward", "backward"))
    )

    def on(self, names: tuple[str, ...], site: Site) -> ClockShift:
        """Action on the hosts of these processes."""
        by_us = self.by_us if self.direction == "forward" else -self.by_us
        return ClockShift(site.hosts(names), by_us)


class DriftingClocks:
    """Clocks of some hosts run too fast or too slow; healing sets them right."""

    def __init__(self, hosts: Sequence[Host], ppm: int) -> None:
        self._hosts = hosts
        self._ppm = ppm
        self._before: dict[str, Micros] = {}

    def begin(self) -> None:
        """Lets them drift."""
        for host in self._hosts:
            host.drift(self._ppm)

    def heal(self) -> bool:
        """Sets them right."""
        self._note()
        for host in self._hosts:
            host.drift(0)
        return True

    def evidence(self) -> Evidence:
        """Drift of clocks that a process could read."""
        self._note()
        if not self._before:
            return Evidence(took_effect=False, effect="no process ran there that could read it")
        way = "fast" if self._ppm > 0 else "slow"
        drifts = (f"{name} {show_duration(abs(by))} {way}" for name, by in self._before.items())
        return Evidence(took_effect=True, effect=", ".join(drifts))

    def _note(self) -> None:
        for host in self._hosts:
            if host.in_use and host.drifted_us:
                self._before[host.name] = host.drifted_us


@dataclass(frozen=True, kw_only=True)
class ClockDrift(TargetFault):
    """A host's clock gains or loses `ppm` millionths, and with it the timers of its processes."""

    kind = "clock-drift"
    proof = "a process ran there while the clock was wrong"
    may_break = "times: of records, of retention; timers that should be as long as another host's"
    ppm: int = field(metadata=key("ppm", "whole", "in millionths", low=1, high=900_000))
    direction: str = field(
        default="fast", metadata=key("direction", "word", words=("fast", "slow"))
    )

    def on(self, names: tuple[str, ...], site: Site) -> DriftingClocks:
        """Action on the hosts of these processes."""
        ppm = self.ppm if self.direction == "fast" else -self.ppm
        return DriftingClocks(site.hosts(names), ppm)


class SlowedCpu:
    """Threads of some servers take several times as long.

    A host that two faults slow at once has the later one's factor, until that one is healed.
    """

    def __init__(self, hosts: Sequence[Host], factor: int) -> None:
        self._hosts = hosts
        self._factor = factor
        self._before = 0

    def begin(self) -> None:
        """Slows the CPUs down."""
        self._before = self._slowed()
        for host in self._hosts:
            host.slow_cpu(self._factor)

    def heal(self) -> bool:
        """Restores their speed."""
        for host in self._hosts:
            host.slow_cpu(1)
        return True

    def evidence(self) -> Evidence:
        """Amount of work that took longer."""
        slowed = self._slowed() - self._before
        return Evidence(slowed > 0, f"{slowed} pieces of work took longer")

    def _slowed(self) -> int:
        return sum(host.work_slowed for host in self._hosts)


class ExhaustedDescriptors:
    """Processes at the limit of open files: no file is created, no connection accepted."""

    def __init__(self, hosts: Sequence[Host]) -> None:
        self._hosts = hosts
        self._before = 0

    def begin(self) -> None:
        """Lets every further open fail."""
        self._before = self._refused()
        for host in self._hosts:
            host.exhaust_descriptors()

    def heal(self) -> bool:
        """Raises the limit: connections in the backlog are accepted."""
        for host in self._hosts:
            host.free_descriptors()
        return True

    def evidence(self) -> Evidence:
        """Number of files and connections that could not be opened."""
        refused = self._refused() - self._before
        return Evidence(refused > 0, f"{refused} files and connections could not be opened")

    def _refused(self) -> int:
        return sum(host.descriptors_refused for host in self._hosts)


class NoFileDescriptors(TargetFault):
    """A process opens no further file and accepts no further connection until healed."""

    kind = "no-file-descriptors"
    proof = "a file could not be made, or a connection was not accepted"
    may_break = NOTHING
    hits: ClassVar[Hits] = "server"

    def on(self, names: tuple[str, ...], site: Site) -> ExhaustedDescriptors:
        """Action on the hosts of these processes."""
        return ExhaustedDescriptors(site.hosts(names))


@dataclass(frozen=True, kw_only=True)
class SlowCpu(TargetFault):
    """Network threads and request handlers of a server take `factor` times as long."""

    kind = "slow-cpu"
    proof = "requests took longer"
    may_break = LATE
    hits: ClassVar[Hits] = "server"
    factor: int = field(metadata=key("factor", "whole", low=2, high=1_000_000))

    def on(self, names: tuple[str, ...], site: Site) -> SlowedCpu:
        """Action on the hosts of these processes."""
        return SlowedCpu(site.hosts(names), self.factor)


HOST_FAULTS: Final[tuple[type[Fault], ...]] = (
    PowerLoss, ClockJump, ClockDrift, NoFileDescriptors, SlowCpu,
)  # fmt: skip
