"""A mirror's checkpoints: offsets of the source cluster's groups, translated to the target cluster.

One machine reads, every ``emit.checkpoints.interval.seconds``, the groups' committed offsets in the
source cluster, and translates them. The other one, if ``sync.group.offsets.enabled``, commits the
translated offsets to the target cluster: for groups without members there, and only forward.

Left out: reading the topics of syncs and checkpoints when the task starts; their contents are
passed to it.

Source: ``connect.mirror.{MirrorCheckpointTask,CheckpointStore}``; KIP-382, KIP-545.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NodeId, Offset, TopicPartition
from sim.protocol.clients.admin.group_offsets import GroupOffsets, Offsets
from sim.protocol.effects import Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.base import Response
from sim.protocol.messages.group import OffsetCommitResponse, OffsetFetchResponse
from sim.protocol.mirror.offsets import OffsetSync, OffsetSyncStore
from sim.trace.emit import Emit
from sim.trace.rows.clients import Commits
from sim.units import Micros

_INTERVAL = "interval"


@dataclass(frozen=True, slots=True)
class CheckpointPlan:
    """Groups and partitions of checkpoints, and their interval."""

    groups: tuple[str, ...]
    renamed: Mapping[TopicPartition, TopicPartition]
    """Partitions of the source cluster, and their names in the target cluster."""
    interval_us: Micros
    """``emit.checkpoints.interval.seconds``."""
    sync_interval_us: Micros
    """``sync.group.offsets.interval.seconds``; 0: nothing is committed to the target cluster."""
    extrapolates: bool = False
    """See :class:`~sim.protocol.mirror.offsets.OffsetSyncStore`."""


@dataclass(frozen=True, slots=True)
class Started:
    """Event: the task starts, at the instant."""


@dataclass(frozen=True, slots=True)
class SyncsWritten:
    """Event: offset syncs have reached the task."""

    syncs: tuple[OffsetSync, ...]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Position of a group in one partition."""

    partition: TopicPartition
    """Of the target cluster."""
    upstream: Offset
    downstream: Offset


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Effect of the first machine, event of the second: checkpoints of one round for a group."""

    group: str
    found: tuple[Checkpoint, ...]


CheckpointEvent = Started | SyncsWritten | ResponseReceived | RequestFailed | TimerFired
CheckpointEffect = Send | SetTimer | Checkpoints


class MirrorCheckpointTask:
    """Reads committed offsets and translates them.

    Args:
        plan: Its settings.
        bootstrap: Brokers of the source cluster.
        emitted: Checkpoints of an earlier process by group and partition of the target cluster; it
            is kept up to date.
    """

    def __init__(
        self,
        plan: CheckpointPlan,
        bootstrap: tuple[NodeId, ...],
        emitted: dict[tuple[str, TopicPartition], Checkpoint],
    ) -> None:
        self._plan = plan
        self._calls = GroupOffsets(bootstrap)
        self._store = OffsetSyncStore(extrapolates=plan.extrapolates)
        self._emitted = emitted
        self._out: list[CheckpointEffect] = []

    def handle(self, event: CheckpointEvent, now: Micros) -> list[CheckpointEffect]:
        """Handles an event; returns effects in order."""
        self._out = []
        match event:
            case Started():
                self._out.append(SetTimer(_INTERVAL, now + self._plan.interval_us))
            case SyncsWritten():
                for sync in event.syncs:
                    self._store.take(sync)
            case TimerFired() if event.name == _INTERVAL:
                self._out.append(SetTimer(_INTERVAL, now + self._plan.interval_us))
                partitions = tuple(self._plan.renamed)
                for group in self._plan.groups:
                    self._calls.fetch(group, partitions, partial(self._fetched, group), now)
            case ResponseReceived() | RequestFailed() | TimerFired():
                self._calls.handle(event, now)
        sends, self._calls.effects = self._calls.effects, []
        return [*self._out, *sends]

    def _fetched(self, group: str, response: Response, _now: Micros) -> None:
        assert isinstance(response, OffsetFetchResponse)
        found = []
        for partition, upstream, _ in response.offsets:
            if upstream < 0:
                continue
            downstream = self._store.translate(partition, upstream)
            if downstream is None or downstream < 0:
                continue  # no sync, or none so old
            checkpoint = Checkpoint(self._plan.renamed[partition], upstream, downstream)
            if self._is_progress(group, checkpoint):
                self._emitted[group, checkpoint.partition] = checkpoint
                found.append(checkpoint)
        if found:
            self._out.append(Checkpoints(group, tuple(found)))

    def _is_progress(self, group: str, checkpoint: Checkpoint) -> bool:
        """True for a checkpoint that goes forward, or if the group went back."""
        last = self._emitted.get((group, checkpoint.partition))
        if last is None or self._plan.extrapolates:
            return last != checkpoint
        return checkpoint.upstream < last.upstream or checkpoint.downstream > last.downstream


SyncEvent = Started | Checkpoints | ResponseReceived | RequestFailed | TimerFired
SyncEffect = Send | SetTimer | Emit


class MirrorGroupSync:
    """Commits checkpoints to the target cluster.

    Args:
        plan: Its settings.
        bootstrap: Brokers of the target cluster.
        name: Printed name of the mirror.
        known: Checkpoints of an earlier process.
    """

    def __init__(
        self,
        plan: CheckpointPlan,
        bootstrap: tuple[NodeId, ...],
        name: str,
        known: Mapping[tuple[str, TopicPartition], Checkpoint],
    ) -> None:
        self._plan = plan
        self._calls = GroupOffsets(bootstrap)
        self._name = name
        self._pending: dict[str, dict[TopicPartition, Offset]] = {}
        for (group, partition), checkpoint in known.items():
            self._pending.setdefault(group, {})[partition] = checkpoint.downstream
        self._out: list[SyncEffect] = []

    def handle(self, event: SyncEvent, now: Micros) -> list[SyncEffect]:
        """Handles an event; returns effects in order."""
        self._out = []
        interval = self._plan.sync_interval_us
        match event:
            case Started():
                if interval:
                    self._out.append(SetTimer(_INTERVAL, now + interval))
            case Checkpoints():
                pending = self._pending.setdefault(event.group, {})
                pending.update({each.partition: each.downstream for each in event.found})
            case TimerFired() if event.name == _INTERVAL:
                self._out.append(SetTimer(_INTERVAL, now + interval))
                for group, pending in self._pending.items():
                    self._calls.fetch(group, tuple(pending), partial(self._fetched, group), now)
            case ResponseReceived() | RequestFailed() | TimerFired():
                self._calls.handle(event, now)
        sends, self._calls.effects = self._calls.effects, []
        return [*self._out, *sends]

    def _fetched(self, group: str, response: Response, now: Micros) -> None:
        """Commits only offsets above those that the group has there."""
        assert isinstance(response, OffsetFetchResponse)
        pending = self._pending[group]
        ahead = tuple(
            [
                (partition, pending[partition], NO_EPOCH)
                for partition, offset, _ in response.offsets
                if pending[partition] > offset
            ]
        )
        if response.error is ErrorCode.NONE and ahead:
            self._calls.commit(group, ahead, partial(self._committed, group, ahead), now)

    def _committed(self, group: str, offsets: Offsets, response: Response, _now: Micros) -> None:
        assert isinstance(response, OffsetCommitResponse)
        for partition, offset, _ in offsets:
            error = response.error.name
            row = Commits.row(
                self._name, group, *partition, offset=offset, generation=-1, error=error
            )
            self._out.append(row)
