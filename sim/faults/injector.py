"""The calendar of faults: starts each at its instant, heals it, and asks what came of it.

A role is resolved when the fault starts. A fault that met nobody, or changed nothing, is reported
as such: a run whose faults did not bite proves nothing.

Source: the idea of nemeses with proof of effect, from Jepsen.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sim.faults.action import Action, Evidence
from sim.faults.clocks import ClockJump
from sim.faults.disks import DiskFault, DiskFaults
from sim.faults.hosts import NoFileDescriptors, SlowCpu, WipedDisk
from sim.faults.links import LinkFault
from sim.faults.load import LoadSurge
from sim.faults.operations import AddBroker, Administer, ChangeVoters, Decommission, MoveReplica
from sim.faults.power import PowerLoss
from sim.faults.process import (
    ControlledShutdown,
    Crash,
    Pause,
    Restart,
    start_what_is_down,
)
from sim.faults.replicas import ReplicaFault
from sim.faults.resolve import nodes_of, sides_of
from sim.faults.rolling import RollingRestart
from sim.faults.spec import (
    INSTANT_KINDS,
    LINK_KINDS,
    MEMBER_KINDS,
    OPERATION_KINDS,
    PROCEDURE_KINDS,
    VOTER_KINDS,
    Fault,
    OperationSpec,
)
from sim.faults.surface import Host, World
from sim.ids import NO_LEADER, server_name
from sim.kernel import Kernel
from sim.rng import Streams
from sim.trace.rows.run import FaultsRow
from sim.trace.writer import TableWriter, Trace
from sim.units import MS, Micros

RETRY_US: Final[Micros] = 100 * MS
"""How long to wait before asking again for a heal that was not yet possible."""

_ON_PROCESSES: Final[dict[str, Callable[[World, Sequence[str]], Action]]] = {
    "crash": Crash,
    "restart": Restart,
    "controlled-shutdown": ControlledShutdown,
    "pause": Pause,
}

_ON_HOSTS: Final[dict[str, Callable[[Sequence[Host], Fault], Action]]] = {
    "clock-jump": lambda hosts, fault: ClockJump(hosts, fault.by_us),
    "power-loss": lambda hosts, fault: PowerLoss(hosts, spares_none=fault.spares_none),
    "slow-cpu": SlowCpu,
    "no-file-descriptors": lambda hosts, _: NoFileDescriptors(hosts),
}


@dataclass(frozen=True, slots=True)
class FaultReport:
    """What came of one fault."""

    fault: int
    """Place in the scenario."""
    kind: str
    target: str
    resolved: str
    """What the target meant; empty if nobody filled the role, or it never began."""
    began_us: Micros | None
    healed_us: Micros | None
    took_effect: bool
    effect: str


@dataclass(slots=True)
class _Entry:
    """One fault and how far it has come."""

    fault: Fault
    action: Action | None = None
    resolved: str = ""
    began_us: Micros | None = None
    healed_us: Micros | None = None
    healing: bool = False
    proof: Evidence | None = None
    """What had come of it when it was healed: what follows is the doing of others."""


class Injector:
    """Faults of one run."""

    def __init__(
        self,
        kernel: Kernel,
        world: World,
        faults: Sequence[Fault],
        trace: Trace,
        streams: Streams,
    ) -> None:
        self._kernel = kernel
        self._world = world
        self._rows: TableWriter[FaultsRow] = trace.table("faults")
        self._streams = streams
        self._disks = DiskFaults()
        self._entries = [_Entry(fault) for fault in faults]

    def __len__(self) -> int:
        """How many faults there are."""
        return len(self._entries)

    def arm(self) -> None:
        """Put every fault into the kernel's calendar; to be called once, before instant 0."""
        for entry in self._entries:
            self._kernel.call_at(entry.fault.at_us, self._begin, entry)

    @property
    def begun(self) -> int:
        """How many faults have begun."""
        return sum(entry.began_us is not None for entry in self._entries)

    @property
    def is_settled(self) -> bool:
        """Whether no begun fault is left to heal; after :meth:`heal_all`, whether all is mended."""
        return all(
            entry.began_us is None
            or entry.healed_us is not None
            or entry.fault.kind in INSTANT_KINDS
            for entry in self._entries
        )

    def heal_all(self) -> None:
        """Heal everything, then start every server that is down; for the end of a run.

        Disks with a capacity are extended first, and so are heaps.

        A controlled shutdown that is under way is waited for: :attr:`is_settled` turns true then.
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
        start_what_is_down(servers, hosts)

    def conclude(self) -> None:
        """Write down what became of the administrator's requests; to be called once, at the end.

        Servers answer them after the row that says that they were made.
        """
        for entry in self._entries:
            if entry.began_us is not None and entry.fault.kind in OPERATION_KINDS:
                self._write(entry, "concluded")

    def reports(self) -> tuple[FaultReport, ...]:
        """What came of each fault up to now, in the scenario's order."""
        return tuple(self._report(entry) for entry in self._entries)

    # -- inside -----------------------------------------------------------------------------------

    def _begin(self, entry: _Entry) -> None:
        entry.began_us = self._kernel.now()
        entry.action, entry.resolved = self._action(entry.fault)
        if entry.action is None:
            entry.healed_us = entry.began_us
            self._write(entry, "began")
            return
        entry.action.begin()
        self._write(entry, "began")
        if entry.fault.kind in PROCEDURE_KINDS:
            self._heal(entry)
        if entry.fault.until_us is not None and entry.fault.kind not in INSTANT_KINDS:
            self._kernel.call_at(entry.fault.until_us, self._heal, entry)

    def _heal(self, entry: _Entry) -> None:
        if entry.action is None or entry.healed_us is not None:
            return
        if entry.fault.kind in INSTANT_KINDS:
            return
        if not entry.action.heal():
            if not entry.healing:
                entry.healing = True
                self._kernel.call_in(RETRY_US, self._heal_again, entry)
            return
        entry.healed_us = self._kernel.now()
        entry.proof = entry.action.evidence()
        self._write(entry, "healed")

    def _heal_again(self, entry: _Entry) -> None:
        entry.healing = False
        self._heal(entry)

    def _action(self, fault: Fault) -> tuple[Action | None, str]:
        """The fault at work and whom it hits; no action if a role is not filled."""
        if fault.operation is not None:
            return self._operation(fault.operation), fault.operation.text
        draw = self._streams.named(f"faults/{fault.index}").below
        if fault.kind in LINK_KINDS:
            some, others = sides_of(fault, self._world, draw)
            if not some or not others:
                return None, ""
            arrow = "->" if fault.one_way else "<->"
            resolved = f"{', '.join(some)} {arrow} {', '.join(others)}"
            if fault.messages:
                resolved = f"{', '.join(fault.messages)}: {resolved}"
            return LinkFault(self._world.network, fault, some, others), resolved
        names = tuple(
            name for target in fault.targets for name in nodes_of(target, self._world, draw)
        )
        action = self._action_on(fault, names) if names else None
        return action, ", ".join(names) if action is not None else ""

    def _operation(self, asked: OperationSpec) -> Action:
        administrator = self._world.administrator
        if asked.broker == NO_LEADER:
            return Administer(self._world, administrator, asked)
        broker = self._world.broker(server_name(asked.broker))
        assert broker is not None, "the scenario has checked it"
        return MoveReplica(self._world, administrator, asked, broker)

    def _action_on(self, fault: Fault, names: tuple[str, ...]) -> Action | None:
        on_processes = _ON_PROCESSES.get(fault.kind)
        if on_processes is not None:
            return on_processes(self._world, names)
        on_hosts = _ON_HOSTS.get(fault.kind)
        if on_hosts is not None:
            return on_hosts(self._hosts(names), fault)
        if fault.kind == "wiped-disk":
            return WipedDisk(self._world, names, fault)
        if fault.kind == "rolling-restart":
            return RollingRestart(self._world, names, fault, self._kernel.now)
        if fault.kind == "load-surge":
            senders = [self._world.sender(name) for name in names]
            return LoadSurge([sender for sender in senders if sender is not None])
        if fault.kind in VOTER_KINDS:
            adds = fault.kind == "add-controller"
            return ChangeVoters(self._world, self._world.administrator, names[0], adds=adds)
        if fault.kind in MEMBER_KINDS:
            return self._on_member(fault, names[0])
        if fault.partition is not None:
            broker = self._world.broker(names[0])
            return None if broker is None else ReplicaFault(broker, fault.partition, fault)
        disks = [
            host.disks[fault.directory]
            for host in self._hosts(names)
            if fault.directory < len(host.disks)
        ]
        return DiskFault(self._disks, fault, disks) if disks else None

    def _on_member(self, fault: Fault, name: str) -> Action | None:
        if fault.kind == "add-broker":
            return AddBroker(self._world, name)
        broker = self._world.broker(name)
        return None if broker is None else Decommission(self._world, broker)

    def _hosts(self, names: Sequence[str]) -> list[Host]:
        hosts = [self._world.host_of(name) for name in names]
        return list({host.name: host for host in hosts}.values())

    def _write(self, entry: _Entry, phase: str) -> None:
        fault = entry.fault
        evidence = _evidence(entry)
        self._rows.add(
            (
                self._kernel.now(),
                fault.index,
                fault.kind,
                phase,
                fault.target_text,
                entry.resolved,
                evidence.took_effect,
                evidence.effect,
            )
        )

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
