"""What faults may touch: the few verbs of processes, hosts, disks and links that bring one about.

Faults act through these alone, so that a fault cannot reach into a machine's state and every effect
travels the way it would in a real cluster.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.messages.base import Request
from sim.protocol.metadata.records import Voter
from sim.substrate.links import LinkRule
from sim.substrate.trouble import Trouble
from sim.units import NEVER, Bytes, Micros


class Process(Protocol):
    """A broker, a controller or a client, as a fault sees it."""

    name: str
    running: bool
    paused: bool
    tearing_down: bool
    """Whether it is killed and its sockets are still open; a start then waits."""
    incarnation: int
    """How often it has started."""
    spare: bool
    """Whether it is no part of the cluster yet: then only its addition starts it."""

    def crash(self) -> None:
        """Kill -9; the process must be running."""

    def start(self) -> None:
        """Start; the process must not be running."""

    def pause(self) -> None:
        """Freeze; the process must be running."""

    def resume(self) -> None:
        """Go on after a pause."""

    def shut_down(self) -> None:
        """Begin an orderly stop; ``running`` turns false when it is done."""


class Broker(Process, Protocol):
    """A broker's replicas."""

    node_id: NodeId
    """``node.id``."""

    def arrivals(self, partition: TopicPartition, directory: int) -> int:
        """How often a replica has arrived in a log directory so far, in all lives."""

    def damage_replica(self, way: str, partition: TopicPartition, stream: str) -> bool:
        """Do something to a replica's files by chance of that name; whether there was any."""


class Sender(Protocol):
    """A producer's application."""

    @property
    def records_taken(self) -> int:
        """Records that the client library was given so far."""


class Operation(Protocol):
    """Something an administrator has asked for."""

    @property
    def accepted(self) -> bool:
        """Whether a server has done something of it."""

    @property
    def outcome(self) -> str:
        """What the server said, in words."""


class Administrator(Protocol):
    """Who operates the cluster."""

    def operate(self, request: Request, broker: NodeId = NO_LEADER) -> Operation:
        """Ask the controller, a leader or one broker for something; the answer comes later."""


class Disk(Protocol):
    """One log directory's disk."""

    def affected(self, trouble: Trouble) -> int:
        """Operations so far that were not as usual because of one trouble."""

    def slow(self, factor: int, until: Micros = NEVER) -> None:
        """Take so many times as long until an instant of the kernel's clock."""

    def stall(self) -> None:
        """Answer nothing."""

    def fail(self) -> None:
        """Answer with EIO."""

    def fill(self) -> None:
        """Answer writes with ENOSPC."""

    def lie(self) -> None:
        """Answer an fsync without having moved what is dirty."""

    def swap(self) -> int:
        """Put an empty disk in its place, under a process that is down; returns files lost."""

    def extend(self) -> None:
        """Make it as large as need be."""

    def heal(self) -> None:
        """End every fault of this disk."""


class Host(Protocol):
    """One computer."""

    name: str
    rack: str
    powered: bool
    clock_offset_us: Micros
    """What its clock shows beyond the true time."""

    @property
    def in_use(self) -> bool:
        """Whether a process runs on it."""

    @property
    def work_slowed(self) -> int:
        """Pieces of work that took longer because the CPU was slow."""

    @property
    def descriptors_refused(self) -> int:
        """Files and connections that could not be opened for want of a descriptor."""

    @property
    def disks(self) -> Sequence[Disk]:
        """One for each log directory."""

    def power_off(self, *, spares_none: bool = False) -> Bytes:
        """Lose power; returns the bytes of page cache that reached no platter.

        ``spares_none``: all of it; else a part reached one by chance.
        """

    def add_memory(self) -> None:
        """Let heaps be as large as need be, from now on."""

    def power_on(self) -> None:
        """Boot, and start the processes."""

    def slow_cpu(self, factor: int) -> None:
        """Every thread of a server takes so many times as long; 1: as usual."""

    def exhaust_descriptors(self) -> None:
        """No process here opens or accepts anything more."""

    def free_descriptors(self) -> None:
        """They do again, beginning with what waits."""


class RuleHandle(Protocol):
    """A rule in force on links."""

    affected: int
    """Messages held back, slowed or retransmitted because of it."""

    def remove(self) -> None:
        """Heal."""


class Network(Protocol):
    """The links."""

    def add_rule(self, rule: LinkRule) -> RuleHandle:
        """Put a rule in force."""


class World(Protocol):
    """The running cluster with its clients, by printed names."""

    @property
    def nodes(self) -> Mapping[str, Process]:
        """Every process."""

    @property
    def hosts(self) -> Mapping[str, Host]:
        """Every host."""

    @property
    def servers(self) -> Sequence[str]:
        """Brokers, then controllers, by number."""

    @property
    def network(self) -> Network:
        """The links between the hosts."""

    @property
    def administrator(self) -> Administrator:
        """Who operates the cluster."""

    def host_of(self, node: str) -> Host:
        """Where a process runs."""

    def broker(self, name: str) -> Broker | None:
        """The broker of that name; ``None`` if it is none."""

    def sender(self, name: str) -> Sender | None:
        """The producer of that name; ``None`` if it is none."""

    def is_no_op(self, request: Request) -> bool:
        """Whether what an administrator asks for is so already."""

    def is_in_sync(self, name: str) -> bool:
        """Whether a server is a working part of the cluster again.

        A broker is unfenced and in the ISR of all its partitions; a controller runs, and there is
        an active one.
        """

    def is_member(self, name: str) -> bool:
        """Whether a broker is registered, alive or not."""

    def leader_of(self, partition: TopicPartition) -> str | None:
        """The broker that leads; ``None`` if none does."""

    def replicas_of(self, partition: TopicPartition) -> Sequence[str]:
        """The brokers that hold a replica, in Kafka's order."""

    def voter_key(self, controller: str) -> Voter:
        """A controller's id with the directory that it has."""

    def vote_of(self, controller: str) -> Voter:
        """The vote under a controller's id; its own key if there is none."""

    def controller_leader(self) -> str | None:
        """The active controller; ``None`` between two."""

    def zookeeper_leader(self) -> str | None:
        """The leader of the ensemble; ``None`` without one."""
