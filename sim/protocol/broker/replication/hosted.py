"""Partitions that a broker hosts, and its own state: controller, image, broker epoch.

It does not know the parts that work on them.

Source: ``kafka.server.ReplicaManager``: ``allPartitions``, ``HostedPartition``,
``getPartitionOrError``.
"""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.messages.data import LeaderHint
from sim.protocol.metadata.image import MetadataImage


class HostedPartitions:
    """Replicas of one broker, online and offline."""

    def __init__(self, broker: NodeId, config: ReplicaManagerConfig) -> None:
        self.broker = broker
        self.broker_epoch: BrokerEpoch = -1
        self.config = config
        self.controller: NodeId = NO_LEADER
        """Receiver of requests to the controller; ``NO_LEADER`` while it is unknown."""
        self.image = MetadataImage()
        self.replicas: dict[TopicPartition, Replica] = {}
        self.offline: dict[TopicPartition, None] = {}
        """Replicas in log directories that have failed, oldest first; never to be opened again."""
        self.stopping = False
        """True if controlled shutdown has begun."""
        self._correlations = 0

    def next_correlation(self) -> int:
        """Correlation id of the next request to another node."""
        self._correlations += 1
        return self._correlations

    def led(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica, if this broker leads the partition; else the error for a client."""
        replica = self.replicas.get(partition)
        if replica is not None and replica.is_leader:
            return replica
        if partition in self.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if replica is not None or partition in self.image.partitions:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_current(self, broker: NodeId, epoch: BrokerEpoch) -> bool:
        """True if a follower's broker epoch is not older than the image's (KAFKA-15221)."""
        if not (self.config.checks_broker_epochs and self.config.refuses_former_process):
            return True
        registration = self.image.brokers.get(broker)
        return registration is None or epoch == -1 or epoch >= registration.epoch

    def hint(self, partition: TopicPartition, error: ErrorCode) -> LeaderHint | None:
        """The leader in this broker's image, for errors that redirect clients (KIP-951)."""
        if error not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return None
        state = self.image.partitions.get(partition)
        if state is None or state.leader < 0 or not self.config.gives_leader_hints:
            return None
        return LeaderHint(state.leader, state.leader_epoch)
