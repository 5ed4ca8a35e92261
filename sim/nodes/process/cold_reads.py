"""Fetched records that are not in memory: the network thread that sends them waits for the disk.

``sendfile`` of pages that the page cache does not hold blocks the network thread, so every other
answer behind it waits, too; the request handler has been free for long. The connection stays muted
until the answer is in the socket.

Simplified: the disk is asked when the answer is made, not when the thread comes to it, and the
few bytes that the handler looks at to find the first batch are read with the rest.

Source: ``FileRecords.writeTo``, ``PlaintextTransportLayer.transferFrom``.
"""

from collections.abc import Mapping

from sim.ids import TopicPartition
from sim.log.store.page_cache import ColdRead
from sim.nodes.process.dispatcher import TRY_AGAIN_US
from sim.protocol.messages.data import FetchResponse
from sim.substrate.disk import Disk
from sim.substrate.host import Host
from sim.units import Micros


class ColdReads:
    """The answers of one host's process that wait for disks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.pending = host.page_cache.pending
        """Empty as long as every read finds its bytes in memory."""

    def of(self, response: FetchResponse) -> dict[TopicPartition, ColdRead]:
        """What memory did not hold of an answer; the answer pays for it from now on."""
        pending = self.pending
        found = [r.partition for r in response.results if r.partition in pending]
        return {partition: pending.pop(partition) for partition in found}

    def read(
        self,
        reads: dict[TopicPartition, ColdRead],
        disks: Mapping[TopicPartition, Disk | None],
        now: Micros,
        write_us: Micros,
    ) -> Micros:
        """Read, then write to the socket, on one network thread.

        Args:
            reads: What is missing, by partition; what is read is taken out. Something is left if a
                disk is stalled.
            disks: Where each lies; ``None``: nowhere any more.
            now: The present instant.
            write_us: What the answer costs the thread besides.

        Returns:
            When the answer is complete, or when to come again for what is left.
        """
        threads = self._host.network_threads
        done = now
        for partition in list(reads):
            disk = disks[partition]
            if disk is not None and disk.stalled:
                disk.refuse()
                return threads.take(now, TRY_AGAIN_US)
            read = reads.pop(partition)
            if disk is not None:
                done = max(done, disk.read(read, str(partition)))
        begun = max(now, threads.free_at())
        return threads.take(now, write_us + max(done - begun, 0))
