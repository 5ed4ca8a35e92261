"""Administrator's requests to the controller: deletion, more partitions, configs, elections.

Source: ``ReplicationControlManager.{deleteTopics,createPartitions,electLeaders}``,
``ConfigurationControlManager.incrementalAlterConfigs`` (4.1); KIP-460, KIP-966.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.controller.elections import ElectionKind
from sim.protocol.controller.mutation_quotas import MutationQuota, MutationThrottled
from sim.protocol.controller.no_ops import known_configs
from sim.protocol.controller.partitions import change_of, has_elr
from sim.protocol.controller.topics import TopicRefused, more_partitions
from sim.protocol.controller.types import Decision
from sim.protocol.messages.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ClearElrRecord,
    ConfigRecord,
    MetadataRecord,
    RemoveTopicRecord,
)
from sim.protocol.metadata.versions import CORDONED_DIRECTORIES, is_at_least
from sim.units import Micros


def delete_topics(
    image: MetadataImage,
    request: DeleteTopicsRequest,
    *,
    enabled: bool,
    quota: MutationQuota | None = None,
) -> Decision:
    """Deletes topics; brokers remove their replicas when they replay it.

    ``enabled`` is ``delete.topic.enable``; ``quota`` limits the client.
    """
    records: list[MetadataRecord] = []
    errors: list[tuple[str, ErrorCode]] = []
    for name in request.topics:
        topic_id = image.topic_ids.get(name)
        if not enabled:
            errors.append((name, ErrorCode.TOPIC_DELETION_DISABLED))
        elif topic_id is None:
            errors.append((name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif _is_throttled(quota, image.partition_counts[name]):
            errors.append((name, ErrorCode.THROTTLING_QUOTA_EXCEEDED))
        else:
            records.append(RemoveTopicRecord(topic_id))
            errors.append((name, ErrorCode.NONE))
    return Decision(tuple(records), DeleteTopicsResponse(tuple(errors), _throttle_time(quota)))


def create_partitions(
    image: MetadataImage,
    request: CreatePartitionsRequest,
    unit: Callable[[], float],
    *,
    rack_aware: bool = True,
    quota: MutationQuota | None = None,
) -> Decision:
    """Adds partitions to a topic; their number never shrinks. ``quota`` limits the client."""
    try:
        records = more_partitions(image, request, unit, rack_aware=rack_aware, quota=quota)
    except TopicRefused as refused:
        return Decision((), CreatePartitionsResponse(refused.args[0]))
    except MutationThrottled:
        error = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return Decision((), CreatePartitionsResponse(error, _throttle_time(quota)))
    return Decision(tuple(records), CreatePartitionsResponse(ErrorCode.NONE, _throttle_time(quota)))


def alter_configs(image: MetadataImage, request: IncrementalAlterConfigsRequest) -> Decision:
    """Changes settings of a topic, a group, a broker or the cluster.

    Unchanged settings of a topic or of a group make no record.

    Any change of ``min.insync.replicas`` clears the eligible leader replicas of the topics
    concerned: they were eligible by the old minimum (KIP-966).
    """
    if request.topic and request.topic not in image.topic_ids:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return Decision((), IncrementalAlterConfigsResponse(error))
    if _touches_elr(image, request) or _cordons_too_early(image, request):
        return Decision((), IncrementalAlterConfigsResponse(ErrorCode.INVALID_CONFIG))
    kind = BROKER_RESOURCE
    if request.topic or request.group:
        kind = TOPIC_RESOURCE if request.topic else GROUP_RESOURCE
    known = known_configs(image, request)
    changes = [
        (name, value)
        for name, value in request.changes
        if kind == BROKER_RESOURCE or known.get(name) != value
    ]
    records: list[MetadataRecord] = [
        ConfigRecord(kind, request.resource, name, value) for name, value in changes
    ]
    if has_elr(image) and any(name == "min.insync.replicas" for name, _ in changes):
        records.append(ClearElrRecord(request.topic))
    return Decision(tuple(records), IncrementalAlterConfigsResponse(ErrorCode.NONE))


def _touches_elr(image: MetadataImage, request: IncrementalAlterConfigsRequest) -> bool:
    """True for a minimum ISR of one broker, or none for the cluster, where there are ELRs.

    Source: ``ConfigurationControlManager.validateAlterConfig`` (4.1); KIP-966.
    """
    if request.topic or request.group or not has_elr(image):
        return False
    given = [value for name, value in request.changes if name == "min.insync.replicas"]
    return bool(given) and (request.broker != NO_LEADER or None in given)


def _cordons_too_early(image: MetadataImage, request: IncrementalAlterConfigsRequest) -> bool:
    """True if directories are to be cordoned below metadata.version 30.

    Source: ``ConfigurationControlManager.isCordonedLogDirsDisabled`` (4.3); KIP-1066.
    """
    cordons = any(name == "cordoned.log.dirs" for name, _ in request.changes)
    return cordons and not is_at_least(image.features, CORDONED_DIRECTORIES)


def elect_leaders(
    image: MetadataImage,
    request: ElectLeadersRequest,
    recover: Callable[[TopicPartition], None],
) -> Decision:
    """Elects leaders at once. If all partitions are requested, those that need none are omitted.

    Where the ends of replicas' logs decide (KIP-966, part 2) ``recover`` begins to collect them,
    and the response does not wait for the outcome.
    """
    kind = ElectionKind.PREFERRED if request.kind == "preferred" else ElectionKind.UNCLEAN
    records: list[MetadataRecord] = []
    errors: list[tuple[TopicPartition, ErrorCode]] = []
    for partition in request.partitions or tuple(image.partitions):
        registration = image.partitions.get(partition)
        if registration is None:
            errors.append((partition, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        elif not _needs(registration, kind):
            if request.partitions:
                errors.append((partition, ErrorCode.ELECTION_NOT_NEEDED))
        else:
            change = change_of(image, partition, registration.in_sync, kind)
            record = change.record(partition.partition)
            if record is not None:
                records.append(record)
                errors.append((partition, ErrorCode.NONE))
            elif change.queries_logs and kind is ElectionKind.UNCLEAN:
                recover(partition)
                errors.append((partition, ErrorCode.NONE))
            else:
                errors.append((partition, _no_leader_error(kind)))
    return Decision(tuple(records), ElectLeadersResponse(tuple(errors)))


def _is_throttled(quota: MutationQuota | None, partitions: int) -> bool:
    if quota is None:
        return False
    try:
        quota.take(partitions)
    except MutationThrottled:
        return True
    return False


def _throttle_time(quota: MutationQuota | None) -> Micros:
    return 0 if quota is None else quota.throttle_us


def _needs(registration: PartitionRegistration, kind: ElectionKind) -> bool:
    if kind is ElectionKind.PREFERRED:
        return registration.leader != registration.replicas[0]
    return registration.leader == NO_LEADER


def _no_leader_error(kind: ElectionKind) -> ErrorCode:
    if kind is ElectionKind.PREFERRED:
        return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
