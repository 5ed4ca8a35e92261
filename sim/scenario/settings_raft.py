"""Settings of partitions that are Raft groups: Redpanda's, with its names and defaults.

Source: Redpanda v25.1 ``config/configuration.cc``; section 6.1 of the semantics.
"""

from typing import Final

from sim.scenario.settings_types import INT_MAX, Setting

RAFT_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("raft_heartbeat_interval_ms", "int", 150, low=1, high=INT_MAX),
    Setting("raft_heartbeat_timeout_ms", "int", 3_000, low=1, high=INT_MAX),
    Setting("election_timeout_ms", "int", 1_500, low=1, high=INT_MAX),
    Setting("replicate_append_timeout_ms", "int", 3_000, low=1, high=INT_MAX),
    Setting("raft_replicate_batch_window_size", "int", 1_048_576, low=1, high=INT_MAX),
    Setting("raft_recovery_default_read_size", "int", 524_288, low=1, high=INT_MAX),
    Setting("raft_transfer_leader_recovery_timeout_ms", "int", 10_000, low=1, high=INT_MAX),
    Setting("raft_replica_max_pending_flush_bytes", "int", 262_144, low=1, high=INT_MAX),
    Setting("raft_replica_max_flush_delay_ms", "int", 100, low=1, high=INT_MAX),
    Setting("write_caching_default", "boolean", False),  # noqa: FBT003 - its default
    Setting("enable_leader_balancer", "boolean", True),  # noqa: FBT003 - its default
    Setting("leader_balancer_idle_timeout_ms", "int", 120_000, low=1, high=INT_MAX),
)
"""Every broker setting that means something under ``cluster.replication: raft`` only."""
