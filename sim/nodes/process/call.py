"""A request that a server has received, until its response."""

from dataclasses import dataclass

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

    def __init__(
        self,
        link: Connection,
        request: Request,
        correlation: int,
        sent_us: Micros,
        arrived_us: Micros,
        started_us: Micros,
        finished_us: Micros,
        decided_us: Micros = 0,
    ) -> None:
        self.link = link
        self.request = request
        self.correlation = correlation
        self.sent_us = sent_us
        self.arrived_us = arrived_us
        self.started_us = started_us
        self.finished_us = finished_us
        self.decided_us = decided_us
