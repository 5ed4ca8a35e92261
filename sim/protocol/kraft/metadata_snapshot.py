"""Snapshots of a process's metadata: when they are due, and their records.

Every broker and controller takes its own. A snapshot is due when so many bytes of records were
applied since the last one, or so much time has passed; the time is checked only when records come.

Source: KIP-630; ``org.apache.kafka.image.publisher.SnapshotGenerator``,
``org.apache.kafka.image.MetadataImage.write`` (3.6 to 4.3).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sim.ids import SnapshotId, TopicPartition
from sim.protocol.kraft.types import Committed, SnapshotLoaded
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import (
    BROKER_RESOURCE,
    GROUP_RESOURCE,
    MEMBERSHIP,
    TOPIC_RESOURCE,
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    TopicRecord,
    ZkMigrationStateRecord,
)
from sim.protocol.metadata.versions import (
    SUPPORTED,
    SupportedFeatures,
    finalized,
    has_migration_state,
)
from sim.units import MIB, SECOND, Bytes, Micros

METADATA_VERSION_FEATURE = "metadata.version"
"""Feature whose level decides the format of all others; it comes first."""

_NOBODY = -1


@dataclass(frozen=True, slots=True)
class SnapshotConfig:
    """Settings of snapshots, with Kafka's defaults."""

    bytes_between: Bytes = 20 * MIB
    """``metadata.log.max.record.bytes.between.snapshots``."""
    interval_us: Micros = 3_600 * SECOND
    """``metadata.log.max.snapshot.interval.ms``; 0 switches snapshots by time off."""
    supported: SupportedFeatures = SUPPORTED
    """Features that the process's release supports."""


@dataclass(frozen=True, slots=True)
class WriteSnapshot:
    """Effect: writes this state as the snapshot of that id; later effects do not wait."""

    snapshot: SnapshotId
    records: tuple[MetadataRecord, ...]


class SnapshotGenerator:
    """Decides when a process writes a snapshot."""

    def __init__(
        self, image: Callable[[], MetadataImage], config: SnapshotConfig, now: Micros
    ) -> None:
        """Begins to count.

        Args:
            image: The process's metadata; it applies committed records before this machine handles
                them.
            config: Settings.
            now: Start of the process.
        """
        self._image = image
        self._config = config
        self._bytes: Bytes = 0
        self._since: Micros = now

    def handle(self, event: Committed | SnapshotLoaded, now: Micros) -> list[WriteSnapshot]:
        """Handles an event; returns effects."""
        if isinstance(event, SnapshotLoaded):
            self._reset(now)
            return []
        self._bytes += event.size_bytes
        config = self._config
        late = config.interval_us != 0 and now - self._since >= config.interval_us
        if self._bytes < config.bytes_between and not late:
            return []
        self._reset(now)
        image = self._image()
        assert image.offset == event.end_offset, "the image has applied the committed records"
        snapshot = SnapshotId(image.offset, image.epoch)
        return [WriteSnapshot(snapshot, tuple(image_records(image, config.supported)))]

    def _reset(self, now: Micros) -> None:
        self._bytes = 0
        self._since = now


def image_records(
    image: MetadataImage, supported: SupportedFeatures = SUPPORTED
) -> Iterator[MetadataRecord]:
    """Records that replay into the image, in the order in which Kafka writes its parts.

    Args:
        image: What is written.
        supported: Features that the writer's release supports.
    """
    yield from feature_records(image.features)
    if has_migration_state(image.features, supported):
        yield ZkMigrationStateRecord()
    for broker in sorted(image.brokers):
        yield _registration(image.brokers[broker])
    for node, registered in sorted(image.controllers.items()):
        yield RegisterControllerRecord(node, registered.incarnation, registered.features)
    for name, topic_id in image.topic_ids.items():
        yield TopicRecord(name, topic_id)
        for number in range(image.partition_counts[name]):
            yield _partition(number, image.partitions[TopicPartition(name, number)])
    yield from _broker_settings(image)
    yield from _settings(TOPIC_RESOURCE, image.topic_configs)
    yield from _settings(GROUP_RESOURCE, image.group_configs)
    for entity, quotas in image.client_quotas.items():
        for key, value in quotas.items():
            yield ClientQuotaRecord(entity, key, value)
    if image.next_producer_id > 0:
        yield ProducerIdsRecord(_NOBODY, _NOBODY, image.next_producer_id)
    for entry_id, acl in image.acls.items():
        yield AccessControlEntryRecord(entry_id, acl)
    yield from image.tokens.values()


def _broker_settings(image: MetadataImage) -> Iterator[ConfigRecord]:
    for name in sorted(image.cluster_configs):
        yield ConfigRecord(BROKER_RESOURCE, "", name, image.cluster_configs[name])
    for broker in sorted(image.broker_configs):
        configs = image.broker_configs[broker]
        for name in sorted(configs):
            yield ConfigRecord(BROKER_RESOURCE, str(broker), name, configs[name])
    for broker in sorted(image.memberships):
        yield ConfigRecord(BROKER_RESOURCE, str(broker), MEMBERSHIP, image.memberships[broker])


def _settings(kind: int, resources: Mapping[str, Mapping[str, str]]) -> Iterator[ConfigRecord]:
    for resource, configs in resources.items():
        for name in sorted(configs):
            yield ConfigRecord(kind, resource, name, configs[name])


def feature_records(levels: dict[str, int]) -> Iterator[FeatureLevelRecord]:
    """Finalized features: the metadata version first, the others by name."""
    kept = finalized(levels)
    for name in sorted(kept, key=lambda name: (name != METADATA_VERSION_FEATURE, name)):
        yield FeatureLevelRecord(name, kept[name])


def _registration(registered: BrokerRegistration) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        registered.broker,
        registered.incarnation,
        registered.epoch,
        registered.rack,
        registered.fenced,
        registered.in_controlled_shutdown,
        registered.directories,
        registered.features,
        registered.cordoned,
    )


def _partition(number: int, registered: PartitionRegistration) -> PartitionRecord:
    return PartitionRecord(
        number,
        registered.topic_id,
        registered.replicas,
        registered.in_sync,
        registered.leader,
        registered.leader_epoch,
        registered.partition_epoch,
        registered.directories,
        registered.removing,
        registered.adding,
        registered.eligible,
        registered.last_known_eligible,
        registered.recovering,
    )
