"""What a target means at the instant at which its fault starts."""

from collections.abc import Callable, Sequence

from sim.faults.spec import Fault, Target
from sim.faults.surface import World

Draw = Callable[[int], int]
"""A whole number, uniform in [0, bound)."""


def nodes_of(target: Target, world: World, draw: Draw) -> tuple[str, ...]:
    """Printed names of the processes a target means now; empty if a role is not filled.

    A follower is the first in the order of assignment that runs and does not lead. A rack means
    the clients in it as well. A random broker is drawn among those that run.
    """
    match target.kind:
        case "node" | "all brokers" | "each":
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


def sides_of(fault: Fault, world: World, draw: Draw) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The hosts on both sides of a link fault; either is empty if a role is not filled.

    Without peers, the other side is everyone else.
    """
    some = _hosts(fault.targets, world, draw)
    if fault.peers:
        others = _hosts(fault.peers, world, draw)
    else:
        others = tuple(name for name in world.hosts if name not in some)
    # A role may name a host of the other side; a host's link to itself cannot be cut.
    return some, tuple(name for name in others if name not in some)


def _hosts(targets: Sequence[Target], world: World, draw: Draw) -> tuple[str, ...]:
    names = [
        world.host_of(node).name for target in targets for node in nodes_of(target, world, draw)
    ]
    return tuple(dict.fromkeys(names))


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
