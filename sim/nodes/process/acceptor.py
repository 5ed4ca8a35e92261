"""Acceptors of a broker with connection quotas.

A connection that has to wait is in the kernel's backlog: the client finds it established, and
nobody reads what it sends.

Source: ``kafka.network.{Acceptor,Processor}``, ``SocketServer.closeThrottledConnections``.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping

from sim.ids import NodeId
from sim.nodes.process.process import Process
from sim.protocol.metadata.image import QuotaEntity
from sim.protocol.quotas.connection import (
    AcceptConnection,
    ConnectionEffect,
    ConnectionQuotaConfig,
    ConnectionQuotas,
    DropConnection,
    Waited,
    first_wake,
)
from sim.substrate.network import Connection
from sim.trace.rows.cluster import Throttles
from sim.units import LONG_AGO, Micros


class Sockets:
    """Connections of a server, as used by its acceptors."""

    @abstractmethod
    def accepted(self, link: Connection) -> None:
        """A connection leaves the backlog."""

    @abstractmethod
    def drop(self, link: Connection) -> None:
        """Close a connection."""

    @abstractmethod
    def last_used(self) -> list[tuple[Micros, Connection]]:
        """Accepted connections, and when each was last used."""

    @abstractmethod
    def serve_next(self, link: Connection) -> None:
        """Takes the next request of a connection."""


class ServerSockets(Sockets):
    """Connections of a server, by its own functions."""

    def __init__(
        self,
        accepted: Callable[[Connection], None],
        drop: Callable[[Connection], None],
        last_used: Callable[[], list[tuple[Micros, Connection]]],
        serve_next: Callable[[Connection], None],
    ) -> None:
        self._accepted = accepted
        self._drop = drop
        self._last_used = last_used
        self._serve_next = serve_next

    def accepted(self, link: Connection) -> None:
        """A connection leaves the backlog."""
        self._accepted(link)

    def drop(self, link: Connection) -> None:
        """Closes a connection."""
        self._drop(link)

    def last_used(self) -> list[tuple[Micros, Connection]]:
        """Accepted connections, and when each was last used."""
        return self._last_used()

    def serve_next(self, link: Connection) -> None:
        """Takes the next request of a connection."""
        self._serve_next(link)


class Acceptor:
    """Checks a broker's connection quotas for each connection, and applies them.

    Args:
        process: The broker.
        node_id: Its id.
        sockets: Its connections.
        config: Quotas of connections.
    """

    def __init__(
        self, process: Process, node_id: NodeId, sockets: Sockets, config: ConnectionQuotaConfig
    ) -> None:
        self._process = process
        self._node_id = node_id
        self._sockets = sockets
        self._config = config
        self._taken = 0
        self.reset()

    def reset(self) -> None:
        """Resets for a new process: it has no connections."""
        self.quotas = ConnectionQuotas(self._config)
        self._links: dict[int, Connection] = {}
        self._keys: dict[Connection, int] = {}
        self._wake_at: Micros = LONG_AGO

    def update(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Applies quotas of the cluster's metadata."""
        self.quotas.update(quotas)

    def arrived(self, link: Connection, *, protected: bool) -> None:
        """Notes a connection in the backlog; idempotent."""
        if link in self._keys:
            return
        self._taken += 1
        self._links[self._taken] = link
        self._keys[link] = self._taken
        address = link.client.host_name
        now = self._process.kernel.time
        self._perform(self.quotas.arrived(self._taken, address, now, protected=protected))

    def closed(self, link: Connection) -> None:
        """Notes the end of a connection."""
        key = self._keys.pop(link, None)
        if key is not None:
            del self._links[key]
            self._perform(self.quotas.closed(key, self._process.kernel.time))

    def used(self, link: Connection) -> None:
        """Notes a request on a connection."""
        key = self._keys.get(link)
        if key is not None:
            self.quotas.used(key)

    def _perform(self, effects: list[ConnectionEffect]) -> None:
        process = self._process
        now = process.kernel.time
        for effect in effects:
            if isinstance(effect, AcceptConnection):
                if effect.key in self._links:
                    self._sockets.accepted(self._links[effect.key])
            elif isinstance(effect, DropConnection):
                self._note(effect.key, effect.quota, effect.at - now)
                process.call_at(effect.at, self._drop, effect.key)
            elif isinstance(effect, Waited):
                self._note(effect.key, "max.connection.creation.rate", effect.wait_us)
        wake = first_wake(effects)
        # A later one is scheduled again by the one before.
        if now < wake and not now < self._wake_at <= wake:
            self._wake_at = wake
            process.call_at(wake, self._wake_up)

    def _wake_up(self) -> None:
        self._perform(self.quotas.wake(self._process.kernel.time))

    def _drop(self, key: int) -> None:
        link = self._links.get(key)
        if link is not None:
            self._sockets.drop(link)

    def _note(self, key: int, quota: str, wait: Micros) -> None:
        link = self._links.get(key)
        if link is not None:
            row = Throttles.row(
                self._node_id,
                client=link.client.name,
                client_id=link.client.host_name,
                request="",
                quota=quota,
                throttle_us=wait,
            )
            self._process.trace.write(self._process.kernel.time, row)
