"""Settings of a replica manager."""

from dataclasses import dataclass, field

from sim.protocol.broker.fetch_session_slots import UNBOUNDED, FetchSessionConfig
from sim.protocol.broker.replica import ReplicaConfig
from sim.protocol.broker.replication.fetcher import FetcherConfig
from sim.protocol.broker.replication_quotas import ReplicationQuotaConfig
from sim.protocol.broker.truncation.divergence import KIP_320, Truncation
from sim.protocol.broker.truncation.new_epoch import NewEpoch
from sim.protocol.broker.truncation.out_of_range import OutOfRange
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.units import MIB, MS, NEVER, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class ReplicaManagerConfig:
    """Kafka's broker settings for replication and requests."""

    lag_time_max_us: Micros = 30 * SECOND
    """``replica.lag.time.max.ms``."""
    fetch_bytes_max: Bytes = 55 * MIB
    """``fetch.max.bytes``: limit of every fetch response."""
    fetch_sessions: FetchSessionConfig = UNBOUNDED
    """Size of the cache of fetch sessions."""
    fetcher: FetcherConfig = field(default_factory=FetcherConfig)
    truncation: Truncation = KIP_320
    """Rule by which followers find the divergence from their leaders' logs."""
    out_of_range: OutOfRange = OutOfRange.TRUNCATE
    """Rule for a fetch offset that the leader does not have."""
    skips_later_epochs: bool = True
    """True if a follower drops fetched batches of a leader epoch after its own (KAFKA-18723)."""
    gates_high_watermark: bool = True
    joins_at_epoch_start: bool = True
    checks_eligibility: bool = True
    in_sync_at_same_end: bool = True
    checks_broker_epochs: bool = True
    waits_for_eligible: bool = True
    keeps_pending: bool = False
    """See :class:`~sim.protocol.broker.replica.ReplicaConfig`."""
    refuses_former_process: bool = True
    """True if a fetch of a follower's former process is refused (KAFKA-15221)."""
    assigns_by_image: bool = True
    """True if AssignReplicasToDirs has the broker epoch of the metadata image, not that of the
    process's own registration (KAFKA-17190)."""
    new_epoch: NewEpoch = NewEpoch.EACH
    """Leader epochs of the same leader at which a follower truncates (KAFKA-7164)."""
    applies_metadata_during_shutdown: bool = True
    """True if a broker that shuts down applies new metadata (KAFKA-13858)."""
    rack_aware_reads: bool = False
    """``replica.selector.class`` RackAwareReplicaSelector: consumers are sent to the replica in
    their rack (KIP-392)."""
    truncates_first: bool = True
    """True if a follower whose log diverges truncates before it adopts its leader's high watermark
    (KAFKA-14704)."""
    unloads_at_once: bool = True
    """True if the group coordinator learns at once that a partition has another leader
    (KAFKA-20634)."""
    reads_bound_once: bool = True
    """True if a read of committed data reads the high watermark once (KAFKA-9807)."""
    gives_leader_hints: bool = True
    """True if errors that redirect clients name the leader (KIP-951)."""
    writes_isr: bool = False
    """True if the broker writes ISRs to ZooKeeper (before KIP-497)."""
    transaction: TransactionConfig = field(default_factory=TransactionConfig)
    alter_log_dirs_threads: int = 1
    """``num.replica.alter.log.dirs.threads``."""
    tiered: bool = False
    """``remote.log.storage.system.enable``: topics may have a remote log (KIP-405)."""
    fetches_last_tiered: bool = False
    """``follower.fetch.last.tiered.offset.enable``: a new follower of a tiered topic fetches from
    the end of the remote log on (KIP-1023)."""
    remote_wait_us: Micros | None = 500 * MS
    """``remote.fetch.max.wait.ms``; ``None``: remote reads wait as long as others, as until 3.7
    (KIP-1018)."""
    quota: ReplicationQuotaConfig = field(default_factory=ReplicationQuotaConfig)
    balances_leaders_every_us: Micros = NEVER
    """Interval of the groups' leader balancing (in Kafka it is the controller's)."""

    def of_topic(self, configs: dict[str, str]) -> ReplicaConfig:
        """Settings of a replica whose topic has these."""
        return ReplicaConfig(
            int(configs.get("min.insync.replicas", "1")),
            self.lag_time_max_us,
            self.gates_high_watermark,
            self.joins_at_epoch_start,
            self.checks_eligibility,
            self.in_sync_at_same_end,
            self.checks_broker_epochs,
            self.waits_for_eligible,
            self.keeps_pending,
        )
