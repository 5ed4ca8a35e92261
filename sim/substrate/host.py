"""A machine: its threads, its clock, its power, its disks, and the processes on it."""

from dataclasses import dataclass
from heapq import heapreplace
from typing import Protocol

from sim.log.store.page_cache import DEFAULT_MEMORY, PageCache
from sim.substrate.cores import Cores
from sim.substrate.disk import Disk
from sim.substrate.links import CLIENTS
from sim.substrate.network import Network
from sim.substrate.wakeups import Wakeups
from sim.units import MS, NEVER, Bytes, Micros


class Servers:
    """A queue in front of k equal servers: its finish follows from when one is free.

    Source: section 5.1 of Kafka's request path, ``num.network.threads`` and ``num.io.threads``.
    """

    __slots__ = ("_cores", "_free", "_wakeups", "busy_us", "factor", "slowed")

    def __init__(
        self, count: int, wakeups: Wakeups | None = None, cores: Cores | None = None
    ) -> None:
        self._wakeups = wakeups
        self._cores = cores
        self._free = [-(1 << 60)] * count
        self.busy_us = 0
        """Service given so far, over all servers."""
        self.factor = 1
        """Factor by which service times are longer."""
        self.slowed = 0
        """Services that the factor made longer."""

    @property
    def count(self) -> int:
        """Number of servers."""
        return len(self._free)

    def take(self, at: Micros, service_us: Micros, idle_us: Micros = 0) -> Micros:
        """Queues for the first free server from the instant on; returns when the service ends.

        An idle server has a wake-up delay; a busy one does not. The first ``idle_us`` of the
        service, a wait for a disk, need no core.
        """
        start = self._free[0]
        if start < at:
            start = at
            if self._wakeups is not None:
                start += self._wakeups.draw()
        if self.factor != 1:
            self.slowed += 1
            service_us *= self.factor
            idle_us *= self.factor
        if self._cores is not None:
            start = self._cores.take(start + idle_us, service_us - idle_us) - idle_us
        heapreplace(self._free, start + service_us)
        self.busy_us += service_us
        return start + service_us

    def speed_up(self, now: Micros, by: int) -> None:
        """Divides the remaining service times by ``by``."""
        for i, free in enumerate(self._free):
            if free > now:
                sooner = now + (free - now) // by
                self.busy_us -= free - sooner
                self._free[i] = sooner
        self._free.sort()

    def resize(self, count: int) -> None:
        """Adds idle servers, or removes those that are idle, or would be first.

        Source: ``KafkaRequestHandlerPool.resizeThreadPool``, whose threads end their request first.
        """
        self._free = sorted(self._free)[max(0, len(self._free) - count) :]
        self._free = [-(1 << 60)] * (count - len(self._free)) + self._free

    def block(self, count: int, until: Micros) -> None:
        """Keeps so many servers, those that are free first, occupied until an instant."""
        for _ in range(count):
            if self._free[0] < until:
                heapreplace(self._free, until)

    def free_at(self) -> Micros:
        """Instant at which the next server is free."""
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
    """Port of a host to the processes on it."""

    name: str
    running: bool
    tearing_down: bool
    """True if killed while its sockets are still open."""
    starting: bool
    """True if started, and without effect yet."""
    spare: bool
    """True if it may not be started yet."""

    def lose_power(self) -> None:
        """Ends the process with its host's power."""

    def start(self) -> None:
        """Starts the process."""

    def accept_again(self) -> None:
        """Accepts waiting connections, as there are descriptors again."""

    def speed_up(self, by: int) -> None:
        """Divides remaining service times by ``by``, as the CPU is faster again."""


DRIFT_STEP_US: Micros = 10 * MS
"""Time between two steps of a clock that drifts; a modelling choice."""


@dataclass(frozen=True, slots=True)
class HostSpec:
    """Threads of a server's process (``num.network.threads``, ``num.io.threads``), and memory."""

    network_threads: int = 3
    request_handlers: int = 8
    page_cache: Bytes = DEFAULT_MEMORY
    """Memory for file pages."""
    cores: int = 0
    """Cores that those threads share; 0: each has one."""
    bandwidth_bits: int = 0
    """Of its interface, in bits per second; 0: that of the network."""
    queued_requests: int = 0
    """``queued.max.requests``; 0: no bound."""
    idle_us: Micros = NEVER
    """``connections.max.idle.ms`` of its servers."""


class Host:
    """One computer in one rack."""

    def __init__(
        self,
        name: str,
        rack: str,
        network: Network,
        spec: HostSpec,
        *,
        in_racks: bool = True,
        wakeups: Wakeups | None = None,
    ) -> None:
        self.name = name
        self.wakeups = wakeups
        """Wake-up delays of its threads; ``None``: no time."""
        self.rack = rack
        self.network = network
        self._spec = spec
        self._add_threads()
        self.clock_offset_us: Micros = 0
        """Offset of its clock from the true time."""
        self.clock_ppm = 0
        """Millionths by which its clock gains on the true time; negative: it loses."""
        self._drifted: Micros = 0
        self._drifts_since: Micros = 0
        self.disks: list[Disk] = []
        self.memory_is_bounded = True
        """True if heaps limit the memory of processes here."""
        self.accepts = True
        """False while a fault exhausts descriptors: processes here accept no connections."""
        self.connections_refused = 0
        """Connections that waited in a backlog for lack of a descriptor."""
        self._cpu_factor = 1
        self._slowed_before = 0
        self.page_cache = PageCache(spec.page_cache)
        """Page cache; it outlives processes, not a power loss."""
        self.nodes: list[HostedProcess] = []
        self.powered = True
        network.add_host(name, f"rack {rack}" if in_racks else CLIENTS, spec.bandwidth_bits)

    @property
    def queued_requests(self) -> int:
        """Bound of the request queue; 0: none."""
        return self._spec.queued_requests

    @property
    def idle_us(self) -> Micros:
        """Time after which its servers close an idle connection."""
        return self._spec.idle_us

    def _add_threads(self) -> None:
        """Makes its threads and cores; none is busy."""
        count, kernel = self._spec.cores, self.network.kernel
        self.cores = Cores(kernel, count) if count else None
        self.network_threads = Servers(self._spec.network_threads, self.wakeups, self.cores)
        self.request_handlers = Servers(self._spec.request_handlers, self.wakeups, self.cores)

    def power_off(self, *, spares_none: bool = False) -> int:
        """Loses power at once; returns how many bytes of page cache never reached a platter.

        ``spares_none``: all of it; else a random part reached one.
        """
        self.powered = False
        self.network.set_power(self.name, powered=False)
        for node in self.nodes:
            if node.running or node.tearing_down or node.starting:
                node.lose_power()
        lost = sum(disk.power_loss(spares_none=spares_none) for disk in self.disks)
        self.page_cache.drop()
        self._slowed_before = self.work_slowed
        self._add_threads()
        self.slow_cpu(self._cpu_factor)
        return lost

    def add_memory(self) -> None:
        """Removes the limit of heaps."""
        self.memory_is_bounded = False

    def power_on(self) -> None:
        """Restores power: the machine boots and starts its processes."""
        if self.powered:
            return
        self.powered = True
        self.network.set_power(self.name, powered=True)
        for node in self.nodes:
            if not node.running and not node.spare:
                node.start()

    def slow_cpu(self, factor: int) -> None:
        """Multiplies the service times of its threads from now on by the factor; 1: as usual.

        Work that is queued when they are as fast as usual again is done at that speed.
        """
        before, self._cpu_factor = self._cpu_factor, factor
        self.network_threads.factor = self.request_handlers.factor = factor
        if factor == 1 and before != 1:
            for threads in (self.network_threads, self.request_handlers):
                threads.speed_up(self.network.kernel.time, before)
            if self.cores is not None:
                self.cores.speed_up(before)
            for node in self.nodes:
                node.speed_up(before)

    def drift(self, ppm: int) -> None:
        """Lets its clock gain so many millionths from now on; 0: it is set right, and is right."""
        kernel = self.network.kernel
        if not ppm:
            self.clock_offset_us -= self._drifted
            self._drifted = 0
        self.clock_ppm = ppm
        self._drifts_since = kernel.time
        if ppm:
            kernel.call_in(DRIFT_STEP_US, self._drift_on, self._drifts_since)

    def _drift_on(self, since: Micros) -> None:
        if not self.clock_ppm or since != self._drifts_since:
            return
        kernel = self.network.kernel
        gained = (kernel.time - since) * self.clock_ppm // 1_000_000
        self.clock_offset_us += gained - self._drifted
        self._drifted = gained
        kernel.call_in(DRIFT_STEP_US, self._drift_on, since)

    @property
    def drifted_us(self) -> Micros:
        """Gain of its clock by drifting, as far as it was not set right."""
        return self._drifted

    @property
    def in_use(self) -> bool:
        """True if a process runs on it."""
        return any(node.running or node.tearing_down or node.starting for node in self.nodes)

    @property
    def work_slowed(self) -> int:
        """Services that took longer because the CPU was slow."""
        return self._slowed_before + self.network_threads.slowed + self.request_handlers.slowed

    def exhaust_descriptors(self) -> None:
        """Exhausts descriptors: no process here makes a file or accepts a connection."""
        self.accepts = False
        for disk in self.disks:
            disk.store.has_descriptors = False

    def free_descriptors(self) -> None:
        """Restores descriptors, beginning with the connections that wait."""
        self.accepts = True
        for disk in self.disks:
            disk.store.has_descriptors = True
        for node in self.nodes:
            if node.running:
                node.accept_again()

    @property
    def descriptors_refused(self) -> int:
        """Files and connections that could not be opened for lack of a descriptor."""
        return self.connections_refused + sum(d.store.descriptors_refused for d in self.disks)
