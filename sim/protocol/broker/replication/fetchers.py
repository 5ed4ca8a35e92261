"""Fetchers of a broker, and their partitions.

Source: ``AbstractFetcherManager``, ``ReplicaFetcherManager``.
"""

from collections.abc import Iterable

from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.fetcher import Fetcher, FetchState, fetcher_id_of
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.trace_rows import note_log_start


class Fetchers:
    """All fetchers of one broker, by leader and fetcher id."""

    def __init__(self, hosted: HostedPartitions) -> None:
        self._broker = hosted.broker
        self._config = hosted.config.fetcher
        self._is_fenced = hosted.config.truncation.fences
        self._by_leader: dict[tuple[NodeId, int], Fetcher] = {}
        self._of: dict[TopicPartition, Fetcher] = {}
        self._failed: dict[TopicPartition, None] = {}
        """Partitions whose log could not be truncated: Kafka's ``failedPartitions`` (KIP-461)."""

    def has(self, partition: TopicPartition) -> bool:
        """True if a fetcher has the partition, or it is marked as failed in this leader epoch."""
        return partition in self._of or partition in self._failed

    def get(self, leader: NodeId, fetcher_id: int) -> Fetcher | None:
        """Fetcher of that number for that leader, if there is one."""
        return self._by_leader.get((leader, fetcher_id))

    def all(self) -> Iterable[Fetcher]:
        """Every fetcher, oldest first."""
        return self._by_leader.values()

    def assigned(self, replica: Replica) -> Fetcher:
        """Fetcher of a partition, by its leader and its name."""
        fetcher_id = fetcher_id_of(replica.partition, self._config.fetchers_per_leader)
        key = (replica.leader, fetcher_id)
        fetcher = self._by_leader.get(key)
        if fetcher is None:
            fetcher = self._by_leader[key] = Fetcher(
                replica.leader, fetcher_id, self._config, is_fenced=self._is_fenced
            )
        return fetcher

    def add(self, fetcher: Fetcher, partition: TopicPartition, state: FetchState) -> None:
        """Begins to fetch a partition."""
        fetcher.add(partition, state)
        self._of[partition] = fetcher

    def in_epoch(self, partition: TopicPartition, epoch: LeaderEpoch) -> None:
        """Fetches on from the same leader, in the leader epoch that the metadata has now."""
        if (fetcher := self._of.get(partition)) is not None:
            fetcher.in_epoch(partition, epoch)

    def stop(self, partition: TopicPartition) -> None:
        """Stops fetching a partition; a failed one is no longer marked."""
        self._failed.pop(partition, None)
        if (fetcher := self._of.pop(partition, None)) is not None:
            fetcher.remove(partition)

    def fail(self, partition: TopicPartition) -> None:
        """Stops fetching a partition until its next leader epoch."""
        self.stop(partition)
        self._failed[partition] = None

    def take_idle(self) -> list[Fetcher]:
        """Removes and returns fetchers without partitions."""
        idle = [key for key, fetcher in self._by_leader.items() if not fetcher.partitions]
        return [self._by_leader.pop(key) for key in idle]

    def note_start(self, replica: Replica, before: Offset, reason: str, out: Effects) -> None:
        """A log start may have moved: the log was dropped, or replaced."""
        after = replica.log.log_start_offset
        if after != before:
            partition = replica.partition
            note_log_start(self._broker, partition, before, after, reason, out)
            self.starts_at(partition, after)

    def starts_at(self, partition: TopicPartition, log_start: Offset) -> None:
        """A follower's log start has moved: its leader learns it with the next fetch."""
        fetcher = self._of.get(partition)
        if fetcher is not None:
            fetcher.starts_at(partition, log_start)
