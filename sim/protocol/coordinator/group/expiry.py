"""Which committed offsets of a group are old enough to be forgotten, and it with them (KIP-211).

The clock of a group that had members starts when it becomes empty; while it is stable, offsets of
topics that no member wants any more go by their commits, and so do those of consumers that only
keep their offsets here. Until 2.1 every offset went by its commit, whoever was alive.

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
    """What is to be written: the offsets that have expired, and the group if it goes with them.

    Args:
        group: As it stands.
        is_pending: Whether a transaction holds an offset for the partition.
        retention_us: ``offsets.retention.minutes``.
        now_ms: Milliseconds since 1970.
        per_offset: Every offset by its own commit, as until 2.1.
    """
    wanted = {topic for m in group.members.values() for topic in m.subscription.topics}
    gone = [
        partition
        for partition, committed_ms in sorted(group.committed_ms.items())
        if (per_offset or partition.topic not in wanted)
        and _is_old(group, committed_ms, retention_us, now_ms, per_offset=per_offset)
        and not is_pending(partition)
    ]
    records: list[OffsetTombstone | GroupTombstone] = [
        OffsetTombstone(group.name, partition) for partition in gone
    ]
    unused = group.state is GroupState.EMPTY and not group.pending
    if unused and len(gone) == len(group.committed_ms):
        records.append(GroupTombstone(group.name))
    return tuple(records)


def _is_old(
    group: Group, committed_ms: int, retention_us: Micros, now_ms: int, *, per_offset: bool
) -> bool:
    since = committed_ms
    had_members = group.generation > 0 or bool(group.members)
    if had_members and not per_offset:
        if group.state is GroupState.EMPTY:
            since = group.empty_since_ms
        elif group.state is not GroupState.STABLE:
            return False
    return (now_ms - since) * MS >= retention_us


class GroupExpiry:
    """One coordinator's looks at its groups, one partition after the other.

    Args:
        context: Where alarms and tombstones go.
        groups: All groups of the coordinator by name; forgotten ones are taken out.
        pending: Offsets that wait for a marker.
        is_modern: Whether a group has members of the consumer protocol: those are left alone.
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
        """Look at the partition's groups after ``offsets.retention.check.interval.ms``."""
        at = now + self._context.config.expiry_interval_us
        self._context.set_alarm(f"expiry/{partition}", at, partial(self._look, partition))

    def forget(self, partition: int) -> None:
        """The partition is led elsewhere."""
        self._context.cancel_alarm(f"expiry/{partition}")

    def apply(self, record: OffsetTombstone | GroupTombstone) -> None:
        """A tombstone is committed; a group that somebody has joined meanwhile stays."""
        group = self._groups.get(record.group)
        if group is None:
            return
        if isinstance(record, OffsetTombstone):
            group.drop_offset(record.partition)
        elif group.state is GroupState.EMPTY and not group.pending:
            self._context.move(group, GroupState.DEAD, "forgotten")
            del self._groups[record.group]

    def _look(self, partition: int, now: Micros) -> None:
        """Write what is to be forgotten of a partition's groups."""
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
