"""FindCoordinator: the broker that coordinates a group or a transactional id."""

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, OFFSETS_TOPIC, TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.messages.group import FindCoordinatorResponse
from sim.protocol.metadata.image import MetadataImage


def find_coordinator(
    image: MetadataImage, key: str, topic: str = OFFSETS_TOPIC
) -> FindCoordinatorResponse:
    """Leader of the key's partition in this image.

    Args:
        image: The broker's.
        key: A group, or a transactional id.
        topic: The coordinator's internal topic.

    COORDINATOR_NOT_AVAILABLE while the topic does not exist, its partition has no leader, or the
    leader is fenced.

    Source: ``KafkaApis.getCoordinator``.
    """
    count = image.partition_counts.get(topic, 0)
    leader = NO_LEADER
    if count:
        leader = image.leader_of(TopicPartition(topic, partition_for_group(key, count)))
    registration = image.brokers.get(leader)
    if registration is None or registration.fenced:
        return FindCoordinatorResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return FindCoordinatorResponse(ErrorCode.NONE, leader)
