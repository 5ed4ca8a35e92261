"""Client end of a connection to one server: ``NetworkClient``'s part for one node.

Responses come in the order of the requests. A request without a response in time closes the
connection, and every open request on it fails. After a failure the next connection waits for the
reconnect back-off. Requests sent meanwhile wait here.

A connection that is not established in time is closed, and the next one gets twice as long; only
consecutive attempts count for that. Threads of a broker that send one request and wait for its
response (fetchers, a ZooKeeper controller) drop the server's state with each failure, so their
timeout never grows.

A connection of a client with credentials is ready once it is authenticated; requests wait until
then. If authentication fails, they fail with that error, and the reconnect back-off grows as if the
connection had never been established. A connection that ends before is an ordinary broken one.

A machine that listens gets notifications, which a server sends unrequested, in order with its
responses; and the end of the connection, of which it learns otherwise from its open requests alone.

Source: ``clients/NetworkClient.java``, ``ClusterConnectionStates.java`` (KIP-144, KIP-601),
``SaslClientAuthenticator`` (KIP-152);
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
from sim.nodes.process.reconnect import ReconnectPolicy
from sim.protocol import events as ev
from sim.protocol.messages.base import Notification, Request
from sim.protocol.messages.security import TlsAlert
from sim.protocol.security.client import SaslClientAuthenticator
from sim.substrate.links import Envelope
from sim.substrate.network import Connection, Message
from sim.substrate.tls import TlsSpec
from sim.units import LONG_AGO, NEVER, SECOND, Bytes, Micros

LOGIN = -(1 << 31)
"""Correlation id of an exchange's requests, which no machine uses."""

SETUP_TIMEOUT_US: Micros = 10 * SECOND
"""``socket.connection.setup.timeout.ms``."""

SETUP_TIMEOUT_US_MAX: Micros = 30 * SECOND
"""``socket.connection.setup.timeout.max.ms``."""


@dataclass(init=False, slots=True)
class _Open:
    """A request without a response."""

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
    """A process that sends requests, as used by its channels."""

    @abstractmethod
    def open_connection(self, channel: "Channel", peer: NodeId) -> Connection:
        """Begins a connection to a server; the channel gets the outcome."""

    @abstractmethod
    def close_connection(self, connection: Connection) -> None:
        """Closes a connection; its channel gets no more events of it."""

    @abstractmethod
    def authenticator(self, chance: Callable[[], float]) -> SaslClientAuthenticator | None:
        """Authenticator of a new connection; ``None`` without credentials."""

    def receive(self, port: Port, event: ev.ResponseReceived) -> None:
        """Delivers a response to a machine; a process that pays for it first overrides this."""
        self.deliver(port, event)

    def notified(self, port: Port, event: ev.NotificationReceived) -> None:
        """Delivers a notification; a process that pays for it first overrides this."""
        self.deliver(port, event)

    def throttled(self, port: Port, server: NodeId, until: Micros) -> None:
        """Mutes this process for a server's quota; requests wait in its channel meanwhile."""


class Channel:
    """One connection of a process to a server, with its open requests."""

    __slots__ = (
        "_backoff_until",
        "_cipher_free",
        "_connection",
        "_failures",
        "_idle_us",
        "_is_ready",
        "_listener",
        "_login",
        "_login_again_us",
        "_open",
        "_peer",
        "_policy",
        "_process",
        "_setup_by",
        "_setups_failed",
        "_throttled_until",
        "_timer",
        "_unanswered",
        "_unit",
        "_used_us",
        "_waiting",
        "_watches",
    )

    def __init__(
        self,
        process: Requester,
        peer: NodeId,
        unit: Callable[[], float],
        policy: ReconnectPolicy,
        idle_us: Micros = NEVER,
    ) -> None:
        self._process = process
        self._peer = peer
        self._policy = policy
        self._unit = unit
        self._connection: Connection | None = None
        self._open: deque[_Open] = deque()
        self._waiting: deque[_Open] = deque()
        self._failures = 0
        """Consecutive connections that ended, whether they had been established or not."""
        self._login: SaslClientAuthenticator | None = None
        """Exchange that has not ended; requests wait for it."""
        self._is_ready = False
        """True once the connection is authenticated, or needs no authentication."""
        self._login_again_us: Micros = NEVER
        """Instant from which on a request is preceded by another exchange."""
        self._unanswered: dict[int, None] = {}
        """Correlation ids of waiting requests without a response (acks=0)."""
        self._setups_failed = 0
        """Consecutive attempts that established no connection."""
        self._backoff_until: Micros = -NEVER
        self._setup_by: Micros = NEVER
        self._cipher_free: Micros = LONG_AGO
        self._throttled_until: Micros = 0
        """End of the server's throttling, by the kernel's clock; 0: not throttled."""
        self._timer = process.timer(self._due)
        self._listener: Port | None = None
        """Machine that gets notifications, and the connection's end."""
        self._idle_us = idle_us
        self._used_us: Micros = LONG_AGO
        """Instant of the last request or response."""
        self._watches = False
        """True while an expiry of the idle connection is scheduled."""

    @property
    def is_open(self) -> bool:
        """True if the connection is established, and has been authenticated."""
        connection = self._connection
        return connection is not None and connection.is_open and self._is_ready

    @property
    def connectable_at(self) -> Micros:
        """End of the reconnect back-off."""
        return self._backoff_until if self._connection is None else LONG_AGO

    def send(self, port: Port, correlation: int, request: Request, timeout_us: Micros) -> None:
        """Sends, or waits for the connection; the machine gets exactly one outcome."""
        now = self._used_us = self._process.kernel.time
        deadline = now + timeout_us
        item = _Open(port, correlation, request, deadline)
        connection = self._connection
        waits = self._throttled_until and not self._resume_if_unthrottled()
        if self._process.kernel.time >= self._login_again_us:
            self._begin_again()
        if connection is not None and connection.is_open and self._login is None and not waits:
            self._open.append(item)
            if connection.tls is None:
                connection.to_server.send(request, correlation)
            else:
                self._send_sealed(connection, item)
            if deadline < self._timer.at:
                self._timer.set(deadline)
            return
        self._waiting.append(item)
        if connection is None:
            self._connect()
        if waits:
            self._arm()
        elif deadline < self._timer.at:
            self._timer.set(deadline)

    def listen(self, port: Port) -> None:
        """The machine gets notifications of this connection, or of the one that is begun next."""
        self._listener = port

    def disconnect(self) -> None:
        """Closes; every open request fails with NETWORK_EXCEPTION."""
        self._shut()
        self._fail_all(ErrorCode.NETWORK_EXCEPTION)

    def on_open(self) -> None:
        """The server accepted."""
        self._setups_failed = 0
        self._setup_by = NEVER
        self._used_us = self._process.kernel.time
        self._expire_idle()
        login = self._process.authenticator(self._unit)
        if login is None:
            self._failures = 0
        elif self._is_expired():
            self._reject(ErrorCode.SSL_AUTHENTICATION_FAILED)
            return
        elif (request := login.begin()) is not None:
            self._login = login
            self._exchange(request)
            self._arm()
            return
        self._ready()

    def _ready(self) -> None:
        """The connection takes requests, those that waited first."""
        self._is_ready = True
        if not self._throttled_until or self._resume_if_unthrottled():
            self._send_waiting()
        self._arm()

    def _send_waiting(self) -> None:
        assert self._connection is not None
        while self._waiting:
            item = self._waiting.popleft()
            if item.correlation in self._unanswered:
                del self._unanswered[item.correlation]
            else:
                self._open.append(item)
            if self._connection.tls is None:
                self._connection.to_server.send(item.request, item.correlation)
            else:
                self._send_sealed(self._connection, item)

    def on_response(self, message: Message, correlation: int) -> None:
        """Response to the oldest open request: a server answers a connection in order."""
        self._used_us = self._process.kernel.time
        if type(message) is TlsAlert:
            self._reject(ErrorCode.SSL_AUTHENTICATION_FAILED)
            return
        if self._login is not None and correlation == LOGIN:
            self._continue_login(self._login, message)
            return
        self._failures = 0
        if isinstance(message, Notification):
            self._on_notification(message)
            return
        item = self._open.popleft()
        assert item.correlation == correlation, "a response out of order"
        if type(message) is Envelope:
            self._throttle(item.port, message.number)
            message = message.message
        if not self._open and not self._waiting:
            self._timer.cancel()
        response = ev.ResponseReceived(
            self._peer,
            item.correlation,
            message,  # type: ignore[arg-type]
        )
        if self._connection is None or self._connection.tls is None:
            self._process.receive(item.port, response)
        else:
            at = self._ciphered_at(self._connection.tls, message.size_bytes)
            self._process.call_at(at, self._process.receive, item.port, response)

    def _on_notification(self, message: Notification) -> None:
        listener = self._listener
        assert listener is not None, "nobody listens"
        event = ev.NotificationReceived(self._peer, message)
        if self._connection is None or self._connection.tls is None:
            self._process.notified(listener, event)
        else:
            at = self._ciphered_at(self._connection.tls, message.size_bytes)
            self._process.call_at(at, self._process.notified, listener, event)

    def on_closed(self) -> None:
        """The server closed, reset or refused."""
        self._connection = None
        self._back_off()
        self._fail_all(ErrorCode.NETWORK_EXCEPTION)

    def no_answer_to(self, correlation: int) -> None:
        """Forgets an open request without a response (acks=0)."""
        for item in self._open:
            if item.correlation == correlation:
                self._open.remove(item)
                return
        self._unanswered[correlation] = None

    def _expire_idle(self) -> None:
        """Closes the connection if nothing has passed for too long, or looks again later.

        Source: ``Selector.maybeCloseOldestConnection``; Kafka notices it in its next poll.
        """
        if self._watches or self._idle_us >= NEVER:
            return
        if self._process.kernel.time - self._used_us > self._idle_us:
            self.disconnect()
            return
        self._watches = True
        self._process.call_at(self._used_us + self._idle_us + 1, self._look_if_idle)

    def _look_if_idle(self) -> None:
        self._watches = False
        if self.is_open:
            self._expire_idle()

    # -- quotas -----------------------------------------------------------------------------------

    def _throttle(self, port: Port, wait: Micros) -> None:
        """Applies ``throttle_time_ms`` of a response: nothing is sent meanwhile (KIP-219).

        Open requests get as much more time. A new connection changes nothing.

        Source: ``NetworkClient.maybeThrottle``, ``InFlightRequests.incrementThrottleTime``.
        """
        until = self._process.kernel.time + wait
        self._throttled_until = max(self._throttled_until, until)
        for item in self._open:
            item.deadline += wait
        self._process.throttled(port, self._peer, until)

    def _resume_if_unthrottled(self) -> bool:
        """True if requests can be sent again; sends those that waited first."""
        if self._process.kernel.time < self._throttled_until:
            return False
        self._throttled_until = 0
        if self.is_open:
            self._send_waiting()
        return True

    # -- TLS --------------------------------------------------------------------------------------

    def _send_sealed(self, connection: Connection, item: _Open) -> None:
        """Encrypts, then sends: the thread of this connection does one thing at a time."""
        assert connection.tls is not None, "plaintext needs no thread"
        at = self._ciphered_at(connection.tls, item.request.size_bytes)
        connection.to_server.send(item.request, item.correlation, at)

    def _ciphered_at(self, tls: TlsSpec, size: Bytes) -> Micros:
        start = max(self._process.kernel.time, self._cipher_free)
        self._cipher_free = start + tls.crypt_us(size)
        return self._cipher_free

    # -- authentication ---------------------------------------------------------------------------

    def _is_expired(self) -> bool:
        """True if the server's certificate is not valid any more, by the client's own clock."""
        return self._connection is not None and (
            self._process.now() >= self._connection.validity.server_us
        )

    def _exchange(self, request: Request, work_us: Micros = 0) -> None:
        """Sends a request of the exchange, after the client's own work for it."""
        connection = self._connection
        assert connection is not None, "an exchange has a connection"
        at = self._process.kernel.time + work_us
        if connection.tls is not None:
            at = self._ciphered_at(connection.tls, request.size_bytes) + work_us
        connection.to_server.send(request, LOGIN, at)

    def _continue_login(self, login: SaslClientAuthenticator, message: Message) -> None:
        step = login.receive(message)
        if step.error is not ErrorCode.NONE:
            self._reject(step.error)
        elif step.request is not None:
            self._exchange(step.request, step.work_us)
        else:
            self._login = None
            self._failures = 0
            if step.session_us:
                self._login_again_us = self._process.kernel.time + step.session_us
            self._ready()

    def _begin_again(self) -> None:
        """Authenticates again, before the request that is to be sent (KIP-368).

        Responses to requests from before may come meanwhile.

        Source: ``KafkaChannel.maybeBeginClientReauthentication``.
        """
        self._login_again_us = NEVER
        self._login = self._process.authenticator(self._unit)
        assert self._login is not None, "it has logged in before"
        self._exchange(self._login.begin_again())

    def _reject(self, error: ErrorCode) -> None:
        """Authentication failed: closes, and fails what waited for the connection."""
        self._shut()
        self._fail_all(error)

    # -- internals ---------------------------------------------------------------------------------

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
        self._login = None
        self._is_ready = False
        self._login_again_us = NEVER
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
            self._deliver_failures(expired, ErrorCode.REQUEST_TIMED_OUT)
        if self._throttled_until:
            self._resume_if_unthrottled()
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
        listener, self._listener = self._listener, None
        self._open.clear()
        self._waiting.clear()
        self._unanswered.clear()
        self._timer.cancel()
        self._deliver_failures(failed, error)
        if listener is not None:
            self._process.deliver(listener, ev.ConnectionLost(self._peer))

    def _deliver_failures(self, failed: list[_Open], error: ErrorCode) -> None:
        for item in failed:
            self._process.deliver(item.port, ev.RequestFailed(self._peer, item.correlation, error))
