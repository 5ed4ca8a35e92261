"""A client's session with the ensemble: connection, pings, reconnection, expiry.

Part of a broker's machine, not a machine of its own: the owner passes it its responses and timers
and gets events. Operations are sent in order, up to ``zookeeper.max.in.flight.requests`` at once.
An operation whose connection was lost is sent again over the next one, as Kafka's client does, so a
write may have been applied and still answer BAD_VERSION or NODE_EXISTS.

Watch events arrive unrequested, on the operations' connection and in order with the responses: an
event comes before a response that shows what it is about.

Only a server ends a session: a client that reaches none considers it alive. A server closes the
connection of a session that has ended; the client learns it when it connects again.

Approximate: the next server is tried half a second after the last (a drawn time up to a second in
ZooKeeper); watches are taken as triggered after a move.

Source: ``org.apache.zookeeper.ClientCnxn`` (3.8), ``kafka.zookeeper.ZooKeeperClient`` and
``kafka.zk.KafkaZkClient.retryRequestsUntilConnected`` (3.9).
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from sim.ids import NodeId
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.messages.base import Request, Response
from sim.protocol.zookeeper.messages import (
    ZkConnectRequest,
    ZkConnectResponse,
    ZkPingRequest,
    ZkPingResponse,
    ZkRequest,
    ZkResponse,
    ZkWatchNotification,
)
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    READS,
    CloseSession,
    GetChildren,
    ReadOp,
    SessionId,
    WatchEvent,
    WriteOp,
    ZkCode,
    ZkOutcome,
    Zxid,
)
from sim.units import MS, NEVER, SECOND, Micros

CHANNEL = "zookeeper"
"""The connection to the ensemble."""

RECONNECT_TIMER = "zookeeper-reconnect"
"""Fires when the next server is to be tried."""

RECONNECT_US: Micros = 500 * MS
"""Wait before the next server."""

PING_TIMER = "zookeeper-ping"
"""Fires when nothing was sent for a third of the session's timeout."""

SILENCE_TIMER = "zookeeper-silence"
"""Fires when nothing was received for two thirds of the session's timeout."""

SESSION_TIMERS = (RECONNECT_TIMER, PING_TIMER, SILENCE_TIMER)
"""Timers that the owner passes on."""


class SessionState(Enum):
    """Source: ``ZooKeeper.States``."""

    CONNECTING = auto()
    CONNECTED = auto()
    CLOSED = auto()
    """Never begun, or expired."""


@dataclass(frozen=True, slots=True)
class SessionConfig:
    """Settings, with Kafka's defaults."""

    timeout_us: Micros = 18 * SECOND
    """``zookeeper.session.timeout.ms``; 6 s before 2.5 (KIP-537)."""
    max_in_flight: int = 10
    """``zookeeper.max.in.flight.requests``."""


class ZkOperation(NamedTuple):
    """One operation, and true if it leaves a watch on what it reads."""

    op: ReadOp | WriteOp
    watch: bool = False


class OperationAnswered(NamedTuple):
    """Outcome of an operation; ``tag`` as given with it."""

    tag: int
    outcome: ZkOutcome


class WatchFired(NamedTuple):
    """A watch event, or a watch that must be taken as fired."""

    path: str
    change: WatchEvent


class Moved(NamedTuple):
    """New state of the session: connected (new or again), disconnected, or expired."""

    state: SessionState


SessionEvent = OperationAnswered | WatchFired | Moved
"""Events for the owner."""

_EXPIRED = ZkOutcome(ZkCode.SESSION_EXPIRED)
_DEFAULTS = SessionConfig()


class ZkSession:
    """Client side of one session."""

    def __init__(
        self,
        servers: tuple[NodeId, ...],
        first: int,
        correlate: Callable[[], int],
        config: SessionConfig = _DEFAULTS,
    ) -> None:
        """Creates a client without a session.

        Args:
            servers: The ensemble.
            first: Index of the first to try (modulo their number).
            correlate: Numbers for requests, unique among the owner's.
            config: Settings.
        """
        self.servers = servers
        self.config = config
        self.state = SessionState.CLOSED
        self.session: SessionId = NO_SESSION
        self._correlate = correlate
        self._turn = first
        self._last_zxid: Zxid = 0
        self._open: dict[int, tuple[Request, tuple[int, ZkOperation] | None]] = {}
        self._queue: deque[tuple[int, ZkOperation]] = deque()
        self._in_flight = 0
        self._watching: dict[tuple[str, bool], None] = {}
        self._ended = False

    @property
    def server(self) -> NodeId:
        """Server that it is connected to, or tries."""
        return self.servers[self._turn % len(self.servers)]

    def owns(self, correlation: int) -> bool:
        """True if a request of the owner's machine is the session's."""
        return correlation in self._open

    def start(self, out: list[fx.Effect]) -> None:
        """Begins a session; a former one is dropped."""
        self.session = NO_SESSION
        self._watching = {}
        self.state = SessionState.CONNECTING
        self._connect(out)

    def submit(
        self, tag: int, operations: list[ZkOperation], now: Micros, out: list[fx.Effect]
    ) -> None:
        """Submits operations, all with the tag; their outcomes come in this order."""
        self._queue.extend((tag, operation) for operation in operations)
        self._pump(now, out)

    def close(self, out: list[fx.Effect]) -> None:
        """Closes the session for good: deletes its ephemeral nodes at once; no events follow."""
        if self.state is SessionState.CONNECTED:
            request = ZkRequest(self.session, CloseSession(self.session))
            self._send(request, None, self.config.timeout_us, out)
        self._stop_timers(out)
        self.state = SessionState.CLOSED
        self._ended = True

    # -- events ------------------------------------------------------------------------------------

    def answered(
        self, correlation: int, response: Response, now: Micros, out: list[fx.Effect]
    ) -> list[SessionEvent]:
        """A server answered."""
        _, pending = self._open.pop(correlation)
        if self._ended:
            return []
        if self.state is SessionState.CONNECTED:
            self._heard(now, out)
        match response:
            case ZkResponse():
                return self._on_outcome(pending, response, now, out)
            case ZkPingResponse():
                return self._on_ping(response, now, out)
            case ZkConnectResponse():
                return self._on_connect(response, now, out)
            case _:
                message = f"not an answer of ZooKeeper: {response}"
                raise AssertionError(message)

    def failed(self, correlation: int, now: Micros, out: list[fx.Effect]) -> list[SessionEvent]:
        """The connection broke, or was not established in time."""
        _, pending = self._open.pop(correlation)
        return self._disconnected(now, out, pending)

    def unrequested(
        self, event: ev.NotificationReceived | ev.ConnectionLost, now: Micros, out: list[fx.Effect]
    ) -> list[SessionEvent]:
        """The server sent a watch event, or closed the connection.

        After the loss of the connection nothing of it counts: its watches are taken as triggered.
        """
        if self.state is not SessionState.CONNECTED or event.sender != self.server:
            return []
        if isinstance(event, ev.ConnectionLost):
            return self._disconnected(now, out)
        self._heard(now, out)
        notification = event.notification
        assert isinstance(notification, ZkWatchNotification), f"not ZooKeeper's: {notification}"
        path, change = notification.path, notification.change
        if change is WatchEvent.DELETED:
            self._watching.pop((path, True), None)
        self._watching.pop((path, change is WatchEvent.CHILDREN_CHANGED), None)
        return [WatchFired(path, change)]

    def timer(self, name: str, now: Micros, out: list[fx.Effect]) -> list[SessionEvent]:
        """One of :data:`SESSION_TIMERS` fired."""
        if self._ended:
            return []
        if name == RECONNECT_TIMER:
            if self.state is SessionState.CONNECTING:
                self._connect(out)
        elif self.state is SessionState.CONNECTED:
            if name == SILENCE_TIMER:
                return self._disconnected(now, out, closes=True)
            self._send(ZkPingRequest(self.session), None, NEVER, out)
            self._spoke(now, out)
        return []

    # -- internals ---------------------------------------------------------------------------------

    def _connect(self, out: list[fx.Effect]) -> None:
        timeout = self.config.timeout_us
        request = ZkConnectRequest(self.session, timeout, self._last_zxid)
        self._send(request, None, timeout // len(self.servers), out)
        out.append(fx.Listen(self.server, CHANNEL))

    def _send(
        self,
        request: Request,
        pending: tuple[int, ZkOperation] | None,
        timeout_us: Micros,
        out: list[fx.Effect],
    ) -> None:
        correlation = self._correlate()
        self._open[correlation] = (request, pending)
        out.append(fx.Send(self.server, correlation, request, timeout_us, CHANNEL))

    def _pump(self, now: Micros, out: list[fx.Effect]) -> None:
        """Sends as many operations as may be in flight."""
        queue, limit = self._queue, self.config.max_in_flight
        if self.state is not SessionState.CONNECTED or not queue or self._in_flight >= limit:
            return
        while queue and self._in_flight < limit:
            tag, operation = queue.popleft()
            self._in_flight += 1
            request = ZkRequest(self.session, operation.op, operation.watch)
            self._send(request, (tag, operation), NEVER, out)
        self._spoke(now, out)

    def _spoke(self, now: Micros, out: list[fx.Effect]) -> None:
        """Source: ``ClientCnxnSocket.getIdleSend``."""
        out.append(fx.SetTimer(PING_TIMER, now + self.config.timeout_us // 3))

    def _heard(self, now: Micros, out: list[fx.Effect]) -> None:
        """Source: ``ClientCnxnSocket.getIdleRecv``."""
        out.append(fx.SetTimer(SILENCE_TIMER, now + self.config.timeout_us * 2 // 3))

    def _stop_timers(self, out: list[fx.Effect]) -> None:
        out.append(fx.CancelTimer(PING_TIMER))
        out.append(fx.CancelTimer(SILENCE_TIMER))

    def _on_outcome(
        self,
        pending: tuple[int, ZkOperation] | None,
        response: ZkResponse,
        now: Micros,
        out: list[fx.Effect],
    ) -> list[SessionEvent]:
        assert pending is not None
        tag, operation = pending
        code = response.outcome.code
        if code is ZkCode.CONNECTION_LOSS:
            return self._disconnected(now, out, pending)
        if code is ZkCode.SESSION_EXPIRED:
            return self._expired(out, pending)
        self._in_flight -= 1
        self._last_zxid = max(self._last_zxid, response.zxid)
        if operation.watch:
            op = operation.op
            assert isinstance(op, READS), "only reads leave watches"
            self._watching[op.path, isinstance(op, GetChildren)] = None
        self._pump(now, out)
        return [OperationAnswered(tag, response.outcome)]

    def _on_ping(
        self, response: ZkPingResponse, now: Micros, out: list[fx.Effect]
    ) -> list[SessionEvent]:
        if response.code is ZkCode.SESSION_EXPIRED:
            return self._expired(out)
        if response.code is not ZkCode.OK:
            return self._disconnected(now, out)
        self._last_zxid = max(self._last_zxid, response.zxid)
        return []

    def _on_connect(
        self, response: ZkConnectResponse, now: Micros, out: list[fx.Effect]
    ) -> list[SessionEvent]:
        if response.code is ZkCode.SESSION_EXPIRED:
            return self._expired(out)
        if response.code is not ZkCode.OK:
            return self._disconnected(now, out)
        self.session = response.session
        self.state = SessionState.CONNECTED
        self._in_flight = 0
        self._heard(now, out)
        self._spoke(now, out)
        self._pump(now, out)
        watching, self._watching = self._watching, {}
        news: list[SessionEvent] = [Moved(SessionState.CONNECTED)]
        for path, of_children in watching:
            change = WatchEvent.CHILDREN_CHANGED if of_children else WatchEvent.DATA_CHANGED
            news.append(WatchFired(path, change))
        return news

    def _disconnected(
        self,
        now: Micros,
        out: list[fx.Effect],
        first: tuple[int, ZkOperation] | None = None,
        *,
        closes: bool = False,
    ) -> list[SessionEvent]:
        """Tries the next server; operations in flight are sent again, in order.

        ``closes``: the connection is open as far as this end knows.
        """
        if self.state is SessionState.CLOSED:
            return []
        lost = self._requests_in_flight(first)
        if self._open or closes:
            out.append(fx.Disconnect(self.server, CHANNEL))
        self._open = {}
        self._queue.extendleft(reversed(lost))
        self._in_flight = 0
        self._stop_timers(out)
        was_connected = self.state is SessionState.CONNECTED
        self.state = SessionState.CONNECTING
        self._turn += 1
        out.append(fx.SetTimer(RECONNECT_TIMER, now + RECONNECT_US))
        return [Moved(SessionState.CONNECTING)] if was_connected else []

    def _requests_in_flight(
        self, first: tuple[int, ZkOperation] | None
    ) -> list[tuple[int, ZkOperation]]:
        """Operations without a response, oldest first; responses come in the order of requests."""
        pending = [] if first is None else [first]
        pending.extend(other for _, other in self._open.values() if other is not None)
        return pending

    def _expired(
        self, out: list[fx.Effect], first: tuple[int, ZkOperation] | None = None
    ) -> list[SessionEvent]:
        """All pending operations end with the session."""
        self._stop_timers(out)
        waiting = self._requests_in_flight(first)
        waiting.extend(self._queue)
        self._open = {}
        self._queue = deque()
        self._in_flight = 0
        self._watching = {}
        self.state = SessionState.CLOSED
        news: list[SessionEvent] = [OperationAnswered(tag, _EXPIRED) for tag, _ in waiting]
        news.append(Moved(SessionState.CLOSED))
        return news
