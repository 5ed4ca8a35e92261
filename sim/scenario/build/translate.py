"""From Kafka's settings, as a scenario gives them, to the configurations that the machines take.

Those of clients are in :mod:`sim.scenario.build.client_configs`. One place for each setting that is
modelled: a setting that is accepted and appears in neither (nor in
:mod:`sim.scenario.build.cluster`) is a defect, and a test looks for it.
"""

from collections.abc import Mapping

from sim.ids import NodeId
from sim.nodes.broker.settings import UpkeepSettings
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.storage.log_settings import ProducerUpkeep
from sim.nodes.storage.metadata_log import MetadataLogConfig
from sim.protocol.broker.fetch_session_slots import SHARDS, FetchSessionConfig
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.fetcher import FetcherConfig
from sim.protocol.broker.replication_quotas import ReplicationQuotaConfig
from sim.protocol.broker.truncation.new_epoch import NewEpoch
from sim.protocol.broker.truncation.out_of_range import OutOfRange
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.coordinator.group.context import (
    GroupConfig,
    ModernGroupConfig,
    ShareStatesConfig,
)
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from sim.protocol.coordinator.group.missing_sync import MissingSync
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.kraft.metadata_snapshot import SnapshotConfig
from sim.protocol.kraft.types import QuorumConfig
from sim.protocol.metadata.versions import SupportedFeatures
from sim.protocol.security.config import is_tls
from sim.records.consumer_offsets import OffsetsForm
from sim.scenario.behaviours.versions import is_since
from sim.scenario.build import tiered
from sim.scenario.model.machines import (
    CpuModel,
    DiskModel,
    HeapModel,
    NetworkModel,
    QuantilesModel,
)
from sim.scenario.rules import groups as group_rules
from sim.scenario.rules.replication import balance_interval_us
from sim.scenario.rules.topic_configs import inherited_configs
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import LONG_MAX
from sim.substrate.disk import DiskSpec
from sim.substrate.distributions import Spread
from sim.substrate.heap import HeapSpec
from sim.substrate.network import NetworkSpec
from sim.substrate.tls import TlsSpec
from sim.units import MINUTE, MS, NEVER, Micros


def replica_config(
    config: Config,
    behaviours: Mapping[str, str],
    directories: int = 1,
    *,
    zookeeper: bool = False,
    changing: tuple[str, ...] = (),
) -> ReplicaManagerConfig:
    """A broker's settings for the data plane, and how many log directories it has.

    Rates among ``changing`` may be limited later.
    """
    threads = config["num.replica.alter.log.dirs.threads"]
    return ReplicaManagerConfig(
        transaction=transaction_config(config, behaviours),
        lag_time_max_us=config.micros("replica.lag.time.max.ms"),
        fetch_bytes_max=config.size("fetch.max.bytes"),
        fetch_sessions=FetchSessionConfig(
            config.number("max.incremental.fetch.session.cache.slots"),
            SHARDS if is_since(config.version, "3.8") else 1,
        ),
        fetcher=FetcherConfig(
            wait_max_us=config.micros("replica.fetch.wait.max.ms"),
            min_bytes=config.size("replica.fetch.min.bytes"),
            partition_bytes_max=config.size("replica.fetch.max.bytes"),
            response_bytes_max=config.size("replica.fetch.response.max.bytes"),
            backoff_us=config.micros("replica.fetch.backoff.ms"),
            socket_timeout_us=config.micros("replica.socket.timeout.ms"),
            fetchers_per_leader=config.number("num.replica.fetchers"),
        ),
        truncation=TRUNCATIONS[behaviours["truncation"]],
        out_of_range=OutOfRange(behaviours["follower.out_of_range"]),
        skips_later_epochs=behaviours["follower.later_epochs"] == "skip",
        gates_high_watermark=behaviours["high_watermark.gate"] == "min_isr",
        joins_at_epoch_start=behaviours["isr_expand"] == "reach_epoch_start",
        checks_eligibility=behaviours["isr.eligibility"] == "kip841",
        checks_broker_epochs=behaviours["isr.broker_epochs"] == "kip903",
        refuses_former_process=behaviours["fetch.former_process"] == "refuse",
        waits_for_eligible=behaviours["high_watermark.waits_for"] == "eligible",
        assigns_by_image=behaviours["directories.broker_epoch"] == "image",
        new_epoch=NewEpoch(behaviours["follower.new_epoch"]),
        truncates_first=behaviours["follower.diverging"] == "truncate",
        unloads_at_once=behaviours["group.unload"] == "at_once",
        reads_bound_once=behaviours["fetch.stable_bound"] == "read_once",
        # The controller of ZooKeeper mode has a request of its own for it: StopReplica.
        applies_metadata_during_shutdown=behaviours["shutdown.metadata"] == "applied" or zookeeper,
        in_sync_at_same_end=behaviours["isr.caught_up"] == "same_end",
        keeps_pending=behaviours["isr.slow_leader"] == "kip501",
        gives_leader_hints=behaviours["client.leader_hints"] == "on",
        # Null is one thread for each log directory.
        alter_log_dirs_threads=threads if type(threads) is int else directories,
        quota=ReplicationQuotaConfig(
            _rate(config, "leader.replication.throttled.rate", changing),
            _rate(config, "follower.replication.throttled.rate", changing),
            config.number("replication.quota.window.num"),
            config.number("replication.quota.window.size.seconds") * 1_000,
        ),
        writes_isr=behaviours["zk.isr_changes"] == "zookeeper" and zookeeper,
        tiered=config.flag("remote.log.storage.system.enable"),
        fetches_last_tiered=config.flag("follower.fetch.last.tiered.offset.enable"),
        remote_wait_us=tiered.remote_wait_us(config, behaviours),
        rack_aware_reads=config.text("replica.selector.class") == "RackAwareReplicaSelector",
        balances_leaders_every_us=balance_interval_us(config),
    )


def idle_us(config: Config) -> Micros:
    """Limit of a connection's idleness; Kafka takes a negative one as none."""
    limit = config.number("connections.max.idle.ms")
    return NEVER if limit < 0 else limit * MS


def _rate(config: Config, name: str, changing: tuple[str, ...]) -> int | None:
    """Bytes per second; ``None`` for Kafka's largest number, which is no limit."""
    rate = config.number(name)
    return None if rate == LONG_MAX and name not in changing else rate


def transaction_version(behaviours: Mapping[str, str]) -> int:
    """``transaction.version`` of the cluster."""
    return 2 if behaviours["transactions"] == "kip890" else 0


def transaction_config(
    config: Config,
    behaviours: Mapping[str, str],
    state_assignment: tuple[tuple[NodeId, ...], ...] = (),
) -> TransactionConfig:
    """A broker's settings for transactions, with their topic's replicas if those are given."""
    verifies = behaviours["transaction.verification"] == "on"
    dated = behaviours["transaction.marker"] == "later_epoch"
    return TransactionConfig(
        version=transaction_version(behaviours),
        reloads=behaviours["transaction.reload"] == "replace",
        completes_once=behaviours["transaction.completion"] == "once",
        repeats_fences=behaviours["transaction.fence"] == "each_attempt",
        bumps_before_end=behaviours["transaction.fenced_end"] == "two_epochs",
        marker_version=transaction_version(behaviours) if dated else 0,
        timeout_us_max=config.micros("transaction.max.timeout.ms"),
        abort_interval_us=config.micros(
            "transaction.abort.timed.out.transaction.cleanup.interval.ms"
        ),
        expiration_us=config.micros("transactional.id.expiration.ms"),
        expiration_interval_us=config.micros(
            "transaction.remove.expired.transaction.cleanup.interval.ms"
        ),
        verifies=verifies and config.flag("transaction.partition.verification.enable"),
        retry_backoff_us=config.micros("add.partitions.to.txn.retry.backoff.ms"),
        retry_us_max=config.micros("add.partitions.to.txn.retry.backoff.max.ms"),
        state_partitions=config.number("transaction.state.log.num.partitions"),
        state_replication_factor=config.number("transaction.state.log.replication.factor"),
        state_min_in_sync=config.number("transaction.state.log.min.isr"),
        state_segment_bytes=config.size("transaction.state.log.segment.bytes"),
        state_assignment=state_assignment,
        state_inherited=inherited_configs(config),
    )


def group_config(config: Config, behaviours: Mapping[str, str]) -> GroupConfig:
    """A broker's settings for groups."""
    new = behaviours["group.coordinator"] == "new"
    batched = behaviours["group.assignment"] == "interval"
    return GroupConfig(
        initial_rebalance_delay_us=config.micros("group.initial.rebalance.delay.ms"),
        session_timeout_us_min=config.micros("group.min.session.timeout.ms"),
        session_timeout_us_max=config.micros("group.max.session.timeout.ms"),
        append_linger_us=config.micros(group_rules.LINGER) if new else 0,
        follows_watermark=new,
        commit_timeout_us=config.micros("offsets.commit.timeout.ms"),
        consumer=ModernGroupConfig(
            config.micros("group.consumer.session.timeout.ms"),
            config.micros("group.consumer.heartbeat.interval.ms"),
            config.number("group.consumer.max.size"),
            config.micros("group.consumer.assignment.interval.ms") if batched else 0,
        ),
        consumer_assignors=config.words("group.consumer.assignors"),
        migration=MigrationPolicy(config.text("group.consumer.migration.policy")),
        refuses_classic_joins=behaviours["group.classic_join"] == "by_policy",
        share=ModernGroupConfig(
            config.micros("group.share.session.timeout.ms"),
            config.micros("group.share.heartbeat.interval.ms"),
            config.number("group.share.max.size"),
            config.micros("group.share.assignment.interval.ms") if batched else 0,
        ),
        share_states=_share_states_config(config),
        offsets_partition_count=config.number("offsets.topic.num.partitions"),
        retention_us=config.number("offsets.retention.minutes") * MINUTE,
        expiry_interval_us=config.micros("offsets.retention.check.interval.ms"),
        expires_per_offset=behaviours["offsets.expiry"] == "per_offset",
        missing_sync=MissingSync(behaviours["group.missing_sync"]),
        fences_by_assignment=behaviours["group.commit_fencing"] == "assignment_epoch",
        has_topic_ids=behaviours["group.committed_topic"] == "id",
        has_id_field=is_since(config.version, "4.1"),
        size_max=config.number("group.max.size"),
    )


def _share_states_config(config: Config) -> ShareStatesConfig:
    """Rules of the release for states of share partitions.

    Source: ``GroupMetadataManager.{subscribedTopicsChangeMap,shareGroupHeartbeat}`` (4.1 to 4.3).
    """
    retry = "group.share.initialize.retry.interval.ms"
    has_retry = config.has(retry)
    return ShareStatesConfig(
        config.micros(retry) if has_retry else 2 * config.micros("offsets.commit.timeout.ms"),
        of_subscribed=is_since(config.version, "4.2"),
        waits_for_target=is_since(config.version, "4.3"),
    )


def offsets_form(config: Config) -> OffsetsForm:
    """Versions of values in ``__consumer_offsets`` by the release.

    Source: ``MetadataVersion.{offsetCommitValueVersion,groupMetadataValueVersion}`` (3.9).
    """
    is_2_1, is_2_3 = is_since(config.version, "2.1"), is_since(config.version, "2.3")
    retention_ms = config.number("offsets.retention.minutes") * 60_000
    return OffsetsForm(3 if is_2_1 else 1, 3 if is_2_3 else 2 if is_2_1 else 1, retention_ms)


def quorum_config(config: Config, behaviours: Mapping[str, str]) -> QuorumConfig:
    """The metadata quorum's timers and sizes."""
    by_settings, fixed = behaviours["kraft.fetch_size"] == "settings", QuorumConfig()
    fetch = "controller.quorum.fetch.max.bytes"
    snapshot = "controller.quorum.fetch.snapshot.max.bytes"
    return QuorumConfig(
        election_timeout_us=config.micros("controller.quorum.election.timeout.ms"),
        fetch_timeout_us=config.micros("controller.quorum.fetch.timeout.ms"),
        election_backoff_max_us=config.micros("controller.quorum.election.backoff.max.ms"),
        request_timeout_us=config.micros("controller.quorum.request.timeout.ms"),
        retry_backoff_us=config.micros("controller.quorum.retry.backoff.ms"),
        append_linger_us=config.micros("controller.quorum.append.linger.ms"),
        checks_quorum=behaviours["kraft.check_quorum"] == "on",
        wakes_on_commit=behaviours["kraft.fetch_wakeup"] == "high_watermark",
        pre_votes=behaviours["kraft.pre_vote"] == "on",
        refuses_while_fetching=behaviours["kraft.pre_vote_refusal"] == "hears_leader",
        auto_joins=config.flag("controller.quorum.auto.join.enable"),
        fetch_max_bytes=config.size(fetch) if by_settings else fixed.fetch_max_bytes,
        snapshot_max_bytes=config.size(snapshot) if by_settings else fixed.snapshot_max_bytes,
    )


def upkeep_settings(config: Config, behaviours: Mapping[str, str]) -> UpkeepSettings:
    """Background work of brokers on their logs, and its intervals."""
    return UpkeepSettings(
        initial_delay_us=config.micros("log.initial.task.delay.ms"),
        retention_check_us=config.micros("log.retention.check.interval.ms"),
        log_start_checkpoint_us=config.micros("log.flush.start.offset.checkpoint.interval.ms"),
        flush_check_us=config.micros("log.flush.scheduler.interval.ms"),
        cleaner_threads=config.number("log.cleaner.threads"),
        cleaner_enabled=config.flag("log.cleaner.enable"),
        cleaner_backoff_us=config.micros("log.cleaner.backoff.ms"),
        cleaner_bytes_per_s=config.real("log.cleaner.io.max.bytes.per.second"),
        horizon_by_segment=behaviours["cleaner.delete_horizon"] == "segment_mtime",
        cleaning_bounded=behaviours["cleaner.bound_by_hw"] == "on",
        coordinates_tombstones=behaviours["cleaner.coordination"] == "coordinated",
        error_ends_cleaner=behaviours["cleaner.errors"] == "thread",
        retention_bounded=behaviours["retention.bound_by_hw"] == "on",
        dedupe_bytes=config.size("log.cleaner.dedupe.buffer.size"),
        load_factor=config.real("log.cleaner.io.buffer.load.factor"),
    )


def producer_upkeep(config: Config, behaviours: Mapping[str, str]) -> ProducerUpkeep:
    """Producer states in brokers' logs."""
    return ProducerUpkeep(
        expiration_ms=config.number("producer.id.expiration.ms"),
        check_us=config.micros("producer.id.expiration.check.interval.ms"),
        leave_with_records=behaviours["producer.state"] == "with_records",
        markers_renew=behaviours["producer.expiry"] == "any_batch",
    )


def more_features(levels: Mapping[str, int], *, shares: bool) -> tuple[tuple[str, int], ...]:
    """Features of a new cluster that decide nothing; share groups have had to be enabled in 4.1."""
    found = {name: levels.get(name, 0) for name in ("share.version", "streams.version")}
    if shares and "share.version" in levels:
        found["share.version"] = 1
    return tuple((name, level) for name, level in found.items() if level)


def metadata_log_config(
    config: Config, features: Mapping[str, int], supported: SupportedFeatures
) -> MetadataLogConfig:
    """The metadata log of servers, and the features with which they are formatted."""
    return MetadataLogConfig(
        segment_bytes=config.number("metadata.log.segment.bytes"),
        segment_ms=config.number("metadata.log.segment.ms"),
        retention_bytes=config.number("metadata.max.retention.bytes"),
        retention_ms=config.number("metadata.max.retention.ms"),
        snapshots=SnapshotConfig(
            config.number("metadata.log.max.record.bytes.between.snapshots"),
            config.micros("metadata.log.max.snapshot.interval.ms"),
            supported,
        ),
        features=tuple(features.items()),
        supported=supported,
    )


def cpu_spec(cpu: CpuModel) -> CpuSpec:
    """Costs of requests."""
    return CpuSpec(
        cpu.network_request_us,
        cpu.handler_request_us,
        cpu.handler_produce_partition_us,
        cpu.handler_fetch_partition_us,
        cpu.handler_produce_bytes_per_s,
        cpu.handler_fetch_bytes_per_s,
        spread(cpu.preempted),
        spread(cpu.metadata_load),
        spread(cpu.metadata_publish),
        cpu.metadata_partition_us,
        cpu.teardown_us,
        cpu.start_us,
        cpu.young_bytes,
        cpu.young_request_bytes,
        spread(cpu.young_pause),
    )


def heap_spec(heap: HeapModel | None) -> HeapSpec | None:
    """A broker's heap; ``None`` where memory has no end."""
    if heap is None:
        return None
    return HeapSpec(
        heap.size_bytes,
        heap.used_bytes,
        heap.producer_bytes,
        heap.connection_bytes,
        heap.request_bytes,
        heap.collected_bytes_per_s,
    )


def tls_spec(protocol: str, cpu: CpuModel) -> TlsSpec | None:
    """Costs of a security protocol; ``None`` for PLAINTEXT."""
    return TlsSpec(cpu.tls_bytes_per_s, cpu.tls_handshake_us) if is_tls(protocol) else None


def disk_spec(disk: DiskModel) -> DiskSpec:
    """Speed of disks."""
    return DiskSpec(
        disk.write_bytes_per_s,
        disk.read_bytes_per_s,
        disk.access_us,
        spread(disk.flush),
        disk.dirty_writeback_us,
        disk.dirty_expire_us,
        disk.dirty_background_bytes,
        disk.dirty_limit_bytes,
        disk.capacity_bytes or 0,
    )


def network_spec(network: NetworkModel) -> NetworkSpec:
    """Delays of messages."""
    return NetworkSpec(
        same_rack=spread(network.same_rack),
        cross_rack=spread(network.cross_rack),
        client=spread(network.client or network.same_rack),
        bandwidth_bits=network.bandwidth_bytes_per_s * 8,
        switch_buffer_bytes=network.switch_buffer_bytes or 0,
    )


def spread(quantiles: QuantilesModel) -> Spread:
    """A delay distribution."""
    return Spread(quantiles.p50_us, quantiles.p99_us)
