"""The metadata image that records replay into.

Every broker and controller replays the same committed records with the same code, so they differ
only in the offset that each has reached.

Source: ``org.apache.kafka.image.MetadataImage``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from sim.ids import NO_LEADER, BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.acls import Acl
from sim.protocol.metadata.records import (
    FENCE,
    GROUP_RESOURCE,
    MEMBERSHIP,
    TOPIC_RESOURCE,
    AccessControlEntryRecord,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from sim.protocol.metadata.server_configs import NO_FILE, ServerFile, effective, of_topics
from sim.protocol.metadata.versions import SupportedFeatures, implied

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity of a quota: see :class:`~sim.protocol.metadata.records.ClientQuotaRecord`."""


@dataclass(frozen=True, slots=True)
class PartitionRegistration:
    """Registration of one partition. Node tuples keep Kafka's order.

    Source: ``org.apache.kafka.metadata.PartitionRegistration``.
    """

    topic_id: str
    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int
    directories: tuple[str, ...] = ()
    removing: tuple[NodeId, ...] = ()
    adding: tuple[NodeId, ...] = ()
    eligible: tuple[NodeId, ...] = ()
    """Eligible leader replicas (KIP-966)."""
    last_known_eligible: tuple[NodeId, ...] = ()
    recovering: bool = False
    """LeaderRecoveryState RECOVERING, after an unclean election."""


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """Registration of one broker."""

    broker: NodeId
    epoch: BrokerEpoch
    incarnation: str
    rack: str
    fenced: bool
    in_controlled_shutdown: bool
    directories: tuple[str, ...] = ()
    registered_at: Offset = -1
    """Offset of the registration record: a broker that has applied it is caught up."""
    features: SupportedFeatures = ()
    """Features that it supports."""
    cordoned: tuple[str, ...] | None = None
    """Log directories that get no new replicas; ``None``: not known (KIP-1066)."""

    @property
    def has_open_directory(self) -> bool:
        """True if a directory may get new replicas.

        Source: ``BrokerRegistration.hasUncordonedDirs`` (4.3).
        """
        if not self.directories or self.cordoned is None:
            return True
        return any(directory not in self.cordoned for directory in self.directories)


@dataclass(frozen=True, slots=True)
class ControllerRegistration:
    """Registration of one controller (KIP-919)."""

    incarnation: str
    features: SupportedFeatures
    """Features that it supports."""


@dataclass(slots=True)
class MetadataImage:
    """State after replaying the log up to ``offset`` (exclusive). Changed only by ``replay``."""

    offset: Offset = 0
    epoch: LeaderEpoch = 0
    brokers: dict[NodeId, BrokerRegistration] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    topic_names: dict[str, str] = field(default_factory=dict)
    partitions: dict[TopicPartition, PartitionRegistration] = field(default_factory=dict)
    partition_counts: dict[str, int] = field(default_factory=dict)
    topic_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0
    features: dict[str, int] = field(default_factory=dict)
    cluster_configs: dict[str, str] = field(default_factory=dict)
    client_quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    """Quotas by entity and name, none without a value."""
    broker_configs: dict[NodeId, dict[str, str]] = field(default_factory=dict)
    """Settings of single brokers."""
    file: ServerFile = NO_FILE
    """Of the server that has this image."""
    memberships: dict[NodeId, str] = field(default_factory=dict)
    """Brokers that are joining, draining or removed, by the values of
    ``metadata_records.MEMBERSHIP``."""
    acls: dict[str, Acl] = field(default_factory=dict)
    """ACLs by their ids, oldest first."""
    controllers: dict[NodeId, ControllerRegistration] = field(default_factory=dict)
    """Controllers that have registered."""
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Settings of single groups."""
    tokens: dict[str, DelegationTokenRecord] = field(default_factory=dict)
    """Delegation tokens by their ids, oldest first."""
    changed: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions touched by partition records since the last :meth:`take_changed`, oldest first."""
    reconfigured: dict[str, None] = field(default_factory=dict)
    """Topics whose settings changed since the last :meth:`take_reconfigured`, oldest first."""

    def replay(self, offset: Offset, epoch: LeaderEpoch, record: MetadataRecord) -> None:
        """Applies the record at the offset.

        Raises:
            AssertionError: If the record is not the next one, or refers to something unknown.
        """
        assert offset == self.offset, f"record at {offset}, expected {self.offset}"
        apply = _REPLAY.get(type(record))
        if apply is not None:
            apply(self, record, offset)
        self.offset = offset + 1
        self.epoch = epoch

    def load(
        self, end_offset: Offset, epoch: LeaderEpoch, records: Iterable[MetadataRecord]
    ) -> None:
        """Replaces the state by that of a snapshot of everything below the offset.

        Partitions that were removed, added or changed count as changed, and so do topics with other
        settings. Registrations count as made right below the offset, as in
        ``ClusterControlManager.replay``.
        """
        before = self.partitions
        fresh = MetadataImage(file=self.file, features=implied(self.features))
        for record in records:
            fresh.offset = end_offset - 1
            fresh.replay(end_offset - 1, epoch, record)
        for key in (*before, *fresh.partitions):
            if before.get(key) != fresh.partitions.get(key):
                self.changed[key] = None
        for topic in fresh.topic_ids:
            if topic in self.topic_ids and self.configs_of(topic) != fresh.configs_of(topic):
                self.reconfigured[topic] = None
        self.offset, self.epoch = end_offset, epoch
        self.brokers = fresh.brokers
        self.topic_ids, self.topic_names = fresh.topic_ids, fresh.topic_names
        self.partitions, self.partition_counts = fresh.partitions, fresh.partition_counts
        self.topic_configs, self.cluster_configs = fresh.topic_configs, fresh.cluster_configs
        self.broker_configs = fresh.broker_configs
        self.next_producer_id = fresh.next_producer_id
        self.features = fresh.features
        self.client_quotas = fresh.client_quotas
        self.memberships = fresh.memberships
        self.acls = fresh.acls
        self.controllers = fresh.controllers
        self.group_configs = fresh.group_configs
        self.tokens = fresh.tokens

    def take_changed(self) -> tuple[TopicPartition, ...]:
        """Partitions touched since the last call; a deleted one is not in ``partitions``."""
        changed = tuple(self.changed)
        self.changed.clear()
        return changed

    def take_reconfigured(self) -> tuple[str, ...]:
        """Topics with partitions whose settings changed since the last call."""
        reconfigured = tuple(self.reconfigured)
        self.reconfigured.clear()
        return reconfigured

    def copy(self) -> "MetadataImage":
        """A copy that can diverge; registrations are shared, being frozen."""
        return MetadataImage(
            self.offset,
            self.epoch,
            dict(self.brokers),
            dict(self.topic_ids),
            dict(self.topic_names),
            dict(self.partitions),
            dict(self.partition_counts),
            {topic: dict(configs) for topic, configs in self.topic_configs.items()},
            self.next_producer_id,
            dict(self.features),
            dict(self.cluster_configs),
            {entity: dict(quotas) for entity, quotas in self.client_quotas.items()},
            {broker: dict(configs) for broker, configs in self.broker_configs.items()},
            self.file,
            dict(self.memberships),
            dict(self.acls),
            dict(self.controllers),
            {group: dict(configs) for group, configs in self.group_configs.items()},
            dict(self.tokens),
        )

    def config_of(self, topic: str, name: str, default: str) -> str:
        """A topic's setting: its own, or that of this image's server, or the default."""
        value = self.topic_configs.get(topic, {}).get(name)
        return value if value is not None else self.inherited_configs().get(name, default)

    def configs_of(self, topic: str) -> dict[str, str]:
        """All of a topic's settings: those of this image's server, and its own before them."""
        return {**self.inherited_configs(), **self.topic_configs.get(topic, {})}

    def server_configs(self) -> dict[str, str]:
        """Settings of this image's server that are in the metadata, or may be, by its names."""
        return effective(self.file, self.cluster_configs, self.broker_configs)

    def inherited_configs(self) -> dict[str, str]:
        """The same by the topics' names: what a topic has without a value of its own."""
        if self.file is NO_FILE and not self.broker_configs:
            return self.cluster_configs
        return of_topics(self.server_configs())

    def effective_min_in_sync(self, topic: str) -> int:
        """``min.insync.replicas``, but no more than the topic's replication factor."""
        configured = int(self.config_of(topic, "min.insync.replicas", "1"))
        first = self.partitions.get(TopicPartition(topic, 0))
        return configured if first is None else min(configured, len(first.replicas))

    def leader_of(self, partition: TopicPartition) -> NodeId:
        """The partition's leader; NO_LEADER if it has none or is unknown."""
        registration = self.partitions.get(partition)
        return registration.leader if registration is not None else NO_LEADER

    def is_active(self, broker: NodeId) -> bool:
        """Registered, not fenced and not in controlled shutdown."""
        registration = self.brokers.get(broker)
        return (
            registration is not None
            and not registration.fenced
            and not registration.in_controlled_shutdown
        )


def merged(
    registration: PartitionRegistration, change: PartitionChangeRecord
) -> PartitionRegistration:
    """The partition after the change.

    Source: ``PartitionRegistration.merge``.
    """
    old = registration
    return PartitionRegistration(
        old.topic_id,
        _or(change.replicas, old.replicas),
        _or(change.in_sync, old.in_sync),
        old.leader if change.leader is None else change.leader,
        old.leader_epoch if change.leader is None else old.leader_epoch + 1,
        old.partition_epoch + 1,
        old.directories if change.directories is None else change.directories,
        _or(change.removing, old.removing),
        _or(change.adding, old.adding),
        _or(change.eligible, old.eligible),
        _or(change.last_known_eligible, old.last_known_eligible),
        old.recovering if change.recovering is None else change.recovering,
    )


def _or(new: tuple[NodeId, ...] | None, old: tuple[NodeId, ...]) -> tuple[NodeId, ...]:
    return old if new is None else new


def _register(image: MetadataImage, record: RegisterBrokerRecord, offset: Offset) -> None:
    image.brokers[record.broker] = BrokerRegistration(
        record.broker,
        record.broker_epoch,
        record.incarnation,
        record.rack,
        record.fenced,
        record.in_controlled_shutdown,
        record.directories,
        offset,
        record.features,
        record.cordoned,
    )


def _register_controller(
    image: MetadataImage, record: RegisterControllerRecord, _offset: Offset
) -> None:
    registered = ControllerRegistration(record.incarnation, record.features)
    image.controllers[record.controller] = registered


def _unregister(image: MetadataImage, record: UnregisterBrokerRecord, _offset: Offset) -> None:
    del image.brokers[record.broker]


def _change_broker(
    image: MetadataImage, record: BrokerRegistrationChangeRecord, _offset: Offset
) -> None:
    old = image.brokers[record.broker]
    assert old.epoch == record.broker_epoch, f"{record} does not match {old}"
    image.brokers[record.broker] = replace(
        old,
        fenced=old.fenced if record.fenced == 0 else record.fenced == FENCE,
        in_controlled_shutdown=old.in_controlled_shutdown or record.in_controlled_shutdown == 1,
        directories=record.directories or old.directories,
        cordoned=old.cordoned if record.cordoned is None else record.cordoned,
    )


def _add_topic(image: MetadataImage, record: TopicRecord, _offset: Offset) -> None:
    image.topic_ids[record.name] = record.topic_id
    image.topic_names[record.topic_id] = record.name
    image.partition_counts[record.name] = 0


def _remove_topic(image: MetadataImage, record: RemoveTopicRecord, _offset: Offset) -> None:
    name = image.topic_names.pop(record.topic_id)
    del image.topic_ids[name]
    image.topic_configs.pop(name, None)
    for partition in range(image.partition_counts.pop(name)):
        key = TopicPartition(name, partition)
        image.partitions.pop(key, None)
        image.changed[key] = None


def _add_partition(image: MetadataImage, record: PartitionRecord, _offset: Offset) -> None:
    name = image.topic_names[record.topic_id]
    key = TopicPartition(name, record.partition)
    image.partitions[key] = PartitionRegistration(
        record.topic_id,
        record.replicas,
        record.in_sync,
        record.leader,
        record.leader_epoch,
        record.partition_epoch,
        record.directories,
        record.removing,
        record.adding,
        record.eligible,
        record.last_known_eligible,
        record.recovering,
    )
    image.partition_counts[name] = max(image.partition_counts[name], record.partition + 1)
    image.changed[key] = None


def _change_partition(image: MetadataImage, record: PartitionChangeRecord, _offset: Offset) -> None:
    key = TopicPartition(image.topic_names[record.topic_id], record.partition)
    image.partitions[key] = merged(image.partitions[key], record)
    image.changed[key] = None


def _clear_eligible(image: MetadataImage, record: ClearElrRecord, _offset: Offset) -> None:
    """Source: ``ReplicationControlManager.clearTopicElr``."""
    for key, registration in image.partitions.items():
        if record.topic not in {"", key.topic}:
            continue
        if registration.eligible or registration.last_known_eligible:
            change = PartitionChangeRecord(
                key.partition, registration.topic_id, eligible=(), last_known_eligible=()
            )
            image.partitions[key] = merged(registration, change)
            image.changed[key] = None


def _configure_group(image: MetadataImage, record: ConfigRecord) -> None:
    configs = image.group_configs.setdefault(record.resource_name, {})
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    if not configs:
        del image.group_configs[record.resource_name]


def _configure(image: MetadataImage, record: ConfigRecord, _offset: Offset) -> None:
    if record.resource_type == TOPIC_RESOURCE:
        configs = image.topic_configs.setdefault(record.resource_name, {})
    elif record.resource_type == GROUP_RESOURCE:
        _configure_group(image, record)
        return
    elif record.resource_name and record.name == MEMBERSHIP:
        _set_membership(image, int(record.resource_name), record.value)
        return
    elif record.resource_name:
        configs = image.broker_configs.setdefault(int(record.resource_name), {})
    else:
        configs = image.cluster_configs
    if record.value is None:
        configs.pop(record.name, None)
    else:
        configs[record.name] = record.value
    # Settings of a topic under creation come before its partitions: no part holds an old value.
    is_topic = record.resource_type == TOPIC_RESOURCE
    for topic in (record.resource_name,) if is_topic else tuple(image.topic_ids):
        if image.partition_counts.get(topic, 0):
            image.reconfigured[topic] = None


def _set_membership(image: MetadataImage, broker: NodeId, value: str | None) -> None:
    if value is None:
        image.memberships.pop(broker, None)
    else:
        image.memberships[broker] = value


def _set_quota(image: MetadataImage, record: ClientQuotaRecord, _offset: Offset) -> None:
    """Source: ``ClientQuotaControlManager.replay``."""
    quotas = image.client_quotas.setdefault(record.entity, {})
    if record.value is not None:
        quotas[record.key] = record.value
        return
    quotas.pop(record.key, None)
    if not quotas:
        del image.client_quotas[record.entity]


def _add_acl(image: MetadataImage, record: AccessControlEntryRecord, _offset: Offset) -> None:
    image.acls[record.entry_id] = record.acl


def _remove_acl(
    image: MetadataImage, record: RemoveAccessControlEntryRecord, _offset: Offset
) -> None:
    del image.acls[record.entry_id]


def _set_token(image: MetadataImage, record: DelegationTokenRecord, _offset: Offset) -> None:
    image.tokens[record.token_id] = record


def _remove_token(
    image: MetadataImage, record: RemoveDelegationTokenRecord, _offset: Offset
) -> None:
    # It may have been removed twice: by a request, and by the sweep that did not see that yet.
    image.tokens.pop(record.token_id, None)


def _give_producer_ids(image: MetadataImage, record: ProducerIdsRecord, _offset: Offset) -> None:
    image.next_producer_id = record.next_producer_id


def _finalize_feature(image: MetadataImage, record: FeatureLevelRecord, _offset: Offset) -> None:
    if record.level == 0:
        image.features.pop(record.name, None)
    else:
        image.features[record.name] = record.level


# Each function takes the record type it is registered for, which a dict type cannot express.
_REPLAY: dict[type, Callable[..., None]] = {
    RegisterBrokerRecord: _register,
    UnregisterBrokerRecord: _unregister,
    BrokerRegistrationChangeRecord: _change_broker,
    TopicRecord: _add_topic,
    RemoveTopicRecord: _remove_topic,
    PartitionRecord: _add_partition,
    PartitionChangeRecord: _change_partition,
    ClearElrRecord: _clear_eligible,
    ConfigRecord: _configure,
    ClientQuotaRecord: _set_quota,
    AccessControlEntryRecord: _add_acl,
    RemoveAccessControlEntryRecord: _remove_acl,
    DelegationTokenRecord: _set_token,
    RemoveDelegationTokenRecord: _remove_token,
    ProducerIdsRecord: _give_producer_ids,
    FeatureLevelRecord: _finalize_feature,
    RegisterControllerRecord: _register_controller,
}
