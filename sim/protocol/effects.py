"""Effects of machines: imperatives, performed by the process in the order of the list.

The order is part of the protocol: a write that must be durable before a message precedes the
message. After a crash between two effects the later ones are never performed.

Named tuples: many are made for each batch, and one costs half of what a frozen dataclass does.
"""

from typing import NamedTuple

from sim.ids import NodeId, TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.trace.emit import Emit
from sim.units import Micros


class Send(NamedTuple):
    """Sends a request on this node's connection to a server.

    The response comes as :class:`~sim.protocol.events.ResponseReceived` or, if the connection
    breaks or ``timeout_us`` passes, as :class:`~sim.protocol.events.RequestFailed`.
    """

    to: NodeId
    correlation: int
    """Correlation id; unique among the machine's open requests."""
    request: Request
    timeout_us: Micros
    channel: str = ""
    """Name of the connection, of several to that server; one machine's channels are its own."""


class Reply(NamedTuple):
    """Answers a ``RequestReceived``. ``None``: no response, the connection is unmuted."""

    token: int
    response: Response | None
    close: bool = False
    """Closes the connection instead (acks=0 with an error)."""


class Listen(NamedTuple):
    """Takes what the server sends unrequested on a connection, and that connection's end.

    They come as :class:`~sim.protocol.events.NotificationReceived` and, behind the failures of open
    requests, as :class:`~sim.protocol.events.ConnectionLost`; after that one, nothing more.
    """

    to: NodeId
    channel: str = ""


class SetTimer(NamedTuple):
    """Fires ``TimerFired(name)`` at the instant; a timer of that name already set is moved."""

    name: str
    at: Micros


class CancelTimer(NamedTuple):
    """Cancels the timer of that name, if it is set."""

    name: str


class Flush(NamedTuple):
    """Makes a partition's log durable (fsync).

    Without a ``token`` later effects wait. With one they do not, and the token comes back as
    :class:`~sim.protocol.events.Flushed`.
    """

    partition: TopicPartition
    token: int | None = None
    by_handler: bool = False
    """True if a request handler is blocked until it is done."""


class HandlerBlocked(NamedTuple):
    """A request handler was blocked on a lock until now."""

    since: Micros


class Disconnect(NamedTuple):
    """Closes this node's connection to a server; open requests on it fail."""

    to: NodeId
    channel: str = ""


class Close(NamedTuple):
    """As :class:`Disconnect`, and the connection's client is closed: the next has no state."""

    to: NodeId
    channel: str = ""


Effect = Send | Reply | Listen | SetTimer | CancelTimer | Disconnect | Emit
"""Effects that every server can perform. Machines with effects of their own widen this union."""
