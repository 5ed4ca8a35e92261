"""A broker's answers to clients above their quotas: they wait, or their connections do.

Source: ``RequestHandlerHelper.throttle``, ``ThrottledChannel``; muted channels in ``SocketServer``.
"""

from typing import TYPE_CHECKING

from sim.protocol.messages import Response
from sim.protocol.quotas.client import ClientQuotas, Throttle
from sim.substrate.links import Envelope
from sim.trace.rows.cluster import ThrottlesRow
from sim.trace.writer import TableWriter

if TYPE_CHECKING:
    from sim.nodes.process.server import Call, ServerNode


class Throttling:
    """Asks a broker's quotas about each answer, and carries out what they say."""

    def __init__(self, node: "ServerNode", quotas: ClientQuotas) -> None:
        self.quotas = quotas
        self._node = node
        self._table: TableWriter[ThrottlesRow] = node.trace.table("throttles")

    def begin(self, token: int, call: "Call") -> None:
        """A request is decided upon now; what it cost its handler is known."""
        request = call.request
        thread_us = call.decided_us - call.started_us
        self.quotas.begin(token, call.link.client.name, request, request.size_bytes, thread_us)

    def of(self, token: int, call: "Call", response: Response | None) -> Throttle | None:
        """How the answer is throttled; ``None``: not at all."""
        node = self._node
        tls = call.link.tls
        network_us = node.transfer_us(call.request.size_bytes, tls)
        if response is not None:
            network_us += node.transfer_us(response.size_bytes, tls)
        return self.quotas.answered(token, network_us, node.now())

    def answer(self, throttle: Throttle, call: "Call", response: Response | None) -> None:
        """Answer now and mute the connection, or answer later."""
        node = self._node
        now = node.kernel.time
        self._note(throttle, call)
        if throttle.answer_after_us:
            node.call_at(now + throttle.answer_after_us, node.answer_late, call, response)
            return
        size = 0
        if response is not None:
            size = response.size_bytes
            written = node.host.network_threads.take(now, node.transfer_us(size, call.link.tls))
            told = Envelope(response, throttle.told_us)
            call.link.to_client.send(told, call.correlation, written)
        node.note_request(call, now, size)
        node.call_at(now + throttle.unmute_after_us, node.unmute, call.link)

    def _note(self, throttle: Throttle, call: "Call") -> None:
        node = self._node
        self._table.add(
            (
                node.kernel.time,
                node.node_id,
                call.link.client.name,
                throttle.client_id,
                type(call.request).__name__[:-7],
                throttle.quota,
                throttle.unmute_after_us,
            )
        )
