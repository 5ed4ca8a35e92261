"""The client end of a connection to one server, as Kafka's ``NetworkClient`` keeps it.

Responses come in the order of the requests. A request that is not answered in time closes the
connection, and every open request on it fails. After a failure the next connection waits for the
reconnect back-off. What is sent meanwhile waits here.

A connection that is not established in time is given up, and the next one gets twice as long; only
attempts in a row count for that. Threads of a broker that send one request and wait for its answer
(fetchers, a ZooKeeper controller) forget the server's state with each failure, so their time never
grows.

Source: ``clients/NetworkClient.java``, ``ClusterConnectionStates.java`` (KIP-144, KIP-601);
``BrokerBlockingSender``, ``ControllerChannelManager``, ``InterBrokerSendThread``, ``RaftManager``.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.nodes.process.dispatcher import Dispatcher
from sim.nodes.process.port import Port
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Request
from sim.substrate.links import Envelope
from sim.substrate.network import Connection, Message
from sim.substrate.tls import TlsSpec
from sim.units import LONG_AGO, MS, NEVER, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class ReconnectPolicy:
    """How a kind of connection is made again."""

    backoff_us: Micros
    """``reconnect.backoff.ms``."""
    backoff_us_max: Micros
    """``reconnect.backoff.max.ms``; the same as ``backoff_us``: neither growth nor jitter."""
    forgets: bool = False
    """Whether each failure closes the client's state of the server."""


CLIENTS = ReconnectPolicy(50 * MS, 1 * SECOND)
"""Producers, consumers, administrators."""

BLOCKING = ReconnectPolicy(0, 0, forgets=True)
"""Who sends a request and waits for its answer; its own back-off follows a failure."""

SEND_THREADS = ReconnectPolicy(50 * MS, 50 * MS)
"""A broker's requests to controllers and coordinators, and transaction markers."""

RAFT = ReconnectPolicy(50 * MS, 500 * MS)
"""Voters and observers of the metadata quorum."""

_POLICIES = {
    "": CLIENTS,
    "coordinator": CLIENTS,
    "controller": BLOCKING,
    "quorum": RAFT,
}


def policy_of(label: str) -> ReconnectPolicy:
    """How connections of that label are made again."""
    if label.startswith("fetcher-"):
        return BLOCKING
    return _POLICIES.get(label, SEND_THREADS)


SETUP_TIMEOUT_US: Micros = 10 * SECOND
"""``socket.connection.setup.timeout.ms``."""

SETUP_TIMEOUT_US_MAX: Micros = 30 * SECOND
"""``socket.connection.setup.timeout.max.ms``."""


@dataclass(init=False, slots=True)
class _Open:
    """A request without an answer."""

    port: Port
    correlation: int
    request: Request
    deadline: Micros

    def __init__(
        self,
        port: Port,
        correlation: int,
        request: Request,
        deadline: Micros,
    ) -> None:
        self.port = port
        self.correlation = correlation
        self.request = request
        self.deadline = deadline


class Requester(Dispatcher):
    """A process that asks servers, as its channels see it."""

    @abstractmethod
    def open_connection(self, channel: "Channel", peer: NodeId) -> Connection:
        """Begin a connection to a server; the channel hears what becomes of it."""

    @abstractmethod
    def close_connection(self, connection: Connection) -> None:
        """Close a connection; its channel hears of it no more."""

    def receive(self, port: Port, event: ResponseReceived) -> None:
        """An answer to a machine's request; a process that pays for it first overrides this."""
        self.deliver(port, event)

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """A server makes this process wait; what it sends meanwhile waits in its channel."""


class Channel:
    """One connection of a process to a server, with what is open on it."""

    __slots__ = (
        "_backoff_until",
        "_cipher_free",
        "_connection",
        "_failures",
        "_open",
        "_peer",
        "_policy",
        "_process",
        "_setup_by",
        "_setups_failed",
        "_throttled_until",
        "_timer",
        "_unit",
        "_waiting",
    )

    def __init__(
        self, process: Requester, peer: NodeId, unit: Callable[[], float], policy: ReconnectPolicy
    ) -> None:
        self._process = process
        self._peer = peer
        self._policy = policy
        self._unit = unit
        self._connection: Connection | None = None
        self._open: deque[_Open] = deque()
        self._waiting: deque[_Open] = deque()
        self._failures = 0
        """Connections in a row that ended, whether they had been established or not."""
        self._setups_failed = 0
        """Attempts in a row that did not lead to a connection."""
        self._backoff_until: Micros = -NEVER
        self._setup_by: Micros = NEVER
        self._cipher_free: Micros = LONG_AGO
        self._throttled_until: Micros = 0
        """By the kernel's clock, when the server's quotas let this client go on; 0: at any time."""
        self._timer = process.timer(self._due)

    @property
    def is_open(self) -> bool:
        """Whether the connection is established."""
        return self._connection is not None and self._connection.is_open

    @property
    def connectable_at(self) -> Micros:
        """The instant before which no connection is attempted: the reconnect back-off's end."""
        return self._backoff_until if self._connection is None else LONG_AGO

    def send(self, port: Port, correlation: int, request: Request, timeout_us: Micros) -> None:
        """Send, or wait for the connection; the machine hears of the outcome once."""
        deadline = self._process.kernel.time + timeout_us
        item = _Open(port, correlation, request, deadline)
        connection = self._connection
        waits = self._throttled_until and not self._goes_on()
        if connection is not None and connection.is_open and not waits:
            self._open.append(item)
            if connection.tls is None:
                connection.to_server.send(request, correlation)
            else:
                self._send_sealed(connection, item)
            if len(self._open) == 1 or deadline < self._timer.at:
                self._timer.set(min(self._timer.at, deadline))
            return
        self._waiting.append(item)
        if connection is None:
            self._connect()
        if waits:
            self._arm()
        elif deadline < self._timer.at:
            self._timer.set(deadline)

    def disconnect(self) -> None:
        """Close; every open request fails with NETWORK_EXCEPTION."""
        self._shut()
        self._fail_all(ErrorCode.NETWORK_EXCEPTION)

    def on_open(self) -> None:
        """The server accepted."""
        self._failures = self._setups_failed = 0
        self._setup_by = NEVER
        if not self._throttled_until or self._goes_on():
            self._send_waiting()
        self._arm()

    def _send_waiting(self) -> None:
        assert self._connection is not None
        while self._waiting:
            item = self._waiting.popleft()
            self._open.append(item)
            if self._connection.tls is None:
                self._connection.to_server.send(item.request, item.correlation)
            else:
                self._send_sealed(self._connection, item)

    def on_response(self, message: Message, correlation: int) -> None:
        """The answer to the oldest open request: a server answers a connection in order."""
        item = self._open.popleft()
        assert item.correlation == correlation, "a response out of order"
        if type(message) is Envelope:
            self._throttle(item.port, message.number)
            message = message.message
        if not self._open and not self._waiting:
            self._timer.cancel()
        response = ResponseReceived(
            self._peer,
            item.correlation,
            message,  # type: ignore[arg-type]
        )
        if self._connection is None or self._connection.tls is None:
            self._process.receive(item.port, response)
        else:
            at = self._ciphered_at(self._connection.tls, message.size_bytes)
            self._process.call_at(at, self._process.receive, item.port, response)

    def on_closed(self) -> None:
        """The server closed, reset or refused."""
        self._connection = None
        self._back_off()
        self._fail_all(ErrorCode.NETWORK_EXCEPTION)

    def no_answer_to(self, correlation: int) -> None:
        """The request with that number gets no answer (acks=0): forget that it is open."""
        for item in self._open:
            if item.correlation == correlation:
                self._open.remove(item)
                return

    # -- quotas -----------------------------------------------------------------------------------

    def _throttle(self, port: Port, wait: Micros) -> None:
        """The server says ``throttle_time_ms``: nothing is sent meanwhile (KIP-219).

        Open requests may take so much longer. A new connection changes nothing.

        Source: ``NetworkClient.maybeThrottle``, ``InFlightRequests.incrementThrottleTime``.
        """
        until = self._process.kernel.time + wait
        self._throttled_until = max(self._throttled_until, until)
        for item in self._open:
            item.deadline += wait
        self._process.throttled(port, self._peer, until)

    def _goes_on(self) -> bool:
        """Whether requests can be sent again; then those that waited are, first."""
        if self._process.kernel.time < self._throttled_until:
            return False
        self._throttled_until = 0
        if self.is_open:
            self._send_waiting()
        return True

    # -- TLS --------------------------------------------------------------------------------------

    def _send_sealed(self, connection: Connection, item: _Open) -> None:
        """Encrypt, then send: the thread that talks to this server does one thing at a time."""
        assert connection.tls is not None, "plaintext needs no thread"
        at = self._ciphered_at(connection.tls, item.request.size_bytes)
        connection.to_server.send(item.request, item.correlation, at)

    def _ciphered_at(self, tls: TlsSpec, size: Bytes) -> Micros:
        start = max(self._process.kernel.time, self._cipher_free)
        self._cipher_free = start + tls.crypt_us(size)
        return self._cipher_free

    # -- inside -----------------------------------------------------------------------------------

    def _connect(self) -> None:
        now = self._process.kernel.time
        if now < self._backoff_until:
            self._timer.set(min(self._timer.at, self._backoff_until))
            return
        setup = self._exponential(SETUP_TIMEOUT_US, SETUP_TIMEOUT_US_MAX, self._setups_failed)
        self._setup_by = now + setup
        self._connection = self._process.open_connection(self, self._peer)
        self._arm()

    def _back_off(self) -> None:
        policy = self._policy
        wait = self._exponential(policy.backoff_us, policy.backoff_us_max, self._failures)
        if policy.forgets:
            self._setups_failed = 0
        else:
            self._failures += 1
            self._setups_failed = self._setups_failed + 1 if self._setup_by < NEVER else 0
        self._setup_by = NEVER
        self._backoff_until = self._process.kernel.time + wait

    def _exponential(self, first: Micros, largest: Micros, attempts: int) -> Micros:
        """Source: ``ExponentialBackoff.backoff``, with a fifth of jitter either way."""
        if first == largest:
            return first
        term = min(first << min(attempts, 10), largest)
        return min(term * (800 + int(self._unit() * 400)) // 1_000, largest)

    def _arm(self) -> None:
        at = self._setup_by
        for items in (self._open, self._waiting):
            for item in items:
                at = min(at, item.deadline)
        if self._waiting and self._connection is None:
            at = min(at, self._backoff_until)
        if self._waiting and self._throttled_until:
            at = min(at, self._throttled_until)
        if at >= NEVER:
            self._timer.cancel()
        else:
            self._timer.set(at)

    def _due(self) -> None:
        now = self._process.kernel.time
        if any(item.deadline <= now for item in self._open):
            self._shut()
            self._fail_all(ErrorCode.REQUEST_TIMED_OUT)
            return
        if now >= self._setup_by:
            self._shut()
            self._fail_all(ErrorCode.NETWORK_EXCEPTION)
            return
        expired = [item for item in self._waiting if item.deadline <= now]
        if expired:
            self._waiting = deque(item for item in self._waiting if item.deadline > now)
            self._tell(expired, ErrorCode.REQUEST_TIMED_OUT)
        if self._throttled_until:
            self._goes_on()
        if self._waiting and self._connection is None:
            self._connect()
        self._arm()

    def _shut(self) -> None:
        if self._connection is not None:
            self._process.close_connection(self._connection)
            self._connection = None
        self._back_off()

    def _fail_all(self, error: ErrorCode) -> None:
        failed = [*self._open, *self._waiting]
        self._open.clear()
        self._waiting.clear()
        self._timer.cancel()
        self._tell(failed, error)

    def _tell(self, failed: list[_Open], error: ErrorCode) -> None:
        for item in failed:
            self._process.deliver(item.port, RequestFailed(self._peer, item.correlation, error))
