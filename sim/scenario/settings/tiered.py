"""Kafka's broker settings of tiered storage (4.1).

Source: ``RemoteLogManagerConfig``, ``TopicBasedRemoteLogMetadataManagerConfig``; KIP-405.
"""

from typing import Final

from sim.scenario.settings.overlay import Overlay, absent, modelled
from sim.scenario.settings.types import Setting

TIERED_SETTINGS: Final[tuple[Overlay | Setting, ...]] = (
    *modelled(
        "remote.log.storage.system.enable",
        "remote.log.manager.task.interval.ms",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.reader.threads",
        "remote.log.reader.max.pending.tasks",
        "remote.fetch.max.wait.ms",
        "log.local.retention.ms",
        "log.local.retention.bytes",
        "follower.fetch.last.tiered.offset.enable",
    ),
    Setting("rlmm.config.remote.log.metadata.topic.num.partitions", "int", 50, 1),
    Setting("rlmm.config.remote.log.metadata.topic.replication.factor", "int", 3, 1),
    *absent(
        "followers learn how far the remote log reaches without a thread",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.manager.thread.pool.size",
    ),
    *absent(
        "copies and remote reads have no quota (KIP-956)",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.fetch.max.bytes.per.second",
    ),
    *absent(
        "the cache of remote indexes has no end",
        "remote.log.index.file.cache.total.size.bytes",
    ),
)
"""Every setting of tiered storage; those of its metadata topic have the prefix of its manager."""
