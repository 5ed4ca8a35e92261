"""Rows of the trace table ``messages``: every message that reached its receiver's process."""

from sim.kernel import Kernel
from sim.substrate.links import kind_of
from sim.substrate.network import Message
from sim.trace.rows.run import MessagesRow
from sim.trace.writer import TableWriter, Trace
from sim.units import Micros


class Deliveries:
    """Writes the network's deliveries to the trace."""

    __slots__ = ("_kernel", "_table")

    def __init__(self, kernel: Kernel, trace: Trace) -> None:
        self._kernel = kernel
        self._table: TableWriter[MessagesRow] = trace.table("messages")

    def note(
        self, sender: str, receiver: str, message: Message, sent_us: Micros, held: str
    ) -> None:
        """Adds a row for an arrived message; ``held``: cause of a delay, if any."""
        if self._table.leaves_out():
            return
        kind = kind_of(message)
        self._table.add(
            (self._kernel.time, sender, receiver, kind, message.size_bytes, sent_us, held)
        )
