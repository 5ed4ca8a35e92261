"""Replicas that this broker holds no more: the topic is deleted, or the replica has moved away.

Source: ``ReplicaManager.applyDelta`` (its deletions), ``stopPartitions``.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sim.ids import TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.units import Micros

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


@dataclass(frozen=True, slots=True)
class ReplicaRemoved:
    """Effect: the broker holds the partition no more; its log is to be deleted."""

    partition: TopicPartition


def remove_unassigned(
    manager: "ReplicaManager",
    image: MetadataImage,
    changed: tuple[TopicPartition, ...],
    now: Micros,
    out: list[object],
) -> None:
    """Stop every replica among the changed that the image no longer gives to this broker.

    A topic that was deleted and made anew has another id: the old replica goes, too.
    """
    for partition in changed:
        state = image.partitions.get(partition)
        replica = manager.replicas.get(partition)
        if replica is not None:
            if not _still_held(manager.broker, replica, state):
                _remove(manager, replica, now, out)
        elif state is None:
            manager.directories.forget(partition)


def _still_held(broker: int, replica: Replica, state: PartitionRegistration | None) -> bool:
    return state is not None and broker in state.replicas and state.topic_id == replica.topic_id


def _remove(manager: "ReplicaManager", replica: Replica, now: Micros, out: list[object]) -> None:
    partition = replica.partition
    manager.follower.stop(partition)
    del manager.replicas[partition]
    manager.forget_high_watermark(partition)
    manager.moves.cancel(partition, out)
    manager.directories.forget(partition)
    if replica.is_leader:
        replica.is_leader = False
        manager.produce.leadership_lost(partition, now, out)
        epoch = replica.leader_epoch
        out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
    manager.fetch.leadership_changed(partition)
    manager.note_leadership(replica, "removed", out)
    out.append(ReplicaRemoved(partition))
