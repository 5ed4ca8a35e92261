"""A request that a server has received, until its response, and the connection it came by."""

from collections import deque
from dataclasses import dataclass, field

from sim.protocol.messages.base import Request
from sim.substrate.network import Connection
from sim.units import Micros


@dataclass(init=False, slots=True)
class Call:
    """One request between its arrival and its response, with the instants of its trace row."""

    link: Connection
    request: Request
    correlation: int
    sent_us: Micros
    arrived_us: Micros
    started_us: Micros
    finished_us: Micros
    decided_us: Micros
    is_delayed: bool
    """True if its service has ended and it waits for a disk."""

    def __init__(
        self,
        link: Connection,
        request: Request,
        correlation: int,
        sent_us: Micros,
        arrived_us: Micros,
    ) -> None:
        self.link = link
        self.request = request
        self.correlation = correlation
        self.sent_us = sent_us
        self.arrived_us = arrived_us
        self.started_us = 0
        self.finished_us = 0
        self.decided_us = 0
        self.is_delayed = False


@dataclass(slots=True)
class ServerLink:
    """The server's end of one connection."""

    used_us: Micros
    """Instant of the last request or response, or of the acceptance."""
    muted: bool = False
    waiting: deque[Call] = field(default_factory=deque)
