"""High watermarks of the partitions that a broker leads, and requests that they complete.

Source: ``Partition.maybeIncrementLeaderHW``, ``Partition.tryCompleteDelayedRequests``,
``ReplicaManager.checkpointHighWatermarks``.
"""

from sim.ids import Offset, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import HighWatermarkMoved
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication.trace_rows import note_stable
from sim.trace.rows import log as rows
from sim.units import Micros


class HighWatermarks:
    """High watermarks on one broker.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        fetches: Consumers' fetches, completed by an advance.
        produces: Requests with acks=all, completed by an advance.
        checkpointed: As read from the checkpoint at the start.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        fetches: DelayedFetches,
        produces: DelayedProduces,
        checkpointed: dict[TopicPartition, Offset],
    ) -> None:
        self._hosted = hosted
        self._locks = locks
        self._fetches = fetches
        self._produces = produces
        self._checkpointed = checkpointed
        self._watched: dict[TopicPartition, None] = {}

    def advance(self, replica: Replica, now: Micros, out: Effects) -> bool:
        """Advances a led replica's high watermark, and completes requests that waited for it.

        Not while a flush holds the log's lock: its end tries again.
        """
        hosted, partition = self._hosted, replica.partition
        held = self._locks.is_held(partition)
        if held or not replica.advance_high_watermark(hosted.image, now):
            return False
        out.append(
            rows.HighWatermarks.row(
                hosted.broker,
                partition.topic,
                partition.partition,
                leader_epoch=replica.leader_epoch,
                high_watermark=replica.high_watermark,
                log_end_offset=replica.log.log_end_offset,
                in_sync_count=len(replica.in_sync),
                min_in_sync=replica.min_in_sync,
                lowest_in_sync_end=replica.lowest_end_in_sync(),
            )
        )
        note_stable(hosted.broker, replica, out)
        self._produces.high_watermark_moved(replica, now, out)
        self._fetches.high_watermark_moved(partition)
        if partition in self._watched:
            out.append(HighWatermarkMoved(partition))
        return True

    def flushed(self, token: int, now: Micros, out: Effects) -> None:
        """An fsync is done: its holder continues, then waiting steps, up to the next flush."""
        locks = self._locks
        released = locks.release(token)
        replica = self._hosted.replicas.get(released.partition)
        if replica is not None and replica.is_leader:
            self.advance(replica, now, out)
        released.rest(now, out)
        waiting = released.waiting
        while waiting and not locks.pass_on(released):
            waiting.popleft()(now, out)

    def watch(self, partition: TopicPartition) -> None:
        """Reports from now on when the partition's high watermark advances."""
        self._watched[partition] = None

    # -- the checkpoint ---------------------------------------------------------------------------

    def checkpointed(self, partition: TopicPartition) -> Offset:
        """Checkpointed high watermark of a replica that is opened now."""
        return self._checkpointed.get(partition, 0)

    def note(self, partition: TopicPartition, offset: Offset) -> None:
        """Sets the checkpointed value of the log that the partition has now."""
        self._checkpointed[partition] = offset

    def forget(self, partition: TopicPartition) -> None:
        """Drops the value that the checkpoint had at the start."""
        self._checkpointed.pop(partition, None)

    def to_checkpoint(self) -> dict[TopicPartition, Offset]:
        """High watermarks of open replicas, for the checkpoint."""
        return {p: r.high_watermark for p, r in self._hosted.replicas.items()}
