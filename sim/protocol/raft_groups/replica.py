"""One replica of a partition whose replicas are a Raft group.

It replaces :class:`~sim.protocol.broker.replica.Replica` of Kafka's own replication, so that the
parts that serve clients are the same: the voters are its in-sync replicas, their majority is its
``min.insync.replicas``, the term is its leader epoch, and its high watermark is the end for
consumers.
"""

from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.ports import ReplicaLog
from sim.units import Micros

_CONFIG = ReplicaConfig()


class RaftReplica(Replica):
    """One member of a group, for clients and the trace."""

    __slots__ = ("majority_end", "voters")

    def __init__(
        self,
        partition: TopicPartition,
        broker: NodeId,
        log: ReplicaLog,
        checkpointed_high_watermark: Offset,
    ) -> None:
        super().__init__(partition, broker, log, _CONFIG, checkpointed_high_watermark)
        self.majority_end: Offset = self.high_watermark
        """End of the log at a majority, as far as this leader knows."""
        self.voters: tuple[NodeId, ...] = ()
        """Members with a vote, by this replica's log."""

    def adopt(self, state: PartitionRegistration) -> None:
        """Takes the replicas from the controller's registration, but not the leader."""
        self.topic_id = state.topic_id
        self.assigned = state.replicas
        self.partition_epoch = max(self.partition_epoch, state.partition_epoch)

    def vote_with(self, voters: tuple[NodeId, ...]) -> None:
        """Sets the group's voters, with or without this replica."""
        self.voters = voters
        self.min_in_sync = len(voters) // 2 + 1
        if self.is_leader:
            self.in_sync = self.maximal_in_sync = voters

    def lead(self, term: LeaderEpoch) -> None:
        """This member leads the term."""
        self.is_leader = True
        self.leader = self.broker
        self.leader_epoch = term
        self.epoch_start_offset = self.log.log_end_offset
        self.in_sync = self.maximal_in_sync = self.voters
        self.majority_end = self.high_watermark
        self.transactional = self.log.transactions.has_unstable
        self.last_stable = -1

    def follow(self, leader: NodeId, term: LeaderEpoch) -> None:
        """Another member leads the term, or none yet."""
        self.is_leader = False
        self.leader = leader
        self.leader_epoch = term
        self.in_sync = self.maximal_in_sync = ()

    def advance_high_watermark(self, image: MetadataImage, now: Micros) -> bool:
        """Never advances here: the group sets the high watermark.

        The caller has just appended, and the group learns of that on its own path.
        """
        del image, now
        return False

    def lowest_end_in_sync(self) -> Offset:
        """End of the log at a majority: the limit of the high watermark."""
        return self.majority_end
