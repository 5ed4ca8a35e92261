"""Removal of replicas: the broker no longer hosts them, or their log directory has failed.

Source: ``ReplicaManager.applyDelta`` (its deletions), ``stopPartitions``, ``handleLogDirFailure``.
"""

from sim.ids import TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.directories.alter_log_dirs import AlterLogDirs
from sim.protocol.broker.replication.directories.replica_directories import ReplicaDirectories
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import LeadershipApplied, ReplicaRemoved
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.trace_rows import note_leadership
from sim.protocol.broker.tiered.ports import PartitionStopped
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.units import Micros


class ReplicaRemoval:
    """Removes replicas of one broker.

    Args:
        hosted: The broker's partitions.
        fetchers: Their fetchers.
        fetches: Parked fetches.
        produces: Delayed produce requests.
        watermarks: Their checkpoint.
        directories: Their log directories.
        moves: Their moves between directories.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        fetchers: Fetchers,
        fetches: DelayedFetches,
        produces: DelayedProduces,
        watermarks: HighWatermarks,
        directories: ReplicaDirectories,
        moves: AlterLogDirs,
    ) -> None:
        self._hosted = hosted
        self._fetchers = fetchers
        self._fetches = fetches
        self._produces = produces
        self._watermarks = watermarks
        self._directories = directories
        self._moves = moves

    def remove_unassigned(
        self,
        image: MetadataImage,
        changed: tuple[TopicPartition, ...],
        now: Micros,
        out: Effects,
    ) -> None:
        """Removes every replica among the changed that the image no longer assigns to this broker.

        A topic that was deleted and created again has another id: the old replica is removed, too.
        """
        hosted = self._hosted
        for partition in changed:
            state = image.partitions.get(partition)
            replica = hosted.replicas.get(partition)
            if replica is not None:
                if not _still_held(hosted.broker, replica, state):
                    deleted = state is None or state.topic_id != replica.topic_id
                    self._remove(replica, now, out, is_deleted=deleted)
            elif state is None:
                self._directories.forget(partition)

    def delete(self, partition: TopicPartition, now: Micros, out: Effects) -> None:
        """Deletes a replica, or the log of one that this process has had no role for.

        Source: ``ReplicaManager.stopReplicas`` with ``deletePartition``.
        """
        replica = self._hosted.replicas.get(partition)
        if replica is not None:
            self._remove(replica, now, out, is_deleted=True)
        elif partition not in self._hosted.offline:
            self._watermarks.forget(partition)
            out.append(ReplicaRemoved(partition, was_hosted=False))

    def _remove(self, replica: Replica, now: Micros, out: Effects, *, is_deleted: bool) -> None:
        partition = replica.partition
        if replica.log.is_tiered:
            out.append(PartitionStopped(partition, is_deleted and replica.is_leader))
        self._fetchers.stop(partition)
        del self._hosted.replicas[partition]
        self._watermarks.forget(partition)
        self._moves.cancel(partition, out)
        self._directories.forget(partition)
        self._end(replica, "removed", now, out)
        out.append(ReplicaRemoved(partition))

    def take_offline(self, partition: TopicPartition, now: Micros, out: Effects) -> None:
        """Takes a replica in a failed log directory offline; waiting requests fail."""
        hosted = self._hosted
        hosted.offline[partition] = None
        self._directories.drop(partition)
        self._fetchers.stop(partition)
        replica = hosted.replicas.pop(partition, None)
        if replica is not None:
            self._end(replica, "offline", now, out)

    def _end(self, replica: Replica, role: str, now: Micros, out: Effects) -> None:
        partition = replica.partition
        if replica.is_leader:
            replica.is_leader = False
            self._produces.leadership_lost(partition, now, out)
            epoch = replica.leader_epoch
            out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
        self._fetches.leadership_changed(partition)
        note_leadership(self._hosted.broker, replica, role, out)


def _still_held(broker: int, replica: Replica, state: PartitionRegistration | None) -> bool:
    return state is not None and broker in state.replicas and state.topic_id == replica.topic_id
