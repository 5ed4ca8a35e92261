"""Throttling of a broker's clients above their quotas: delayed responses or muted connections.

Source: ``RequestHandlerHelper.throttle``, ``ThrottledChannel``; muted channels in ``SocketServer``.
"""

from sim.ids import NodeId
from sim.nodes.process.call import Call
from sim.nodes.process.cpu import CpuSpec
from sim.protocol.messages.base import Response
from sim.protocol.quotas.client import ClientQuotas, Throttle
from sim.trace.rows.cluster import Throttles
from sim.trace.writer import Trace
from sim.units import Micros


class Throttling:
    """Applies a broker's quotas to each response.

    Args:
        node_id: The broker.
        cpu: What messages cost its network threads.
        quotas: Quotas of clients.
        trace: Where it is written that an answer is throttled.
    """

    def __init__(self, node_id: NodeId, cpu: CpuSpec, quotas: ClientQuotas, trace: Trace) -> None:
        self.quotas = quotas
        self._node_id = node_id
        self._cpu = cpu
        self._trace = trace

    def begin(self, token: int, call: Call) -> None:
        """Begins a request's decision; its handler time is known."""
        request = call.request
        thread_us = call.decided_us - call.started_us
        self.quotas.begin(token, call.link.client.name, request, request.size_bytes, thread_us)

    def of(self, token: int, call: Call, response: Response | None, now: Micros) -> Throttle | None:
        """Throttling of the response; ``None``: none. ``now``: by the broker's clock."""
        cpu, tls = self._cpu, call.link.tls
        network_us = cpu.transfer_us(call.request.size_bytes, tls)
        if response is not None:
            network_us += cpu.transfer_us(response.size_bytes, tls)
        return self.quotas.answered(token, network_us, now)

    def note(self, throttle: Throttle, call: Call, now: Micros) -> None:
        """Writes a throttled response to the trace."""
        row = Throttles.row(
            self._node_id,
            client=call.link.client.name,
            client_id=throttle.client_id,
            request=type(call.request).__name__[:-7],
            quota=throttle.quota,
            throttle_us=throttle.unmute_after_us,
        )
        self._trace.write(now, row)
