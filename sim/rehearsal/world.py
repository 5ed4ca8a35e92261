"""The real cluster as faults see it: processes to signal, files to remove, links to cut.

What needs rights that a user lacks raises, and is refused before anything starts
(:mod:`sim.rehearsal.limits`). Roles are read from the metadata logs at the fault's instant.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from sim.faults.surface import (
    Administrator,
    Broker,
    Network,
    ObjectStore,
    Process,
    Reader,
    Transactions,
)
from sim.ids import NodeId, TopicPartition, server_name
from sim.protocol.messages.base import Request
from sim.protocol.metadata.records import Voter
from sim.rehearsal.disks import Formats, lose_unflushed, wipe
from sim.rehearsal.links import Handle, Links
from sim.rehearsal.metadata import Cluster
from sim.rehearsal.servers import RealBroker, RealProcess
from sim.substrate.distributions import Spread
from sim.substrate.links import LinkRule
from sim.substrate.trouble import Trouble
from sim.units import NEVER, Bytes, Micros


def _refused(what: str) -> NoReturn:
    raise AssertionError(f"{what} is refused before a rehearsal starts")


class RealDisk:
    """A log directory of a server."""

    def __init__(self, directory: Path, node: NodeId, formats: Formats) -> None:
        self._directory = directory
        self._node = node
        self._formats = formats

    @property
    def awaits_mount(self) -> bool:
        """False: it is replaced while its process is down."""
        return False

    def swap(self) -> int:
        """Replaces it by an empty, formatted one; returns the number of lost files."""
        files = wipe(self._directory)
        self._formats.format(self._node, [self._directory])
        return files

    def extend(self) -> None:
        """Does nothing: it has no limit but the machine's."""

    def affected(self, trouble: Trouble) -> int:
        """Refused."""
        _refused(str(trouble))

    def slow(self, factor: int, until: Micros = NEVER, flush: Spread | None = None) -> None:
        """Refused."""
        _refused(f"a slow disk ({factor}, {until}, {flush})")

    def slow_reads(self, factor: int, latency: Spread | None = None) -> None:
        """Refused."""
        _refused(f"slow reads ({factor}, {latency})")

    def stall(self) -> None:
        """Refused."""
        _refused("a stalled disk")

    def fail(self) -> None:
        """Refused."""
        _refused("a failed disk")

    def fill(self) -> None:
        """Refused."""
        _refused("a full disk")

    def lie(self) -> None:
        """Refused."""
        _refused("a lying flush")

    def heal(self) -> None:
        """Does nothing: no fault of a disk lasts."""


class Supply:
    """Power of a server's host, as a user without special rights can take it away.

    The links to and from the server are cut, so that nobody learns of its end; it is killed; and
    what it had not flushed is cut off its logs. Power that comes back restores the links and starts
    the server.

    Args:
        process: The server.
        links: The links between the nodes.
        others: Every other node.
        directories: Its log directories.
        keeps: Topics whose logs lose nothing, as each append is flushed.
    """

    def __init__(
        self,
        process: RealProcess,
        links: Links,
        others: frozenset[str],
        directories: Sequence[Path],
        keeps: frozenset[str],
    ) -> None:
        self._process = process
        self._links = links
        self._others = others
        self._directories = directories
        self._keeps = keeps
        self._cuts: list[Handle] = []

    def off(self) -> Bytes:
        """Ends the server silently; returns the bytes that it had not flushed."""
        name = self._process.name
        one, others = frozenset({name}), self._others
        for senders, receivers in ((one, others), (others, one)):
            rule = LinkRule(f"no power on {name}", senders, receivers, cut=True)
            self._cuts.append(self._links.add_rule(rule))
        self._process.lose_power()
        return sum(lose_unflushed(each, self._keeps) for each in self._directories)

    def on(self) -> None:
        """Restores the links, and starts the server."""
        for cut in self._cuts:
            cut.remove()
        self._cuts.clear()
        self._process.start()


@dataclass(slots=True)
class RealHost:
    """A node of the network; all of them are this machine."""

    name: str
    rack: str
    disks: Sequence[RealDisk] = ()
    supply: Supply | None = None
    """Of a server's host; power of other hosts is refused."""
    powered: bool = True
    clock_offset_us: Micros = 0
    drifted_us: Micros = 0
    in_use: bool = True
    work_slowed: int = 0
    descriptors_refused: int = 0

    def drift(self, ppm: int) -> None:
        """Refused."""
        _refused(f"a drifting clock ({ppm})")

    def power_off(self, *, spares_none: bool = False) -> Bytes:
        """Cuts the power; returns the bytes that were not flushed."""
        if self.supply is None or not spares_none:
            _refused(f"a power loss ({self.name}, {spares_none})")
        self.powered = False
        return self.supply.off()

    def add_memory(self) -> None:
        """Does nothing: heaps have their size."""

    def power_on(self) -> None:
        """Restores the power, and starts the server."""
        if self.supply is None:
            _refused(f"power ({self.name})")
        self.powered = True
        self.supply.on()

    def slow_cpu(self, factor: int) -> None:
        """Refused."""
        _refused(f"a slow processor ({factor})")

    def exhaust_descriptors(self) -> None:
        """Refused."""
        _refused("a lack of descriptors")

    def free_descriptors(self) -> None:
        """Refused."""
        _refused("a lack of descriptors")


@dataclass(slots=True)
class RealSender:
    """A producer's application, as its schedule has it."""

    taken: Callable[[], int]

    @property
    def records_taken(self) -> int:
        """Records that were meant to be sent so far."""
        return self.taken()


@dataclass(slots=True)
class RealWorld:
    """The cluster with its clients, by printed names."""

    nodes: Mapping[str, Process]
    hosts: Mapping[str, RealHost]
    """By the names of the processes."""
    hosted: Mapping[str, str]
    """Process of each client."""
    servers: Sequence[str]
    network: Network
    read: Callable[[], Cluster]
    """Reads the metadata logs."""
    senders: Mapping[str, RealSender]
    object_store: ObjectStore | None = None
    misled: Mapping[NodeId, int] = field(default_factory=dict)

    @property
    def administrator(self) -> Administrator:
        """Refused."""
        _refused("an administrator's request")

    def host_of(self, node: str) -> RealHost:
        """Host of a process."""
        return self.hosts[self.hosted.get(node, node)]

    def broker(self, name: str) -> Broker | None:
        """The broker of that name; ``None`` if there is none."""
        found = self.nodes.get(name)
        return found if isinstance(found, RealBroker) else None

    def sender(self, name: str) -> RealSender | None:
        """The producer of that name; ``None`` if there is none."""
        return self.senders.get(name)

    def reader(self, name: str) -> Reader | None:
        """Refused."""
        _refused(f"the application of {name}")

    def transactions(self, name: str) -> Transactions | None:
        """Refused."""
        _refused(f"the application of {name}")

    def misname(self, node: NodeId, other: NodeId | None) -> None:
        """Refused."""
        _refused(f"another name of {node} ({other})")

    def coordinator_of(self, transactional_id: str) -> NodeId:
        """Refused."""
        _refused(f"the coordinator of {transactional_id}")

    def is_no_op(self, request: Request) -> bool:
        """Refused."""
        _refused(str(request))

    def is_in_sync(self, name: str) -> bool:
        """True if a server works as a part of the cluster again."""
        process = self.nodes[name]
        if not process.running or process.paused:
            return False
        cluster = self.read()
        if not isinstance(process, RealBroker):
            return self.controller_leader() is not None
        node = process.node_id
        return cluster.serving.get(node, False) and all(
            node in state.in_sync for state in cluster.partitions.values() if node in state.replicas
        )

    def release_of(self, name: str) -> str:
        """Refused."""
        _refused(f"an upgrade of {name}")

    def install(self, name: str, release: str) -> None:
        """Refused."""
        _refused(f"an upgrade of {name} to {release}")

    def is_member(self, name: str) -> bool:
        """True if a broker is registered, alive or not."""
        process = self.nodes[name]
        return isinstance(process, RealBroker) and process.node_id in self.read().serving

    def leader_of(self, partition: TopicPartition) -> str | None:
        """The broker that leads; ``None`` if none does."""
        state = self.read().partitions.get(partition)
        return None if state is None or state.leader < 0 else server_name(state.leader)

    def replicas_of(self, partition: TopicPartition) -> Sequence[str]:
        """The brokers that hold a replica, in Kafka's order."""
        state = self.read().partitions.get(partition)
        return () if state is None else [server_name(node) for node in state.replicas]

    def voter_key(self, controller: str) -> Voter:
        """Refused."""
        _refused(f"another vote of {controller}")

    def vote_of(self, controller: str) -> Voter:
        """Refused."""
        _refused(f"another vote of {controller}")

    def controller_leader(self) -> str | None:
        """The active controller; ``None`` between two."""
        node = self.read().controller
        if node < 0 or not self.nodes[server_name(node)].running:
            return None
        return server_name(node)

    def zookeeper_leader(self) -> str | None:
        """``None``: there is no ensemble."""
        return None
