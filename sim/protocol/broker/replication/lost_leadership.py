"""What ends with a leadership: those who waited for it are told, and the coordinators.

The group coordinator of 4.0 has a thread of its own, in which it lets go of a partition. Until then
it waits for its writes as before, and takes any high watermark for theirs: also one that passes
them in the follower that the broker is now, whose log was cut and filled anew (KAFKA-20634).

Source: ``ReplicaManager.makeFollowers``, ``CoordinatorRuntime.scheduleUnloadOperation``,
``CoordinatorPartitionWriter.ListenerAdapter``.
"""

from functools import partial
from typing import TYPE_CHECKING

from sim.ids import OFFSETS_TOPIC, LeaderEpoch, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.units import Micros

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


class LostLeaderships:
    """Leaderships of one broker that are over, or not yet over for a coordinator."""

    def __init__(self, manager: "ReplicaManager") -> None:
        self._manager = manager
        self._at_once = manager.config.unloads_at_once
        self._unloading: dict[TopicPartition, LeaderEpoch] = {}

    def lost(
        self, partition: TopicPartition, epoch: LeaderEpoch, now: Micros, out: list[object]
    ) -> None:
        """The partition is led elsewhere from that epoch on."""
        manager = self._manager
        late = partition.topic == OFFSETS_TOPIC and not self._at_once
        manager.produce.leadership_lost(partition, now, out, spares_coordinators=late)
        manager.log_starts.check(partition, out)
        if late:
            self._unloading[partition] = epoch
            manager.threads.interrupt(partial(self._unload, partition, epoch), out)
        else:
            out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))

    def watermark_moved(self, replica: Replica, out: list[object]) -> None:
        """A follower's high watermark has moved: a coordinator that is left may wait for it."""
        if replica.partition in self._unloading:
            self._manager.produce.taken_for_committed(replica, out)

    def finish(self, partition: TopicPartition, now: Micros, out: list[object]) -> None:
        """It is led here again: a coordinator lets go of it before it loads it anew."""
        epoch = self._unloading.get(partition)
        if epoch is not None:
            self._unload(partition, epoch, now, out)

    def _unload(
        self, partition: TopicPartition, epoch: LeaderEpoch, now: Micros, out: list[object]
    ) -> None:
        if self._unloading.get(partition) != epoch:
            return
        del self._unloading[partition]
        self._manager.produce.leadership_lost(partition, now, out)
        out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
