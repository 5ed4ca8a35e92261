"""Fetched records that are not in memory: the network thread that sends them waits for the disk.

``sendfile`` of pages that the page cache does not hold blocks the network thread, so every other
answer behind it waits, too; the request handler has been free for long. The connection stays muted
until the answer is in the socket.

Simplified: the disk is asked when the answer is made, not when the thread comes to it, and the
few bytes that the handler looks at to find the first batch are read with the rest.

Source: ``FileRecords.writeTo``, ``PlaintextTransportLayer.transferFrom``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.ids import TopicPartition
from sim.log.store.page_cache import ColdRead
from sim.nodes.process.base import TRY_AGAIN_US
from sim.protocol.messages import FetchResponse
from sim.units import Micros

if TYPE_CHECKING:
    from sim.nodes.process.server import ServerNode


class ColdReads:
    """The answers of one process that wait for disks."""

    def __init__(self, node: "ServerNode") -> None:
        self._node = node
        self.pending = node.host.page_cache.pending
        """Empty as long as every read finds its bytes in memory."""

    def of(self, response: FetchResponse) -> dict[TopicPartition, ColdRead]:
        """What memory did not hold of an answer; the answer pays for it from now on."""
        pending = self.pending
        found = [r.partition for r in response.results if r.partition in pending]
        return {partition: pending.pop(partition) for partition in found}

    def send(
        self, reads: dict[TopicPartition, ColdRead], write_us: Micros, hand_over: Callable[[], None]
    ) -> None:
        """Read, then write to the socket, on one network thread.

        Args:
            reads: What is missing, by partition.
            write_us: What the answer costs the thread besides.
            hand_over: Called when the answer is complete.
        """
        node = self._node
        threads = node.host.network_threads
        now = done = node.kernel.time
        for partition in list(reads):
            disk = node.disk_under(partition)
            if disk is not None and disk.stalled:
                disk.refuse()
                again = threads.take(now, TRY_AGAIN_US)
                node.call_at(again, self.send, reads, write_us, hand_over)
                return
            read = reads.pop(partition)
            if disk is not None:
                done = max(done, disk.read(read, str(partition)))
        begun = max(now, threads.free_at())
        node.call_at(threads.take(now, write_us + max(done - begun, 0)), hand_over)
