"""Fetched records outside the page cache: the sending network thread waits for the disk.

``sendfile`` of pages that the page cache does not hold blocks the network thread, so every other
response behind it waits, too; the request handler has been free for long. The connection stays
muted until the response is in the socket.

Simplified: the disk is read when the response is made, not when the thread comes to it, and the few
bytes that the handler reads to find the first batch are read with the rest.

Source: ``FileRecords.writeTo``, ``PlaintextTransportLayer.transferFrom``.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from sim.ids import TopicPartition
from sim.log.store.page_cache import ColdRead
from sim.nodes.process.dispatcher import TRY_AGAIN_US
from sim.protocol.messages.data import FetchRequest, FetchResponse
from sim.substrate.disk import Disk
from sim.substrate.host import Host
from sim.units import Micros


class ReadObserver(ABC):
    """Learns of fetch responses that wait for the disk."""

    @abstractmethod
    def begun(self, request: FetchRequest, response: FetchResponse) -> None:
        """A response waits for its cold reads."""

    @abstractmethod
    def done(self, request: FetchRequest, response: FetchResponse) -> None:
        """They are done, or the disk has failed."""


class ColdReads:
    """Responses of one host's process that wait for disks."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.observer: ReadObserver | None = None
        self.pending = host.page_cache.pending
        """Empty as long as every read finds its bytes in the page cache."""

    def of(self, response: FetchResponse) -> dict[TopicPartition, ColdRead]:
        """Cold reads of a response; the response pays for them from now on."""
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
        """Reads, then writes to the socket, on one network thread.

        Args:
            reads: Cold reads by partition; completed ones are removed. Some are left if a disk is
                stalled.
            disks: Disk of each partition; ``None``: its log is closed.
            now: The present instant.
            write_us: Other cost of the response to the thread.

        Returns:
            The instant at which the response is complete, or of the next attempt for reads that are
            left.
        """
        threads = self._host.network_threads
        done = now
        for partition in list(reads):
            disk = disks[partition]
            if disk is not None and disk.stalled:
                disk.refuse()
                return threads.take(now, TRY_AGAIN_US, TRY_AGAIN_US)
            read = reads.pop(partition)
            if disk is not None:
                done = max(done, disk.read(read, str(partition)))
        begun = max(now, threads.free_at())
        waits = max(done - begun, 0)
        return threads.take(now, write_us + waits, waits)
