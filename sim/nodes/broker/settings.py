"""Settings of a broker process and of its machines."""

import math
from dataclasses import dataclass, field
from typing import Final

from sim.ids import NodeId
from sim.nodes.storage.log_settings import ProducerUpkeep
from sim.nodes.storage.metadata_log import MetadataLogConfig
from sim.protocol.authorization import AuthorizerConfig
from sim.protocol.broker.lifecycle import LifecycleConfig
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.share.config import ShareConfig
from sim.protocol.broker.tiered.ports import TieredConfig
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.share.coordinator import ShareCoordinatorConfig
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.kraft.types import QuorumConfig
from sim.protocol.kraft.voter_set import DynamicMember
from sim.protocol.metadata.server_configs import NO_FILE, ServerFile
from sim.protocol.quotas.client import ClientQuotaConfig
from sim.protocol.quotas.connection import ConnectionQuotaConfig
from sim.protocol.raft_groups.types import RaftConfig
from sim.protocol.security.config import ListenerSecurity
from sim.protocol.zk_mode.broker_types import ZkBrokerConfig
from sim.records.consumer_offsets import FORM, OffsetsForm
from sim.substrate.heap import HeapSpec
from sim.units import MIB, NEVER, SECOND, Bytes, Micros

LOGGED_STATE_NS: Final = 2_880
"""A partition in the line that an election wrote to the controller's log, in nanoseconds: the line
that held all 25,000 made 360 of the 390 s in which a broker handed 5,000 leaders over (200K). Of no
account since each election logs its own partition (KAFKA-6116)."""


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """Settings of a broker's background tasks for its logs."""

    initial_delay_us: Micros = 30 * SECOND
    """``log.initial.task.delay.ms``: retention begins that long after the start."""
    retention_check_us: Micros = 300 * SECOND
    """``log.retention.check.interval.ms``."""
    log_start_checkpoint_us: Micros = 60 * SECOND
    """``log.flush.start.offset.checkpoint.interval.ms``."""
    flush_check_us: Micros = NEVER
    """``log.flush.scheduler.interval.ms``: interval of the flush scheduler."""
    cleaner_threads: int = 1
    """``log.cleaner.threads``."""
    cleaner_enabled: bool = True
    """``log.cleaner.enable``: without cleaners compacted logs keep every segment."""
    cleaner_backoff_us: Micros = 15 * SECOND
    """``log.cleaner.backoff.ms``: sleep of a cleaner that found nothing to clean."""
    cleaner_bytes_per_s: float = math.inf
    """``log.cleaner.io.max.bytes.per.second``: reads and writes of all cleaners together."""
    horizon_by_segment: bool = False
    """True if tombstones expire by the age of their segment, as before 3.1."""
    cleaning_bounded: bool = True
    """True if cleaners stop at the high watermark, as since 3.1 (KAFKA-13194)."""
    coordinates_tombstones: bool = False
    """True if a tombstone stays until all replicas have cleaned beyond it (as in Redpanda)."""
    error_ends_cleaner: bool = False
    """True if an unreadable segment ends the cleaner, as before 2.1 (KIP-346)."""
    retention_bounded: bool = True
    """True if retention stops at the high watermark, as since 1.0 (KAFKA-5634)."""
    dedupe_bytes: Bytes = 128 * MIB
    """``log.cleaner.dedupe.buffer.size``: the offset maps of all cleaners together."""
    load_factor: float = 0.9
    """``log.cleaner.io.buffer.load.factor``: fill limit of an offset map."""


@dataclass(frozen=True, slots=True)
class ZkBrokerSettings:
    """Settings of a broker in ZooKeeper mode, instead of those of KRaft."""

    servers: tuple[NodeId, ...]
    """``zookeeper.connect``."""
    broker: ZkBrokerConfig
    answer_us: Micros = 140
    """The controller's work for one response of ZooKeeper: 14 s for 100,000 partitions with reads
    that overlap (Jun Rao, "Apache Kafka Supports 200K Partitions Per Cluster", 2018)."""
    metadata_us: Micros = 2
    """Work for one partition of an UpdateMetadata request; a modelling choice."""
    logged_state_ns: int = LOGGED_STATE_NS
    """The controller's work for one partition's state that it logs."""


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker process."""

    voters: tuple[NodeId, ...]
    """``controller.quorum.voters``; of a dynamic quorum ``controller.quorum.bootstrap.servers``."""
    dynamic_quorum: bool = False
    """True if the voters are those of the metadata log (KIP-853)."""
    replica: ReplicaManagerConfig = field(default_factory=ReplicaManagerConfig)
    raft: RaftConfig | None = None
    """Of the partitions' Raft groups; ``None``: Kafka's own replication."""
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    group: GroupConfig = field(default_factory=GroupConfig)
    offsets_form: OffsetsForm = FORM
    """Versions of the group coordinator's records."""
    shares: ShareConfig = field(default_factory=ShareConfig)
    share_coordinator: ShareCoordinatorConfig = field(default_factory=ShareCoordinatorConfig)
    producers: ProducerUpkeep = field(default_factory=ProducerUpkeep)
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    metadata_log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    publishes_unregistered: bool = True
    """True if the first metadata is published as soon as the metadata log is read, whether or not
    the broker is registered (since 3.5)."""
    zookeeper: ZkBrokerSettings | None = None
    """``None``: under KRaft."""
    high_watermark_checkpoint_us: Micros = 5 * SECOND
    """``replica.high.watermark.checkpoint.interval.ms``."""
    recovery_point_checkpoint_us: Micros = 60 * SECOND
    """``log.flush.offset.checkpoint.interval.ms``."""
    file_delete_delay_us: Micros = 60 * SECOND
    """``log.segment.delete.delay.ms``: time that a deleted log's files stay."""
    recovery_threads: int = 2
    """``num.recovery.threads.per.data.dir``."""
    client_quotas: ClientQuotaConfig | None = None
    """``None``: the scenario has no client quotas."""
    connections: ConnectionQuotaConfig | None = None
    """``None``: the scenario has no connection quotas."""
    authorizer: AuthorizerConfig | None = None
    """``None``: without ``authorizer.class.name``."""
    security: ListenerSecurity | None = None
    """Of the clients' listener; ``None``: every client is taken for what the scenario says."""
    file: ServerFile = NO_FILE
    """Settings that may change while it runs, as in its file."""
    tiered: TieredConfig | None = None
    """``None``: ``remote.log.storage.system.enable`` is off."""
    codecs: bool = False
    """True if batches may be compressed, by producers or for a topic: handlers pay for it then."""
    heap: HeapSpec | None = None
    """``None``: unlimited memory."""

    @property
    def assigns_directories(self) -> bool:
        """True if the controller knows log directories: under KRaft since 3.7 (KIP-858)."""
        return self.zookeeper is None and self.metadata_log.knows_directories

    def observer(self, directory: str) -> DynamicMember | None:
        """Identity of a broker with that metadata directory in a dynamic quorum."""
        if not self.dynamic_quorum:
            return None
        return DynamicMember(directory, self.voters, always_flushes=False)
