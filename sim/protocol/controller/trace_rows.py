"""Trace rows of committed metadata records: new states of partitions and brokers."""

from sim.ids import NodeId, TopicPartition
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    FENCE,
    UNFENCE,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)
from sim.protocol.metadata.versions import LEADER_RECOVERY, is_at_least
from sim.trace.emit import Emit
from sim.trace.rows.cluster import BrokerStates, PartitionChanges, TopicDeletions


def rows_of(
    controller: NodeId, record: MetadataRecord, image: MetadataImage, *, unclean: bool = False
) -> tuple[Emit, ...]:
    """Rows of a record, given the image after it; empty for records without a trace row."""
    match record:
        case PartitionRecord() | PartitionChangeRecord():
            return (_partition_row(controller, record, image, unclean=unclean),)
        case RegisterBrokerRecord():
            return (_broker_row(controller, record.broker, "registered", record.broker_epoch),)
        case UnregisterBrokerRecord():
            return (_broker_row(controller, record.broker, "unregistered", record.broker_epoch),)
        case BrokerRegistrationChangeRecord():
            return tuple(
                _broker_row(controller, record.broker, state, record.broker_epoch)
                for state, happened in (
                    ("unfenced", record.fenced == UNFENCE),
                    ("controlled_shutdown", record.in_controlled_shutdown == 1),
                    ("fenced", record.fenced == FENCE),
                )
                if happened
            )
        case _:
            return ()


def is_unclean(record: MetadataRecord, image: MetadataImage) -> bool:
    """True if a record holds an unclean election, given the image before it.

    It sets the recovery state, unless that was set before; below 3.2-IV0 there is none (KIP-704),
    and the new ISR has the leader alone, which was not in the one before.
    """
    if not isinstance(record, PartitionChangeRecord) or record.leader is None or record.leader < 0:
        return False
    if is_at_least(image.features, LEADER_RECOVERY):
        return record.recovering is True
    place = TopicPartition(image.topic_names[record.topic_id], record.partition)
    alone = record.replicas is None and record.in_sync == (record.leader,)
    return alone and record.leader not in image.partitions[place].in_sync


def deletion_of(
    controller: NodeId, record: MetadataRecord, image: MetadataImage
) -> tuple[Emit, ...]:
    """Rows of a topic's deletion, given the image before it; empty for every other record."""
    if not isinstance(record, RemoveTopicRecord):
        return ()
    name = image.topic_names[record.topic_id]
    return (TopicDeletions.row(controller, name, topic_id=record.topic_id),)


def _broker_row(controller: NodeId, broker: NodeId, state: str, epoch: int) -> Emit:
    return BrokerStates.row(controller, broker, state=state, broker_epoch=epoch)


def _partition_row(
    controller: NodeId,
    record: PartitionRecord | PartitionChangeRecord,
    image: MetadataImage,
    *,
    unclean: bool,
) -> Emit:
    topic = image.topic_names[record.topic_id]
    registration = image.partitions[TopicPartition(topic, record.partition)]
    return PartitionChanges.row(
        controller,
        topic,
        record.partition,
        leader=registration.leader,
        leader_epoch=registration.leader_epoch,
        partition_epoch=registration.partition_epoch,
        in_sync=_joined(sorted(registration.in_sync)),
        eligible=_joined(sorted(registration.eligible)),
        replicas=_joined(registration.replicas),
        unclean=unclean,
    )


def _joined(nodes: tuple[NodeId, ...] | list[NodeId]) -> str:
    return ",".join(map(str, nodes))
