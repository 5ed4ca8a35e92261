"""Types of the controller: settings, decisions, its events and effects.

Source: ``org.apache.kafka.controller.{QuorumController,ControllerResult}`` (4.1).
"""

from dataclasses import dataclass, field

from sim.ids import BrokerEpoch, NodeId, Offset
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.controller.mutation_quotas import MutationQuotaConfig
from sim.protocol.controller.partition_balancer import BalancerConfig
from sim.protocol.kraft.types import (
    AppendMetadata,
    Committed,
    LeadershipChanged,
    SnapshotLoaded,
    VotersProposed,
)
from sim.protocol.messages.base import Response
from sim.protocol.metadata.records import MetadataRecord
from sim.protocol.metadata.server_configs import NO_FILE, ServerFile
from sim.protocol.metadata.versions import (
    FEATURE,
    LAST_WITH_EPOCH_OF_SHRINK,
    METADATA_VERSION,
    SUPPORTED,
    SupportedFeatures,
)
from sim.protocol.security.tokens import TokenConfig
from sim.trace.emit import Emit
from sim.units import MS, SECOND, Micros


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Settings of the controller, with Kafka's defaults."""

    session_timeout_us: Micros = 9 * SECOND
    """``broker.session.timeout.ms``."""
    no_op_interval_us: Micros = 500 * MS
    """``metadata.max.idle.interval.ms``; 0: no such records."""
    preferred_interval_us: Micros = 300 * SECOND
    """``leader.imbalance.check.interval.seconds``."""
    unclean_interval_us: Micros = 300 * SECOND
    """``unclean.leader.election.interval.ms``."""
    unclean_recovery_timeout_us: Micros = 300 * SECOND
    """``unclean.recovery.timeout.ms`` (KIP-966, part 2; no release has it)."""
    auto_leader_rebalance: bool = True
    """``auto.leader.rebalance.enable``."""
    elr: bool = True
    """``eligible.leader.replicas.version`` 1, as in new 4.1 clusters (KIP-966)."""
    checks_eligibility: bool = True
    """True if fenced brokers and those that shut down may neither join an ISR nor lead (KIP-841).

    Before it the metadata did not say which brokers shut down."""
    bumps_on_shrink: bool = False
    """True if a member that leaves an ISR begins a leader epoch (before KAFKA-15021)."""
    bumps_for_leaders: bool = True
    """With it: true if that is so where the leader removes a member, too (since 3.0)."""
    rack_aware: bool = True
    """True if new replicas are spread over racks (KIP-36)."""
    metadata_version: int = METADATA_VERSION
    """``metadata.version`` of a new cluster; below 3.3-IV0 it has none, and that is what the
    controller's release does."""
    group_version: int = 1
    """``group.version`` of a new cluster: 1 since 4.0 (KIP-848), or 0."""
    transaction_version: int = 2
    """``transaction.version``: 2 with epoch bumps (KIP-890), as in new clusters since 4.0, or 0."""
    more_features: tuple[tuple[str, int], ...] = ()
    """Other features of a new cluster, which decide nothing here."""
    supported: SupportedFeatures = SUPPORTED
    """Features that this controller's release supports."""
    quorum: tuple[NodeId, ...] = ()
    """``controller.quorum.voters``: controllers that have to register before an upgrade; none in a
    dynamic quorum."""
    registers: bool = False
    """True if controllers register (KIP-919); only upgrades of features look at it."""
    cluster_configs: tuple[tuple[str, str], ...] = ()
    """Cluster-wide defaults of topic settings, in Kafka's names; written to a new cluster."""
    file: ServerFile = NO_FILE
    """Settings that may change while it runs, as in its file."""
    delete_topics: bool = True
    """``delete.topic.enable``."""
    elections_max: int = 1_000
    """Elections of one periodic sweep; a constant in Kafka."""
    knows_moves: bool = True
    """True if brokers forward CreatePartitions, AlterPartitionReassignments and ElectLeaders: since
    3.0; a client of 2.8's gets UNSUPPORTED_VERSION."""
    unfences_at_registration: bool = True
    """True if a broker is caught up that has its own registration (KAFKA-13959, 3.3); before, it
    had to have all that is committed."""
    raft: bool = False
    """True if each partition's replicas are a Raft group, which elects its leader."""
    mutation_quotas: MutationQuotaConfig | None = None
    """``None``: the scenario has no mutation quotas."""
    tokens: TokenConfig | None = None
    """Of delegation tokens; ``None``: without ``delegation.token.secret.key``."""
    balancer: BalancerConfig = field(default_factory=BalancerConfig)
    """Of Raft groups: settings of the balancer."""

    @property
    def features(self) -> dict[str, int]:
        """Feature levels of a new cluster."""
        version = self.metadata_version
        if self.bumps_on_shrink:
            version = min(version, LAST_WITH_EPOCH_OF_SHRINK)
        levels = {FEATURE: version, **dict(self.more_features)}
        if self.group_version:
            levels["group.version"] = self.group_version
        if self.elr:
            levels["eligible.leader.replicas.version"] = 1
        if self.transaction_version:
            levels["transaction.version"] = self.transaction_version
        return levels

    @property
    def fence_interval_us(self) -> Micros:
        """Interval of the check for stale sessions: an eighth of the session, at least 1 ms."""
        return max(MS, self.session_timeout_us // 8)


@dataclass(frozen=True, slots=True)
class Decision:
    """Records of an operation, and its response once they are committed."""

    records: tuple[MetadataRecord, ...]
    response: Response | None = None


@dataclass(frozen=True, slots=True)
class HeartbeatArrived:
    """A heartbeat reached the socket; counts as contact even if its handling is late.

    Optional: the controller also notes the contact when it handles the heartbeat.
    """

    broker: NodeId
    broker_epoch: BrokerEpoch


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """Trace rows of a committed record.

    Every controller makes them for every committed record, in the order of the log; the process
    writes those of the first controller that does, the active one, so each row is written once.
    """

    offset: Offset
    rows: tuple[Emit, ...]


ControllerEvent = (
    ev.RequestReceived
    | ev.ResponseReceived
    | ev.RequestFailed
    | ev.TimerFired
    | ev.Flushed
    | Committed
    | SnapshotLoaded
    | LeadershipChanged
    | VotersProposed
    | HeartbeatArrived
)
"""Events of a controller; they include the quorum's effects."""

ControllerEffect = fx.Effect | AppendMetadata | CommittedRows
"""Effects of a controller."""
