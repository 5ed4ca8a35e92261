"""Expiration of committed offsets, and of groups without any (KIP-211).

The retention of a group that had members starts when it becomes empty; while it is stable, offsets
of topics without subscribers expire by their commit time, and so do those of consumers that only
store offsets here. Until 2.1 every offset expired by its commit time.

Source: ``OffsetMetadataManager.cleanupExpiredOffsets``, ``ClassicGroup.offsetExpirationCondition``;
KAFKA-4682.
"""

from collections.abc import Callable
from functools import partial

from sim.ids import TopicPartition
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.context import CoordinatorContext
from sim.protocol.coordinator.group.records import GroupRecord, GroupTombstone, OffsetTombstone
from sim.protocol.coordinator.group.transactions import PendingOffsets
from sim.units import MS, Micros, timestamp_ms


def expired(
    group: Group,
    is_pending: Callable[[TopicPartition], bool],
    retention_us: Micros,
    now_ms: int,
    *,
    per_offset: bool,
) -> tuple[OffsetTombstone | GroupTombstone, ...]:
    """Tombstones of expired offsets, and of the group if none are left.

    Args:
        group: The group.
        is_pending: True if a transaction has a pending offset of the partition.
        retention_us: ``offsets.retention.minutes``.
        now_ms: Milliseconds since 1970.
        per_offset: True if offsets expire by their commit time, as until 2.1.
    """
    subscribed = {topic for m in group.members.values() for topic in m.subscription.topics}
    stale = [
        partition
        for partition, committed_ms in sorted(group.committed_ms.items())
        if (per_offset or partition.topic not in subscribed)
        and _is_old(group, committed_ms, retention_us, now_ms, per_offset=per_offset)
        and not is_pending(partition)
    ]
    records: list[OffsetTombstone | GroupTombstone] = [
        OffsetTombstone(group.name, partition) for partition in stale
    ]
    unused = group.state is GroupState.EMPTY and not group.pending
    if unused and len(stale) == len(group.committed_ms):
        records.append(GroupTombstone(group.name))
    return tuple(records)


def _is_old(
    group: Group, committed_ms: int, retention_us: Micros, now_ms: int, *, per_offset: bool
) -> bool:
    since = committed_ms
    had_members = group.generation > 0 or bool(group.members)
    if had_members and not per_offset:
        if group.state is GroupState.EMPTY:
            # Before 2.1 the log does not have it.
            since = group.empty_since_ms if group.empty_since_ms >= 0 else since
        elif group.state is not GroupState.STABLE:
            return False
    return (now_ms - since) * MS >= retention_us


class GroupExpiry:
    """Periodic expiration in one coordinator's groups, one partition after the other.

    Args:
        context: Receives alarms and tombstones.
        groups: All groups of the coordinator by name; expired ones are removed.
        pending: Offsets that wait for a marker.
        is_modern: True for a consumer-protocol group, which is skipped.
    """

    def __init__(
        self,
        context: CoordinatorContext[GroupRecord],
        groups: dict[str, Group],
        pending: PendingOffsets,
        is_modern: Callable[[str], bool],
    ) -> None:
        self._context = context
        self._groups = groups
        self._pending = pending
        self._is_modern = is_modern

    def watch(self, partition: int, now: Micros) -> None:
        """Checks the partition's groups after ``offsets.retention.check.interval.ms``."""
        at = now + self._context.config.expiry_interval_us
        self._context.set_alarm(f"expiry/{partition}", at, partial(self._look, partition))

    def forget(self, partition: int) -> None:
        """The partition has another leader."""
        self._context.cancel_alarm(f"expiry/{partition}")

    def apply(self, record: OffsetTombstone | GroupTombstone) -> None:
        """Applies a committed tombstone; a group with new members stays."""
        group = self._groups.get(record.group)
        if group is None:
            return
        if isinstance(record, OffsetTombstone):
            group.drop_offset(record.partition)
        elif group.state is GroupState.EMPTY and not group.pending:
            self._context.move(group, GroupState.DEAD, "forgotten")
            del self._groups[record.group]

    def _look(self, partition: int, now: Micros) -> None:
        """Writes the tombstones of a partition's groups."""
        config = self._context.config
        for group in self._groups.values():
            if group.partition != partition or self._is_modern(group.name):
                continue
            records = expired(
                group,
                partial(self._is_pending, group),
                config.retention_us,
                timestamp_ms(now),
                per_offset=config.expires_per_offset,
            )
            if records:
                self._context.note(group, f"{len(records)} tombstones")
                self._context.write(partition, records, lambda _error, _now: None, now)
        self.watch(partition, now)

    def _is_pending(self, group: Group, partition: TopicPartition) -> bool:
        return self._pending.is_pending(group.partition, group.name, (partition,))
