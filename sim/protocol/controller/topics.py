"""The controller's part for new topics and producer ids.

Source: ``ReplicationControlManager.createTopics``, ``ProducerIdControlManager`` (4.1).
"""

import base64
import re
from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.controller.mutation_quotas import MutationQuota, MutationThrottled
from sim.protocol.controller.placement import (
    PlacementImpossible,
    StripedReplicaPlacer,
    UsableBroker,
)
from sim.protocol.controller.types import Decision
from sim.protocol.messages.admin import CreatePartitionsRequest
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    NewTopic,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    DRAINING,
    TOPIC_RESOURCE,
    UNASSIGNED_DIRECTORY,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    TopicRecord,
)

PRODUCER_ID_BLOCK = 1_000
"""Producer ids in a block for a broker."""

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


class TopicRefused(Exception):  # noqa: N818 - it names what happened
    """A topic cannot be created. ``args``: the error code."""


def create_topics(
    image: MetadataImage,
    request: CreateTopicsRequest,
    unit: Callable[[], float],
    *,
    rack_aware: bool = True,
    quota: MutationQuota | None = None,
) -> Decision:
    """Creates topics independently of each other; all are committed when it is answered.

    ``rack_aware`` false places replicas as if no broker had a rack; ``quota`` limits the client.
    """
    records: list[MetadataRecord] = []
    errors: list[tuple[str, ErrorCode]] = []
    names: dict[str, None] = {}
    for topic in request.topics:
        if topic.name in names:
            errors.append((topic.name, ErrorCode.INVALID_REQUEST))
            continue
        names[topic.name] = None
        try:
            made = _new_topic(image, topic, unit, rack_aware=rack_aware)
            if quota is not None:
                quota.take(sum(isinstance(record, PartitionRecord) for record in made))
            records.extend(made)
            errors.append((topic.name, ErrorCode.NONE))
        except TopicRefused as refused:
            errors.append((topic.name, refused.args[0]))
        except MutationThrottled:
            errors.append((topic.name, ErrorCode.THROTTLING_QUOTA_EXCEEDED))
    response = CreateTopicsResponse(tuple(errors), 0 if quota is None else quota.throttle_us)
    return Decision(tuple(records), response)


def allocate_producer_ids(image: MetadataImage, request: AllocateProducerIdsRequest) -> Decision:
    """Allocates a block of producer ids for a broker."""
    registration = image.brokers.get(request.broker)
    if registration is None:
        return Decision((), request.refused(ErrorCode.BROKER_ID_NOT_REGISTERED))
    if registration.epoch != request.broker_epoch:
        return Decision((), request.refused(ErrorCode.STALE_BROKER_EPOCH))
    first = image.next_producer_id
    record = ProducerIdsRecord(request.broker, request.broker_epoch, first + PRODUCER_ID_BLOCK)
    response = AllocateProducerIdsResponse(ErrorCode.NONE, first, PRODUCER_ID_BLOCK)
    return Decision((record,), response)


def more_partitions(
    image: MetadataImage,
    request: CreatePartitionsRequest,
    unit: Callable[[], float],
    *,
    rack_aware: bool = True,
    quota: MutationQuota | None = None,
) -> list[PartitionRecord]:
    """Records of a topic's additional partitions.

    Raises:
        MutationThrottled: If the client's quota does not allow it now.
        TopicRefused: If there is no such topic, or it would not grow, or no broker could lead.
    """
    count = image.partition_counts.get(request.topic)
    if count is None:
        raise TopicRefused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    more = request.count - count
    if more <= 0:
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS)
    factor = len(image.partitions[TopicPartition(request.topic, 0)].replicas)
    if request.assignment and (
        len(request.assignment) != more or len(request.assignment[0]) != factor
    ):
        raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
    if quota is not None:
        quota.take(more)
    topic = NewTopic(request.topic, more, factor, assignment=request.assignment)
    topic_id = image.topic_ids[request.topic]
    places = _assignments(image, topic, unit, rack_aware=rack_aware)
    return [
        _new_partition(image, number, topic_id, replicas)
        for number, replicas in enumerate(places, start=count)
    ]


def new_id(unit: Callable[[], float]) -> str:
    """A random 128-bit id in Kafka's printed form, never beginning with a dash."""
    while True:
        raw = bytes(int(unit() * 256) for _ in range(16))
        printed = base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
        if not printed.startswith("-"):
            return printed


def _new_topic(
    image: MetadataImage, topic: NewTopic, unit: Callable[[], float], *, rack_aware: bool
) -> list[MetadataRecord]:
    if topic.name in {".", ".."} or not _TOPIC_NAME.fullmatch(topic.name):
        raise TopicRefused(ErrorCode.INVALID_TOPIC_EXCEPTION)
    if topic.name in image.topic_ids:
        raise TopicRefused(ErrorCode.TOPIC_ALREADY_EXISTS)
    topic_id = new_id(unit)
    places = _assignments(image, topic, unit, rack_aware=rack_aware)
    partitions = [
        _new_partition(image, number, topic_id, replicas) for number, replicas in enumerate(places)
    ]
    configs = [
        ConfigRecord(TOPIC_RESOURCE, topic.name, name, value) for name, value in topic.configs
    ]
    return [TopicRecord(topic.name, topic_id), *configs, *partitions]


def _assignments(
    image: MetadataImage, topic: NewTopic, unit: Callable[[], float], *, rack_aware: bool
) -> list[tuple[NodeId, ...]]:
    if topic.assignment:
        for replicas in topic.assignment:
            if (
                not replicas
                or len(dict.fromkeys(replicas)) != len(replicas)
                or len(replicas) != len(topic.assignment[0])
                or any(broker not in image.brokers for broker in replicas)
            ):
                raise TopicRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        return list(topic.assignment)
    if topic.partitions <= 0:
        raise TopicRefused(ErrorCode.INVALID_PARTITIONS)
    placer = StripedReplicaPlacer(
        (
            UsableBroker(broker.broker, broker.rack if rack_aware else "", broker.fenced)
            for broker in image.brokers.values()
            if not broker.in_controlled_shutdown
            and broker.has_open_directory
            and image.memberships.get(broker.broker) != DRAINING
        ),
        unit,
    )
    try:
        return [placer.place(topic.replication_factor) for _ in range(topic.partitions)]
    except PlacementImpossible:
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR) from None


def _new_partition(
    image: MetadataImage, number: int, topic_id: str, replicas: tuple[NodeId, ...]
) -> PartitionRecord:
    in_sync = tuple(broker for broker in replicas if image.is_active(broker))
    if not in_sync:
        raise TopicRefused(ErrorCode.INVALID_REPLICATION_FACTOR)
    return PartitionRecord(
        number,
        topic_id,
        replicas,
        in_sync,
        in_sync[0],
        directories=_directories(image, replicas),
    )


def _directories(image: MetadataImage, replicas: tuple[NodeId, ...]) -> tuple[str, ...]:
    """None where no broker has registered its directories: before ``metadata.version`` 3.7."""
    if not any(image.brokers[broker].directories for broker in replicas):
        return ()
    return tuple(directory_for(image, broker) for broker in replicas)


def directory_for(image: MetadataImage, broker: NodeId) -> str:
    """The only directory of a broker; a broker with several assigns one later (KIP-858)."""
    directories = image.brokers[broker].directories
    return directories[0] if len(directories) == 1 else UNASSIGNED_DIRECTORY
