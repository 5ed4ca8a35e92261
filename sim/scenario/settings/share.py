"""Kafka's broker settings of share groups (4.1; KIP-932).

Source: ``ShareGroupConfig``, ``ShareCoordinatorConfig``, ``GroupCoordinatorConfig``.
"""

from typing import Final

from sim.scenario.settings.types import INT_MAX, Setting, absent

SHARE_SETTINGS: Final[tuple[Setting, ...]] = (
    Setting("group.share.session.timeout.ms", "int", 45_000, low=1, high=INT_MAX),
    Setting("group.share.heartbeat.interval.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("group.share.max.size", "int", 200, low=1, high=1_000),
    Setting("group.share.record.lock.duration.ms", "int", 30_000, low=1_000, high=3_600_000),
    Setting("group.share.min.record.lock.duration.ms", "int", 15_000, low=1_000, high=30_000),
    Setting("group.share.max.record.lock.duration.ms", "int", 60_000, low=30_000, high=3_600_000),
    Setting("group.share.delivery.count.limit", "int", 5, low=2, high=10),
    Setting("group.share.partition.max.record.locks", "int", 2_000, low=100, high=10_000),
    Setting("group.share.max.share.sessions", "int", 2_000, low=1, high=INT_MAX),
    Setting("share.coordinator.state.topic.num.partitions", "int", 50, low=1, high=INT_MAX),
    Setting("share.coordinator.state.topic.replication.factor", "int", 3, low=1, high=32_767),
    Setting("share.coordinator.state.topic.min.isr", "int", 2, low=1, high=32_767),
    Setting(
        "share.coordinator.state.topic.segment.bytes",
        "int",
        104_857_600,
        low=1_048_576,
        high=INT_MAX,
    ),
    Setting("share.coordinator.append.linger.ms", "int", 5, low=0, high=INT_MAX),
    Setting("share.coordinator.write.timeout.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("share.coordinator.snapshot.update.records.per.snapshot", "int", 500, low=0, high=500),
    *absent(
        "records that later snapshots replace are never removed",
        ("share.coordinator.state.topic.prune.interval.ms", "int", 300_000),
    ),
    *absent(
        "the coordinator works on the request's own thread and loads in one read",
        ("share.coordinator.threads", "int", 1),
        ("share.coordinator.load.buffer.size", "int", 5_242_880),
    ),
)
"""Every broker setting of share groups."""
