"""Ends of leaderships: waiting requests fail, and coordinators unload.

The group coordinator of 4.0 unloads a partition in a thread of its own. Until then it waits for its
writes as before, and takes any high watermark for theirs: also one that passes them in the follower
that the broker is now, whose log was truncated and refilled (KAFKA-20634).

Source: ``ReplicaManager.makeFollowers``, ``CoordinatorRuntime.scheduleUnloadOperation``,
``CoordinatorPartitionWriter.ListenerAdapter``.
"""

from functools import partial

from sim.ids import OFFSETS_TOPIC, LeaderEpoch, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects, ReplicaEffect
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.log_starts import LogStarts
from sim.protocol.preemption import Threads
from sim.units import Micros


class LostLeaderships:
    """Lost leaderships of one broker, and those that a coordinator has not unloaded yet.

    Args:
        threads: The broker's threads.
        produces: Requests that fail when a leadership ends.
        log_starts: Requests that end with it, too.
        at_once: True if coordinators unload at once (KAFKA-20634).
    """

    def __init__(
        self,
        threads: Threads[ReplicaEffect],
        produces: DelayedProduces,
        log_starts: LogStarts,
        *,
        at_once: bool,
    ) -> None:
        self._threads = threads
        self._produces = produces
        self._log_starts = log_starts
        self._at_once = at_once
        self._unloading: dict[TopicPartition, LeaderEpoch] = {}

    def lost(
        self, partition: TopicPartition, epoch: LeaderEpoch, now: Micros, out: Effects
    ) -> None:
        """The partition has another leader from that epoch on."""
        late = partition.topic == OFFSETS_TOPIC and not self._at_once
        self._produces.leadership_lost(partition, now, out, spares_coordinators=late)
        self._log_starts.check(partition, out)
        if late:
            self._unloading[partition] = epoch
            out.append(self._threads.interrupt(partial(self._unload, partition, epoch)))
        else:
            out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))

    def watermark_moved(self, replica: Replica, out: Effects) -> None:
        """A follower's high watermark has advanced; a coordinator that is still loaded may wait."""
        if replica.partition in self._unloading:
            self._produces.complete_below_high_watermark(replica, out)

    def finish(self, partition: TopicPartition, now: Micros, out: Effects) -> None:
        """The broker leads again: a coordinator unloads before it loads again."""
        epoch = self._unloading.get(partition)
        if epoch is not None:
            self._unload(partition, epoch, now, out)

    def _unload(
        self, partition: TopicPartition, epoch: LeaderEpoch, now: Micros, out: Effects
    ) -> None:
        if self._unloading.get(partition) != epoch:
            return
        del self._unloading[partition]
        self._produces.leadership_lost(partition, now, out)
        out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
