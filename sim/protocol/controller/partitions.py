"""The controller's part for existing partitions: ISR changes and elections.

Every function reads an image and returns records; none changes it.

Source: ``org.apache.kafka.controller.ReplicationControlManager`` (4.1); KIP-497, KIP-841, KIP-903.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.controller.elections import ElectionKind, PartitionChange
from sim.protocol.controller.types import Decision
from sim.protocol.messages.cluster import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    IsrMember,
)
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration, merged
from sim.protocol.metadata.records import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    PartitionChangeRecord,
)
from sim.protocol.metadata.versions import (
    LAST_WITH_EPOCH_OF_SHRINK,
    LEADER_RECOVERY,
    PREVIEW,
    is_at_least,
)

AGGRESSIVE: Final = "Aggressive"
BALANCED: Final = "Balanced"
"""Values of ``unclean.recovery.strategy`` (KIP-966, part 2); the third one is None."""

RECOVERY_MANAGER: Final = "unclean.recovery.manager.enabled"
"""Setting of KIP-966; ``recovery.unclean: longest_log`` puts it into the controllers' files."""


def leader_and_isr_updates(
    image: MetadataImage,
    partitions: Iterable[TopicPartition],
    *,
    remove: NodeId = NO_LEADER,
    add: NodeId = NO_LEADER,
    unclean: NodeId = NO_LEADER,
) -> list[PartitionChangeRecord]:
    """Partition changes when a broker leaves, joins, or came back without a clean shutdown.

    Args:
        image: The state before.
        partitions: Those that may change.
        remove: Broker that leaves every ISR.
        add: Broker that is acceptable as leader from now on.
        unclean: Broker that leaves every ISR and ELR.

    Source: ``ReplicationControlManager.generateLeaderAndIsrUpdates``.
    """
    records: list[PartitionChangeRecord] = []
    for partition in partitions:
        registration = image.partitions[partition]
        removed = (remove, unclean)
        change = PartitionChange(
            registration,
            acceptor(image, registration, removed, add),
            image.effective_min_in_sync(partition.topic),
            has_elr(image),
            tuple(b for b in registration.in_sync if b not in removed),
            _kind(image, partition.topic),
            (unclean,) if unclean != NO_LEADER else (),
            notes_recovery=is_at_least(image.features, LEADER_RECOVERY),
            bumps_on_shrink=bumps_on_shrink(image),
            queries_logs=queries_logs(image),
        )
        record = change.record(partition.partition)
        if record is not None:
            records.append(record)
    return records


def sweep(
    image: MetadataImage, kind: ElectionKind, elections_max: int
) -> tuple[PartitionChangeRecord, ...]:
    """One periodic sweep: preferred leaders, or unclean ones for leaderless partitions.

    Returns:
        At most ``elections_max`` records; with as many, another run should follow at once.
    """
    records: list[PartitionChangeRecord] = []
    for partition, registration in image.partitions.items():
        if len(records) >= elections_max:
            break
        if kind is ElectionKind.PREFERRED:
            due = registration.leader != registration.replicas[0]
        else:
            due = registration.leader == NO_LEADER and allows_unclean(image, partition.topic)
        if not due:
            continue
        change = change_of(image, partition, registration.in_sync, kind)
        record = change.record(partition.partition)
        if record is not None:
            records.append(record)
    return tuple(records)


def change_of(
    image: MetadataImage,
    partition: TopicPartition,
    target: tuple[NodeId, ...],
    kind: ElectionKind,
    longest: NodeId = NO_LEADER,
) -> PartitionChange:
    """A change of a partition while its brokers stay what they are, towards the ISR.

    ``longest`` has the longest log of the replicas that were asked.
    """
    registration = image.partitions[partition]
    return PartitionChange(
        registration,
        acceptor(image, registration, (), NO_LEADER),
        image.effective_min_in_sync(partition.topic),
        has_elr(image),
        target,
        kind,
        notes_recovery=is_at_least(image.features, LEADER_RECOVERY),
        bumps_on_shrink=bumps_on_shrink(image),
        queries_logs=queries_logs(image),
        longest=longest,
    )


def alter_partition(
    image: MetadataImage,
    request: AlterPartitionRequest,
    *,
    checks_eligibility: bool = True,
    bumps: bool = True,
) -> Decision:
    """Handles AlterPartition: ISR changes of leaders (KIP-497).

    Without ``checks_eligibility`` fenced brokers may become members, as before KIP-841. A member
    that is named without its broker epoch, as before KIP-903, may be any process. Without
    ``bumps`` a leader stays in its epoch whatever ``metadata.version`` is, as before 3.0.
    """
    sender = image.brokers.get(request.broker)
    if sender is None or sender.epoch != request.broker_epoch:
        return Decision((), AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH))
    records: list[PartitionChangeRecord] = []
    results: list[AlterPartitionResult] = []
    for item in request.items:
        error = validate_item(image, request.broker, item, checks_eligibility=checks_eligibility)
        if error is not ErrorCode.NONE:
            results.append(AlterPartitionResult(item.partition, error))
            continue
        record = _isr_change(image, item, bumps=bumps)
        registration = image.partitions[item.partition]
        if record is not None:
            records.append(record)
            registration = merged(registration, record)
            if record.leader not in {None, request.broker}:
                # The new ISR ends a reassignment, and the sender is no longer among the replicas.
                error = ErrorCode.NEW_LEADER_ELECTED
                results.append(AlterPartitionResult(item.partition, error))
                continue
        results.append(
            AlterPartitionResult(
                item.partition,
                ErrorCode.NONE,
                registration.leader,
                registration.leader_epoch,
                registration.in_sync,
                registration.partition_epoch,
            )
        )
    return Decision(tuple(records), AlterPartitionResponse(ErrorCode.NONE, tuple(results)))


def validate_item(
    image: MetadataImage,
    sender: NodeId,
    item: AlterPartitionItem,
    *,
    checks_eligibility: bool = True,
) -> ErrorCode:
    """Error of a requested ISR change; NONE if it is valid. The order of checks is Kafka's.

    Source: ``ReplicationControlManager.validateAlterPartitionData``.
    """
    registration = image.partitions.get(item.partition)
    if registration is None:
        known = item.partition.topic in image.topic_ids
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known else ErrorCode.UNKNOWN_TOPIC_ID
    error = _validate_epochs(registration, sender, item)
    if error is not ErrorCode.NONE:
        return error
    members = [member.broker for member in item.in_sync]
    if registration.leader not in members:
        return ErrorCode.INVALID_REQUEST
    if len(dict.fromkeys(members)) != len(members):
        return ErrorCode.INVALID_REQUEST
    if any(member not in registration.replicas for member in members):
        return ErrorCode.INVALID_REQUEST
    for member in item.in_sync:
        if checks_eligibility and not image.is_active(member.broker):
            return ErrorCode.INELIGIBLE_REPLICA
        if not _is_process(image, member):
            return ErrorCode.INELIGIBLE_REPLICA
    return ErrorCode.NONE


def _is_process(image: MetadataImage, member: IsrMember) -> bool:
    broker = image.brokers.get(member.broker)
    return member.broker_epoch == -1 or (broker is not None and member.broker_epoch == broker.epoch)


def partitions_where(
    image: MetadataImage, matches: Callable[[PartitionRegistration], bool]
) -> list[TopicPartition]:
    """Partitions whose registration matches, in the order of their creation."""
    return [p for p, registration in image.partitions.items() if matches(registration)]


def leads_something(image: MetadataImage, broker: NodeId) -> bool:
    """True if the broker leads any partition."""
    return any(r.leader == broker for r in image.partitions.values())


def allows_unclean(image: MetadataImage, topic: str) -> bool:
    """True if the topic may get a leader that is neither in the ISR nor in the ELR at any time.

    2.8's controller does not look at the setting (KAFKA-12803).
    """
    if not is_at_least(image.features, PREVIEW + 1):
        return False
    return recovery_strategy(image, topic) == AGGRESSIVE


def recovery_strategy(image: MetadataImage, topic: str) -> str:
    """``unclean.recovery.strategy`` of the topic, which no release has.

    Where neither the topic nor the brokers have one, ``unclean.leader.election.enable`` decides:
    true is Aggressive, false Balanced.

    Source: KIP-966, part 2.
    """
    given = image.config_of(topic, "unclean.recovery.strategy", "")
    if given:
        return given
    is_enabled = image.config_of(topic, "unclean.leader.election.enable", "false") == "true"
    return AGGRESSIVE if is_enabled else BALANCED


def has_elr(image: MetadataImage) -> bool:
    """True if eligible leader replicas are on (KIP-966)."""
    return image.features.get("eligible.leader.replicas.version", 0) > 0


def queries_logs(image: MetadataImage) -> bool:
    """``unclean.recovery.manager.enabled`` of this controller (KIP-966, part 2; in no release)."""
    return image.file.settings.get(RECOVERY_MANAGER) == "true"


def bumps_on_shrink(image: MetadataImage) -> bool:
    """True if a member that leaves an ISR begins a leader epoch: before ``metadata.version`` 3.6.

    Source: ``MetadataVersion.isLeaderEpochBumpRequiredOnIsrShrink`` (KAFKA-15021).
    """
    return not is_at_least(image.features, LAST_WITH_EPOCH_OF_SHRINK + 1)


def _validate_epochs(
    registration: PartitionRegistration, sender: NodeId, item: AlterPartitionItem
) -> ErrorCode:
    if (
        item.leader_epoch > registration.leader_epoch
        or item.partition_epoch > registration.partition_epoch
    ):
        # The sender has later metadata than this controller: it cannot be the active one.
        return ErrorCode.NOT_CONTROLLER
    if item.leader_epoch < registration.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != registration.leader:
        return ErrorCode.INVALID_REQUEST
    if item.partition_epoch < registration.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    return ErrorCode.NONE


def _isr_change(
    image: MetadataImage, item: AlterPartitionItem, *, bumps: bool
) -> PartitionChangeRecord | None:
    target = tuple(member.broker for member in item.in_sync)
    change = change_of(image, item.partition, target, _kind(image, item.partition.topic))
    # A leader sends RECOVERED in its first request: no recovery of data is implemented.
    bumps = bumps and change.bumps_on_shrink
    changed = replace(change, recovering=False, bumps_on_shrink=bumps)
    return changed.record(item.partition.partition)


def _kind(image: MetadataImage, topic: str) -> ElectionKind:
    return ElectionKind.UNCLEAN if allows_unclean(image, topic) else ElectionKind.ONLINE


def acceptor(
    image: MetadataImage,
    registration: PartitionRegistration,
    removed: tuple[NodeId, ...],
    added: NodeId,
) -> Callable[[NodeId], bool]:
    """Predicate: true if a broker may lead the partition, after the current event."""

    def is_acceptable(broker: NodeId) -> bool:
        if broker in removed or not (broker == added or image.is_active(broker)):
            return False
        return _directory_online(image, registration, broker)

    return is_acceptable


def _directory_online(
    image: MetadataImage, registration: PartitionRegistration, broker: NodeId
) -> bool:
    """True if the replica's log directory is online, as far as the controller knows (KIP-858)."""
    online = image.brokers[broker].directories
    if not online or not registration.directories or broker not in registration.replicas:
        return True
    directory = registration.directories[registration.replicas.index(broker)]
    return directory in {UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY} or directory in online
