"""The share coordinator of one broker: persists the states of share partitions for their leaders.

A broker coordinates the share partitions whose partition of ``__share_group_state`` it leads. Each
The group's coordinator initializes a share partition, which is its first snapshot. Each write of a
leader becomes a record, too, a snapshot after so many updates, and is answered when it is
committed; a new leader of a share partition reads its state here, which fences the leaders before
it. Left out: deletion, and the removal of records that later snapshots replace.

Source: ``ShareCoordinatorService``, ``ShareCoordinatorShard``; KIP-932.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias, assert_never

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, LeaderEpoch, NodeId, Offset
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.context import CoordinatorContext, GroupConfig
from sim.protocol.coordinator.group.records import GroupEffect
from sim.protocol.coordinator.log import (
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
    error_for_client,
)
from sim.protocol.coordinator.partitions import CoordinatorPartitions
from sim.protocol.coordinator.share.records import (
    UNINITIALIZED,
    ShareSnapshotRecord,
    ShareStateRecord,
    ShareUpdateRecord,
    combine,
)
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.base import Response
from sim.protocol.messages.share import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from sim.protocol.messages.share_records import ShareKey, StateBatch
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, SECOND, Micros, timestamp_ms

SHARE_COORDINATOR_REQUESTS = (
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    WriteShareGroupStateRequest,
)
"""Requests that a share coordinator answers."""

_Request: TypeAlias = (
    InitializeShareGroupStateRequest | ReadShareGroupStateRequest | WriteShareGroupStateRequest
)

ShareCoordinatorEvent = (
    RequestReceived
    | TimerFired
    | PartitionLoading
    | PartitionElected
    | PartitionResigned
    | RecordsAppended
)
"""Events of a share coordinator."""


@dataclass(frozen=True, slots=True)
class ShareCoordinatorConfig:
    """A broker's settings for it; defaults are Kafka's."""

    partition_count: int = 50
    """``share.coordinator.state.topic.num.partitions``."""
    append_linger_us: Micros = 5 * MS
    """``share.coordinator.append.linger.ms``."""
    write_timeout_us: Micros = 5 * SECOND
    """``share.coordinator.write.timeout.ms``."""
    updates_per_snapshot: int = 500
    """``share.coordinator.snapshot.update.records.per.snapshot``."""


class ShareState(NamedTuple):
    """State of a share partition."""

    snapshot_epoch: int
    state_epoch: int
    leader_epoch: LeaderEpoch
    start_offset: Offset
    batches: tuple[StateBatch, ...]
    updates: int = 0
    """Update records since the last snapshot."""
    complete_count: int = -1
    """Number of completed records from the start offset on; -1: not counted."""

    def replay(self, record: ShareStateRecord) -> "ShareState":
        """State after a record."""
        if isinstance(record, ShareSnapshotRecord):
            return state_of(record)
        start = max(record.start_offset, self.start_offset)
        return self._replace(
            leader_epoch=record.leader_epoch,
            start_offset=start,
            batches=combine(self.batches, record.batches, start),
            updates=self.updates + 1,
            complete_count=record.complete_count,
        )


def state_of(record: ShareSnapshotRecord) -> ShareState:
    """State in a snapshot."""
    return ShareState(
        record.snapshot_epoch,
        record.state_epoch,
        record.leader_epoch,
        record.start_offset,
        record.batches,
        complete_count=record.complete_count,
    )


def replayed(state: ShareState | None, record: ShareStateRecord) -> ShareState | None:
    """State after a record; an update without a snapshot is ignored.

    A snapshot of an initialization has no leader epoch: those before it stay fenced.

    Source: ``ShareCoordinatorShard.maybeUpdateLeaderEpochMap``.
    """
    if isinstance(record, ShareSnapshotRecord):
        made = state_of(record)
        if state is None or state.leader_epoch <= made.leader_epoch:
            return made
        return made._replace(leader_epoch=state.leader_epoch)
    return None if state is None else state.replay(record)


@dataclass(slots=True)
class _Kept:
    """A share partition with its written state and its committed state."""

    home: int
    live: ShareState | None = None
    committed: ShareState | None = None
    unsettled: list[ShareStateRecord] = field(default_factory=list)


class ShareCoordinator:
    """Share partitions of one broker. ``image`` is the broker's metadata."""

    def __init__(
        self, broker: NodeId, config: ShareCoordinatorConfig, image: Callable[[], MetadataImage]
    ) -> None:
        self.config = config
        lingers = GroupConfig(
            append_linger_us=config.append_linger_us, commit_timeout_us=config.write_timeout_us
        )
        self._context = CoordinatorContext[ShareStateRecord](broker, lingers, self._apply)
        self._image = image
        self._homes = CoordinatorPartitions()
        self._kept: dict[ShareKey, _Kept] = {}

    def handle(self, event: ShareCoordinatorEvent, now: Micros) -> list[GroupEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case RequestReceived():
                self._request(event, now)
            case TimerFired(name):
                self._context.ring(name, now)
            case RecordsAppended(token, error):
                self._context.appended(token, error, now)
            case PartitionLoading(partition=partition, epoch=epoch):
                self._homes.load(partition, epoch)
            case PartitionElected():
                self._elected(event)
            case PartitionResigned(partition):
                self._resigned(partition, now)
            case _:
                assert_never(event)
        return self._context.take()

    def state(self, key: ShareKey) -> ShareState | None:
        """State of a share partition; ``None`` if it is not loaded here."""
        kept = self._kept.get(key)
        return kept.live if kept is not None else None

    # -- requests ---------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros) -> None:
        request, token = event.request, event.token
        assert isinstance(request, SHARE_COORDINATOR_REQUESTS), f"not for it: {request}"
        home = partition_for_group(request.key.text, self.config.partition_count)
        error = self._refusal(request, home)
        if error is not ErrorCode.NONE:
            self._context.reply(token, _refused(request, error))
            return
        kept = self._kept.get(request.key)
        if isinstance(request, InitializeShareGroupStateRequest):
            if kept is None:
                kept = self._kept[request.key] = _Kept(home)
            made = InitializeShareGroupStateResponse(ErrorCode.NONE)
            self._write(kept, _initial(kept.live, request, now), made, token, now)
            return
        assert kept is not None, "it is initialized"
        assert kept.live is not None, "it is initialized"
        if isinstance(request, WriteShareGroupStateRequest):
            record = self._record(
                kept.live, request.key, request.leader_epoch, request.start_offset,
                request.batches, request.complete_count, now,
            )  # fmt: skip
            self._write(kept, record, WriteShareGroupStateResponse(ErrorCode.NONE), token, now)
        elif kept.live.leader_epoch < request.leader_epoch:
            complete = kept.live.complete_count
            record = self._record(
                kept.live, request.key, request.leader_epoch, UNINITIALIZED, (), complete, now
            )
            self._write(kept, record, _state_response(kept.live), token, now)
        else:
            self._context.reply(token, _state_response(kept.live))

    def _refusal(self, request: _Request, home: int) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``ShareCoordinatorShard.maybeGetWriteStateError``, ``maybeGetReadStateError``,
        ``maybeGetInitializeStateError``.
        """
        error = self._homes.error(home)
        if error is not ErrorCode.NONE:
            return error
        known = self.state(request.key)
        if not isinstance(request, InitializeShareGroupStateRequest):
            if known is None:
                return ErrorCode.INVALID_REQUEST
            if known.leader_epoch > request.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
        epoch = None if isinstance(request, ReadShareGroupStateRequest) else request.state_epoch
        if known is not None and epoch is not None and known.state_epoch > epoch:
            return ErrorCode.FENCED_STATE_EPOCH
        image = self._image()
        topic = image.topic_names.get(request.key.topic_id, "")
        if not 0 <= request.key.partition < image.partition_counts.get(topic, 0):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.NONE

    def _record(
        self,
        live: ShareState,
        key: ShareKey,
        leader_epoch: LeaderEpoch,
        start_offset: Offset,
        batches: tuple[StateBatch, ...],
        complete_count: int,
        now: Micros,
    ) -> ShareStateRecord:
        """A snapshot after so many updates; else an update.

        Source: ``ShareCoordinatorShard.generateShareStateRecord``.
        """
        if live.updates < self.config.updates_per_snapshot:
            merged = combine((), batches, start_offset)
            return ShareUpdateRecord(
                key, live.snapshot_epoch, leader_epoch, start_offset, merged, complete_count
            )
        start = max(start_offset, live.start_offset)
        return ShareSnapshotRecord(
            key,
            live.snapshot_epoch + 1,
            live.state_epoch,
            leader_epoch,
            start,
            combine(live.batches, batches, start),
            timestamp_ms(now),
            complete_count,
        )

    def _write(
        self,
        kept: _Kept,
        record: ShareStateRecord,
        response: Response,
        token: int,
        now: Micros,
    ) -> None:
        kept.live = replayed(kept.live, record)
        kept.unsettled.append(record)
        outcome = partial(self._outcome, kept, record, response, token)
        self._context.write(kept.home, (record,), outcome, now)

    def _outcome(
        self,
        kept: _Kept,
        record: ShareStateRecord,
        response: Response,
        token: int,
        error: ErrorCode,
        _now: Micros,
    ) -> None:
        if error is ErrorCode.NONE:
            self._context.reply(token, response)
            return
        if error is not ErrorCode.REQUEST_TIMED_OUT:  # that is in the log
            kept.unsettled = [each for each in kept.unsettled if each is not record]
            kept.live = _fold(kept.committed, kept.unsettled)
        client_error = error_for_client(error)
        if isinstance(response, ReadShareGroupStateResponse):
            self._context.reply(token, ReadShareGroupStateResponse(client_error))
        elif isinstance(response, InitializeShareGroupStateResponse):
            self._context.reply(token, InitializeShareGroupStateResponse(client_error))
        else:
            self._context.reply(token, WriteShareGroupStateResponse(client_error))

    # -- the log ----------------------------------------------------------------------------------

    def _apply(self, record: ShareStateRecord) -> None:
        """Applies a committed record, in the order of the log."""
        kept = self._kept[record.key]
        kept.committed = replayed(kept.committed, record)
        assert kept.unsettled[0] is record, f"{record} is committed out of turn"
        del kept.unsettled[0]

    def _elected(self, event: PartitionElected) -> None:
        if not event.is_whole:
            self._homes.fail(event)
            return
        if not self._homes.elect(event):
            return
        for record in event.records:
            kept = self._kept.get(record.key)
            if kept is None:
                kept = self._kept[record.key] = _Kept(event.partition)
            kept.live = kept.committed = replayed(kept.committed, record)

    def _resigned(self, partition: int, now: Micros) -> None:
        if not self._homes.resign(partition):
            return
        self._context.give_up(partition, now)
        for key in [key for key, kept in self._kept.items() if kept.home == partition]:
            del self._kept[key]


def _fold(state: ShareState | None, records: Iterable[ShareStateRecord]) -> ShareState | None:
    for record in records:
        state = replayed(state, record)
    return state


def _initial(
    live: ShareState | None, request: InitializeShareGroupStateRequest, now: Micros
) -> ShareSnapshotRecord:
    """Snapshot of a state without records, and without a leader.

    Source: ``ShareCoordinatorShard.generateInitializeStateRecord``.
    """
    epoch = 0 if live is None else live.snapshot_epoch + 1
    complete = -1 if request.start_offset == UNINITIALIZED else 0
    return ShareSnapshotRecord(
        request.key, epoch, request.state_epoch, NO_EPOCH, request.start_offset, (),
        timestamp_ms(now), complete,
    )  # fmt: skip


def _state_response(known: ShareState) -> ReadShareGroupStateResponse:
    return ReadShareGroupStateResponse(
        ErrorCode.NONE, known.state_epoch, known.start_offset, known.batches
    )


def _refused(request: _Request, error: ErrorCode) -> Response:
    if isinstance(request, InitializeShareGroupStateRequest):
        return InitializeShareGroupStateResponse(error)
    if isinstance(request, ReadShareGroupStateRequest):
        return ReadShareGroupStateResponse(error)
    return WriteShareGroupStateResponse(error)
