"""Connections that a server closes because nothing has passed for too long.

A selector looks at its longest idle connection with each poll, and closes it after
``connections.max.idle.ms``; each network thread has a selector. Here a poll is a third of a second
after the one before, Kafka's time-out, as long as there is more to close.

Source: ``Selector.IdleExpiryManager``, ``SocketServer.Processor.poll``.
"""

from typing import Final

from sim.nodes.process.acceptor import Sockets
from sim.nodes.process.process import Process
from sim.units import MS, NEVER, Micros

POLL_US: Final[Micros] = 300 * MS
"""Longest wait of a network thread for something to do."""

UNLIMITED: Final = frozenset({"", "heartbeat", "controller", "zookeeper"})
"""Channels of servers without a limit: to the controller and from it, and to ZooKeeper.

Source: ``NodeToControllerChannelManagerImpl``, ``ControllerChannelManager``.
"""


class IdleConnections:
    """Expiry of a server's idle connections.

    Args:
        process: The server.
        sockets: Its connections.
        limit_us: ``connections.max.idle.ms``; NEVER: none is closed.
    """

    def __init__(self, process: Process, sockets: Sockets, limit_us: Micros) -> None:
        self._process = process
        self._sockets = sockets
        self._limit_us = limit_us
        self._watches = False

    def reset(self) -> None:
        """Resets for a new process: it has no connections."""
        self._watches = False

    def watch(self) -> None:
        """There is a connection; idempotent."""
        if self._watches or self._limit_us >= NEVER:
            return
        self._watches = True
        self._process.call_at(self._process.kernel.time + self._limit_us + 1, self._poll)

    def _poll(self) -> None:
        """Closes the longest idle connection of each network thread, if it is idle too long."""
        process, limit = self._process, self._limit_us
        now = process.kernel.time
        used = sorted(self._sockets.last_used(), key=lambda each: each[0])
        expired = [link for at, link in used if now - at > limit]
        threads = process.host.network_threads.count
        for link in expired[:threads]:
            self._sockets.drop(link)
        self._watches = len(used) > len(expired[:threads])
        if self._watches:
            due = used[min(len(expired), threads)][0] + limit + 1
            process.call_at(max(due, now + POLL_US) if expired else due, self._poll)
