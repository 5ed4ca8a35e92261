"""The heap of a broker's JVM: what lives in it, what a collection costs, and when it is too small.

As long as what lives leaves room, garbage is collected beside the work, which costs nothing here.
Above :data:`TIGHT` of the heap the collector has no room left to copy to: each time that the rest
is full of garbage, everything stops until all that lives has been looked at. The less is left, the
sooner that happens again. Above :data:`FULL` the JVM gives up: OutOfMemoryError.

Left out: young collections, concurrent marking and the CPU they take, requests that wait in a
queue, off-heap memory, fragments.

Source: HotSpot's ``G1ReservePercent`` (10) and ``GCHeapFreeLimit`` (2); the cost of a tracing
collection grows with what lives, and their number with what is left (A. Appel, "Garbage Collection
Can Be Faster Than Stack Allocation", 1987).
"""

from dataclasses import dataclass

from sim.units import SECOND, Bytes, Micros

TIGHT = 90
"""Percent of the heap that may live before collections stop the work."""

FULL = 98
"""Percent of the heap above which the JVM gives up."""


@dataclass(frozen=True, slots=True)
class HeapSpec:
    """A broker's heap and what things take of it."""

    size_bytes: Bytes
    """``-Xmx``."""
    used_bytes: Bytes
    """What lives there in a broker that knows no producer and has no connection."""
    producer_bytes: Bytes
    """Of each producer id in each log that knows it."""
    connection_bytes: Bytes
    """Of each connection that somebody has opened to the broker, or the broker to somebody."""
    request_bytes: Bytes
    """Garbage that each request leaves."""
    collected_bytes_per_s: int
    """How much of what lives a collection that stops the work gets through."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Everything stops for so long."""

    pause_us: Micros


class OutOfMemory:
    """The JVM gives up."""

    __slots__ = ()


class Heap:
    """One process's heap. Numbers in, what the JVM does out."""

    def __init__(self, spec: HeapSpec) -> None:
        self.spec = spec
        self._garbage: Bytes = 0

    def live_bytes(self, producers: int, connections: int) -> Bytes:
        """What cannot be collected.

        Args:
            producers: Producer ids, each counted in every log that knows it.
            connections: Open connections.
        """
        spec = self.spec
        known = producers * spec.producer_bytes + connections * spec.connection_bytes
        return spec.used_bytes + known

    def look(self, live_bytes: Bytes, requests: int) -> Collection | OutOfMemory | None:
        """What so many requests since the last look lead to; ``None``: nothing is noticed of it."""
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
