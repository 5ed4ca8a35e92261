"""A switch's port to a host, and TCP's flow into it: incast.

Several senders at the speed of the link fill the buffer of the port to their common receiver, the
packets that find it full are dropped, and TCP notices: by duplicate acknowledgements within a round
trip if at least three later packets arrive, else by its retransmission timer, 200 ms at least. A
whole window that is lost, and the tail of what the application wrote, have no later packets.

Approximate: packets arrive in trains of four, whose last ones are those dropped; which of the lost
bytes is resent first is not known; one switch, whose other ports are never full. Reno's window with
selective acknowledgements: ten packets at first and after 200 ms of silence, doubled in each round
trip, halved by a loss, one packet after a timeout; at most the receive window. Acknowledgements are
never lost and take no bandwidth.

Source: Phanishayee et al., Measurement and Analysis of TCP Throughput Collapse in Cluster-based
Storage Systems (FAST 2008); RFC 5681, RFC 2018, RFC 6298, RFC 6928; Linux ``net/ipv4/tcp_input.c``.
"""

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from sim.kernel import Kernel
from sim.substrate.distributions import Delays
from sim.substrate.links import (
    CLIENT_WINDOW_BYTES,
    PACKET_BYTES,
    RETRANSMISSION_US_MIN,
    SERVER_WINDOW_BYTES,
    retransmission_us,
)
from sim.substrate.rules import Interface, Waiting
from sim.units import LONG_AGO, SECOND, Bytes, Micros

INITIAL_WINDOW = 10
"""Packets of a new connection's first window (RFC 6928)."""

DUPLICATES = 3
"""Duplicate acknowledgements that make a sender resend before its timer (RFC 5681)."""

TRAIN_BYTES: Bytes = 4 * PACKET_BYTES
"""Packets that arrive at the port together."""

NO_OFFSET: Bytes = -1
"""Of a train that resends."""

INCAST = "incast"
"""Cause of the delay of a message that waited for a retransmission timer."""


@dataclass(slots=True)
class Port:
    """The queue of a switch before one host's interface.

    ``bandwidth_bits`` is in bits per second; ``dropped`` counts packets.
    """

    bandwidth_bits: int
    buffer_bytes: Bytes
    free_at: Micros = LONG_AGO
    dropped: int = 0

    def admit(self, size: Bytes, began: Micros, ended: Micros) -> tuple[Bytes, Micros]:
        """Queues a train that arrives between two instants, but for what the buffer cannot take.

        Returns:
            Bytes that it took, and when it begins to send them.
        """
        start = max(self.free_at, began)
        scaled = 8 * SECOND
        queued = (start - ended) * self.bandwidth_bits // scaled + size
        excess = queued - self.buffer_bytes
        taken = size
        if excess > 0:
            lost = min(-(-excess // PACKET_BYTES), -(-size // PACKET_BYTES))
            self.dropped += lost
            taken = max(size - lost * PACKET_BYTES, 0)
        self.free_at = start - (-taken * scaled // self.bandwidth_bits)
        return taken, start


@dataclass(frozen=True, slots=True)
class _Part:
    """A message in the stream: it has arrived once all before ``end`` has."""

    end: Bytes
    item: Waiting
    extra: Micros


class _Socket(Protocol):
    """Port to the two ends of a flow."""

    def has_no_sender(self) -> bool:
        """True if the sender's kernel has lost power, with the data it had accepted."""

    def cut_by(self) -> str:
        """Name of the fault rule that cuts the way now, empty if none does."""

    def arrived(self, item: Waiting) -> None:
        """Takes a message that has arrived as a whole."""


class Flow:
    """One direction of a connection through a switch with a buffer of its own for the receiver.

    Args:
        kernel: The clock.
        interface: The sender's.
        port: The switch's to the receiver.
        out: Delays to the receiver.
        back: Delays of its acknowledgements.
        socket: Its two ends.
        serves: True if the receiver is the server; decides on the receive window.
    """

    def __init__(
        self,
        kernel: Kernel,
        interface: Interface,
        port: Port,
        out: Delays,
        back: Delays,
        socket: _Socket,
        *,
        serves: bool,
    ) -> None:
        self._kernel = kernel
        self._interface = interface
        self._port = port
        self._out = out
        self._back = back
        self._window = SERVER_WINDOW_BYTES if serves else CLIENT_WINDOW_BYTES
        self._socket = socket
        self._parts: deque[_Part] = deque()
        self._written: Bytes = 0
        self._sent: Bytes = 0
        self._front: Bytes = 0
        """End of the last train that has arrived."""
        self._hole: Bytes = 0
        """Offset of the first missing byte, while any is."""
        self._missing: Bytes = 0
        """Bytes below the front that have not arrived."""
        self._dropped: Bytes = 0
        """Bytes that were dropped, which the sender does not know yet."""
        self._held: Bytes = 0
        """Bytes that have arrived behind a hole, which opens no window."""
        self._to_resend: Bytes = 0
        self._in_flight: Bytes = 0
        """Bytes that the sender takes to be on their way."""
        self._duplicates = 0
        self._loss = 0
        """Number of the loss that is not noticed yet; odd while there is one."""
        self._by_timer = False
        """True if packets were dropped that had been resent: only the timer notices it."""
        self._cause = ""
        self._congestion = INITIAL_WINDOW
        self._threshold = 1 << 30
        self._credit = 0
        self.timeouts = 0
        """Retransmission timers that ended since something was acknowledged."""
        self._sent_at: Micros = LONG_AGO
        self._last_start: Micros = LONG_AGO
        self._last_reach: Micros = LONG_AGO
        self._last_arrival: Micros = LONG_AGO
        self._stopped = False

    def carry(self, item: Waiting, start: Micros, extra: Micros) -> None:
        """Writes a message into the socket; ``extra`` is what rules add to its way."""
        self._last_start = start = max(start, self._last_start)
        if start > self._kernel.time:
            self._kernel.call_at(start, self._write, item, extra)
        else:
            self._write(item, extra)

    def stop(self) -> None:
        """Loses what has not arrived."""
        self._parts.clear()
        self._stopped = True

    def _write(self, item: Waiting, extra: Micros) -> None:
        self._written += item.size
        self._parts.append(_Part(self._written, item, extra))
        self._push()

    def _push(self) -> None:
        """Sends as much as both windows allow: what was lost, then what is new."""
        if not self._stopped and self._socket.has_no_sender():
            self.stop()
        if self._stopped:
            return
        if self._kernel.time - self._sent_at > RETRANSMISSION_US_MIN:
            self._congestion = min(self._congestion, INITIAL_WINDOW)
        limit = min(self._congestion * PACKET_BYTES, self._window)
        filled = min(self._in_flight + self._to_resend + self._written - self._sent, limit)
        opens = 1 if 2 * filled >= limit else 0
        while self._to_resend and self._in_flight < limit:
            size = min(self._to_resend, limit - self._in_flight, TRAIN_BYTES)
            self._to_resend -= size
            self._depart(NO_OFFSET, size, size * opens)
        while self._sent < self._written and self._in_flight < limit:
            size = min(self._written - self._sent, limit - self._in_flight, TRAIN_BYTES)
            self._depart(self._sent, size, size * opens)
            self._sent += size

    def _depart(self, offset: Bytes, size: Bytes, opening: Bytes) -> None:
        """Sends a train of packets, of which so many bytes open the window."""
        interface = self._interface
        began = max(interface.free_at, self._kernel.time)
        ended = began - (-size * 8 * SECOND // interface.bandwidth_bits)
        interface.free_at = ended
        interface.sent_bytes += size
        self._sent_at = self._kernel.time
        self._in_flight += size
        delay = max(self._out.draw(), self._last_reach - began)
        self._last_reach = began + delay
        self._kernel.call_at(self._last_reach, self._reach, offset, size, ended + delay, opening)

    def _reach(self, offset: Bytes, size: Bytes, ended: Micros, opening: Bytes) -> None:
        """Comes to the port."""
        cut = self._socket.cut_by()
        taken, start = (0, 0) if cut else self._port.admit(size, self._kernel.time, ended)
        if self._stopped:
            return
        behind = self._missing > 0 and offset != NO_OFFSET
        if offset == NO_OFFSET:
            self._missing -= taken
            self._by_timer = self._by_timer or taken < size
        else:
            self._front = offset + size
            if taken < size and not self._missing:
                self._hole = offset + taken
            self._missing += size - taken
        if taken < size:
            self._lose(size - taken, cut or INCAST)
        if not taken:
            return
        self._deliver()
        at = start + self._back.draw()
        if behind and self._loss % 2:
            self._kernel.call_at(at, self._duplicate, taken, self._loss)
        else:
            self._kernel.call_at(at, self._acknowledge, taken, min(taken, opening))

    def _deliver(self) -> None:
        """Gives the receiver each message whose last byte, and all before it, passed the port."""
        complete = self._hole if self._missing else self._front
        while self._parts and self._parts[0].end <= complete:
            part = self._parts.popleft()
            self._last_arrival = max(self._port.free_at + part.extra, self._last_arrival)
            self._kernel.call_at(self._last_arrival, self._socket.arrived, part.item)

    def _acknowledge(self, size: Bytes, opening: Bytes) -> None:
        self._in_flight -= size
        self.timeouts = 0
        if opening:
            self._grow(-(-opening // PACKET_BYTES))
        self._push()

    def _duplicate(self, size: Bytes, loss: int) -> None:
        """Takes acknowledgements that say that something before them is missing."""
        if loss != self._loss:
            self._acknowledge(size, 0)
            return
        self._held += size
        self._duplicates += -(-size // PACKET_BYTES)
        if self._duplicates >= DUPLICATES and not self._by_timer:
            self._notice()
            self._congestion = self._threshold
            self._push()

    def _grow(self, packets: int) -> None:
        """Opens the window: by as much as arrived in slow start, else one packet a window."""
        if self._congestion * PACKET_BYTES >= self._window:
            return
        if self._congestion < self._threshold:
            self._congestion = min(self._congestion + packets, self._threshold)
            return
        self._credit += packets
        if self._credit >= self._congestion:
            self._credit -= self._congestion
            self._congestion += 1

    def _lose(self, size: Bytes, cause: str) -> None:
        """Starts the timer of the first packet that was dropped."""
        self._dropped += size
        self._cause = cause
        if self._loss % 2 == 0:
            self._loss += 1
            self._duplicates = 0
            self._start_timer()

    def _start_timer(self) -> None:
        opens = bool(self._parts) and self._parts[0].item.opens
        at = self._sent_at + retransmission_us(self.timeouts, opens=opens)
        self._kernel.call_at(at, self._time_out, self._loss, self._sent_at)

    def _time_out(self, loss: int, since: Micros) -> None:
        if self._stopped or loss != self._loss:
            return
        if since != self._sent_at:
            self._start_timer()
            return
        if self._parts:
            item = self._parts[0].item
            item.held_by = item.held_by or self._cause
        self.timeouts += 1
        self._notice()
        self._congestion = 1
        self._push()

    def _notice(self) -> None:
        """Makes the sender know what was dropped: it halves its threshold."""
        self._threshold = max(self._in_flight // PACKET_BYTES // 2, 2)
        self._in_flight -= self._dropped + self._held
        self._to_resend += self._dropped
        self._dropped = self._held = 0
        self._by_timer = False
        self._loss += 1
