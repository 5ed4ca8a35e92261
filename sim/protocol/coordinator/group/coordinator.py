"""The group coordinator of one broker: groups of every kind, and committed offsets.

A broker coordinates the groups whose partition of ``__consumer_offsets`` it leads. Its decisions
are written there and answered when committed: the partition's next leader loads the same groups,
generations and offsets. Left out: streams groups.

Source: ``GroupCoordinatorService``, ``GroupMetadataManager``, ``OffsetMetadataManager``.
"""

from collections.abc import Callable
from functools import partial
from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import NodeId, Offset, ProducerId, TopicPartition
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.administration import ADMINISTRATIVE, GroupAdministration
from sim.protocol.coordinator.group.classic import GroupMembership
from sim.protocol.coordinator.group.classic_state import Group, GroupState, commit_error
from sim.protocol.coordinator.group.consumer_group_records import (
    CONSUMER_GROUP_RECORDS,
    ConsumerGroupRecord,
    GroupKeyTombstone,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup
from sim.protocol.coordinator.group.context import CoordinatorContext, GroupConfig
from sim.protocol.coordinator.group.expiry import GroupExpiry
from sim.protocol.coordinator.group.mixed_groups import MixedGroups
from sim.protocol.coordinator.group.records import (
    GroupEffect,
    GroupEvent,
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    OffsetCommitRecord,
    OffsetsMarker,
    OffsetTombstone,
    PendingOffsetRecord,
    TransactionEnded,
)
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS, GroupRequest, refusal
from sim.protocol.coordinator.group.share_groups import ShareGroups
from sim.protocol.coordinator.group.transactions import (
    PendingOffsets,
    holds_offset,
    transactional_error,
)
from sim.protocol.coordinator.log import (
    InTransaction,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
    TransactionVerified,
    error_for_client,
)
from sim.protocol.coordinator.partitions import CoordinatorPartitions
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    SyncGroupRequest,
)
from sim.protocol.messages.share import ShareGroupHeartbeatRequest
from sim.protocol.messages.transaction import TxnOffsetCommitRequest, TxnOffsetCommitResponse
from sim.protocol.metadata.image import MetadataImage
from sim.units import Micros, timestamp_ms


class GroupCoordinator:
    """Groups of one broker.

    ``incarnation`` is the broker process's: it keeps the member ids from colliding with those of an
    earlier one. ``image`` is the broker's metadata; ``unit`` draws numbers in [0, 1) for waits.
    """

    def __init__(
        self,
        broker: NodeId,
        incarnation: int,
        config: GroupConfig = GroupConfig(),  # noqa: B008 - frozen
        image: Callable[[], MetadataImage] = MetadataImage,
        unit: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.config = config
        self._context = CoordinatorContext[GroupRecord](broker, config, self._apply)
        self._groups: dict[str, Group] = {}
        self._membership = GroupMembership(self._context, f"{broker}.{incarnation}")
        self._consumer_groups = MixedGroups(self._context, image, self._groups, self._membership)
        self._share_groups = ShareGroups(self._context, image, unit)
        self._pending = PendingOffsets()
        self._expiry = GroupExpiry(
            self._context, self._groups, self._pending, self._consumer_groups.has
        )
        self._administration = GroupAdministration(
            self._context, self._groups, self._consumer_groups, self._pending, self._partition_of
        )
        self._homes = CoordinatorPartitions()

    def handle(self, event: GroupEvent, now: Micros) -> list[GroupEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case RequestReceived():
                self._request(event, now)
            case TimerFired(name):
                self._context.ring(name, now)
            case RecordsAppended(token, error):
                self._context.appended(token, error, now)
            case TransactionVerified():
                self._context.verified(event, now)
            case PartitionLoading(partition=partition, epoch=epoch):
                self._homes.load(partition, epoch)
            case PartitionElected():
                self._elected(event, now)
            case PartitionResigned(partition):
                self._resigned(partition, now)
            case ResponseReceived() | RequestFailed():
                self._share_groups.answered(event, now)
            case TransactionEnded():
                self._transaction_ended(event.partition, event.producer_id, event.committed)
            case _:
                assert_never(event)
        return self._context.take()

    # -- views ------------------------------------------------------------------------------------

    def group(self, name: str) -> Group | None:
        """The group; ``None`` if it is not loaded here. Not to be changed."""
        return self._groups.get(name)

    def consumer_group(self, name: str) -> ConsumerGroup | None:
        """The consumer-protocol group, as above."""
        return self._consumer_groups.get(name)

    def share_group(self, name: str) -> ConsumerGroup | None:
        """The share group, as above."""
        return self._share_groups.get(name)

    def committed(self, name: str, partition: TopicPartition) -> Offset:
        """The group's committed offset; -1 without one, or if the group is not loaded here."""
        group = self._groups.get(name)
        return group.offsets.get(partition, (-1, -1))[0] if group is not None else -1

    def active_partitions(self) -> tuple[int, ...]:
        """Partitions of the offsets topic that are loaded here, sorted."""
        return self._homes.active()

    # -- requests ---------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros) -> None:
        request, token = event.request, event.token
        assert isinstance(request, GROUP_REQUESTS), f"not for a group coordinator: {request}"
        error, home = self._refusal(request), self._partition_of(request.group)
        if error is not ErrorCode.NONE:
            loads = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            if loads and isinstance(request, HeartbeatRequest):
                error = ErrorCode.NONE  # heartbeats succeed while the coordinator loads
            self._context.reply(token, refusal(request, error))
        elif isinstance(request, OffsetCommitRequest):
            self._commit(request, token, now)
        elif isinstance(request, TxnOffsetCommitRequest):
            self._commit_in_transaction(request, token, now)
        elif isinstance(request, OffsetFetchRequest):
            self._fetch_offsets(request, token, now)
        elif isinstance(request, ADMINISTRATIVE):
            self._administration.request(request, token, now)
        elif isinstance(request, ConsumerGroupHeartbeatRequest):
            self._consumer_groups.heartbeat(request, event.client, home, token, now)
        elif isinstance(request, ShareGroupHeartbeatRequest):
            self._share_groups.heartbeat(request, event.client, home, token, now)
        else:
            self._member_request(request, event.client, token, now)

    def _refusal(self, request: GroupRequest) -> ErrorCode:
        if not request.group and not isinstance(request, _NAMELESS):
            return ErrorCode.INVALID_GROUP_ID
        error = self._homes.error(self._partition_of(request.group))
        if error is not ErrorCode.NONE:
            return error
        if isinstance(request, JoinGroupRequest):
            low, high = self.config.session_timeout_us_min, self.config.session_timeout_us_max
            if not low <= request.session_timeout_us <= high:
                return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    def _member_request(
        self,
        request: JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest,
        client: str,
        token: int,
        now: Micros,
    ) -> None:
        if self._consumer_groups.has_members(request.group):
            self._consumer_groups.request(request, client, token, now)
            return
        if isinstance(request, JoinGroupRequest):
            self._consumer_groups.vacate(request.group, now)
        group = self._groups.get(request.group)
        if group is None:
            if not isinstance(request, JoinGroupRequest) or request.member_id:
                self._context.reply(token, refusal(request, ErrorCode.UNKNOWN_MEMBER_ID))
                return
            group = self._create(request.group, now)
        match request:
            case JoinGroupRequest():
                self._membership.join(group, request, client, token, now)
            case SyncGroupRequest():
                self._membership.sync(group, request, token, now)
            case HeartbeatRequest():
                self._membership.heartbeat(group, request, token, now)
            case LeaveGroupRequest():
                self._membership.leave(group, request, token, now)
            case _:
                assert_never(request)

    def _create(self, name: str, now: Micros) -> Group:
        group = self._groups[name] = self._new_group(name)
        group.empty_since_ms = timestamp_ms(now)
        self._context.note(group, "created")
        # Written for the next coordinator; no response waits for it.
        record = group.record(timestamp_ms(now))
        self._context.write(group.partition, (record,), lambda _error, _now: None, now)
        return group

    # -- offsets ----------------------------------------------------------------------------------

    def _commit(self, request: OffsetCommitRequest, token: int, now: Micros) -> None:
        group = self._groups.get(request.group)
        error = self._consumer_groups.commit_error(
            request.group, request.member_id, request.generation, request.offsets
        )
        if error is None:
            error = commit_error(group, request)
        if error is not ErrorCode.NONE:
            self._context.reply(token, OffsetCommitResponse(error))
            return
        if group is None:
            group = self._groups[request.group] = self._new_group(request.group)
        member = group.members.get(request.member_id)
        if member is not None:
            self._membership.refresh_session(group, member, now)
        stamp = timestamp_ms(now)
        identify = self._consumer_groups.topic_id_of(request.group, request.member_id)
        records = tuple(
            OffsetCommitRecord(group.name, place, offset, epoch, stamp, identify(place.topic))
            for place, offset, epoch in request.offsets
        )
        if not records:
            self._context.reply(token, OffsetCommitResponse(ErrorCode.NONE))
            return
        self._context.write(group.partition, records, partial(self._committed, token), now)

    def _committed(self, token: int, error: ErrorCode, now: Micros) -> None:  # noqa: ARG002
        self._context.reply(token, OffsetCommitResponse(error_for_client(error)))

    def _commit_in_transaction(
        self, request: TxnOffsetCommitRequest, token: int, now: Micros
    ) -> None:
        """Commits offsets that become the group's with the producer's transaction.

        The member is checked when its transaction is verified, and the offsets are written in the
        same step: the group may have changed while the verification took time.

        Source: ``GroupCoordinatorService.commitTransactionalOffsets``,
        ``CoordinatorRuntime.scheduleTransactionalWriteOperation``.
        """
        transaction = InTransaction(
            request.transactional_id, request.producer_id, request.producer_epoch
        )
        verified = partial(self._transaction_verified, request, transaction, token)
        self._context.verify(self._partition_of(request.group), transaction, verified)
        del now

    def _transaction_verified(
        self,
        request: TxnOffsetCommitRequest,
        transaction: InTransaction,
        token: int,
        error: ErrorCode,
        guard: int,
        now: Micros,
    ) -> None:
        if error is not ErrorCode.NONE:
            self._context.reply(token, TxnOffsetCommitResponse(error_for_client(error)))
            return
        error = self._transactional_commit_error(request)
        if error is not ErrorCode.NONE or not request.offsets:
            self._context.reply(token, TxnOffsetCommitResponse(error))
            return
        partition = self._partition_of(request.group)
        if request.group not in self._groups:
            self._groups[request.group] = self._new_group(request.group)
        stamp = timestamp_ms(now)
        unnamed = self._context.config.no_topic_id
        records = tuple(
            PendingOffsetRecord(
                request.producer_id,
                OffsetCommitRecord(request.group, place, offset, epoch, stamp, unnamed),
            )
            for place, offset, epoch in request.offsets
        )

        def outcome(failure: ErrorCode, _now: Micros) -> None:
            self._context.reply(token, TxnOffsetCommitResponse(error_for_client(failure)))

        self._context.write_in_transaction(partition, records, transaction, guard, outcome)

    def _transactional_commit_error(self, request: TxnOffsetCommitRequest) -> ErrorCode:
        moved = self._homes.error(self._partition_of(request.group))
        if moved is not ErrorCode.NONE:
            return moved
        error = self._consumer_groups.commit_error(
            request.group, request.member_id, request.generation, request.offsets
        )
        if error is None:
            return transactional_error(self._groups.get(request.group), request)
        # Producers do not know member epochs: ``validateTransactionalOffsetCommit``.
        stale = error is ErrorCode.STALE_MEMBER_EPOCH
        return ErrorCode.ILLEGAL_GENERATION if stale else error

    def _transaction_ended(self, partition: int, producer: ProducerId, committed: bool) -> None:  # noqa: FBT001 - as the event has it
        """A marker is committed: its pending offsets become the group's, or are dropped."""
        for record in self._pending.end(partition, producer, committed=committed):
            group = self._groups.get(record.group)
            if group is not None:
                group.take_offset(record)

    def _fetch_offsets(self, request: OffsetFetchRequest, token: int, now: Micros) -> None:
        """Committed offsets. With ``require_stable`` none that an open commit may replace.

        The coordinator of KIP-848 answers when its writes are committed; the one before it returns
        UNSTABLE_OFFSET_COMMIT, as both do for a transaction's offsets.

        Source: ``GroupCoordinatorService.fetchOffsets``, ``GroupMetadataManager.getOffsets``.
        """
        if not request.require_stable:
            self._offsets_fetched(request, token, ErrorCode.NONE, now)
            return
        home = self._partition_of(request.group)
        held = partial(holds_offset, request.group, request.partitions)
        pending = self._pending.is_pending(home, request.group, request.partitions)
        follows = self.config.follows_watermark
        if pending or any(
            held(record, in_transaction=follows) for record in self._context.uncommitted(home)
        ):
            self._context.reply(token, OffsetFetchResponse(ErrorCode.UNSTABLE_OFFSET_COMMIT))
        elif follows:
            self._context.after_writes(home, partial(self._offsets_fetched, request, token), now)
        else:
            self._offsets_fetched(request, token, ErrorCode.NONE, now)

    def _offsets_fetched(
        self, request: OffsetFetchRequest, token: int, error: ErrorCode, now: Micros
    ) -> None:
        del now
        if error is not ErrorCode.NONE:
            # Consumers before 3.9 do not retry after the other retriable errors.
            self._context.reply(token, OffsetFetchResponse(ErrorCode.NOT_COORDINATOR))
            return
        group = self._groups.get(request.group)
        known = group.offsets if group is not None else {}
        offsets = tuple((p, *known.get(p, (-1, -1))) for p in request.partitions)
        self._context.reply(token, OffsetFetchResponse(ErrorCode.NONE, offsets))

    def _apply(self, record: GroupRecord) -> None:
        """Applies a committed record. A group's own record changes nothing at its writer."""
        if isinstance(record, OffsetCommitRecord):
            group = self._groups.get(record.group)
            if group is None:  # it was removed meanwhile
                group = self._groups[record.group] = self._new_group(record.group)
            group.take_offset(record)
            self._pending.committed_outside(group.partition, record)
        elif isinstance(record, PendingOffsetRecord):
            partition = self._partition_of(record.group)
            self._pending.add(partition, record.producer_id, record.commit)
        elif isinstance(record, OffsetTombstone | GroupTombstone):
            if isinstance(record, OffsetTombstone):
                self._pending.committed_outside(self._partition_of(record.group), record)
            elif self._consumer_groups.get(record.group) is not None:
                return  # it has changed its protocol, and keeps its offsets
            self._expiry.apply(record)
        elif isinstance(record, CONSUMER_GROUP_RECORDS):
            self._modern(record).apply(record)
            self._drop_unused(record)

    def _drop_unused(self, record: ConsumerGroupRecord) -> None:
        """Forgets a deleted consumer group, if it has no offsets any more."""
        if isinstance(record, GroupKeyTombstone) and record.is_last:
            group = self._groups.get(record.group)
            if group is not None:
                self._drop(group)

    def _new_group(self, name: str) -> Group:
        return Group(name, self._partition_of(name))

    # -- partitions of the offsets topic -----------------------------------------------------------

    def _elected(self, event: PartitionElected, now: Micros) -> None:
        """Serves a loaded partition. The classic coordinator serves nothing of a damaged one.

        Source: ``CoordinatorRuntime.CoordinatorContext.load``,
        ``GroupMetadataManager.loadGroupsAndOffsets``.
        """
        if self.config.follows_watermark and not event.is_whole:
            self._homes.fail(event)
            return
        if not self._homes.elect(event):
            return
        partition = event.partition
        self._expiry.watch(partition, now)
        for record in event.records if event.is_whole else ():
            self._replay(record, partition)
        for group in self._groups.values():
            if group.partition != partition or self._consumer_groups.get(group.name):
                continue  # only offsets of a consumer group: no classic group
            self._context.note(group, "loaded")
            for member in group.members.values():
                self._membership.refresh_session(group, member, now)
        self._consumer_groups.loaded(partition, now)
        self._share_groups.loaded(partition, now)

    def _replay(self, record: GroupRecord, partition: int) -> None:
        if isinstance(record, OffsetsMarker):
            self._transaction_ended(partition, record.producer_id, record.committed)
            return
        if isinstance(record, CONSUMER_GROUP_RECORDS):
            self._modern(record).replay(record, partition)
            self._drop_unused(record)
            return
        name = record.group
        if isinstance(record, GroupTombstone):
            self._retire(name)
            return
        group = self._groups.get(name)
        if group is None:
            group = self._groups[name] = Group(name, partition)
        match record:
            case OffsetCommitRecord():
                group.take_offset(record)
                self._pending.committed_outside(partition, record)
            case PendingOffsetRecord():
                self._pending.add(partition, record.producer_id, record.commit)
            case OffsetTombstone():
                group.drop_offset(record.partition)
                self._pending.committed_outside(partition, record)
            case GroupMetadataRecord():
                group.restore(record)
            case _:
                assert_never(record)

    def _retire(self, name: str) -> None:
        """The classic group is deleted; its offsets may be a consumer group's."""
        group = self._groups.get(name)
        if group is not None:
            group.clear()
            self._drop(group)

    def _drop(self, group: Group) -> None:
        """Forgets what has only a name."""
        if group.is_unused and not self._pending.places(group.partition, group.name):
            del self._groups[group.name]

    def _resigned(self, partition: int, now: Micros) -> None:
        if not self._homes.resign(partition):
            return
        self._pending.forget(partition)
        self._expiry.forget(partition)
        for group in [g for g in self._groups.values() if g.partition == partition]:
            del self._groups[group.name]
            if self._consumer_groups.get(group.name):
                continue
            self._context.move(group, GroupState.DEAD, "coordinated elsewhere")
            self._membership.forget(group)
        self._consumer_groups.resigned(partition)
        self._share_groups.resigned(partition)
        self._context.give_up(partition, now)

    def _modern(self, record: ConsumerGroupRecord) -> MixedGroups | ShareGroups:
        return self._share_groups if record.share else self._consumer_groups

    def _partition_of(self, group: str) -> int:
        return partition_for_group(group, self.config.offsets_partition_count)


_NAMELESS = (OffsetCommitRequest, OffsetFetchRequest, TxnOffsetCommitRequest)
"""Requests of groups whose name may be empty."""
