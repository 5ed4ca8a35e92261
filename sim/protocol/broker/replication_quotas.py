"""Throttled replication (KIP-73): followers out of sync share a rate, those in sync are exempt.

A leader sends nothing of a throttled partition to a follower outside the ISR while its rate is
exceeded; a follower does not fetch a throttled partition that it lags in. Both count every byte of
throttled partitions, those of followers in sync included.

Left out: throttles of replicas that move between log directories; rates that change while a broker
runs.

Source: ``kafka.server.{ReplicationQuotaManager,ReplicaManager.shouldLeaderThrottle}``,
``RemoteLeaderEndPoint.shouldFollowerThrottle``, ``TopicConfigHandler``.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.broker.replication.fetcher import Fetcher
from sim.protocol.messages.data import FetchResponse, FetchResult
from sim.protocol.quotas.rate import SampledRate, ms_of
from sim.units import Bytes, Micros

LEADER_REPLICAS = "leader.replication.throttled.replicas"
"""Topic setting: ``partition:broker`` of leaders' side, joined by commas, or ``*``."""

FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
"""Topic setting: the same of followers' side."""

_RESPONSE_HEADER_BYTES: Bytes = 5
"""Correlation id and tagged fields, which ``FetchResponse.sizeOf`` does not count."""


@dataclass(frozen=True, slots=True)
class ReplicationQuotaConfig:
    """Kafka's settings; a rate of ``None`` is none at all."""

    leader_bytes_per_s: int | None = None
    """``leader.replication.throttled.rate``."""
    follower_bytes_per_s: int | None = None
    """``follower.replication.throttled.rate``."""
    samples: int = 11
    """``replication.quota.window.num``."""
    window_ms: int = 1_000
    """``replication.quota.window.size.seconds``."""


class ReplicationQuota:
    """One side of one broker: its rate, and its partitions."""

    def __init__(
        self, broker: NodeId, setting: str, bytes_per_s: int, config: ReplicationQuotaConfig
    ) -> None:
        self._broker = broker
        self._setting = setting
        self._bound = bytes_per_s
        self._rate = SampledRate(config.samples, config.window_ms)
        self._partitions: dict[TopicPartition, None] = {}

    def set_rate(self, bytes_per_s: int) -> None:
        """Applies another rate."""
        self._bound = bytes_per_s

    def configure(self, partition: TopicPartition, configs: Mapping[str, str]) -> None:
        """Applies a topic's settings to one of its partitions on this broker."""
        listed = configs.get(self._setting, "").split(",")
        if "*" in listed or f"{partition.partition}:{self._broker}" in listed:
            self._partitions[partition] = None
        else:
            self._partitions.pop(partition, None)

    def covers(self, partition: TopicPartition) -> bool:
        """True if the partition is throttled here."""
        return partition in self._partitions

    def is_exceeded(self, now: Micros) -> bool:
        """True if more was transferred, over the window, than the rate allows."""
        return self._rate.simple_rate(ms_of(now)) > self._bound

    def record(self, size: Bytes, now: Micros) -> None:
        """Adds transferred bytes of throttled partitions."""
        self._rate.record(size, ms_of(now))


class LeaderQuota(ReplicationQuota):
    """Quota of leaders on a broker for followers that are out of sync."""

    def holds_back(self, partition: TopicPartition, *, in_sync: bool, now: Micros) -> bool:
        """True if a follower gets nothing of the partition now."""
        return not in_sync and self.covers(partition) and self.is_exceeded(now)

    def sent(self, results: list[FetchResult], now: Micros) -> None:
        """Adds a follower's response."""
        covered = [result for result in results if self.covers(result.partition)]
        if covered:
            response = FetchResponse(ErrorCode.NONE, 0, tuple(covered))
            self.record(response.size_bytes - _RESPONSE_HEADER_BYTES, now)


class FollowerQuota(ReplicationQuota):
    """Quota of followers on a broker while they are out of sync."""

    def took(self, fetcher: Fetcher, result: FetchResult, end: int, now: Micros) -> None:
        """A follower has appended up to ``end``; the lag counts from there."""
        partition = result.partition
        if self.covers(partition):
            self.record(sum([batch.size_bytes for batch in result.batches]), now)
        state = fetcher.partitions.get(partition)
        if state is not None and (result.batches or state.lag < 0):
            state.lag = max(0, result.high_watermark - end)

    def hold_back(self, fetcher: Fetcher, now: Micros) -> None:
        """Leaves throttled partitions out of the next fetch, and takes others in again."""
        exceeded = self.is_exceeded(now)
        for partition in fetcher.held():
            if not exceeded or not self.covers(partition):
                fetcher.release(partition)
        if not exceeded:
            return
        for partition, state in fetcher.partitions.items():
            if state.lag != 0 and self.covers(partition):
                fetcher.hold(partition, now)


def quotas_of(
    broker: NodeId, config: ReplicationQuotaConfig
) -> tuple[LeaderQuota | None, FollowerQuota | None]:
    """Both sides of a broker; ``None`` without a rate."""
    leader: LeaderQuota | None = None
    follower: FollowerQuota | None = None
    if config.leader_bytes_per_s is not None:
        leader = LeaderQuota(broker, LEADER_REPLICAS, config.leader_bytes_per_s, config)
    if config.follower_bytes_per_s is not None:
        follower = FollowerQuota(broker, FOLLOWER_REPLICAS, config.follower_bytes_per_s, config)
    return leader, follower
