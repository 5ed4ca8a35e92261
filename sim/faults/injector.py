"""Runs the calendar of faults: starts and heals each at its time, and collects its evidence.

A role is resolved when the fault starts. A fault without a target, or without effect, is reported
as such: a run whose faults had no effect proves nothing.

Source: the idea of nemeses with proof of effect, from Jepsen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sim.faults.action import Action, Evidence, Procedure
from sim.faults.fault import Fault
from sim.faults.process import start_stopped
from sim.faults.resolve import DiskTroubles, Site
from sim.faults.surface import Journal, Timetable, World
from sim.rng import Streams
from sim.trace.rows.run import Faults
from sim.units import MS, Micros

RETRY_US: Final[Micros] = 100 * MS
"""Time between attempts of a heal that was not yet possible."""


@dataclass(frozen=True, slots=True)
class FaultReport:
    """Outcome of one fault."""

    fault: int
    """Place in the scenario."""
    kind: str
    target: str
    resolved: str
    """Resolved target; empty if no process filled the role, or it never began."""
    began_us: Micros | None
    healed_us: Micros | None
    took_effect: bool
    effect: str


@dataclass(slots=True)
class _Entry:
    """One fault and its progress."""

    fault: Fault
    action: Action | None = None
    resolved: str = ""
    began_us: Micros | None = None
    healed_us: Micros | None = None
    healing: bool = False
    proof: Evidence | None = None
    """Evidence when it was healed: later effects have other causes."""
    is_dropped: bool = False
    """True if it is not to begin."""


class Injector:
    """Faults of one run."""

    def __init__(
        self,
        kernel: Timetable,
        world: World,
        faults: Sequence[Fault],
        trace: Journal,
        streams: Streams,
    ) -> None:
        self._kernel = kernel
        self._world = world
        self._trace = trace
        self._streams = streams
        self._disks = DiskTroubles()
        self._entries = [_Entry(fault) for fault in faults]

    def __len__(self) -> int:
        """Number of faults."""
        return len(self._entries)

    def instants(self) -> frozenset[int]:
        """Numbers of the faults that have no duration."""
        return frozenset(e.fault.index for e in self._entries if e.fault.is_instant())

    def arm(self) -> None:
        """Schedules every fault in the kernel; to be called once, before instant 0."""
        for entry in self._entries:
            self._kernel.call_at(entry.fault.at_us, self._begin, entry)

    def add(self, fault: Fault) -> None:
        """Schedules one more fault while the run lasts; at once, if its instant has passed."""
        entry = _Entry(fault)
        self._entries.append(entry)
        self._kernel.call_at(fault.at_us, self._begin, entry)

    def drop(self, number: int) -> None:
        """Heals a fault if it has begun, and keeps it from beginning if it has not.

        Args:
            number: Its place in the scenario.
        """
        for entry in self._entries:
            if entry.fault.index == number:
                entry.is_dropped = True
                if entry.began_us is not None:
                    self._heal(entry)

    @property
    def begun(self) -> int:
        """Number of faults that have begun."""
        return sum(entry.began_us is not None for entry in self._entries)

    @property
    def is_settled(self) -> bool:
        """True if every begun fault is healed; after :meth:`heal_all` also every server is up."""
        return all(
            entry.began_us is None or entry.healed_us is not None or entry.fault.is_instant()
            for entry in self._entries
        )

    def heal_all(self) -> None:
        """Heals everything, then starts every server that is down; for the end of a run.

        A server that runs beside a replaced disk is restarted: only a start mounts the new one.
        Disks with a capacity are extended first, and so are heaps. Waits for a controlled shutdown
        in progress: :attr:`is_settled` turns true then.
        """
        for entry in self._entries:
            if entry.began_us is not None and entry.healed_us is None:
                self._heal(entry)
        servers = [self._world.nodes[name] for name in self._world.servers]
        hosts = {name: self._world.host_of(name) for name in self._world.servers}
        for host in hosts.values():
            host.add_memory()
            for disk in host.disks:
                disk.extend()
            if not host.powered:
                host.power_on()
        for server in servers:
            if server.running and any(disk.awaits_mount for disk in hosts[server.name].disks):
                server.crash()
        start_stopped(servers, hosts)

    def conclude(self) -> None:
        """Writes the outcomes of the administrator's requests; to be called once, at the end.

        Servers answer them after the row of their start was written.
        """
        for entry in self._entries:
            if entry.began_us is not None and entry.fault.span == "operation":
                self._write(entry, "concluded")

    def reports(self) -> tuple[FaultReport, ...]:
        """Outcome of each fault up to now, in the scenario's order."""
        return tuple(self._report(entry) for entry in self._entries)

    # -- internals ---------------------------------------------------------------------------------

    def _begin(self, entry: _Entry) -> None:
        if entry.is_dropped:
            return
        entry.began_us = self._kernel.now()
        entry.action, entry.resolved = entry.fault.action(self._site(entry.fault))
        if entry.action is None:
            entry.healed_us = entry.began_us
            self._write(entry, "began")
            return
        entry.action.begin()
        self._write(entry, "began")
        if entry.fault.span == "procedure":
            self._heal(entry)
        if entry.fault.until_us is not None and not entry.fault.is_instant():
            self._kernel.call_at(entry.fault.until_us, self._heal, entry)

    def _heal(self, entry: _Entry) -> None:
        if entry.action is None or entry.healed_us is not None:
            return
        if entry.fault.is_instant():
            return
        is_done = entry.action.heal()
        self._write_steps(entry)
        if not is_done:
            if not entry.healing:
                entry.healing = True
                self._kernel.call_in(RETRY_US, self._heal_again, entry)
            return
        entry.healed_us = self._kernel.now()
        entry.proof = entry.action.evidence()
        self._write(entry, "healed")

    def _write_steps(self, entry: _Entry) -> None:
        """Writes the steps that a procedure has taken."""
        action = entry.action
        steps = action.take_steps() if isinstance(action, Procedure) else []
        for step in steps:
            row = Faults.row(
                fault=entry.fault.index,
                kind=entry.fault.kind,
                phase="step",
                target=entry.fault.target_text,
                resolved=step.server,
                took_effect=True,
                effect=step.text,
            )
            self._trace.write(self._kernel.now(), row)

    def _heal_again(self, entry: _Entry) -> None:
        entry.healing = False
        self._heal(entry)

    def _site(self, fault: Fault) -> Site:
        draw = self._streams.named(f"faults/{fault.index}").below
        return Site(self._world, draw, self._kernel.now, self._disks)

    def _write(self, entry: _Entry, phase: str) -> None:
        fault = entry.fault
        evidence = _evidence(entry)
        row = Faults.row(
            fault=fault.index,
            kind=fault.kind,
            phase=phase,
            target=fault.target_text,
            resolved=entry.resolved,
            took_effect=evidence.took_effect,
            effect=evidence.effect,
        )
        self._trace.write(self._kernel.now(), row)

    def _report(self, entry: _Entry) -> FaultReport:
        evidence = _evidence(entry)
        return FaultReport(
            entry.fault.index,
            entry.fault.kind,
            entry.fault.target_text,
            entry.resolved,
            entry.began_us,
            entry.healed_us,
            evidence.took_effect,
            evidence.effect,
        )


def _evidence(entry: _Entry) -> Evidence:
    if entry.proof is not None:
        return entry.proof
    if entry.action is not None:
        return entry.action.evidence()
    met = "nobody filled the role" if entry.began_us is not None else "it never began"
    return Evidence(took_effect=False, effect=met)
