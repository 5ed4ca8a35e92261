"""The controller's part for log directories: assignments of replicas, and failed directories.

Source: ``ReplicationControlManager.handleAssignReplicasToDirs`` and ``handleDirectoriesOffline``
(4.1); KIP-858.
"""

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.controller.partitions import leader_and_isr_updates
from sim.protocol.controller.types import Decision
from sim.protocol.messages.cluster import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    BrokerHeartbeatRequest,
    DirectoryAssignment,
)
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage
from sim.protocol.metadata.records import (
    UNASSIGNED_DIRECTORY,
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
)
from sim.protocol.metadata.versions import CORDONED_DIRECTORIES, is_at_least


def assign_replicas(image: MetadataImage, request: AssignReplicasToDirsRequest) -> Decision:
    """Handles AssignReplicasToDirs of a broker.

    A replica that it puts into a directory which is not online leaves the ISR in the same batch.
    """
    broker = request.broker
    registration = image.brokers.get(broker)
    if registration is None:
        error = ErrorCode.BROKER_ID_NOT_REGISTERED
        return Decision((), AssignReplicasToDirsResponse(error))
    if registration.epoch != request.broker_epoch:
        return Decision((), AssignReplicasToDirsResponse(ErrorCode.STALE_BROKER_EPOCH))
    records: list[MetadataRecord] = []
    results: list[tuple[TopicPartition, ErrorCode]] = []
    after = image.copy()
    offline: list[TopicPartition] = []
    for item in request.items:
        error = _refusal(image, broker, item)
        results.append((item.partition, error))
        if error is not ErrorCode.NONE:
            continue
        record = _assignment(after, broker, item)
        if record is not None:
            records.append(record)
            after.replay(after.offset, after.epoch, record)
        if registration.directories and item.directory not in registration.directories:
            offline.append(item.partition)
    removed = [p for p in offline if broker in after.partitions[p].in_sync]
    records.extend(leader_and_isr_updates(after, removed, remove=broker))
    response = AssignReplicasToDirsResponse(ErrorCode.NONE, tuple(results))
    return Decision(tuple(records), response)


def _refusal(image: MetadataImage, broker: NodeId, item: DirectoryAssignment) -> ErrorCode:
    if item.topic_id not in image.topic_names:
        return ErrorCode.UNKNOWN_TOPIC_ID
    registration = image.partitions.get(item.partition)
    if registration is None or registration.topic_id != item.topic_id:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker in registration.replicas else ErrorCode.NOT_LEADER_OR_FOLLOWER


def _assignment(
    image: MetadataImage, broker: NodeId, item: DirectoryAssignment
) -> PartitionChangeRecord | None:
    """Record of a replica's directory; ``None`` if it is known."""
    registration = image.partitions[item.partition]
    directories = tuple(
        item.directory if replica == broker else directory
        for replica, directory in zip(
            registration.replicas,
            registration.directories or (UNASSIGNED_DIRECTORY,) * len(registration.replicas),
            strict=True,
        )
    )
    if directories == registration.directories:
        return None
    number = item.partition.partition
    return PartitionChangeRecord(number, item.topic_id, directories=directories)


def directories_offline(
    image: MetadataImage, registration: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    """Removes replicas in failed log directories from the ISRs (KIP-858)."""
    broker = registration.broker
    lost = [d for d in registration.directories if d in request.offline_directories]
    if not lost:
        return []
    online = tuple(d for d in registration.directories if d not in lost)
    partitions = [
        partition
        for partition, r in image.partitions.items()
        if broker in r.in_sync and r.directories and r.directories[r.replicas.index(broker)] in lost
    ]
    records: list[MetadataRecord] = [*leader_and_isr_updates(image, partitions, remove=broker)]
    if online:
        records.append(
            BrokerRegistrationChangeRecord(broker, registration.epoch, directories=online)
        )
    return records


def directories_cordoned(
    image: MetadataImage, registration: BrokerRegistration, request: BrokerHeartbeatRequest
) -> list[MetadataRecord]:
    """Notes the log directories that get no new replicas (KIP-1066).

    Source: ``ReplicationControlManager.handleDirectoriesCordoned``,
    ``BrokerRegistration.cordonedDirChanged`` (4.3).
    """
    given, known = request.cordoned_directories, registration.cordoned
    if given is None or not is_at_least(image.features, CORDONED_DIRECTORIES):
        return []
    if known is not None and sorted(known) == sorted(given):
        return []
    return [BrokerRegistrationChangeRecord(registration.broker, registration.epoch, cordoned=given)]
