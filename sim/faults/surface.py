"""Ports of processes, hosts, disks and links through which faults act.

Faults act through these alone, so that a fault cannot reach into a machine's state and every effect
propagates as in a real cluster.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from sim.ids import NO_LEADER, NO_OFFSET, NodeId, Offset, TopicPartition
from sim.log.store.stored_file import Rot
from sim.protocol.clients.admin.group_tool import GroupCommand
from sim.protocol.messages.base import Request
from sim.protocol.metadata.records import Voter
from sim.substrate.distributions import Spread
from sim.substrate.links import LinkRule
from sim.substrate.trouble import Trouble
from sim.trace.emit import Emit
from sim.units import NEVER, Bytes, Micros


class Timetable(Protocol):
    """The clock by which faults begin and end: simulated, or a real one."""

    def now(self) -> Micros:
        """The present instant."""

    def call_at(self, at: Micros, fn: Callable[..., object], *args: Any) -> object:  # noqa: ANN401
        """Runs ``fn(*args)`` at the instant."""

    def call_in(self, delay: Micros, fn: Callable[..., object], *args: Any) -> object:  # noqa: ANN401
        """Runs ``fn(*args)`` after the delay."""


class Journal(Protocol):
    """Receiver of the rows of faults."""

    def write(self, t_us: Micros, emit: Emit) -> None:
        """Adds a row with its instant."""


class Process(Protocol):
    """A broker, a controller or a client, as used by faults."""

    name: str
    running: bool
    paused: bool
    tearing_down: bool
    """True if it is killed and its sockets are still open; a start then waits."""
    starting: bool
    """True if it is started and does nothing yet; another start then has no effect."""
    incarnation: int
    """Number of its starts."""
    spare: bool
    """True before it is part of the cluster: only its addition starts it."""

    def crash(self) -> None:
        """``kill -9``; the process must be running."""

    def start(self) -> None:
        """Starts; the process must not be running."""

    def pause(self) -> None:
        """Pauses; the process must be running."""

    def resume(self) -> None:
        """Resumes after a pause."""

    def shut_down(self) -> None:
        """Begins an orderly stop; ``running`` turns false at its end."""


class SettingChange(Protocol):
    """A setting that changed in a running broker."""

    @property
    def name(self) -> str:
        """Kafka's name."""

    @property
    def before(self) -> str:
        """Former value."""

    @property
    def after(self) -> str:
        """Present value."""


class Broker(Process, Protocol):
    """A broker's replicas."""

    node_id: NodeId
    """``node.id``."""

    @property
    def setting_changes(self) -> Sequence[SettingChange]:
        """Settings that changed while it ran, over all incarnations."""

    def arrivals(self, partition: TopicPartition, directory: int) -> int:
        """Number of times a replica was moved into a log directory, over all incarnations."""

    def damage_replica(self, way: str, partition: TopicPartition, stream: str) -> bool:
        """Do something to a replica's files by chance of that name; whether there was any."""

    def cut_file(self, partition: TopicPartition, file: str, size: Bytes) -> str:
        """Cuts the end of one of a replica's files, with the process down; what was cut."""

    def let_rot(
        self, partition: TopicPartition, which: str, bits: int, stream: str
    ) -> tuple[str, Rot] | None:
        """Flips bits of a replica on the platter; the file and the bytes."""


class Sender(Protocol):
    """A producer's application."""

    @property
    def records_taken(self) -> int:
        """Records passed to ``send()`` so far."""


class Reader(Protocol):
    """A consumer's application."""

    running: bool

    def call(
        self,
        what: Literal["seek", "pause", "resume"],
        partitions: tuple[TopicPartition, ...],
        offset: Offset = NO_OFFSET,
        timestamp: int | None = None,
    ) -> int:
        """Lets the application seek, pause or resume before its next poll; returns its number."""

    def called(self, number: int) -> tuple[TopicPartition, ...] | None:
        """Partitions that a call has met; ``None`` if the application has not got to it."""


class Transactions(Protocol):
    """A transactional producer's application."""

    @property
    def transactional_id(self) -> str:
        """``transactional.id``."""

    @property
    def aborts_chosen(self) -> int:
        """Transactions that it has aborted because a fault chose them."""

    def abort_next(self) -> None:
        """Lets it abort the next transaction that it begins."""


class Operation(Protocol):
    """A request of the administrator."""

    @property
    def is_done(self) -> bool:
        """True if a server has answered, or none did in time."""

    @property
    def accepted(self) -> bool:
        """True if a server has carried out any of it."""

    @property
    def outcome(self) -> str:
        """Outcome as text."""


class Administrator(Protocol):
    """The process that operates the cluster."""

    def operate(self, request: Request, broker: NodeId = NO_LEADER) -> Operation:
        """Sends a request to the controller, a leader or one broker; the outcome comes later."""

    def run_group_tool(self, command: GroupCommand) -> Operation:
        """Runs ``kafka-consumer-groups``; the outcome comes later."""


class Disk(Protocol):
    """One log directory's disk."""

    @property
    def awaits_mount(self) -> bool:
        """True if it was replaced, and no process has mounted the new one."""

    def affected(self, trouble: Trouble) -> int:
        """Number of operations that a kind of fault has affected so far."""

    def slow(self, factor: int, until: Micros = NEVER, flush: Spread | None = None) -> None:
        """Takes so many times as long, or flushes as slowly, until an instant of the kernel's."""

    def slow_reads(self, factor: int, latency: Spread | None = None) -> None:
        """Takes so many times as long for what the page cache lacks, or that long an access."""

    def stall(self) -> None:
        """Completes no operation."""

    def fail(self) -> None:
        """Fails operations with EIO."""

    def fill(self) -> None:
        """Fails writes with ENOSPC."""

    def lie(self) -> None:
        """Acknowledges an fsync without having written dirty pages."""

    def swap(self) -> int:
        """Replaces it by an empty disk, under a process that is down; returns lost files."""

    def extend(self) -> None:
        """Lifts the limit of its capacity."""

    def heal(self) -> None:
        """Ends every fault of this disk."""


class Host(Protocol):
    """One computer."""

    name: str
    rack: str
    powered: bool
    clock_offset_us: Micros
    """Difference of its clock from the true time."""

    @property
    def drifted_us(self) -> Micros:
        """Gain of its clock by drifting, as far as it was not set right."""

    def drift(self, ppm: int) -> None:
        """Lets its clock gain so many millionths; 0: it is set right, and keeps time."""

    @property
    def in_use(self) -> bool:
        """True if a process runs on it."""

    @property
    def work_slowed(self) -> int:
        """Calls that took longer because the CPU was slow."""

    @property
    def descriptors_refused(self) -> int:
        """Files and connections that could not be opened for lack of a descriptor."""

    @property
    def disks(self) -> Sequence[Disk]:
        """One for each log directory."""

    def power_off(self, *, spares_none: bool = False) -> Bytes:
        """Cuts the power; returns the bytes of page cache that reached no platter.

        ``spares_none``: all of it; else a part reached one by chance.
        """

    def add_memory(self) -> None:
        """Lifts the limits of heaps, from now on."""

    def power_on(self) -> None:
        """Boots, and starts the processes."""

    def slow_cpu(self, factor: int) -> None:
        """Multiplies the time of every server thread; 1: as usual."""

    def exhaust_descriptors(self) -> None:
        """Lets no process here open or accept anything more."""

    def free_descriptors(self) -> None:
        """Ends that; connections in the backlog are accepted first."""


class RuleHandle(Protocol):
    """A rule in force on links."""

    affected: int
    """Messages held back, slowed or retransmitted because of it."""

    def remove(self) -> None:
        """Removes the rule."""


class Network(Protocol):
    """The links."""

    def add_rule(self, rule: LinkRule) -> RuleHandle:
        """Adds a rule."""


class ObjectStore(Protocol):
    """The object store of tiered storage."""

    factor: int
    """Factor by which it is slower."""
    refuses: bool
    """True if it answers 503 to everything."""
    affected: int
    """Requests that a fault made slower, or that were refused."""

    def lose(self, topic: str, partition: int, place: float) -> str:
        """Loses one segment's objects, at a place in [0, 1) of all; its name, empty for none."""


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
        """The process that operates the cluster."""

    @property
    def object_store(self) -> ObjectStore | None:
        """The object store; ``None`` without tiered storage."""

    def host_of(self, node: str) -> Host:
        """Host of a process."""

    def broker(self, name: str) -> Broker | None:
        """The broker of that name; ``None`` if there is none."""

    def sender(self, name: str) -> Sender | None:
        """The producer of that name; ``None`` if there is none."""

    def reader(self, name: str) -> Reader | None:
        """The consumer of that name; ``None`` if there is none."""

    def transactions(self, name: str) -> Transactions | None:
        """The transactional producer of that name; ``None`` if there is none."""

    @property
    def misled(self) -> Mapping[NodeId, int]:
        """Connections of clients that went by a wrong name, by the server that they meant."""

    def misname(self, node: NodeId, other: NodeId | None) -> None:
        """A broker advertises another one's address (NO_LEADER: nobody's); ``None``: its own."""

    def coordinator_of(self, transactional_id: str) -> NodeId:
        """Coordinator of a transactional id; NO_LEADER between two."""

    def is_no_op(self, request: Request) -> bool:
        """True if an administrator's request would change nothing."""

    def is_in_sync(self, name: str) -> bool:
        """True if a server works as a part of the cluster again.

        A broker is unfenced and in the ISR of all its partitions; a controller runs, and there is
        an active one.
        """

    def release_of(self, name: str) -> str:
        """Release of Kafka that is installed on a server; empty for one that is not Kafka's."""

    def install(self, name: str, release: str) -> None:
        """Installs a release of Kafka on a server that is down; its next process runs it."""

    def is_member(self, name: str) -> bool:
        """True if a broker is registered, alive or not."""

    def leader_of(self, partition: TopicPartition) -> str | None:
        """The broker that leads; ``None`` if none does."""

    def replicas_of(self, partition: TopicPartition) -> Sequence[str]:
        """The brokers that hold a replica, in Kafka's order."""

    def voter_key(self, controller: str) -> Voter:
        """A controller's id with its present directory id."""

    def vote_of(self, controller: str) -> Voter:
        """Voter with a controller's id; its own key if it is no voter."""

    def controller_leader(self) -> str | None:
        """The active controller; ``None`` between two."""

    def zookeeper_leader(self) -> str | None:
        """The leader of the ensemble; ``None`` without one."""
