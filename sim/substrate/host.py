"""A machine: its threads, its clock, its power, its disks, and the processes on it."""

from dataclasses import dataclass
from heapq import heapreplace
from typing import Protocol

from sim.log.page_cache import DEFAULT_MEMORY, PageCache
from sim.substrate.disk import Disk
from sim.substrate.network import CLIENTS, Network
from sim.units import Bytes, Micros


class Servers:
    """A queue in front of k equal servers: its finish follows from when one is free.

    Source: section 5.1 of Kafka's request path, ``num.network.threads`` and ``num.io.threads``.
    """

    __slots__ = ("_free", "busy_us")

    def __init__(self, count: int) -> None:
        self._free = [-(1 << 60)] * count
        self.busy_us = 0
        """Service given so far, over all servers."""

    @property
    def count(self) -> int:
        """How many servers there are."""
        return len(self._free)

    def take(self, at: Micros, service_us: Micros) -> Micros:
        """Queue for the first free server from the instant on; returns when the service ends."""
        start = self._free[0]
        if start < at:
            start = at
        heapreplace(self._free, start + service_us)
        self.busy_us += service_us
        return start + service_us

    def free_at(self) -> Micros:
        """When the next server is free."""
        return self._free[0]

    def hold(self, finished: Micros, until: Micros) -> None:
        """The server whose service ended at ``finished`` stays occupied until later (an fsync)."""
        if until <= finished:
            return
        self.busy_us += until - finished
        if finished in self._free:
            self._free.remove(finished)
            self._free.append(until)
        else:
            self._free[0] = max(self._free[0], until)
        self._free.sort()


class HostedProcess(Protocol):
    """What a host must be able to do to the processes on it."""

    name: str
    running: bool

    def lose_power(self) -> None:
        """The host went dark."""

    def start(self) -> None:
        """Start the process."""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Threads of a server's process (``num.network.threads``, ``num.io.threads``), and memory."""

    network_threads: int = 3
    request_handlers: int = 8
    page_cache: Bytes = DEFAULT_MEMORY
    """Memory for file pages."""


class Host:
    """One computer in one rack."""

    def __init__(
        self, name: str, rack: str, network: Network, spec: HostSpec, *, in_racks: bool = True
    ) -> None:
        self.name = name
        self.rack = rack
        self.network = network
        self.network_threads = Servers(spec.network_threads)
        self.request_handlers = Servers(spec.request_handlers)
        self.clock_offset_us: Micros = 0
        """What its clock shows beyond the true time."""
        self.disks: list[Disk] = []
        self.page_cache = PageCache(spec.page_cache)
        """Outlives its processes, not its power."""
        self.nodes: list[HostedProcess] = []
        self.powered = True
        self._spec = spec
        network.add_host(name, f"rack {rack}" if in_racks else CLIENTS)

    def power_off(self) -> int:
        """Lose power at once; returns how many bytes of page cache never reached a platter."""
        self.powered = False
        self.network.set_power(self.name, powered=False)
        for node in self.nodes:
            if node.running:
                node.lose_power()
        lost = sum(disk.power_loss() for disk in self.disks)
        self.page_cache.drop()
        self.network_threads = Servers(self._spec.network_threads)
        self.request_handlers = Servers(self._spec.request_handlers)
        return lost

    def power_on(self) -> None:
        """Power is back: the machine boots and starts its processes."""
        if self.powered:
            return
        self.powered = True
        self.network.set_power(self.name, powered=True)
        for node in self.nodes:
            if not node.running:
                node.start()
