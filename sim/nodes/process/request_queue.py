"""Bounded queue between the network threads and the request handlers of one process.

A network thread that has read a request while the queue is full is blocked until a handler takes
one: it writes no response and reads no connection meanwhile. Requests that wait for a disk beyond
the number of handlers count as queued: their handlers have not taken them yet.

Source: ``RequestChannel.sendRequest`` into an ``ArrayBlockingQueue`` of ``queued.max.requests``,
``SocketServer.Processor.processCompletedReceives``.
"""

from collections import deque

from sim.nodes.process.call import Call
from sim.substrate.host import Host
from sim.units import Micros


class RequestQueue:
    """The request queue of a process.

    Args:
        host: Its threads, and the queue's bound.
    """

    __slots__ = ("_bound", "_delayed", "_host", "_starts")

    def __init__(self, host: Host) -> None:
        self._host = host
        self._bound = host.queued_requests
        self._starts: deque[Micros] = deque()
        """Instants at which handlers take the requests that wait, in their order."""
        self._delayed = 0
        """Requests whose service has ended and that wait for a disk."""

    def clear(self) -> None:
        """Empties the queue: its process has ended."""
        self._starts.clear()
        self._delayed = 0

    def put(self, received: Micros, started: Micros) -> None:
        """Enters a request; its network thread is blocked until there is a place.

        Args:
            received: Instant at which the network thread has read it.
            started: Instant at which a handler takes it.
        """
        if not self._bound:
            return
        starts = self._starts
        while starts and starts[0] <= received:
            starts.popleft()
        if len(starts) >= self._bound:
            place_at = starts[-self._bound]
            self._host.network_threads.hold(received, min(place_at, started))
        starts.append(started)

    def delay(self, call: Call) -> None:
        """Notes that a request waits for a disk after its service."""
        if not call.is_delayed:
            call.is_delayed = True
            self._delayed += 1

    def end_delay(self, call: Call) -> None:
        """Notes that a request waits no more, if it has waited."""
        if call.is_delayed:
            call.is_delayed = False
            self._delayed -= 1

    def is_jammed(self, now: Micros) -> bool:
        """True if it is full and no handler takes from it, as all of them wait for a disk."""
        behind = self._delayed - self._host.request_handlers.count
        if behind < 0 or not self._bound:
            return False
        starts = self._starts
        while starts and starts[0] <= now:
            starts.popleft()
        return behind + len(starts) >= self._bound

    def speed_up(self, now: Micros, by: int) -> None:
        """Handlers take what waits sooner, as the CPU is faster again."""
        self._starts = deque(now + (at - now) // by if at > now else at for at in self._starts)
