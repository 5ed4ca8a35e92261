"""All real processes of a rehearsal, from the first file to the last kill.

Directories below the run's own: ``disks/<server>/data-<n>`` as a simulated run has them, and
``real`` with settings, names, what the processes said, and the clients' rows.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from sim.errors import SimulationError
from sim.faults.fault import Fault
from sim.ids import METADATA_PARTITION
from sim.rehearsal import launcher, properties
from sim.rehearsal.apache import Apache, java_version
from sim.rehearsal.client_processes import ClientProcess
from sim.rehearsal.disks import Formats, random_id, trim_indexes
from sim.rehearsal.limits import FLUSHED_EACH
from sim.rehearsal.links import Addresses, Links
from sim.rehearsal.loads import Client, Loads, instants_of, processes
from sim.rehearsal.metadata import WARM_UP, Cluster, read
from sim.rehearsal.servers import Note, RealBroker, RealProcess
from sim.rehearsal.world import Supply
from sim.scenario.model.cluster import ServerSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.scenario import Scenario

HEAP: Final = "256m"
"""Largest heap of a server."""

CLIENT_HEAP: Final = "128m"

FULL_HEAP: Final = "1g"
"""Heap of each process where throughput counts, Kafka's default for a server."""

_CLIENTS: Final = "Clients"
_TOPICS: Final = "Topics"
_ADMIN: Final = "admin"


class Fleet:
    """The processes; used as a context manager, after which none is left.

    Args:
        scenario: What is rehearsed.
        clients: Its clients.
        apache: The release.
        run: The run directory.
        note: Called at each change of a process's state.
        is_direct: For throughput: no proxies between the nodes, so no faults on links, and virtual
            machines with all their compilers and :data:`FULL_HEAP`.
    """

    def __init__(
        self,
        scenario: Scenario,
        clients: Sequence[Client],
        apache: Apache,
        run: Path,
        note: Note,
        *,
        is_direct: bool = False,
    ) -> None:
        self._scenario = scenario
        self._clients = clients
        self._apache = apache
        self._run = run
        self._note = note
        self._is_direct = is_direct
        self._classes = apache.classes()
        self.place = run / "real"
        self.place.mkdir()
        names = [spec.name for spec in scenario.cluster.servers]
        self.addresses = Addresses(names, processes(clients))
        self.formats = Formats(apache, random_id())
        self.ours = properties.OURS
        """Settings that the scenario does not name."""
        self.heap = {"servers": HEAP, "clients": CLIENT_HEAP}
        self.servers: dict[str, RealProcess] = {}
        self.clients: dict[str, ClientProcess] = {}
        self._links: Links | None = None

    def __enter__(self) -> Self:
        try:
            for name in (*self.addresses.servers, *processes(self._clients)):
                seen = self.addresses.hosts(None if self._is_direct else name)
                self._hosts(name).write_text(seen, encoding="utf-8")
            self._hosts(_ADMIN).write_text(self.addresses.hosts(None), encoding="utf-8")
            if not self._is_direct:
                self._links = Links(self.addresses, self.place / "proxies.log")
            for spec in self._scenario.cluster.servers:
                self.servers[spec.name] = self._server(spec)
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def links(self) -> Links:
        """The links between the nodes."""
        assert self._links is not None, "the fleet was entered"
        return self._links

    @property
    def all(self) -> list[RealProcess]:
        """Every process but the proxies'."""
        return [*self.servers.values(), *self.clients.values()]

    def directories(self, spec: ServerSpec) -> tuple[Path, ...]:
        """Log directories of a server; the first one holds the metadata."""
        count = self._scenario.cluster.disk_of(spec).directories
        disks = self._run / "disks" / spec.name
        return tuple(disks / f"data-{number}" for number in range(count))

    def supply(self, spec: ServerSpec) -> Supply:
        """Power of a server's host."""
        nodes = {*self.addresses.servers, *processes(self._clients)} - {spec.name}
        name, value = FLUSHED_EACH
        topics = self._scenario.topics
        keeps = {each.name for each in topics if each.config.number(name) == int(value)}
        if any(spec.node == each.node for each in self._scenario.cluster.controllers):
            keeps.add(METADATA_PARTITION.topic)  # a voter flushes what it appends
        return Supply(
            self.servers[spec.name], self.links, frozenset(nodes), self.directories(spec),
            frozenset(keeps),
        )  # fmt: skip

    def start_servers(self) -> None:
        """Formats the log directories, and starts controllers, then brokers."""
        specs = self._scenario.cluster.servers
        first = self._scenario.cluster.controllers[0]
        self.formats.learn(self._properties(first), self.directories(first)[0])
        for spec in specs:
            self.formats.format(spec.node, self.directories(spec))
        controllers = {spec.name for spec in self._scenario.cluster.controllers}
        for spec in sorted(specs, key=lambda each: each.name not in controllers):
            self.servers[spec.name].start()

    def start_clients(self, faults: Sequence[Fault], seed: int) -> None:
        """Starts the clients' processes, which wait for orders."""
        loads = Loads(self._scenario, faults, seed, self.bootstrap, self.place)
        for name in processes(self._clients):
            events = self.place / f"{name}.tsv"
            command = self._java(name, _CLIENTS, str(loads.write(name, self._clients)), str(events))
            log = self.place / f"{name}.log"
            self.clients[name] = ClientProcess(name, command, log, self._note, events)
            self.clients[name].start()

    def warm(self, process: ClientProcess) -> None:
        """Orders a process of clients to begin its load before the scenario's zero."""
        brokers = ",".join(str(spec.node) for spec in self._scenario.cluster.brokers)
        process.order("warm", self.bootstrap, WARM_UP, brokers)

    def make_topics(self) -> None:
        """Makes the scenario's topics.

        Raises:
            SimulationError: If the cluster refuses one.
        """
        lines = [_topic(topic) for topic in self._scenario.topics]
        done = subprocess.run(  # noqa: S603 - our own program
            self.tool(_TOPICS, self.bootstrap),
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SimulationError(f"the real cluster refuses the topics: {done.stderr[-1_500:]}")

    def instants(self, producer: str) -> NDArray[np.int64]:
        """Intended instants of a producer's records, in their order."""
        return instants_of(self.place, producer)

    @property
    def java(self) -> str:
        """Version of the Java that runs."""
        return java_version()

    def cluster(self, zero_us: int = 0) -> Cluster:
        """The state of the cluster, and its rows since a zero."""
        controllers = self._scenario.cluster.controllers
        return read([self.directories(spec)[0] for spec in controllers], zero_us)

    def look(self) -> None:
        """Finds processes that have ended."""
        for process in self.all:
            process.look()

    def exits(self) -> list[str]:
        """Ends of processes that nobody ordered."""
        return [text for process in self.all for text in process.exits]

    def freeze(self) -> None:
        """Stops every process at once, so that none reacts to the end of another."""
        for process in self.all:
            process.freeze()

    def end(self) -> None:
        """Kills every process."""
        self.freeze()
        for process in self.all:
            process.kill()
        if self._links is not None:
            self._links.close()
            self._links = None
        for directory in sorted(self._run.glob("disks/*/*/")):
            trim_indexes(directory)

    def _server(self, spec: ServerSpec) -> RealProcess:
        directories = self.directories(spec)
        text = properties.server(self._scenario, spec, self.addresses, directories)
        self._properties(spec).write_text(text, encoding="utf-8")
        command = self._java(spec.name, "kafka.Kafka", str(self._properties(spec)), heap=HEAP)
        log = self.place / f"{spec.name}.log"
        if all(spec.node != each.node for each in self._scenario.cluster.brokers):
            return RealProcess(spec.name, command, log, self._note)
        return RealBroker(
            spec.name, command, log, self._note, node=spec.node, directories=directories
        )

    def tool(self, main: str, *arguments: str) -> list[str]:
        """The command line of one of Kafka's own tools, which reaches every node directly."""
        return launcher.command(self._java(_ADMIN, main, *arguments))

    @property
    def bootstrap(self) -> str:
        """``bootstrap.servers`` of the cluster."""
        return properties.bootstrap(self._scenario, self.addresses)

    def _java(self, name: str, main: str, *arguments: str, heap: str = CLIENT_HEAP) -> list[str]:
        return self._apache.java(
            main,
            *arguments,
            heap=FULL_HEAP if self._is_direct else heap,
            quick=not self._is_direct,
            options=[f"-Djdk.net.hosts.file={self._hosts(name).absolute()}"],
            classes=self._classes,
        )

    def _properties(self, spec: ServerSpec) -> Path:
        return self.place / f"{spec.name}.properties"

    def _hosts(self, name: str) -> Path:
        return self.place / f"{name}.hosts"


def _topic(topic: TopicSpec) -> str:
    """A line for the program that makes topics."""
    placed = ";".join(",".join(map(str, replicas)) for replicas in topic.assignment)
    config = [f"{name}={value}" for name, value in properties.given("topic", topic.config).items()]
    counts = [str(topic.partitions), str(topic.replication_factor)]
    return "\t".join([topic.name, *counts, placed, *config])
