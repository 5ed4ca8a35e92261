"""What a machine may ask of its host. Imperatives, performed in the order of the list.

The order is part of the protocol: what must be durable before it is spoken of stands before the
message. After a crash between two effects the later ones never happen.
"""

from dataclasses import dataclass

from sim.ids import NodeId, TopicPartition
from sim.protocol.messages import Request, Response
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class Send:
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


@dataclass(frozen=True, slots=True)
class Reply:
    """Answer a request that came as ``RequestReceived``. ``None``: no answer, connection unmuted."""

    token: int
    response: Response | None
    close: bool = False
    """Close the connection instead (acks=0 with an error)."""


@dataclass(frozen=True, slots=True)
class SetTimer:
    """Fire ``TimerFired(name)`` at the instant; a timer of that name already set is moved."""

    name: str
    at: Micros


@dataclass(frozen=True, slots=True)
class CancelTimer:
    """Forget the timer of that name, if it is set."""

    name: str


@dataclass(frozen=True, slots=True)
class Flush:
    """Make a partition's log durable (fsync); effects behind it wait.

    ``token`` comes back as :class:`~sim.protocol.events.Flushed` if it is not ``None``.
    """

    partition: TopicPartition
    token: int | None = None


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close this node's connection to a server; open requests on it fail."""

    to: NodeId
    channel: str = ""


@dataclass(frozen=True, slots=True)
class Emit:
    """One fact for the trace: a row of the named table, without the leading instant and node."""

    table: str
    row: tuple[object, ...]


Effect = Send | Reply | SetTimer | CancelTimer | Flush | Disconnect | Emit
"""What every host can perform. Machines with effects of their own widen this union."""
