"""Produce requests at a group's leader: append, replicate and flush at once, acknowledge.

acks=all waits for a majority's disks, acks=1 for the leader's append, acks=0 for nothing.

Source: Redpanda v25.1 ``kafka/server/handlers/produce.cc``, ``raft/replicate_entries_stm.cc``.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.leader.produce import ProducePath, ProduceWork
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.messages.data import ProduceResult
from sim.protocol.ports import Batch
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.performer import RaftPerformer
from sim.units import Micros


class RaftProducePath(ProducePath):
    """Produce requests on one broker whose partitions are Raft groups.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        watermarks: High watermarks.
        delayed: Requests with acks=all that wait.
        fetches: Of consumers.
        groups: The partitions' groups.
        performer: Performs the groups' effects.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        watermarks: HighWatermarks,
        delayed: DelayedProduces,
        fetches: DelayedFetches,
        groups: dict[TopicPartition, RaftGroup],
        performer: RaftPerformer,
    ) -> None:
        super().__init__(hosted, locks, watermarks, delayed, fetches)
        self._groups = groups
        self._performer = performer

    def _append(
        self,
        work: ProduceWork,
        partition: TopicPartition,
        batch: Batch | None,
        now: Micros,
        out: Effects,
    ) -> bool:
        group = self._groups.get(partition)
        if group is not None and group.heir != NO_LEADER:
            # A leadership transfer is in progress; clients retry until it ends.
            work.failed.append(ProduceResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return False
        return super()._append(work, partition, batch, now, out)

    def _after_appends(self, work: ProduceWork, now: Micros, out: Effects) -> None:
        for replica, _ in work.appended:
            if replica.is_leader:
                self._replicate(replica, now, out, durable=work.acks == -1)
        super()._after_appends(work, now, out)

    def _replicate(self, replica: Replica, now: Micros, out: Effects, *, durable: bool) -> None:
        """Replicates records that the leader has appended."""
        group = self._groups.get(replica.partition)
        if group is not None:
            self._performer.perform(group, group.written(now, durable=durable), now, out)
