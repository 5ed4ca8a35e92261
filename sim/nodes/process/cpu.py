"""CPU costs of messages and requests in a server."""

from dataclasses import dataclass

from sim.nodes.process.codec_costs import ProduceCosts
from sim.protocol.messages.base import Request
from sim.protocol.messages.data import FetchRequest, ProduceRequest
from sim.protocol.messages.raft_groups import RaftAppendRequest
from sim.substrate.distributions import Spread
from sim.substrate.tls import TlsSpec
from sim.units import KIB, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class CpuSpec:
    """CPU costs of messages and requests in a server's threads.

    The defaults are modelling choices for a fast server; a slow one takes a few times as long.
    """

    network_request_us: Micros = 10
    """Network thread, for each message."""
    handler_request_us: Micros = 20
    """Request handler, for each request."""
    handler_produce_partition_us: Micros = 5
    """Request handler, for each partition of a produce request."""
    handler_fetch_partition_us: Micros = 2
    """Request handler, for each partition that a fetch request lists."""
    handler_produce_bytes_per_s: int = 3_000_000_000
    """Copy and CRC of produced bytes."""
    handler_fetch_bytes_per_s: int = 20_000_000_000
    """Fetched bytes, sent from the page cache by the network thread."""
    preempted: Spread = Spread(2_000, 20_000)
    """Waiting time of a thread that is preempted where a historic behaviour was a race."""
    metadata_load: Spread = Spread(40_000, 70_000)
    """A broker's time from committed records to a new image: listener, queue, loader."""
    metadata_publish: Spread = Spread(50_000, 75_000)
    """Time of a broker's publishers, until roles have changed, if the records change anything."""
    metadata_partition_us: Micros = 20
    """The same, for each partition that changes."""
    teardown_us: Micros = 0
    """From the kill of the process until its sockets close."""
    start_us: Micros = 0
    """From a start of the process until it does anything: a JVM loads classes."""
    young_bytes: Bytes = 0
    """Objects that fit into the young generation between two collections; 0: never collected."""
    young_request_bytes: Bytes = 16 * KIB
    """Allocation of a request beside its own size."""
    young_pause: Spread = Spread(5_000, 20_000)
    """Pause of a young collection."""

    def transfer_us(self, size: Bytes, tls: TlsSpec | None) -> Micros:
        """Time of a network thread for a message, rounded up; TLS rules out zero copy."""
        if tls is not None:
            return self.network_request_us + tls.crypt_us(size)
        return self.network_request_us - (-size * SECOND // self.handler_fetch_bytes_per_s)

    def copy_us(self, size: Bytes) -> Micros:
        """Time to copy and check so many bytes, rounded up."""
        return -(-size * SECOND // self.handler_produce_bytes_per_s)

    def service_us(self, request: Request, size: Bytes, codecs: ProduceCosts | None) -> Micros:
        """Handler time of a request, rounded up."""
        cost = self.handler_request_us
        if type(request) is ProduceRequest:
            cost += self.handler_produce_partition_us * len(request.batches)
            cost += self.copy_us(size)
            if codecs is not None:
                cost += codecs.of(request)
        elif type(request) is FetchRequest:
            cost += self.handler_fetch_partition_us * len(request.partitions)
        elif type(request) is RaftAppendRequest:
            cost += self.copy_us(size)
        return cost
