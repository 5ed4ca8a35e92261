"""Hosts, links and ordered connections.

A connection is TCP as applications see it: bytes written to one socket reach the other in order or
not at all. A cut link loses nothing that a socket accepted: both sides retransmit with a back-off
that doubles from 200 ms, so after a heal the next attempt may come late; a connection that is about
to be opened is tried again each second at first. Only a closed connection loses what a cut kept
from leaving. A message that a rule holds has left its host: it arrives in the end, even if its
sender ends, followed by the end of the connection. A killed process resets its connections after
the data its kernel already held; a host without power sends nothing, and answers with a reset once
it is back.

Left out, unless switches have a buffer (``sim/substrate/switch.py``): congestion control, receive
windows, and queueing at the receiver's interface unless it is slower than the sender's.

Source: observed on a real cluster across cut links; RFC 6298 and Linux's ``net/ipv4/tcp_timer.c``
for the retransmission timers.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from sim.kernel import Kernel
from sim.rng import Streams
from sim.substrate.links import CONTROL_BYTES, LinkRule, Message, NetworkSpec, retransmission_us
from sim.substrate.rules import (  # fmt: skip
    DROPPED,
    HELD,
    Interface,
    Route,
    Routes,
    RuleHandle,
    Waiting,
)
from sim.substrate.switch import Flow, Port
from sim.substrate.tls import TlsSpec, Validity, sealed
from sim.units import LONG_AGO, SECOND, Bytes, Micros

__all__ = [
    "Connection", "Endpoint", "LinkRule", "Message", "Network", "NetworkSpec", "Pipe", "RuleHandle",
]  # fmt: skip


class Endpoint(Protocol):
    """A process that sends and receives."""

    name: str
    incarnation: int
    running: bool
    tearing_down: bool
    """True if killed while its sockets are still open: what they receive is lost."""

    @property
    def host_name(self) -> str:
        """The host it runs on."""

    def on_message(
        self, link: "Connection", message: Message, correlation: int, sent_us: Micros
    ) -> None:
        """Handles a message; ``correlation`` is the number in its header."""

    def on_open(self, link: "Connection") -> None:
        """Handles the establishment of a connection that this process opened."""

    def on_accept(self, link: "Connection") -> None:
        """Handles a connection from another process."""

    def on_connect_during_teardown(self, link: "Connection") -> None:
        """Handles a connection to a killed process whose sockets are still open."""

    def on_hello(self, link: "Connection") -> None:
        """Handles a client's TLS hello; ``answer_hello`` ends this process's part."""

    def on_closed(self, link: "Connection") -> None:
        """Handles a connection closed, reset or refused by the other end."""


class Network(Routes):
    """All hosts and what connects them."""

    def __init__(self, kernel: Kernel, streams: Streams, spec: NetworkSpec) -> None:
        super().__init__(streams, spec)
        self.kernel = kernel
        self.on_delivery: Callable[[str, str, Message, Micros, str], None] | None = None
        """Called for each message that arrives: sender, receiver, message, sent, delayed by."""
        self._interfaces: dict[str, Interface] = {}
        self.us_per_byte_scaled = 8 * SECOND
        self.bandwidth_bits = spec.bandwidth_bits
        self._buffer_bytes = spec.switch_buffer_bytes
        self.ports: dict[str, Port] = {}
        """Switches' queues to hosts, if they have a buffer."""

    # -- hosts ------------------------------------------------------------------------------------

    def add_host(self, host: str, switch: str, bandwidth_bits: int = 0) -> None:
        """Connects a host to the switch of its rack, or to that of the clients."""
        self.topology.add_host(host, switch)
        self._interfaces[host] = Interface(bandwidth_bits or self.bandwidth_bits)
        if self._buffer_bytes:
            self.ports[host] = Port(bandwidth_bits or self.bandwidth_bits, self._buffer_bytes)

    def set_power(self, host: str, *, powered: bool) -> None:
        """Switches a host's power: without it, it neither sends nor receives."""
        interface = self._interfaces[host]
        interface.power_losses += interface.powered and not powered
        interface.powered = powered

    # -- connections ------------------------------------------------------------------------------

    def connect(
        self, client: Endpoint, server: Endpoint, tls: TlsSpec | None = None
    ) -> "Connection":
        """Begins a connection. The client gets ``on_open`` or ``on_closed``, or no callback."""
        connection = Connection(self, client, server, tls)
        connection.begin()
        return connection

    def flow(self, pipe: "Pipe", *, serves: bool) -> Flow | None:
        """The flow of a pipe, to who ``serves`` or is served, if switches have a buffer."""
        port = self.ports.get(pipe.route.receiver)
        if port is None or pipe.interface is pipe.target:
            return None
        back = self.route(pipe.route.receiver, pipe.route.sender).delays
        return Flow(self.kernel, pipe.interface, port, pipe.route.delays, back, pipe, serves=serves)

    def interface(self, host: str) -> Interface:
        """The host's network card."""
        return self._interfaces[host]


@dataclass(slots=True)
class Pipe:
    """One direction of a connection: in order, and never lossy while the connection lives."""

    connection: "Connection"
    sender: Endpoint
    receiver: Endpoint
    network: Network
    route: Route
    interface: Interface
    target: Interface
    tls: TlsSpec | None = None
    last_arrival: Micros = LONG_AGO
    waiting: deque[Waiting] = field(default_factory=deque)
    retransmitted: int = 0
    """Retransmissions of the first waiting message."""
    retry_at: Micros = LONG_AGO
    power_losses: int = 0
    """Power losses of the sender's host before the connection was opened."""
    closed: bool = False
    flow: Flow | None = None
    """Set if switches have a buffer."""

    def send(self, message: Message, correlation: int, not_before: Micros = LONG_AGO) -> None:
        """Hands a message to the socket, at the instant ``not_before`` or now."""
        network = self.network
        now = network.kernel.time
        size = message.size_bytes
        if self.tls is not None:
            size = sealed(size)
        start = not_before if not_before > now else now
        if self.waiting or (network.version and network.rules_on(self.route)):
            self._send_slowly(Waiting(message, None, size, start, "", correlation), start)
            return
        if self.flow is not None:
            self.flow.carry(Waiting(message, None, size, start, "", correlation), start, 0)
            return
        arrival = self._transmit(size, start)
        network.kernel.call_at(arrival, self._arrive, message, size, start, correlation)

    def send_control(self, action: Callable[[], None], *, opens: bool = False) -> None:
        """Sends a segment without payload; the action happens where it arrives, in order.

        One that ``opens`` the connection (SYN, SYN-ACK) has a retransmission timer of its own.
        """
        now = self.network.kernel.time
        self._send_slowly(Waiting(None, action, CONTROL_BYTES, now, "", opens=opens), now)

    def lose_waiting(self) -> None:
        """Closes the sender's end: its socket's data is lost, unless the network has the first."""
        if self.waiting and not self.waiting[0].is_on_its_way:
            self.waiting.clear()

    def has_no_sender(self) -> bool:
        """True if the sender's kernel has lost power, with the data it had accepted."""
        interface = self.interface
        return not interface.powered or interface.power_losses != self.power_losses

    def cut_by(self) -> str:
        """Name of the fault rule that cuts the way now, empty if none does."""
        for handle in self.network.rules_on(self.route):
            if handle.rule.cut and not handle.rule.kinds:
                return handle.rule.name
        return ""

    def drop(self) -> None:
        """Closes the pipe: the socket's data is lost, nothing more arrives."""
        self.closed = True
        self.waiting.clear()
        if self.flow is not None:
            self.flow.stop()

    def _transmit(self, size: Bytes, start: Micros, extra: Micros = 0) -> Micros:
        interface = self.interface
        network = self.network
        free = interface.free_at
        free = (free if free > start else start) + -(
            -size * network.us_per_byte_scaled // interface.bandwidth_bits
        )
        interface.free_at = free
        interface.sent_bytes += size
        if self.target.bandwidth_bits < interface.bandwidth_bits:
            free = self.target.receive(size, free)
        arrival = free + self.route.delays.draw() + extra
        if arrival < self.last_arrival:
            arrival = self.last_arrival
        self.last_arrival = arrival
        return arrival

    def _send_slowly(self, item: Waiting, start: Micros) -> None:
        if self.waiting:
            self.waiting.append(item)
            self._count_held(item)
            return
        extra = self._verdict(item)
        if extra is None:
            self._hold(item)
            return
        if extra == HELD:
            item.is_on_its_way = True
            self.waiting.append(item)
            return
        if extra == DROPPED:
            self.connection.sever()
            return
        if self.flow is not None:
            self.flow.carry(item, start, extra)
            return
        arrival = self._transmit(item.size, start, extra)
        self.network.kernel.call_at(arrival, self.arrived, item)

    def _verdict(self, item: Waiting) -> Micros | None:
        """Extra delay by the rules in force, ``None`` if the route is cut, HELD or DROPPED."""
        kernel, rules = self.network.kernel, self.network.rules_on(self.route)
        extra = self.route.verdict(rules, item, kernel.time, self)
        if extra is not None and extra >= 0:
            for handle in rules:
                if handle.repeats(item):
                    at = kernel.time + handle.rule.repeat_us
                    kernel.call_at(at, self.connection.repeat, item, handle)
        return extra

    def _count_held(self, item: Waiting) -> None:
        for handle in self.network.rules_on(self.route):
            if handle.rule.cut:
                handle.affected += 1
                item.held_by = handle.rule.name

    def release(self) -> None:
        """Releases the first waiting message at once."""
        if self.closed or not self.waiting:
            return
        first = self.waiting[0]
        if self.has_no_sender():
            # What waited behind it had not left the host.
            self.waiting.clear()
            if first.is_on_its_way:
                self._send_slowly(first, self.network.kernel.time)
            return
        self._retry()

    def _hold(self, item: Waiting) -> None:
        self.waiting.append(item)
        if len(self.waiting) == 1:
            self.retransmitted = 0
            self._retry_later()

    def _retry_later(self) -> None:
        wait = retransmission_us(self.retransmitted, opens=self.waiting[0].opens)
        self.retransmitted += 1
        self.retry_at = self.network.kernel.time + wait
        self.network.kernel.call_at(self.retry_at, self._timed_out)

    def _timed_out(self) -> None:
        # The message of an earlier timer may have been sent, and a later timer may be set.
        if self.network.kernel.time == self.retry_at:
            self._retry()

    def _retry(self) -> None:
        if self.closed or not self.waiting:
            return
        if self.has_no_sender():
            self.drop()
            return
        verdict = self._verdict(self.waiting[0]) if self.target.powered else None
        if verdict is None:
            self._retry_later()
            return
        if verdict == HELD:
            return
        held = list(self.waiting)
        self.waiting.clear()
        for item in held:
            self._send_slowly(item, self.network.kernel.time)

    def _arrive(self, message: Message, size: Bytes, sent_us: Micros, correlation: int) -> None:
        if self.closed:
            return
        if not self.target.powered:
            self._hold(Waiting(message, None, size, sent_us, "no power", correlation))
            return
        self.connection.deliver(self, message, correlation, sent_us, "")

    def arrived(self, item: Waiting) -> None:
        """Gives a message that has arrived to its process, or holds it without power."""
        if self.closed:
            return
        if not self.target.powered:
            item.held_by = item.held_by or "no power"
            self._hold(item)
        elif item.control is not None:
            item.control()
        elif item.message is not None:
            connection = self.connection
            connection.deliver(self, item.message, item.correlation, item.sent_us, item.held_by)


class Connection:
    """One TCP connection between a client process and a server process."""

    __slots__ = (
        "client",
        "client_incarnation",
        "is_open",
        "network",
        "server",
        "server_incarnation",
        "tls",
        "to_client",
        "to_server",
        "validity",
    )

    def __init__(
        self, network: Network, client: Endpoint, server: Endpoint, tls: TlsSpec | None = None
    ) -> None:
        self.network = network
        self.tls = tls
        """Set if both ends encrypt what they send."""
        self.validity = Validity()
        self.client = client
        self.server = server
        self.client_incarnation = client.incarnation
        self.server_incarnation = -1
        self.is_open = False
        self.to_server = self._pipe(client, server)
        self.to_client = self._pipe(server, client)

    def _pipe(self, sender: Endpoint, receiver: Endpoint) -> Pipe:
        network = self.network
        pipe = Pipe(
            self,
            sender,
            receiver,
            network,
            network.route(sender.host_name, receiver.host_name),
            network.interface(sender.host_name),
            network.interface(receiver.host_name),
            self.tls,
            power_losses=network.interface(sender.host_name).power_losses,
        )
        pipe.flow = network.flow(pipe, serves=receiver is self.server)
        return pipe

    def begin(self) -> None:
        """Sends the first segment of the handshake."""
        self.to_server.send_control(self._arrived_at_server, opens=True)

    def close(self, by: Endpoint) -> None:
        """Closes one end: what a cut kept in its socket is lost; the other end is notified."""
        pipe = self.to_server if by is self.client else self.to_client
        self._shut(pipe, lose_waiting=True)

    def reset(self, by: Endpoint) -> None:
        """Resets the connection of a dead process after delivering what its kernel held."""
        pipe = self.to_server if by is self.client else self.to_client
        self._shut(pipe, lose_waiting=False)

    def deliver(
        self, pipe: Pipe, message: Message, correlation: int, sent_us: Micros, held_by: str
    ) -> None:
        """Gives a message to its process, or resets if there is none."""
        receiver = pipe.receiver
        expected = self.server_incarnation if receiver is self.server else self.client_incarnation
        if not receiver.running or receiver.incarnation != expected:
            self._refuse(receiver)
            return
        on_delivery = self.network.on_delivery
        if on_delivery is not None:
            on_delivery(pipe.sender.name, receiver.name, message, sent_us, held_by)
        receiver.on_message(self, message, correlation, sent_us)

    def repeat(self, item: Waiting, rule: RuleHandle) -> None:
        """Gives a request to its server again, whose answer has nobody to go to."""
        server, message, network = self.server, item.message, self.network
        if message is None or not server.running or not self.to_server.target.powered:
            return
        rule.affected += 1
        if network.on_delivery is not None:
            name = rule.rule.name
            network.on_delivery(self.client.name, server.name, message, item.sent_us, name)
        left = Connection(network, self.client, server)
        left.server_incarnation = server.incarnation
        left.to_client.drop()
        server.on_accept(left)
        server.on_message(left, message, item.correlation, item.sent_us)
        server.on_closed(left)

    def _refuse(self, receiver: Endpoint) -> None:
        """Resets, as no process will read what arrived, unless the socket is still open."""
        if not receiver.tearing_down:
            self.reset(receiver)

    def sever(self) -> None:
        """Breaks the connection with all that it carried; both ends see it closed at once."""
        self.is_open = False
        for pipe in (self.to_server, self.to_client):
            pipe.drop()
            self.network.kernel.call_in(0, self._closed_at, pipe)

    def _arrived_at_server(self) -> None:
        if self.server.tearing_down:
            # Its listening socket is still open, and the kernel needs no process to accept.
            self.server_incarnation = self.server.incarnation
            self.server.on_connect_during_teardown(self)
            if self.tls is None:
                self.to_client.send_control(self._established)
            return
        if not self.server.running:
            self.reset(self.server)
            return
        self.server_incarnation = self.server.incarnation
        self.to_client.power_losses = self.to_client.interface.power_losses
        self.server.on_accept(self)
        # A lost answer is resent with each SYN of the client.
        greeting = self._established if self.tls is None else self._greet
        self.to_client.send_control(greeting, opens=True)

    def _greet(self) -> None:
        """Begins the TLS handshake after TCP's: a client hello, answered by a live server."""
        if self._is_there(self.client, self.client_incarnation):
            self.to_server.send_control(self._greeted)
        else:
            self._refuse(self.client)

    def _greeted(self) -> None:
        if self._is_there(self.server, self.server_incarnation):
            self.server.on_hello(self)
        else:
            self._refuse(self.server)

    def answer_hello(self) -> None:
        """Ends the server's part of the TLS handshake."""
        self.to_client.send_control(self._established)

    def _established(self) -> None:
        if self._is_there(self.client, self.client_incarnation):
            self.is_open = True
            self.client.on_open(self)
        else:
            self._refuse(self.client)

    def _shut(self, pipe: Pipe, *, lose_waiting: bool) -> None:
        if pipe.closed:
            return
        self.is_open = False
        other = self.to_client if pipe is self.to_server else self.to_server
        other.drop()
        if pipe is self.to_server and pipe.waiting and pipe.waiting[0].opens:
            pipe.drop()  # a socket that is still connecting sends nothing when closed
            return
        if lose_waiting:
            pipe.lose_waiting()
        pipe.send_control(lambda: self._closed_at(pipe))

    def _closed_at(self, pipe: Pipe) -> None:
        pipe.drop()
        receiver = pipe.receiver
        expected = self.server_incarnation if receiver is self.server else self.client_incarnation
        if self._is_there(receiver, expected):
            receiver.on_closed(self)

    @staticmethod
    def _is_there(process: Endpoint, incarnation: int) -> bool:
        return process.running and process.incarnation == incarnation
