"""A client's session with the ensemble: one connection, pings, another server, the end.

Part of a broker's machine, not a machine of its own: the owner hands it what belongs to it and
gets news. Operations are sent in order, as many at once as ``zookeeper.max.in.flight.requests``.
An operation whose connection was lost is sent again once there is another, as Kafka's client does
it, so a write may have taken place and still answer BAD_VERSION or NODE_EXISTS.

The end of a session is known only from a server: a client that reaches none believes on.

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
from sim.protocol.messages.base import Request, Response
from sim.protocol.zookeeper.messages import (
    ZkConnectRequest,
    ZkConnectResponse,
    ZkPingRequest,
    ZkPingResponse,
    ZkRequest,
    ZkResponse,
)
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    READS,
    Change,
    CloseSession,
    GetChildren,
    Outcome,
    ReadOp,
    SessionId,
    WriteOp,
    ZkCode,
    Zxid,
)
from sim.units import MS, SECOND, Micros

CHANNEL = "zookeeper"
"""The connection to the ensemble."""

PING_CHANNEL = "zookeeper-pings"
"""What waits at the server for watches must not hold up what comes behind it."""

RECONNECT_TIMER = "zookeeper-reconnect"
"""Fires when the next server shall be tried."""

RECONNECT_US: Micros = 500 * MS
"""Wait before the next server."""


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


class Ask(NamedTuple):
    """One operation, and whether to be told of the next change of what it reads."""

    op: ReadOp | WriteOp
    watch: bool = False


class Answered(NamedTuple):
    """An operation's outcome; ``tag`` as given with it."""

    tag: int
    outcome: Outcome


class Watched(NamedTuple):
    """A watch was triggered, or must be taken as such."""

    path: str
    change: Change


class Moved(NamedTuple):
    """The state of the session: connected (anew or again), disconnected, or expired."""

    state: SessionState


News = Answered | Watched | Moved
"""What the owner is told."""

_EXPIRED = Outcome(ZkCode.SESSION_EXPIRED)
_DEFAULTS = SessionConfig()


class ZkSession:
    """One client's side of its session."""

    def __init__(
        self,
        servers: tuple[NodeId, ...],
        first: int,
        correlate: Callable[[], int],
        config: SessionConfig = _DEFAULTS,
    ) -> None:
        """Have no session yet.

        Args:
            servers: The ensemble.
            first: Which of them to try first (modulo their number).
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
        self._open: dict[int, tuple[Request, tuple[int, Ask] | None]] = {}
        self._queue: deque[tuple[int, Ask]] = deque()
        self._in_flight = 0
        self._watching: dict[tuple[str, bool], None] = {}
        self._ended = False

    @property
    def server(self) -> NodeId:
        """The server it talks to, or tries."""
        return self.servers[self._turn % len(self.servers)]

    def owns(self, correlation: int) -> bool:
        """Whether a request of the owner's machine is the session's."""
        return correlation in self._open

    def start(self, out: list[fx.Effect]) -> None:
        """Begin a session; a former one is forgotten."""
        self.session = NO_SESSION
        self._watching = {}
        self.state = SessionState.CONNECTING
        self._connect(out)

    def submit(self, tag: int, asks: list[Ask], out: list[fx.Effect]) -> None:
        """Ask for operations, all with the tag; their outcomes come in this order."""
        self._queue.extend((tag, ask) for ask in asks)
        self._pump(out)

    def close(self, out: list[fx.Effect]) -> None:
        """End the session for good: its ephemeral nodes go at once; there is no more news."""
        if self.state is SessionState.CONNECTED:
            request = ZkRequest(self.session, CloseSession(self.session))
            self._send(request, None, self.config.timeout_us, out)
        self.state = SessionState.CLOSED
        self._ended = True

    # -- what happens -----------------------------------------------------------------------------

    def answered(
        self, correlation: int, response: Response, now: Micros, out: list[fx.Effect]
    ) -> list[News]:
        """A server answered."""
        _, asked = self._open.pop(correlation)
        if self._ended:
            return []
        match response:
            case ZkResponse():
                return self._on_outcome(asked, response, now, out)
            case ZkPingResponse():
                return self._on_ping(response, now, out)
            case ZkConnectResponse():
                return self._on_connect(response, now, out)
            case _:
                message = f"not an answer of ZooKeeper: {response}"
                raise AssertionError(message)

    def failed(self, correlation: int, now: Micros, out: list[fx.Effect]) -> list[News]:
        """The connection broke, or was silent for two thirds of the session's timeout."""
        _, asked = self._open.pop(correlation)
        return self._disconnected(now, out, asked)

    def reconnect(self, out: list[fx.Effect]) -> None:
        """:data:`RECONNECT_TIMER` fired."""
        if self.state is SessionState.CONNECTING:
            self._connect(out)

    # -- inside -----------------------------------------------------------------------------------

    def _connect(self, out: list[fx.Effect]) -> None:
        timeout = self.config.timeout_us
        request = ZkConnectRequest(self.session, timeout, self._last_zxid)
        self._send(request, None, timeout // len(self.servers), out)

    def _send(
        self,
        request: Request,
        asked: tuple[int, Ask] | None,
        timeout_us: Micros,
        out: list[fx.Effect],
    ) -> None:
        correlation = self._correlate()
        self._open[correlation] = (request, asked)
        channel = PING_CHANNEL if isinstance(request, ZkPingRequest) else CHANNEL
        out.append(fx.Send(self.server, correlation, request, timeout_us, channel))

    def _pump(self, out: list[fx.Effect]) -> None:
        """Send what may be in flight."""
        if self.state is not SessionState.CONNECTED:
            return
        queue, limit = self._queue, self.config.max_in_flight
        timeout = self.config.timeout_us * 2 // 3
        while queue and self._in_flight < limit:
            tag, ask = queue.popleft()
            self._in_flight += 1
            request = ZkRequest(self.session, ask.op, ask.watch)
            self._send(request, (tag, ask), timeout, out)

    def _ping(self, out: list[fx.Effect]) -> None:
        timeout = self.config.timeout_us
        self._send(ZkPingRequest(self.session, timeout // 3), None, timeout * 2 // 3, out)

    def _on_outcome(
        self,
        asked: tuple[int, Ask] | None,
        response: ZkResponse,
        now: Micros,
        out: list[fx.Effect],
    ) -> list[News]:
        assert asked is not None
        tag, ask = asked
        code = response.outcome.code
        if code is ZkCode.CONNECTION_LOSS:
            return self._disconnected(now, out, asked)
        if code is ZkCode.SESSION_EXPIRED:
            return self._expired(asked)
        self._in_flight -= 1
        self._last_zxid = max(self._last_zxid, response.zxid)
        if ask.watch:
            op = ask.op
            assert isinstance(op, READS), "only reads leave watches"
            self._watching[op.path, isinstance(op, GetChildren)] = None
        self._pump(out)
        return [Answered(tag, response.outcome)]

    def _on_ping(self, response: ZkPingResponse, now: Micros, out: list[fx.Effect]) -> list[News]:
        if response.code is ZkCode.SESSION_EXPIRED:
            return self._expired()
        if response.code is not ZkCode.OK:
            return self._disconnected(now, out)
        if self.state is not SessionState.CONNECTED:
            return []
        self._last_zxid = max(self._last_zxid, response.zxid)
        news: list[News] = []
        for path, change in response.events:
            self._watching.pop((path, change is Change.CHILDREN_CHANGED), None)
            news.append(Watched(path, change))
        self._ping(out)
        return news

    def _on_connect(
        self, response: ZkConnectResponse, now: Micros, out: list[fx.Effect]
    ) -> list[News]:
        if response.code is ZkCode.SESSION_EXPIRED:
            return self._expired()
        if response.code is not ZkCode.OK:
            return self._disconnected(now, out)
        self.session = response.session
        self.state = SessionState.CONNECTED
        self._in_flight = 0
        self._ping(out)
        self._pump(out)
        watching, self._watching = self._watching, {}
        news: list[News] = [Moved(SessionState.CONNECTED)]
        for path, of_children in watching:
            change = Change.CHILDREN_CHANGED if of_children else Change.DATA_CHANGED
            news.append(Watched(path, change))
        return news

    def _disconnected(
        self, now: Micros, out: list[fx.Effect], first: tuple[int, Ask] | None = None
    ) -> list[News]:
        """Try the next server; what was in flight goes out again, in its order."""
        if self.state is SessionState.CLOSED:
            return []
        lost = self._requests_in_flight(first)
        if self._open:
            out.append(fx.Disconnect(self.server, CHANNEL))
            out.append(fx.Disconnect(self.server, PING_CHANNEL))
        self._open = {}
        self._queue.extendleft(reversed(lost))
        self._in_flight = 0
        was_connected = self.state is SessionState.CONNECTED
        self.state = SessionState.CONNECTING
        self._turn += 1
        out.append(fx.SetTimer(RECONNECT_TIMER, now + RECONNECT_US))
        return [Moved(SessionState.CONNECTING)] if was_connected else []

    def _requests_in_flight(self, first: tuple[int, Ask] | None) -> list[tuple[int, Ask]]:
        """Operations without an answer, oldest first; answers come in the order of requests."""
        asked = [] if first is None else [first]
        asked.extend(other for _, other in self._open.values() if other is not None)
        return asked

    def _expired(self, first: tuple[int, Ask] | None = None) -> list[News]:
        """All that waits ends with the session."""
        waiting = self._requests_in_flight(first)
        waiting.extend(self._queue)
        self._open = {}
        self._queue = deque()
        self._in_flight = 0
        self._watching = {}
        self.state = SessionState.CLOSED
        news: list[News] = [Answered(tag, _EXPIRED) for tag, _ in waiting]
        news.append(Moved(SessionState.CLOSED))
        return news
