"""How a group's leader takes in records: append, replicate and flush at once, acknowledge.

acks=all waits for a majority's disks, acks=1 for the leader's append, acks=0 for nothing.

Source: Redpanda v25.1 ``kafka/server/handlers/produce.cc``, ``raft/replicate_entries_stm.cc``.
"""

from abc import abstractmethod
from collections.abc import Mapping

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.produce import ProducePath, ProduceWork
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.messages import ProduceResult
from sim.protocol.ports import Batch
from sim.protocol.raft_groups.group import RaftGroup
from sim.units import Micros


class Replication:
    """How what a leader has appended reaches the other members of its group."""

    @abstractmethod
    def replicate(self, replica: Replica, now: Micros, out: list[object], *, durable: bool) -> None:
        """A leader has appended records; ``durable``: they are acknowledged when on disks."""


class RaftProducePath(ProducePath):
    """Produce requests on one broker whose partitions are Raft groups."""

    def __init__(
        self,
        manager: ReplicaManager,
        groups: Mapping[TopicPartition, RaftGroup],
        replication: Replication,
    ) -> None:
        super().__init__(manager)
        self._groups = groups
        self._replication = replication

    def _append(
        self,
        work: ProduceWork,
        partition: TopicPartition,
        batch: Batch | None,
        now: Micros,
        out: list[object],
    ) -> bool:
        group = self._groups.get(partition)
        if group is not None and group.heir != NO_LEADER:
            # Somebody else is about to lead; clients come again until it does.
            work.failed.append(ProduceResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER))
            return False
        return super()._append(work, partition, batch, now, out)

    def _after_appends(self, work: ProduceWork, now: Micros, out: list[object]) -> None:
        for replica, _ in work.appended:
            if replica.is_leader:
                self._replication.replicate(replica, now, out, durable=work.acks == -1)
        super()._after_appends(work, now, out)
