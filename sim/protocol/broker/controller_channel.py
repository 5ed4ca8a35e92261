"""A broker's channel to the active controller: one request at a time, sent again until it is old.

A request goes to the controller that the broker's own observer of the quorum knows. After a lost
connection, a time-out and NOT_CONTROLLER the controller is looked up afresh, which may find the
same one, and the same request is sent again: to the same one once the reconnect back-off has
passed. A request that is older than the retry timeout when it could be sent is given up, and its
sender decides what follows. While no controller is known, the channel looks for one every 100 ms.

Left out: the thread looks for a controller when its poll ends, here news of one is followed at
once; until its observer first knows one, a broker here tries the controllers in turn.

Source: ``NodeToControllerRequestThread`` (3.7 to 4.3), ``BrokerToControllerRequestThread`` before;
``InterBrokerSendThread``; KAFKA-14392, KAFKA-19294.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from sim.ids import NO_LEADER, NodeId
from sim.protocol import effects as fx
from sim.protocol.messages.base import Request
from sim.units import MS, SECOND, Micros

SOCKET_TIMEOUT_US: Micros = 30 * SECOND
"""``controller.socket.timeout.ms``."""

POLL_US: Micros = 100 * MS
"""Interval of looking for the controller while none is known; a constant in Kafka."""

RECONNECT_US: Micros = 50 * MS
"""Reconnect back-off of the channel's ``NetworkClient``; a constant in Kafka."""

POLL_TIMER = "controller"
"""Timer of the next look."""


class RequestTimeout(StrEnum):
    """Positions of the behaviour ``broker.request_timeout``."""

    INTERVAL = "interval"
    HALF_SESSION = "half_session"
    SOCKET = "socket"


@dataclass(frozen=True, slots=True)
class ChannelTimeouts:
    """Timeouts of one channel, in µs."""

    request_us: Micros
    """From sending a request until its connection is closed."""
    retry_us: Micros
    """From its creation until a request is not sent again."""

    @staticmethod
    def of(policy: RequestTimeout, interval_us: Micros, session_us: Micros) -> "ChannelTimeouts":
        """Returns those of registrations and heartbeats.

        Args:
            policy: The rule of the release.
            interval_us: ``broker.heartbeat.interval.ms``.
            session_us: ``broker.session.timeout.ms``.
        """
        if policy is RequestTimeout.SOCKET:
            return ChannelTimeouts(SOCKET_TIMEOUT_US, session_us)
        retry = interval_us if policy is RequestTimeout.INTERVAL else session_us // 2
        return ChannelTimeouts(min(SOCKET_TIMEOUT_US, retry), retry)


@dataclass(frozen=True, slots=True)
class RequestGivenUp:
    """Effect: the request is older than the retry timeout; no request is outstanding now."""


ChannelEffect: TypeAlias = fx.Send | fx.SetTimer | fx.Disconnect | RequestGivenUp
"""Effects of a channel."""


class ControllerChannel:
    """The outstanding request, and the controller that it goes to.

    Args:
        label: Label of the connection.
        controllers: All controllers, tried in turn until one is known.
        timeouts: Of the requests.
    """

    def __init__(
        self, label: str, controllers: tuple[NodeId, ...], timeouts: ChannelTimeouts
    ) -> None:
        self._label = label
        self._controllers = controllers
        self._timeouts = timeouts
        self._turn = 0
        self._knows = False
        """True once a controller has been known."""
        self._known: NodeId = NO_LEADER
        """Controller by the broker's observer of the quorum."""
        self._active: NodeId = NO_LEADER
        """Controller that requests go to, until one is lost or refused."""
        self._is_guess = False
        """True while a request is in flight to a controller that is only tried."""
        self._request: Request | None = None
        self._created: Micros = 0
        self._in_flight: int | None = None
        self._correlation = 0

    @property
    def is_busy(self) -> bool:
        """True while a request is outstanding, sent or not."""
        return self._request is not None

    @property
    def is_waiting(self) -> bool:
        """True while the request has no controller to go to."""
        return self._request is not None and self._in_flight is None

    def is_of(self, correlation: int) -> bool:
        """True for the correlation id of the request in flight."""
        return self._in_flight == correlation

    def submit(self, request: Request, now: Micros) -> list[ChannelEffect]:
        """Sends a request, or begins to look for the controller; none may be outstanding."""
        assert self._request is None, "one request at a time"
        self._request = request
        self._created = now
        return self._transmit(now)

    def learn(self, controller: NodeId) -> None:
        """Notes the quorum's leader, or that there is none; it is used once one is looked up."""
        self._known = controller
        self._knows = self._knows or controller != NO_LEADER

    def complete(self) -> None:
        """The request in flight has its response."""
        self._in_flight = None
        self._is_guess = False
        self._request = None

    def reject(self) -> None:
        """The controller's authentication failed: the request is not sent again."""
        self.complete()
        self._active = NO_LEADER

    def resend(self, now: Micros) -> list[ChannelEffect]:
        """Sends the request again, to the controller of now, unless it is too old."""
        lost = self._active if self._in_flight is not None else NO_LEADER
        self._in_flight = None
        self._active = NO_LEADER
        if now - self._created >= self._timeouts.retry_us:
            self._request = None
            return [RequestGivenUp()]
        if self._is_guess:
            self._turn += 1
            self._is_guess = False
            return [fx.SetTimer(POLL_TIMER, now + POLL_US)]
        if lost != NO_LEADER and lost == self._known:
            return [fx.SetTimer(POLL_TIMER, now + RECONNECT_US)]
        return self._transmit(now)

    def refuse(self, now: Micros) -> list[ChannelEffect]:
        """The active controller is none: as :meth:`resend`, over another connection."""
        return [fx.Disconnect(self._active, self._label), *self.resend(now)]

    def _transmit(self, now: Micros) -> list[ChannelEffect]:
        if self._active == NO_LEADER:
            self._active = self._known
        if self._active == NO_LEADER and not self._knows:
            self._is_guess = True
            self._active = self._controllers[self._turn % len(self._controllers)]
        if self._active == NO_LEADER:
            return [fx.SetTimer(POLL_TIMER, now + POLL_US)]
        assert self._request is not None, "a request to send"
        self._correlation += 1
        self._in_flight = self._correlation
        timeout = self._timeouts.request_us
        return [fx.Send(self._active, self._correlation, self._request, timeout, self._label)]
