"""A client's servers in its network layer, and its open requests.

The transport below connects on demand and waits for Kafka's reconnect back-off. A server is ready
once it has answered on an open connection; the first request on a new connection is an empty
metadata request, where Kafka sends ApiVersions.

Source: ``clients/NetworkClient.java``.
"""

from collections.abc import Callable
from dataclasses import dataclass

from sim.ids import NodeId
from sim.protocol.clients.producer.batch import ProducerBatch
from sim.protocol.clients.producer.events import Connections
from sim.protocol.effects import Send
from sim.protocol.messages.base import Request
from sim.protocol.messages.metadata import MetadataRequest
from sim.units import LONG_AGO, NEVER, Micros


@dataclass(slots=True, eq=False)
class Peer:
    """One server."""

    node: NodeId
    in_flight: int = 0
    """Requests without an answer."""
    ready: bool = False
    """True if it has answered since the last failure."""
    connecting: bool = False
    """True if the first request on a new connection is in flight."""
    failures: int = 0
    """Number of lost connections; distinguishes requests of a lost one from those of the next."""
    failed_at: Micros = LONG_AGO
    drain_index: int = 0
    """Index of the partition with which the next request begins."""
    parts: tuple[int, ...] = ()
    """Partitions that it leads, as far as the client knows."""
    throttled_until: Micros = LONG_AGO
    """End of its throttling; LONG_AGO: not throttled."""


@dataclass(slots=True, eq=False)
class OpenRequest:
    """An open request; ``batches`` only for produce requests."""

    kind: str
    peer: Peer
    batches: tuple[ProducerBatch, ...]
    failures: int
    """Failures of its peer when it was sent."""


class ProducerNetwork:
    """Connections and open requests of one producer."""

    def __init__(
        self,
        connections: Connections,
        unit: Callable[[], float],
        *,
        in_flight_max: int,
        timeout_us: Micros,
        first_correlation: int,
    ) -> None:
        self._connections = connections
        self._unit = unit
        self._in_flight_max = in_flight_max
        self._timeout_us = timeout_us
        self._correlation = first_correlation
        self.retry_at: Micros = NEVER
        """Time at which a server is available, if the last search found all backing off."""
        self.throttled = False
        """True if any server throttles this client."""
        self.peers: dict[NodeId, Peer] = {}
        self.open: dict[int, OpenRequest] = {}

    def peer(self, node: NodeId) -> Peer:
        """The server, created when it is first named."""
        peer = self.peers.get(node)
        if peer is None:
            peer = self.peers[node] = Peer(node)
        return peer

    def has_capacity(self, peer: Peer) -> bool:
        """True if a request would not wait: not connecting, below the limit, not throttled."""
        return (
            peer.in_flight < self._in_flight_max
            and not peer.connecting
            and peer.throttled_until == LONG_AGO
        )

    def is_ready(self, peer: Peer) -> bool:
        """True if a request can be sent now: connected, and below the in-flight limit."""
        return self.is_connected(peer) and peer.in_flight < self._in_flight_max

    def throttle(self, node: NodeId, until: Micros) -> None:
        """Throttles until the instant, which never moves back.

        Source: ``ClusterConnectionStates.throttle``.
        """
        peer = self.peer(node)
        peer.throttled_until = max(peer.throttled_until, until)
        self.throttled = True

    def unthrottle(self, now: Micros) -> None:
        """Ends throttlings that have passed."""
        self.throttled = False
        for peer in self.peers.values():
            if peer.throttled_until <= now:
                peer.throttled_until = LONG_AGO
            else:
                self.throttled = True

    def throttle_ends(self) -> Micros:
        """First end of a throttling; NEVER without one."""
        if not self.throttled:
            return NEVER
        waits = [p.throttled_until for p in self.peers.values() if p.throttled_until > LONG_AGO]
        return min(waits, default=NEVER)

    def is_connected(self, peer: Peer) -> bool:
        """True if the connection is established and has answered."""
        if peer.ready and not self._connections.is_open(peer.node):
            peer.ready = False
        return peer.ready

    def begin(self, kind: str, peer: Peer, batches: tuple[ProducerBatch, ...]) -> int:
        """Numbers a request that is sent now."""
        self._correlation += 1
        self.open[self._correlation] = OpenRequest(kind, peer, batches, peer.failures)
        peer.in_flight += 1
        return self._correlation

    def end(self, correlation: int) -> OpenRequest | None:
        """The request with that number has ended; ``None`` if it was not open."""
        request = self.open.pop(correlation, None)
        if request is not None:
            request.peer.in_flight -= 1
        return request

    def send(self, kind: str, peer: Peer, request: Request) -> Send:
        """Sends a request other than produce; it makes the connection if there is none."""
        if not peer.ready:
            peer.connecting = True
        return Send(peer.node, self.begin(kind, peer, ()), request, self._timeout_us)

    def connectable_at(self, peer: Peer) -> Micros:
        """End of the server's reconnect back-off."""
        return self._connections.connectable_at(peer.node)

    def connect(self, peer: Peer, now: Micros) -> Send | None:
        """Makes the connection, unless that is in progress or in its back-off."""
        if peer.connecting or self.connectable_at(peer) > now:
            return None
        return self.send("handshake", peer, MetadataRequest(()))

    def on_answer(self, request: OpenRequest) -> None:
        """The server answered."""
        request.peer.ready = True
        request.peer.connecting = False

    def on_failure(self, request: OpenRequest, now: Micros) -> None:
        """The request's connection is lost; its other requests fail one after the other."""
        peer = request.peer
        if request.failures == peer.failures:
            peer.failures += 1
            peer.ready = peer.connecting = False
            peer.failed_at = now

    def least_loaded(self, nodes: tuple[NodeId, ...], now: Micros) -> Peer | None:
        """Least loaded server: of the connected, one with the fewest requests in flight.

        If none is connected, the one unused for longest that may be connected to; ``None`` while a
        connection is being made, while all connected ones are at their limit, and while every
        server is in its back-off: then ``retry_at`` is the end of the first.

        Source: ``NetworkClient.leastLoadedNode``.
        """
        start = int(self._unit() * len(nodes))
        connected: Peer | None = None
        idle: Peer | None = None
        must_wait = False
        retry_at = NEVER
        for place in range(len(nodes)):
            peer = self.peer(nodes[(start + place) % len(nodes)])
            if self.is_connected(peer):
                must_wait = True
                if self.has_capacity(peer) and (
                    connected is None or peer.in_flight < connected.in_flight
                ):
                    connected = peer
            elif peer.connecting:
                must_wait = True
            elif (at := self.connectable_at(peer)) > now:
                retry_at = min(retry_at, at)
            elif idle is None or peer.failed_at < idle.failed_at:
                idle = peer
        self.retry_at = NEVER if must_wait or idle is not None else retry_at
        return connected if must_wait else idle
