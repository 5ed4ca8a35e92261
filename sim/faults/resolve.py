"""Resolves a fault's target at the instant at which the fault starts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sim.faults.surface import Disk, Host, World
from sim.faults.target import Target
from sim.units import Micros

Draw = Callable[[int], int]
"""A whole number, uniform in [0, bound)."""


@dataclass(slots=True)
class DiskTroubles:
    """Faults in progress on each disk: healing one of two must leave the other."""

    _active: list[tuple[Disk, Callable[[Disk], None]]] = field(default_factory=list)

    def begin(self, disk: Disk, break_: Callable[[Disk], None]) -> None:
        """Begins one fault of the disk."""
        self._active.append((disk, break_))
        break_(disk)

    def heal(self, disk: Disk, break_: Callable[[Disk], None]) -> None:
        """Ends one fault of the disk."""
        self._active = [pair for pair in self._active if pair != (disk, break_)]
        disk.heal()
        for other, left in self._active:
            if other is disk:
                left(disk)


@dataclass(frozen=True, slots=True)
class Site:
    """Context in which one fault of a run begins."""

    world: World
    draw: Draw
    """The fault's own stream."""
    now: Callable[[], Micros]
    """The true time."""
    disks: DiskTroubles
    """Of the whole run."""

    def nodes(self, targets: Sequence[Target]) -> tuple[str, ...]:
        """Printed names of the targets' processes at this instant."""
        return tuple(name for target in targets for name in nodes_of(target, self.world, self.draw))

    def hosts(self, names: Sequence[str]) -> list[Host]:
        """Hosts of processes, each once."""
        hosts = [self.world.host_of(name) for name in names]
        return list({host.name: host for host in hosts}.values())

    def sides(
        self, targets: Sequence[Target], peers: Sequence[Target]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Hosts on both sides of a link fault; either is empty if a role is not filled.

        Without peers, the other side is everyone else.
        """
        some = tuple(host.name for host in self.hosts(self.nodes(targets)))
        if peers:
            others = tuple(host.name for host in self.hosts(self.nodes(peers)))
        else:
            others = tuple(name for name in self.world.hosts if name not in some)
        # A role may name a host of the other side; a host's link to itself cannot be cut.
        return some, tuple(name for name in others if name not in some)


def nodes_of(target: Target, world: World, draw: Draw) -> tuple[str, ...]:
    """Printed names of a target's processes at this instant; empty if a role is not filled.

    A follower is the first in the order of assignment that runs and does not lead. A rack includes
    its clients. A random broker is drawn among those that run.
    """
    match target.kind:
        case "node" | "all brokers" | "all controllers" | "each":
            return target.names
        case "rack":
            return _in_rack(target.text.removeprefix("rack "), world)
        case "random rack":
            racks = list(dict.fromkeys(world.host_of(name).rack for name in world.servers))
            return _in_rack(racks[draw(len(racks))], world)
        case "leader":
            assert target.partition is not None
            return _one(world.leader_of(target.partition))
        case "follower":
            return _follower(target, world)
        case "controller leader":
            return _one(world.controller_leader())
        case "zookeeper leader":
            return _one(world.zookeeper_leader())
        case "random broker":
            running = [
                name
                for name in world.servers
                if world.broker(name) is not None and world.nodes[name].running
            ]
            return (running[draw(len(running))],) if running else ()


def _in_rack(rack: str, world: World) -> tuple[str, ...]:
    return tuple(name for name in world.nodes if world.host_of(name).rack == rack)


def _follower(target: Target, world: World) -> tuple[str, ...]:
    assert target.partition is not None
    leader = world.leader_of(target.partition)
    followers = [name for name in world.replicas_of(target.partition) if name != leader]
    running = [name for name in followers if world.nodes[name].running]
    return tuple((running or followers)[:1])


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)
