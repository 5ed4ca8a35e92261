"""Settings of partitions that are Raft groups: Redpanda's, with its names and defaults.

Source: Redpanda v25.1 ``config/configuration.cc``; section 6.1 of the semantics.
"""

from collections.abc import Mapping
from typing import Final, TypeVar

from sim.protocol.controller.partition_balancer import MODES
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import INT_MAX, Setting, SettingType


def _absent(why: str, *settings: tuple[str, SettingType, SettingValue]) -> tuple[Setting, ...]:
    """Settings of Redpanda's that are known and not modelled, all for the same reason."""
    return tuple(Setting(name, kind, default, absent=why) for name, kind, default in settings)


RAFT_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("raft_heartbeat_interval_ms", "int", 150, low=1, high=INT_MAX),
    Setting("raft_heartbeat_timeout_ms", "int", 3_000, low=1, high=INT_MAX),
    Setting("election_timeout_ms", "int", 1_500, low=1, high=INT_MAX),
    Setting("replicate_append_timeout_ms", "int", 3_000, low=1, high=INT_MAX),
    Setting("raft_replicate_batch_window_size", "int", 1_048_576, low=1, high=INT_MAX),
    Setting("raft_recovery_default_read_size", "int", 524_288, low=1, high=INT_MAX),
    Setting("raft_learner_recovery_rate", "int", 104_857_600, low=1, high=INT_MAX),
    Setting("raft_transfer_leader_recovery_timeout_ms", "int", 10_000, low=1, high=INT_MAX),
    Setting("raft_replica_max_pending_flush_bytes", "int", 262_144, low=1, high=INT_MAX),
    Setting("raft_replica_max_flush_delay_ms", "int", 100, low=1, high=INT_MAX),
    Setting("write_caching_default", "boolean", False),  # noqa: FBT003 - its default
    Setting("enable_leader_balancer", "boolean", True),  # noqa: FBT003 - its default
    Setting("leader_balancer_idle_timeout_ms", "int", 120_000, low=1, high=INT_MAX),
    Setting("partition_autobalancing_mode", "string", "node_add", choices=MODES),
    Setting("partition_autobalancing_concurrent_moves", "int", 50, low=1, high=INT_MAX),
    Setting("partition_autobalancing_tick_interval_ms", "int", 30_000, low=1, high=INT_MAX),
    Setting("partition_autobalancing_tick_moves_drop_threshold", "double", 0.2, low=0, high=1),
    Setting(
        "partition_autobalancing_node_availability_timeout_sec", "int", 900, low=1, high=86_400
    ),
    Setting("partition_autobalancing_topic_aware", "boolean", True),  # noqa: FBT003 - its default
    *_absent(
        "replicas do not move by how full disks are",
        ("partition_autobalancing_max_disk_usage_percent", "int", 80),
        ("partition_autobalancing_min_size_threshold", "int", None),
        ("partition_autobalancing_movement_batch_size_bytes", "int", 5_368_709_120),
    ),
)
"""Every broker setting that means something under ``cluster.replication: raft`` only."""

OF_ISR: Final = (
    "min.insync.replicas",
    "transaction.state.log.min.isr",
    "unclean.leader.election.enable",
    "unclean.leader.election.interval.ms",
    "auto.leader.rebalance.enable",
    "leader.imbalance.check.interval.seconds",
    "replica.lag.time.max.ms",
    "replica.fetch.wait.max.ms",
    "replica.fetch.min.bytes",
    "replica.fetch.max.bytes",
    "replica.fetch.response.max.bytes",
    "replica.fetch.backoff.ms",
    "replica.socket.timeout.ms",
    "num.replica.fetchers",
    "num.replica.alter.log.dirs.threads",
    "queued.max.requests",
    "connections.max.idle.ms",
    "max.incremental.fetch.session.cache.slots",
    "authorizer.class.name",
    "super.users",
    "allow.everyone.if.no.acl.found",
    "delegation.token.secret.key",
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.expiry.check.interval.ms",
)

BEHAVIOURS_OF_ISR: Final = (
    "truncation",
    "follower.out_of_range",
    "recovery",
    "follower.new_epoch",
    "isr.eligibility",
    "isr.broker_epochs",
    "fetch.former_process",
    "high_watermark.waits_for",
    "shutdown.metadata",
    "isr.slow_leader",
    "recovery.unclean",
    "leader_epoch.isr_shrink",
    "isr_expand",
    "isr.caught_up",
    "high_watermark.gate",
    "fetch.stable_bound",
    "follower.diverging",
    "group.unload",
    "group.coordinator",
)

T = TypeVar("T")

_RAFT: Final = tuple(setting.name for setting in RAFT_SETTINGS)


def that_apply(replication: str, values: Mapping[str, T]) -> dict[str, T]:
    """Settings or behaviours without those that mean nothing under the replication."""
    idle = (*OF_ISR, *BEHAVIOURS_OF_ISR) if replication == "raft" else _RAFT
    return {name: value for name, value in values.items() if name not in idle}
