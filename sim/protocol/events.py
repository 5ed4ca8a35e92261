"""Events of every machine. Each machine adds its own to these."""

from dataclasses import dataclass
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.messages.base import Notification, Request, Response


@dataclass(init=False, slots=True, unsafe_hash=True)
class RequestReceived:
    """A request, already paid for, to be answered by :class:`~sim.protocol.effects.Reply`."""

    token: Final[int]
    client: Final[str]
    """Printed name of the requesting node."""
    request: Final[Request]

    def __init__(
        self,
        token: int,
        client: str,
        request: Request,
    ) -> None:
        self.token = token
        self.client = client
        self.request = request


@dataclass(init=False, slots=True, unsafe_hash=True)
class ResponseReceived:
    """Response to a :class:`~sim.protocol.effects.Send` of this machine."""

    sender: Final[NodeId]
    correlation: Final[int]
    response: Final[Response]

    def __init__(
        self,
        sender: NodeId,
        correlation: int,
        response: Response,
    ) -> None:
        self.sender = sender
        self.correlation = correlation
        self.response = response


@dataclass(frozen=True, slots=True)
class RequestFailed:
    """No response came: NETWORK_EXCEPTION (disconnected, refused) or REQUEST_TIMED_OUT.

    With an error of authentication the request was never sent.
    """

    sender: NodeId
    correlation: int
    error: ErrorCode


@dataclass(frozen=True, slots=True)
class NotificationReceived:
    """A server sent something unrequested on a connection that this machine listens to."""

    sender: NodeId
    notification: Notification


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A connection that this machine listened to has ended, or was never established."""

    sender: NodeId


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The named timer of this machine is due."""

    name: str


@dataclass(frozen=True, slots=True)
class Flushed:
    """The fsync with this token is done."""

    token: int
