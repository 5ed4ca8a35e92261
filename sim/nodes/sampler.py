"""Samples once a second each server's utilisation and each group's lag.

An observer outside the simulated world: it costs nothing and changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.ids import TopicPartition
from sim.nodes.cluster import Cluster
from sim.nodes.process.server import ServerNode
from sim.trace.rows.clients import StableLag
from sim.trace.rows.run import Lag, Load
from sim.units import SECOND, Bytes, Micros

PERIOD_US: Micros = SECOND
"""Time between samples."""

LagSource = Callable[[], Sequence[tuple[str, TopicPartition, int, int]]]
"""Group, partition, position, committed offset: for every partition a group reads."""


@dataclass(slots=True)
class _Last:
    """A server's counters at the last sample."""

    network_us: Micros = 0
    handler_us: Micros = 0
    disk_us: tuple[Micros, ...] = ()
    written: Bytes = 0
    sent: Bytes = 0
    requests: int = 0


class Sampler:
    """Writes the ``load`` and ``lag`` tables, and ``stable_lag`` for readers of committed data."""

    def __init__(
        self, cluster: Cluster, lags: LagSource, committed_readers: Sequence[str] = ()
    ) -> None:
        self._cluster = cluster
        self._lags = lags
        self._committed_readers = tuple(committed_readers)
        self._last: dict[str, _Last] = {}

    def start(self, at: Micros) -> None:
        """Takes the first sample at the instant, and then one a second."""
        self._cluster.kernel.call_at(at, self._sample)

    def _sample(self) -> None:
        kernel = self._cluster.kernel
        kernel.call_in(PERIOD_US, self._sample)
        cluster = self._cluster
        brokers = cluster.brokers
        only = [c for c in cluster.controllers.values() if c.node_id not in brokers]
        for server in (*brokers.values(), *only, *cluster.zookeepers.values()):
            self._sample_load(server, kernel.now())
        for group, partition, position, committed in self._lags():
            lag = Lag.row(
                group,
                *partition,
                position=position,
                committed=committed,
                high_watermark=self.high_watermark(partition),
            )
            cluster.trace.write(kernel.now(), lag)
            if group in self._committed_readers:
                stable = self.last_stable_offset(partition)
                row = StableLag.row(group, *partition, position=position, last_stable_offset=stable)
                cluster.trace.write(kernel.now(), row)

    def high_watermark(self, partition: TopicPartition) -> int:
        """The leader's high watermark; -1 if there is no leader."""
        leader = self._cluster.brokers.get(self._cluster.image.leader_of(partition))
        return leader.high_watermark(partition) if leader is not None else -1

    def last_stable_offset(self, partition: TopicPartition) -> int:
        """The leader's last stable offset; -1 if there is no leader."""
        leader = self._cluster.brokers.get(self._cluster.image.leader_of(partition))
        return leader.last_stable_offset(partition) if leader is not None else -1

    def _sample_load(self, server: ServerNode, now: Micros) -> None:
        host = server.host
        last = self._last.get(server.name, _Last())
        present = _Last(
            host.network_threads.busy_us,
            host.request_handlers.busy_us,
            tuple(disk.busy_us for disk in host.disks),
            sum(disk.written_bytes for disk in host.disks),
            server.network.interface(host.name).sent_bytes,
            server.requests_answered,
        )
        self._last[server.name] = present
        disks = zip(present.disk_us, last.disk_us or (0,) * len(present.disk_us), strict=True)
        network_us = present.network_us - last.network_us
        handler_us = present.handler_us - last.handler_us
        row = Load.row(
            server.name,
            network_threads_ratio=_permille(network_us, host.network_threads.count),
            request_handlers_ratio=_permille(handler_us, host.request_handlers.count),
            disk_ratio=max((_permille(new - old, 1) for new, old in disks), default=0),
            disk_written_bytes=present.written - last.written,
            dirty_bytes=sum(disk.store.dirty_bytes for disk in host.disks),
            sent_bytes=present.sent - last.sent,
            requests=present.requests - last.requests,
        )
        self._cluster.trace.write(now, row)


def _permille(busy_us: Micros, servers: int) -> int:
    """Busy share of a period, in 1/1000; work is counted when it is queued, so it is capped."""
    return max(0, min(1_000, busy_us * 1_000 // (PERIOD_US * servers)))
