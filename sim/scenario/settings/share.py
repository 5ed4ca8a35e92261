"""Kafka's broker settings of share groups (4.1; KIP-932).

Source: ``ShareGroupConfig``, ``ShareCoordinatorConfig``, ``GroupCoordinatorConfig``.
"""

from typing import Final

from sim.scenario.settings.overlay import SEGMENT, Overlay, absent, modelled, narrowed

SHARE_SETTINGS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "group.share.session.timeout.ms",
        "group.share.heartbeat.interval.ms",
        "group.share.max.size",
        "group.share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
        "group.share.max.share.sessions",
        "group.share.initialize.retry.interval.ms",
        "share.coordinator.state.topic.num.partitions",
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    ),
    *narrowed(
        SEGMENT,
        "share.coordinator.state.topic.segment.bytes",
        low=1_048_576,
    ),
    *modelled(
        "share.coordinator.append.linger.ms",
        "share.coordinator.write.timeout.ms",
        "share.coordinator.snapshot.update.records.per.snapshot",
    ),
    *absent(
        "records that later snapshots replace are never removed",
        "share.coordinator.state.topic.prune.interval.ms",
    ),
    *absent(
        "the coordinator works on the request's own thread and loads in one read",
        "share.coordinator.threads",
        "share.coordinator.load.buffer.size",
    ),
)
"""Every broker setting of share groups."""
