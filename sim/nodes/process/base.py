"""A process on the network: its start and end, its sockets, and its channels to servers."""

from collections.abc import Callable

from sim.ids import NodeId
from sim.kernel import Call
from sim.nodes.process.channel import Channel, Requester
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.reconnect import policy_of
from sim.protocol import effects as fx
from sim.protocol.security.client import SaslClientAuthenticator
from sim.protocol.security.config import ClientSecurity
from sim.substrate.host import Host
from sim.substrate.network import Connection, Endpoint, Message
from sim.substrate.tls import TlsSpec
from sim.units import LONG_AGO, NEVER, Micros


class Node(Requester):
    """A process on a host."""

    def __init__(self, name: str, host: Host, world: World) -> None:
        super().__init__(name, host, world)
        self.world = world
        self.network = world.network
        self.tearing_down = False
        """True if it is killed and its sockets are still open: data that they receive is lost."""
        self.starting = False
        """True if it is started and does nothing yet: its JVM loads and compiles classes."""
        self.start_us: Micros = 0
        """From a start until the process does anything."""
        self._first_step: Call | None = None
        self.teardown_us: Micros = 0
        """From a kill until the sockets close: the kernel frees the memory first."""
        self._closing: list[Connection] = []
        """Connections of a killed process whose sockets are still open."""
        self._starts_next = False
        self._started_us: Micros = LONG_AGO
        self.spare = False
        """True before it is part of the cluster: only its addition starts it."""
        self.tls: TlsSpec | None = None
        """Of outgoing connections; ``None``: plaintext."""
        self.idle_us: Micros = NEVER
        """``connections.max.idle.ms``: an idle connection is closed after it."""
        self.never_idle: frozenset[str] = frozenset()
        """Channels without that limit."""
        self.security: ClientSecurity | None = None
        """Credentials on outgoing connections; ``None``: no listener requires any."""
        self.performers[fx.Send] = self._send
        self.performers[fx.Listen] = self._listen
        self.performers[fx.Disconnect] = self._disconnect
        self.performers[fx.Close] = self._end_channel
        self._channels: dict[tuple[NodeId, str], Channel] = {}
        self._by_connection: dict[Connection, Channel] = {}
        host.nodes.append(self)

    # -- life -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the process, without any state of the one before.

        Its port is free once the sockets of the one before are closed. What starts before the
        scenario's zero is the cluster that is there: its JVMs have loaded.
        """
        assert not self.running, f"{self.name} is running"
        if self.tearing_down:
            self._starts_next = True
            return
        if self.starting:
            return
        if self.start_us and self.kernel.time >= 0:
            self.starting = True
            at = self.kernel.time + self.start_us
            self._first_step = self.kernel.call_at(at, self._start_now)
            return
        self._start_now()

    def _start_now(self) -> None:
        """Begins a new incarnation, now that its code is loaded."""
        self.starting = False
        self.incarnation += 1
        self.running = True
        self._started_us = self.kernel.time
        self._forget()
        self.note_state("started")
        self.boot()

    def boot(self) -> None:
        """Creates the machines and begins; every process overrides it."""
        raise NotImplementedError

    def crash(self) -> None:
        """Dies at once (``kill -9``): the page cache stays, connections are reset.

        Not at once: the kernel frees the memory of a process before it closes its files. Until then
        it acknowledges segments that no process will read.

        Source: Linux ``do_exit``: ``exit_mm`` comes before ``exit_files``.
        """
        self._die("crashed")
        self._closing = self.open_connections()
        self._forget()
        if self.teardown_us == 0:
            self._close_sockets(self.incarnation)
            return
        self.tearing_down = True
        at = self.kernel.time + self.teardown_us
        self.kernel.call_at(at, self._close_sockets, self.incarnation)

    def lose_power(self) -> None:
        """Loses power with the host: peers get no message."""
        if self.running:
            self._die("powered_off")
        self.tearing_down = self._starts_next = False
        if self.starting and self._first_step is not None:
            self.starting = False
            self._first_step.cancel()
        self._closing = []
        self._forget()

    def _close_sockets(self, incarnation: int) -> None:
        """The memory of a killed process is freed: its connections are reset."""
        if incarnation != self.incarnation or self.running:
            return
        self.tearing_down = False
        closing, self._closing = self._closing, []
        for connection in closing:
            connection.reset(self)
        if self._starts_next:
            self._starts_next = False
            self.start()

    def on_connect_during_teardown(self, link: Connection) -> None:
        """The kernel of a killed process accepts a connection: it is reset with the others."""
        self._closing.append(link)

    def shut_down(self) -> None:
        """Stops in good order (SIGTERM); a process without a controlled shutdown just ends."""
        self._die("stopped")
        for connection in self.open_connections():
            connection.reset(self)
        self._forget()

    def end(self, state: str = "stopped") -> None:
        """Exits: closes everything that it has opened."""
        open_connections = self.open_connections()
        self._die(state)
        self._forget()
        for connection in open_connections:
            connection.close(self)

    def accept_again(self) -> None:
        """Its host has file descriptors again; no effect on processes that only connect."""

    def speed_up(self, by: int) -> None:
        """Its host's CPU has its usual speed again; only processes with request handlers care."""

    def open_connections(self) -> list[Connection]:
        """Every connection of this process."""
        return list(self._by_connection)

    def _forget(self) -> None:
        self.ports = {}
        self._channels = {}
        self._by_connection = {}
        self._held = []

    # -- effects of every machine -----------------------------------------------------------------

    def _send(self, port: Port, effect: fx.Send) -> None:
        self.channel(effect.to, effect.channel).send(
            port, effect.correlation, effect.request, effect.timeout_us
        )

    def _listen(self, port: Port, effect: fx.Listen) -> None:
        self.channel(effect.to, effect.channel).listen(port)

    def _disconnect(self, port: Port, effect: fx.Disconnect) -> None:  # noqa: ARG002
        channel = self._channels.get((effect.to, effect.channel))
        if channel is not None:
            channel.disconnect()

    def _end_channel(self, port: Port, effect: fx.Close) -> None:  # noqa: ARG002
        channel = self._channels.pop((effect.to, effect.channel), None)
        if channel is not None:
            channel.disconnect()

    # -- the network ------------------------------------------------------------------------------

    def channel(self, peer: NodeId, label: str = "") -> Channel:
        """Channel to a server, created on demand."""
        channel = self._channels.get((peer, label))
        if channel is None:
            unit = self.streams.named(f"channel/{self.name}->{peer}/{label}").unit
            idle_us = NEVER if label in self.never_idle else self.idle_us
            channel = Channel(self, peer, unit, policy_of(label), idle_us)
            self._channels[peer, label] = channel
        return channel

    def tls_to(self, peer: NodeId) -> TlsSpec | None:  # noqa: ARG002 - brokers look at it
        """TLS of this process's connections to a server; ``None``: plaintext."""
        return self.tls

    def open_connection(self, channel: Channel, peer: NodeId) -> Connection:
        """Begins a connection to a server; the channel gets the outcome."""
        server = self.world.server(peer)
        assert server is not None, f"no server with id {peer}"
        found = self.address_of(peer)
        if found is None:
            # UnknownHostException: NetworkClient closes the node's connection at once.
            connection = Connection(self.network, self, server)
            self.kernel.call_at(self.kernel.time, self.on_closed, connection)
        else:
            connection = self.network.connect(self, found, self.tls_to(peer))
        if self.security is not None and self.security.certificate is not None:
            certificate, now = self.security.certificate, self.kernel.time
            connection.validity.client_us = certificate.valid_until(self._started_us, now)
        self._by_connection[connection] = channel
        return connection

    def authenticator(self, chance: Callable[[], float]) -> SaslClientAuthenticator | None:
        """Authenticator of a new connection; ``None`` without credentials."""
        if self.security is None:
            return None
        return SaslClientAuthenticator(self.security, f"{int(chance() * (1 << 53)):x}", chance())

    def address_of(self, peer: NodeId) -> Endpoint | None:
        """Server behind the name that a server advertises to clients; ``None``: nobody."""
        return self.world.advertised(peer)

    def close_connection(self, connection: Connection) -> None:
        """Closes a connection; its channel gets no more events of it."""
        self._by_connection.pop(connection, None)
        connection.close(self)

    def on_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        """A message arrived at this process's socket."""
        if self.frozen:
            self._held.append((self._receive_message, (link, message, correlation, sent_us)))
        else:
            self._receive_message(link, message, correlation, sent_us)

    def _receive_message(
        self,
        link: Connection,
        message: Message,
        correlation: int,
        sent_us: Micros,  # noqa: ARG002
    ) -> None:
        channel = self._by_connection.get(link)
        if channel is not None:
            channel.on_response(message, correlation)

    def on_open(self, link: Connection) -> None:
        """An outgoing connection is established."""
        channel = self._by_connection.get(link)
        if channel is not None:
            channel.on_open()

    def on_accept(self, link: Connection) -> None:  # noqa: ARG002 - servers look at it
        """Another process connected; only servers listen."""
        raise AssertionError(f"{self.name} does not listen")

    def on_hello(self, link: Connection) -> None:  # noqa: ARG002 - servers answer it
        """A client begins the TLS handshake; only servers listen."""
        raise AssertionError(f"{self.name} does not listen")

    def on_closed(self, link: Connection) -> None:
        """A connection is closed."""
        channel = self._by_connection.pop(link, None)
        if channel is None:
            return
        if self.frozen:
            self._held.append((channel.on_closed, ()))
        else:
            channel.on_closed()
