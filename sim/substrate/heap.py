"""The heap of a broker's JVM: its live set, the cost of collections, and out-of-memory.

A small live set is collected concurrently, which costs nothing here. With more than :data:`TIGHT`
of the heap live, the collector has no free region to copy to: each time that the rest is full of
garbage, a pause marks the whole live set. The less is left, the more often. Above :data:`FULL` the
JVM throws OutOfMemoryError.

Left out: young collections, concurrent marking and the CPU they take, requests that wait in a
queue, off-heap memory, fragments.

Source: HotSpot's ``G1ReservePercent`` (10) and ``GCHeapFreeLimit`` (2); the cost of a tracing
collection grows with the live set, and their number with the rest (A. Appel, "Garbage Collection
Can Be Faster Than Stack Allocation", 1987).
"""

from dataclasses import dataclass

from sim.units import SECOND, Bytes, Micros

TIGHT = 90
"""Live percentage of the heap above which collections are pauses."""

FULL = 98
"""Live percentage of the heap above which the JVM is out of memory."""


@dataclass(frozen=True, slots=True)
class HeapSpec:
    """A broker's heap and the costs of its parts."""

    size_bytes: Bytes
    """``-Xmx``."""
    used_bytes: Bytes
    """Live bytes of a broker without producers and connections."""
    producer_bytes: Bytes
    """Live bytes of each producer id in each log that has its state."""
    connection_bytes: Bytes
    """Live bytes of each connection, inbound or outbound."""
    request_bytes: Bytes
    """Garbage of each request."""
    collected_bytes_per_s: int
    """Live bytes that a pause marks per second."""


@dataclass(frozen=True, slots=True)
class Collection:
    """A stop-the-world pause."""

    pause_us: Micros


class OutOfMemory:
    """The JVM throws OutOfMemoryError."""

    __slots__ = ()


class Heap:
    """One process's heap: from counts to the JVM's actions."""

    def __init__(self, spec: HeapSpec) -> None:
        self.spec = spec
        self._garbage: Bytes = 0

    def live_bytes(self, producers: int, connections: int) -> Bytes:
        """The live set.

        Args:
            producers: Producer ids, each counted in every log that has its state.
            connections: Open connections.
        """
        spec = self.spec
        known = producers * spec.producer_bytes + connections * spec.connection_bytes
        return spec.used_bytes + known

    def look(self, live_bytes: Bytes, requests: int) -> Collection | OutOfMemory | None:
        """The consequence of so many requests since the last call; ``None`` without one."""
        size = self.spec.size_bytes
        if live_bytes * 100 > size * FULL:
            return OutOfMemory()
        if live_bytes * 100 <= size * TIGHT:
            self._garbage = 0
            return None
        self._garbage += requests * self.spec.request_bytes
        if live_bytes + self._garbage <= size:
            return None
        self._garbage = 0
        return Collection(-(-live_bytes * SECOND // self.spec.collected_bytes_per_s))
