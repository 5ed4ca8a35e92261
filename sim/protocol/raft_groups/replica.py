"""One replica of a partition whose replicas are a Raft group.

It stands where :class:`~sim.protocol.broker.replica.Replica` stands under Kafka's own replication,
so that whatever serves clients need not know the difference: the voters are its in-sync replicas, a
majority of them is what it asks for, the term is its leader epoch, and its high watermark is what
consumers may read.
"""

from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.ports import ReplicaLog
from sim.units import Micros

_CONFIG = ReplicaConfig()


class RaftReplica(Replica):
    """What clients and the trace see of one member of a group."""

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
        """How far a majority has the log, as far as this leader knows."""
        self.voters: tuple[NodeId, ...] = ()
        """Members with a vote, by this replica's log."""

    def adopt(self, state: PartitionRegistration) -> None:
        """What the controller says of the partition: its replicas; not who leads."""
        self.topic_id = state.topic_id
        self.assigned = state.replicas
        self.partition_epoch = max(self.partition_epoch, state.partition_epoch)

    def vote_with(self, voters: tuple[NodeId, ...]) -> None:
        """The group's voters, this replica among them or not."""
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

    def follow(self, leader: NodeId, term: LeaderEpoch) -> None:
        """Another member leads the term, or nobody does as yet."""
        self.is_leader = False
        self.leader = leader
        self.leader_epoch = term
        self.in_sync = self.maximal_in_sync = ()

    def advance_high_watermark(self, image: MetadataImage, now: Micros) -> bool:
        """Never by itself: the group says when.

        Whoever asks has just appended, and the group hears of that in its own way.
        """
        del image, now
        return False

    def lowest_end_in_sync(self) -> Offset:
        """How far a majority has the log: what the high watermark must not pass."""
        return self.majority_end
