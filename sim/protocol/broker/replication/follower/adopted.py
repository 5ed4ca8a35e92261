"""Offsets that a follower adopts from its leader: the high watermark, and the log start.

Source: ``ReplicaFetcherThread.processPartitionData``.
"""

from sim.ids import Offset, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.log_starts import LogStarts
from sim.protocol.broker.replication.leader.lost_leadership import LostLeaderships
from sim.trace.rows.log import FollowerWatermarks


class AdoptedOffsets:
    """Offsets of the leaders that one broker follows.

    Args:
        hosted: The broker's partitions.
        losses: Coordinators of lost leaderships.
        fetches: Of consumers that read from followers.
        log_starts: The starts of the broker's logs.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        losses: LostLeaderships,
        fetches: DelayedFetches,
        log_starts: LogStarts,
    ) -> None:
        self._broker = hosted.broker
        self._losses = losses
        self._fetches = fetches
        self._log_starts = log_starts

    def high_watermark(self, replica: Replica, sent: Offset, out: Effects) -> None:
        """Adopts the leader's high watermark; consumers of this follower may read up to it."""
        if self._adopt(replica, sent, out):
            self._losses.watermark_moved(replica, out)
            self._fetches.follower_watermark_moved(replica.partition)

    def before_truncation(self, replica: Replica, sent: Offset, out: Effects) -> None:
        """Adopts it while the log diverges: waiting readers are not woken (KAFKA-14704)."""
        self._adopt(replica, sent, out)
        self._fetches.changed(replica.partition)

    def after_truncation(self, partition: TopicPartition) -> None:
        """The log is truncated: they are woken now."""
        self._fetches.follower_watermark_moved(partition)

    def log_start(self, replica: Replica, start: Offset, out: Effects) -> bool:
        """Adopts the leader's log start; true if the follower's own moved."""
        return start > replica.log.log_start_offset and self._log_starts.learned(
            replica, start, out
        )

    def _adopt(self, replica: Replica, sent: Offset, out: Effects) -> bool:
        """Adopts the leader's high watermark; true if it is new."""
        if not replica.follower_advance(sent):
            return False
        partition = replica.partition
        out.append(
            FollowerWatermarks.row(
                self._broker,
                partition.topic,
                partition.partition,
                leader_epoch=replica.leader_epoch,
                high_watermark=replica.high_watermark,
                log_end_offset=replica.log.log_end_offset,
                sent_by_leader=sent,
            )
        )
        return True
