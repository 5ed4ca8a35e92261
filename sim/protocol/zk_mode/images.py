"""Metadata of a broker in ZooKeeper mode: two images, updated by the controller's requests.

Its own partitions come by LeaderAndIsr; metadata for clients comes by UpdateMetadata, which may be
before or behind. Both share the brokers, and the settings of topics.

Source: ``kafka.server.metadata.ZkMetadataCache``, ``ReplicaManager.becomeLeaderOrFollower`` (3.9).
"""

from collections.abc import Iterable

from sim.ids import NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.zk_mode.broker_types import ConfigsRead
from sim.protocol.zk_mode.znodes import (
    LEADER_DURING_DELETE,
    BrokerInfo,
    Configs,
    PartitionEntry,
    TopicFacts,
)


class ZkImages:
    """The images of one broker process, as :class:`MetadataImage`; ``offset`` counts requests."""

    def __init__(self, metadata: MetadataImage) -> None:
        """Creates empty images.

        Args:
            metadata: The image for clients, which is empty.
        """
        self.metadata = metadata
        self.replicas = MetadataImage(
            brokers=metadata.brokers,
            topic_configs=metadata.topic_configs,
            cluster_configs=metadata.cluster_configs,
            broker_configs=metadata.broker_configs,
            file=metadata.file,
        )

    def configure(self, read: ConfigsRead) -> tuple[str, ...]:
        """Applies settings that were read; returns the topics whose settings may be others."""
        configure(self.metadata, read.topic, read.broker, read.configs)
        if read.topic:
            return (read.topic,) if read.topic in self.replicas.topic_ids else ()
        return tuple(self.replicas.topic_ids)

    def lead_or_follow(self, entries: Iterable[PartitionEntry]) -> tuple[TopicPartition, ...]:
        """Applies a LeaderAndIsr; returns the partitions."""
        self.replicas.offset += 1
        changed: list[TopicPartition] = []
        for entry in entries:
            note_topic(self.replicas, entry.partition, entry.facts)
            self.replicas.partitions[entry.partition] = registration(entry)
            changed.append(entry.partition)
        return tuple(changed)

    def delete(self, partitions: Iterable[TopicPartition]) -> None:
        """Applies a StopReplica that deletes replicas."""
        self.replicas.offset += 1
        for partition in partitions:
            self._remove(self.replicas, partition)

    def _remove(self, image: MetadataImage, partition: TopicPartition) -> None:
        """Removes a partition; the settings of its topic with the last partition of both."""
        remove_partition(image, partition)
        topic = partition.topic
        if topic not in self.metadata.topic_ids and topic not in self.replicas.topic_ids:
            image.topic_configs.pop(topic, None)

    def update(self, entries: Iterable[PartitionEntry], brokers: Iterable[BrokerInfo]) -> None:
        """Applies an UpdateMetadata; it has every live broker."""
        self.metadata.offset += 1
        for entry in entries:
            if entry.state.leader == LEADER_DURING_DELETE:
                self._remove(self.metadata, entry.partition)
                continue
            note_topic(self.metadata, entry.partition, entry.facts)
            self.metadata.partitions[entry.partition] = registration(entry)
        self.metadata.brokers.clear()
        for info in brokers:
            self.metadata.brokers[info.broker] = alive(info)


def alive(info: BrokerInfo, epoch: BrokerEpoch = -1) -> BrokerRegistration:
    """A live broker; requests of the controller carry no epochs."""
    return BrokerRegistration(
        info.broker, epoch, "", info.rack, fenced=False, in_controlled_shutdown=False
    )


def configure(image: MetadataImage, topic: str, broker: NodeId, configs: Configs) -> None:
    """Replaces the settings of a topic, or of one broker or of every one."""
    if topic:
        image.topic_configs[topic] = dict(configs)
    elif broker != NO_LEADER:
        image.broker_configs[broker] = dict(configs)
    else:
        image.cluster_configs.clear()
        image.cluster_configs.update(configs)


def note_topic(image: MetadataImage, partition: TopicPartition, facts: TopicFacts) -> None:
    """Registers the partition's topic."""
    topic = partition.topic
    if topic not in image.topic_ids:
        image.topic_ids[topic] = facts.topic_id
        image.topic_names[facts.topic_id] = topic
        image.topic_configs.setdefault(topic, dict(facts.configs))
    count = image.partition_counts.get(topic, 0)
    image.partition_counts[topic] = max(count, partition.partition + 1)


def remove_partition(image: MetadataImage, partition: TopicPartition) -> None:
    """Removes a partition, and its topic with its last one."""
    topic = partition.topic
    image.partitions.pop(partition, None)
    if topic in image.topic_ids and not any(p.topic == topic for p in image.partitions):
        image.topic_names.pop(image.topic_ids.pop(topic), None)
        image.partition_counts.pop(topic, None)


def registration(entry: PartitionEntry) -> PartitionRegistration:
    """The partition's registration; its partition epoch is the state node's version."""
    state = entry.state
    return PartitionRegistration(
        entry.facts.topic_id,
        entry.replicas,
        state.in_sync,
        state.leader,
        state.leader_epoch,
        entry.version,
        removing=entry.move.removing,
        adding=entry.move.adding,
    )
