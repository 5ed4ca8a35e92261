"""Messages, links and rules of a network.

Source: RFC 6298 for the retransmission timer; Linux ``net/ipv4/tcp_timer.c``; turmoil's rules for
faults as verdicts on packets.
"""

from dataclasses import dataclass
from typing import Protocol

from sim.substrate.distributions import Spread
from sim.units import MS, SECOND, Bytes, Micros

RETRANSMISSION_US_MIN: Micros = 200 * MS
"""First retransmission timeout (Linux ``TCP_RTO_MIN``)."""

RETRANSMISSION_US_MAX: Micros = 120 * SECOND
"""Largest retransmission timeout (Linux ``TCP_RTO_MAX``)."""

SYN_RETRANSMISSION_US: Micros = 1 * SECOND
"""First timeout of a segment that opens a connection (Linux ``TCP_TIMEOUT_INIT``)."""

SYN_LINEAR_TIMEOUTS = 4
"""Further timeouts at that pace before they double (``net.ipv4.tcp_syn_linear_timeouts``)."""

PACKET_BYTES: Bytes = 1_448
"""Payload of one packet; loss is per packet."""

SERVER_WINDOW_BYTES: Bytes = 102_400
"""Receive window of a server's sockets (Kafka's ``socket.receive.buffer.bytes``)."""

CLIENT_WINDOW_BYTES: Bytes = 65_536
"""Receive window of who connects: Kafka's ``receive.buffer.bytes`` of a consumer, and
``replica.socket.receive.buffer.bytes`` of a follower."""

CLIENTS = "clients"
"""The switch of hosts outside the racks."""

CONTROL_BYTES: Bytes = 66
"""A segment without payload: SYN, FIN or RST."""


def retransmission_us(made: int, *, opens: bool) -> Micros:
    """Timeout of an acknowledgement after ``made`` retransmissions, in us.

    A segment that opens a connection is resent 1, 2, 3, 4, 5, 7, 11, 19 s after the first time, as
    on Linux since 6.5 (before: 1, 3, 7, 15 s); data of an open connection, after 0.2, 0.6, 1.4,
    3.0, 6.2 s.
    """
    if opens:
        doubled = min(max(made - SYN_LINEAR_TIMEOUTS, 0), 16)
        return min(SYN_RETRANSMISSION_US << doubled, RETRANSMISSION_US_MAX)
    return min(RETRANSMISSION_US_MIN << min(made, 16), RETRANSMISSION_US_MAX)


class Message(Protocol):
    """A message with its size."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message with a number for its receiver, as large as the message alone."""

    message: Message
    number: int

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.message.size_bytes


def kind_of(message: Message) -> str:
    """A message's type, with or without an envelope."""
    return type(message.message if type(message) is Envelope else message).__name__


@dataclass(frozen=True, slots=True)
class LinkRule:
    """A fault on messages from some hosts to others.

    ``cut`` holds everything back, as a link does that is down: TCP tries again and again. ``hold``
    holds back until the rule is removed, and ``drop`` loses a message and its connection; both need
    ``kinds``, the types of message they concern, and what follows on the connection waits behind
    what is held. With ``repeat_us`` a request reaches its server once more, so long afterwards, as
    from a connection that its client has closed. ``delay_us`` is added; ``loss`` is a probability
    per packet, paid as retransmission delay; ``bandwidth_bits`` is what all messages under the rule
    share, in bits per second, 0 for no limit. With ``count``, only so many messages are concerned.
    """

    name: str
    senders: frozenset[str]
    receivers: frozenset[str]
    cut: bool = False
    delay_us: Micros = 0
    loss: float = 0.0
    bandwidth_bits: int = 0
    hold: bool = False
    drop: bool = False
    repeat_us: Micros = 0
    kinds: frozenset[str] = frozenset()
    count: int = 0

    def concerns(self, message: Message | None) -> bool:
        """True if the rule matches this kind of message; a segment without payload is none."""
        if not self.kinds:
            return True
        return message is not None and kind_of(message) in self.kinds


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """One-way delays by distance, and the speed of each host's interface.

    ``bandwidth_bits`` is in bits per second; ``switch_buffer_bytes`` is the queue of a switch
    before each host, 0 for none that ever fills.
    """

    loopback: Spread = Spread(15, 30)
    same_rack: Spread = Spread(100, 250)
    cross_rack: Spread = Spread(400, 1_000)
    client: Spread = Spread(100, 250)
    bandwidth_bits: int = 10_000_000_000
    switch_buffer_bytes: Bytes = 0
