"""A world of fakes that notes what faults do to it, and an injector in it."""

from dataclasses import dataclass, field

from sim.faults.injector import Injector
from sim.faults.registry import KINDS
from sim.faults.target import Target
from sim.ids import TopicPartition
from sim.kernel import Kernel
from sim.rng import Streams
from sim.substrate.network import LinkRule
from sim.trace.rows.run import Faults
from sim.trace.writer import Trace
from sim.units import NEVER

TP = TopicPartition("orders", 0)
S = 1_000_000


@dataclass
class FakeBroker:
    name: str
    running: bool = True
    paused: bool = False
    tearing_down: bool = False
    starting: bool = False
    incarnation: int = 1
    spare: bool = False
    stops_after_asking: bool = True
    replicas: list = field(default_factory=lambda: [TP])
    calls: list = field(default_factory=list)

    def crash(self):
        assert self.running
        self.running = self.paused = False
        self.calls.append("crash")

    def start(self):
        assert not self.running
        self.running = True
        self.incarnation += 1
        self.calls.append("start")

    def pause(self):
        assert self.running
        self.paused = True
        self.calls.append("pause")

    def resume(self):
        self.paused = False
        self.calls.append("resume")

    def shut_down(self):
        self.calls.append("shut_down")
        if self.stops_after_asking:
            self.running = False

    def damage_replica(self, way, partition, stream):
        self.calls.append(way)
        return partition in self.replicas


@dataclass
class FakeDisk:
    awaits_mount: bool = False
    troubles: dict = field(default_factory=dict)
    state: list = field(default_factory=list)

    def affected(self, trouble):
        return self.troubles.get(trouble, 0)

    def slow(self, factor, until=NEVER, flush=None):
        self.state.append(f"slow {factor}" + (f" until {until}" if until < NEVER else ""))

    def stall(self):
        self.state.append("stall")

    def fail(self):
        self.state.append("fail")

    def fill(self):
        self.state.append("fill")

    def heal(self):
        self.state.clear()

    def lie(self):
        self.state.append("lie")

    def extend(self):
        self.state.append("extended")


@dataclass
class FakeHost:
    name: str
    rack: str
    node: FakeBroker
    powered: bool = True
    disks: list = field(default_factory=lambda: [FakeDisk()])
    clock_offset_us: int = 0
    work_slowed: int = 0

    @property
    def in_use(self):
        return self.node.running

    def slow_cpu(self, factor):
        pass

    def power_off(self, *, spares_none=False):
        self.powered = False
        self.node.running = False
        return 8_192 if spares_none else 4_096

    def add_memory(self):
        self.memory_added = True

    def power_on(self):
        self.powered = True
        if not self.node.running:
            self.node.start()


@dataclass
class FakeHandle:
    rule: LinkRule
    network: "FakeNetwork"
    affected: int = 0

    def remove(self):
        self.network.rules.remove(self)


class FakeNetwork:
    def __init__(self):
        self.rules = []
        self.seen = []

    def add_rule(self, rule):
        handle = FakeHandle(rule, self)
        self.rules.append(handle)
        self.seen.append(handle)
        return handle


class FakeWorld:
    def __init__(self):
        racks = {"broker-1": "a", "broker-2": "a", "broker-3": "b", "controller-1": "b", "shop": ""}
        self.nodes = {name: FakeBroker(name) for name in racks}
        self.hosts = {name: FakeHost(name, racks[name], self.nodes[name]) for name in racks}
        self.servers = ["broker-1", "broker-2", "broker-3", "controller-1"]
        self.network = FakeNetwork()
        self.leader = "broker-2"

    def host_of(self, node):
        return self.hosts[node]

    def broker(self, name):
        return self.nodes[name] if name.startswith("broker") else None

    def leader_of(self, partition):
        return self.leader

    def replicas_of(self, partition):
        return ("broker-1", "broker-2", "broker-3")

    def controller_leader(self):
        return "controller-1"


class Bench:
    """A world, a calendar and the rows it wrote."""

    def __init__(self, *faults):
        self.kernel = Kernel()
        self.world = FakeWorld()
        trace = Trace(None)
        self.rows = []
        trace.table("faults").listeners.append(self.rows.append)
        self.injector = Injector(self.kernel, self.world, faults, trace, Streams(1))
        self.injector.arm()

    def run(self, until):
        self.kernel.run(until)
        return self

    def phases(self):
        return [(row[Faults.T_US] // S, row[Faults.FAULT], row[Faults.PHASE]) for row in self.rows]


def node(*names):
    return (Target("node", ", ".join(names), names),)


def fault(kind, targets, at=1, lasts=None, index=0, **more):
    lasts_us = None if lasts is None else lasts * S
    return KINDS[kind](index=index, at_us=at * S, for_us=lasts_us, targets=targets, **more)
