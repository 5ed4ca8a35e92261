"""What a machine may ask of its host. Imperatives, performed in the order of the list.

The order is part of the protocol: what must be durable before it is spoken of stands before the
message. After a crash between two effects the later ones never happen.

Named tuples: many are made for each batch, and one costs half of what a frozen dataclass does.
"""

from typing import NamedTuple

from sim.ids import NodeId, TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.trace.emit import Emit
from sim.units import Micros


class Send(NamedTuple):
    """Put a request on this node's connection to a server.

    The answer comes back as :class:`~sim.protocol.events.ResponseReceived` or, if the connection
    breaks or ``timeout_us`` passes, as :class:`~sim.protocol.events.RequestFailed`.
    """

    to: NodeId
    correlation: int
    """The machine's own number for the request; unique among its open requests."""
    request: Request
    timeout_us: Micros
    channel: str = ""
    """Which of the node's connections to that server; one machine's channels are its own."""


class Reply(NamedTuple):
    """Answer a ``RequestReceived``. ``None``: no answer, the connection is unmuted."""

    token: int
    response: Response | None
    close: bool = False
    """Close the connection instead (acks=0 with an error)."""


class SetTimer(NamedTuple):
    """Fire ``TimerFired(name)`` at the instant; a timer of that name already set is moved."""

    name: str
    at: Micros


class CancelTimer(NamedTuple):
    """Forget the timer of that name, if it is set."""

    name: str


class Flush(NamedTuple):
    """Make a partition's log durable (fsync).

    Without a ``token`` effects behind it wait. With one nothing does, and the token comes back as
    :class:`~sim.protocol.events.Flushed`.
    """

    partition: TopicPartition
    token: int | None = None
    by_handler: bool = False
    """Whether a request handler is kept occupied until it is done."""


class KeptWaiting(NamedTuple):
    """A request handler has waited until now for a lock: nobody else could use it."""

    since: Micros


class Disconnect(NamedTuple):
    """Close this node's connection to a server; open requests on it fail."""

    to: NodeId
    channel: str = ""


class Close(NamedTuple):
    """As :class:`Disconnect`, and the client of that connection is gone: the next starts anew."""

    to: NodeId
    channel: str = ""


Effect = Send | Reply | SetTimer | CancelTimer | Disconnect | Emit
"""What every server can perform. Machines with effects of their own widen this union."""
