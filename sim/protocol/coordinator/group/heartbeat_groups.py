"""Consumer-protocol and share groups at the coordinator: epochs, target assignments, the log.

Changes are written, change memory at once and are answered when committed; a failed write is rolled
back. Consumer groups (KIP-848) and share groups (KIP-932) differ in the heartbeat's fields, the
assignor, and a member's reconciliation.

Source: ``org.apache.kafka.coordinator.group.modern.ModernGroup``,
``GroupMetadataManager.{consumerGroupHeartbeat,shareGroupHeartbeat}``,
``TargetAssignmentBuilder``.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Generic, TypeVar

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors.registry import TopicDescription, described
from sim.protocol.coordinator.group.consumer_group_records import (
    GROUP_KEYS,
    ConsumerGroupEpochRecord,
    ConsumerGroupRecord,
    CurrentMemberAssignmentRecord,
    GroupKeyTombstone,
    MemberTombstone,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
    member_keys,
)
from sim.protocol.coordinator.group.consumer_group_state import (
    ConsumerGroup,
    ConsumerGroupMember,
    member_row,
    metadata_hash,
)
from sim.protocol.coordinator.group.context import (
    CoordinatorContext,
    ModernGroupConfig,
    Outcome,
)
from sim.protocol.coordinator.group.coordinated import Coordinated, Written, nobody_waits
from sim.protocol.coordinator.group.records import GroupMetadataRecord, GroupRecord
from sim.protocol.coordinator.log import error_for_client
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.share import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, Micros, timestamp_ms

Heartbeat = TypeVar("Heartbeat", bound=ConsumerGroupHeartbeatRequest | ShareGroupHeartbeatRequest)


class ModernGroups(Generic[Heartbeat]):
    """The groups of one kind that one broker coordinates.

    ``image`` is the broker's metadata: existing topics and their ids.
    """

    share = False
    """True if they are share groups."""

    def __init__(
        self, context: CoordinatorContext[GroupRecord], image: Callable[[], MetadataImage]
    ) -> None:
        self._context = context
        self._image = image
        self._groups: dict[str, Coordinated] = {}

    # -- views ------------------------------------------------------------------------------------

    def get(self, name: str) -> ConsumerGroup | None:
        """The group; ``None`` if there is none here, or no more. Not to be changed."""
        group = self._groups.get(name)
        return None if group is None or group.live.is_new else group.live

    def has(self, name: str) -> bool:
        """True if the group is loaded here."""
        return self.get(name) is not None

    def _group(self, name: str, partition: int) -> Coordinated:
        """The group, created if there is none."""
        if name in self._groups:
            return self._groups[name]
        group = self._created(name, partition)
        self._note(group, "created")
        return group

    def _created(self, name: str, partition: int) -> Coordinated:
        fresh = ConsumerGroup(name, partition, self.share)
        return self._groups.setdefault(name, Coordinated(fresh, fresh.copy()))

    def _settings(self, group: str) -> ModernGroupConfig:
        config = self._context.config
        plain = config.share if self.share else config.consumer
        own = self._image().group_configs.get(group)
        return plain.of_group(own, "share" if self.share else "consumer") if own else plain

    # -- hooks of the kinds ------------------------------------------------------------------------

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        """Assignment by the assignor."""
        raise NotImplementedError

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: Heartbeat,
        *,
        changed: bool,
    ) -> ConsumerGroupMember:
        """The member on its way to its target; ``changed``: its subscription is another one."""
        raise NotImplementedError

    def _before(
        self, group: Coordinated, request: Heartbeat, records: list[ConsumerGroupRecord]
    ) -> ConsumerGroupMember:
        """The member as it is known, or a new one."""
        del records
        return group.live.members.get(request.member_id, ConsumerGroupMember(request.member_id))

    def _updated(self, member: ConsumerGroupMember, request: Heartbeat) -> ConsumerGroupMember:  # noqa: ARG002
        """The member with what only a heartbeat of this kind says of it."""
        return member

    def _repeats(self, member: ConsumerGroupMember, request: Heartbeat) -> bool:  # noqa: ARG002
        """True if a heartbeat with the former epoch has lost a response."""
        return True

    def _is_full(self, request: Heartbeat) -> bool:
        """True if a heartbeat has all fields, and so is answered with the whole assignment."""
        return request.topics is not None

    def _await_revocation(
        self, group: Coordinated, member: ConsumerGroupMember, now: Micros
    ) -> None:
        """Miss a member that does not give up what it is to give up."""

    def _is_pending(self, group: ConsumerGroup) -> bool:  # noqa: ARG002
        """True if partitions can be assigned that were not there for the last target."""
        return False

    def _initialize(
        self, group: Coordinated, records: list[ConsumerGroupRecord], now: Micros
    ) -> Outcome | None:
        """Notes partitions that need a state before members get them; then what makes it."""
        del group, records, now
        return None

    # -- heartbeats -------------------------------------------------------------------------------

    def heartbeat(
        self, request: Heartbeat, client: str, partition: int, token: int, now: Micros
    ) -> None:
        """A member joins, shows that it lives and what it has, or leaves.

        ``client`` is its process; ``partition`` of the offsets topic keeps the group.
        """
        error, member_id = self._refusal(request), request.member_id
        if error is not ErrorCode.NONE:
            self._context.reply(token, self._answer(error, member_id))
        elif request.member_epoch == LEAVE_EPOCH:
            left = self._answer(ErrorCode.NONE, member_id, LEAVE_EPOCH)
            answer = self._answers(left, member_id, token)
            self._remove(self._groups[request.group], member_id, answer, now)
        else:
            self._proceed(self._group(request.group, partition), request, client, token, now)

    def _refusal(self, request: Heartbeat) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid``,
        ``throwIfShareGroupMemberEpochIsInvalid``.
        """
        epoch, joins = request.member_epoch, request.member_epoch == JOIN_EPOCH
        group = self.get(request.group)
        if group is None:
            return ErrorCode.NONE if joins else ErrorCode.GROUP_ID_NOT_FOUND
        member = group.members.get(request.member_id)
        if member is None:
            if not joins:
                return ErrorCode.UNKNOWN_MEMBER_ID
            full = len(group.members) >= self._settings(request.group).max_size
            return ErrorCode.GROUP_MAX_SIZE_REACHED if full else ErrorCode.NONE
        if joins or epoch in {LEAVE_EPOCH, member.epoch}:
            return ErrorCode.NONE
        # The response with its epoch may have been lost.
        lost = epoch == member.previous_epoch and self._repeats(member, request)
        return ErrorCode.NONE if lost else ErrorCode.FENCED_MEMBER_EPOCH

    def _proceed(
        self, group: Coordinated, request: Heartbeat, client: str, token: int, now: Micros
    ) -> None:
        name, records = request.group, group.opening
        group.opening = []
        before = self._before(group, request, records)
        # What a heartbeat does not say stays.
        member = replace(
            self._updated(before, request),
            rack_id=request.rack_id or before.rack_id,
            client_id=client,
            client_host=f"/{client}",
            topics=before.topics if request.topics is None else tuple(sorted(request.topics)),
        )
        if member != before:
            self._change(group, records, member.subscription(name, share=self.share))
        changed = member.topics != before.topics
        self._count_epoch(group, records, changed=changed)
        self._assign(group, records, now)
        after = self._reconciled(group.live, member, request, changed=changed)
        if after != member:
            self._change(group, records, after.assignment(name, share=self.share))
            self._await_revocation(group, after, now)
        self._await_next(group, after.member_id, now)
        full = self._is_full(request) or request.member_epoch == JOIN_EPOCH
        response = self._answer(
            ErrorCode.NONE,
            after.member_id,
            after.epoch,
            self._settings(name).heartbeat_interval_us,
            self._by_name(after.assigned) if full or after.assigned != before.assigned else None,
        )
        answer = self._answers(response, after.member_id, token)
        begun = self._initialize(group, records, now)
        self._settle(group, records, answer, now)
        if begun is not None:
            group.unsettled[-1].outcomes.append(begun)

    def _answer(
        self,
        error: ErrorCode,
        member_id: str,
        epoch: int = 0,
        interval_us: Micros = 0,
        assignment: tuple[TopicPartition, ...] | None = None,
    ) -> Response:
        kind = ShareGroupHeartbeatResponse if self.share else ConsumerGroupHeartbeatResponse
        return kind(error, member_id, epoch, interval_us, assignment)

    def _target(
        self, group: ConsumerGroup, member: ConsumerGroupMember
    ) -> tuple[TopicPartition, ...]:
        """Target assignment of the member, of topics that it subscribes to."""
        names, target = self._image().topic_names, group.target.get(member.member_id, ())
        return tuple(p for p in target if names.get(p.topic) in member.topics)

    # -- epochs and assignments -------------------------------------------------------------------

    def _count_epoch(
        self, group: Coordinated, records: list[ConsumerGroupRecord], *, changed: bool
    ) -> None:
        """Bumps the group epoch if subscriptions or topics have changed."""
        live = group.live
        fingerprint = metadata_hash(live, self._image())
        changed = changed or live.epoch == 0 or self._is_pending(live)
        if changed or fingerprint != live.metadata_hash:
            epoch = live.epoch + 1
            record = ConsumerGroupEpochRecord(live.name, epoch, fingerprint, self.share)
            self._change(group, records, record)

    def _assign(self, group: Coordinated, records: list[ConsumerGroupRecord], now: Micros) -> None:
        """Computes a target assignment if the group's epoch is ahead of it, and it is time.

        Source: ``GroupMetadataManager.canComputeNextTargetAssignment`` (4.3).
        """
        live = group.live
        if live.epoch <= live.assignment_epoch or not self._may_assign(live, now):
            return
        image = self._image()
        topics = described(image.topic_ids, image.partition_counts)
        subscriptions = {
            member.member_id: tuple(image.topic_ids.get(topic, topic) for topic in member.topics)
            for member in live.members.values()
        }
        shares = self._shares(live, subscriptions, topics)
        for member_id, partitions in shares.items():
            if live.target.get(member_id) != partitions:
                target = TargetAssignmentMemberRecord(live.name, member_id, partitions, self.share)
                self._change(group, records, target)
        interval = self._settings(live.name).assignment_interval_us
        dated = interval or self._context.config.fences_by_assignment
        stamp = timestamp_ms(now) if dated else 0
        done = TargetAssignmentEpochRecord(live.name, live.epoch, self.share, stamp)
        self._change(group, records, done)

    def _may_assign(self, group: ConsumerGroup, now: Micros) -> bool:
        """True if the last target assignment is old enough, or its time is not known."""
        interval = self._settings(group.name).assignment_interval_us // MS
        known = group.assigned_at_ms and interval
        return not known or timestamp_ms(now) >= group.assigned_at_ms + interval

    # -- removal -----------------------------------------------------------------------------------

    def _remove(self, group: Coordinated, member_id: str, answer: Outcome, now: Micros) -> None:
        """Removes a member, which bumps the epoch (``consumerGroupFenceMember``)."""
        name, records = group.live.name, list[ConsumerGroupRecord]()
        self._bury(group, member_id, records)
        epoch, fingerprint = group.live.epoch + 1, metadata_hash(group.live, self._image())
        self._change(group, records, ConsumerGroupEpochRecord(name, epoch, fingerprint, self.share))
        self._forget_alarms(name, member_id)
        self._settle(group, records, answer, now)

    def _bury(self, group: Coordinated, member_id: str, records: list[ConsumerGroupRecord]) -> None:
        """Writes the tombstones of a member."""
        for key_type in member_keys(share=self.share):
            self._change(group, records, MemberTombstone(group.live.name, member_id, key_type))

    def delete(self, name: str, outcome: Outcome, now: Micros) -> None:
        """Deletes a group without members; its later namesake begins with epoch 1.

        Source: ``ConsumerGroup.createGroupTombstoneRecords``.
        """
        group, records = self._groups[name], list[ConsumerGroupRecord]()
        for key_type in GROUP_KEYS:
            self._change(group, records, GroupKeyTombstone(name, key_type))
        self._write(group, records, outcome, now)

    def _await_next(self, group: Coordinated, member_id: str, now: Micros) -> None:
        self._context.set_alarm(
            f"session/{group.live.name}/{member_id}",
            now + self._settings(group.live.name).session_timeout_us,
            partial(self._silent, group, member_id),
        )

    def _silent(self, group: Coordinated, member_id: str, now: Micros) -> None:
        if member_id in group.live.members:
            self._note(group, f"session of {member_id} expired")
            self._remove(group, member_id, nobody_waits, now)

    def _forget_alarms(self, name: str, member_id: str) -> None:
        self._context.cancel_alarm(f"session/{name}/{member_id}")
        self._context.cancel_alarm(f"revoke/{name}/{member_id}")

    # -- the log ----------------------------------------------------------------------------------

    def _change(
        self, group: Coordinated, records: list[ConsumerGroupRecord], record: ConsumerGroupRecord
    ) -> None:
        records.append(record)
        group.live.replay(record)

    def _answers(self, response: Response, member_id: str, token: int) -> Outcome:
        """Outcome that sends the response, or the error of the write."""

        def answer(error: ErrorCode, _now: Micros) -> None:
            if error is ErrorCode.NONE:
                self._context.reply(token, response)
            else:
                self._context.reply(token, self._answer(error_for_client(error), member_id))

        return answer

    def _settle(
        self, group: Coordinated, records: list[ConsumerGroupRecord], answer: Outcome, now: Micros
    ) -> None:
        """Writes, and answers when that and all before it is committed."""
        if not records and not group.unsettled:
            answer(ErrorCode.NONE, now)
        elif not records and group.unsettled[-1].is_doubtful:
            answer(ErrorCode.REQUEST_TIMED_OUT, now)
        elif not records:
            group.unsettled[-1].outcomes.append(answer)
        else:
            self._write(group, records, answer, now)

    def _write(
        self,
        group: Coordinated,
        records: list[ConsumerGroupRecord],
        then: Outcome,
        now: Micros,
        successor: GroupMetadataRecord | None = None,
    ) -> None:
        written = Written(tuple(records), [then], successor=successor)
        group.unsettled.append(written)
        outcome = partial(self._outcome, group, written)
        before = () if group.predecessor is None else (group.predecessor,)
        after, group.predecessor = () if successor is None else (successor,), None
        self._context.write(group.live.partition, (*before, *records, *after), outcome, now)

    def _outcome(self, group: Coordinated, written: Written, error: ErrorCode, now: Micros) -> None:
        if error is ErrorCode.REQUEST_TIMED_OUT:  # it is in the log
            written.is_doubtful = True
        elif error is not ErrorCode.NONE and self._groups.get(group.live.name) is group:
            self._take_back(group, written, now)
        outcomes, written.outcomes = written.outcomes, []
        for outcome in outcomes:
            outcome(error, now)

    def _take_back(self, group: Coordinated, written: Written, now: Micros) -> None:
        """The write failed: restores the state of the remaining records."""
        group.unsettled = deque(one for one in group.unsettled if one is not written)
        former = group.live.members
        group.live = group.committed.copy()
        for one in group.unsettled:
            for record in one.records:
                group.live.replay(record)
        for member_id in former:
            if member_id not in group.live.members:
                self._forget_alarms(group.live.name, member_id)
        self._watch(group, now)
        self._taken_back(group, now)

    def _taken_back(self, group: Coordinated, now: Micros) -> None:
        """Hook of a kind whose groups change their protocol."""

    def apply(self, record: ConsumerGroupRecord) -> None:
        """Applies a committed record, in the order of the log."""
        group = self._groups.get(record.group)
        assert group is not None, f"a record of {record.group}, which is not coordinated here"
        group.committed.replay(record)
        first = group.unsettled[0]
        assert record in first.records, f"{record} is committed out of turn"
        if record is first.records[-1]:
            group.unsettled.popleft()
        if isinstance(record, CurrentMemberAssignmentRecord):
            self._note_member(group.committed, record.member_id)
            if group.has_progressed:
                self._note(group, "members reconciled")
        elif isinstance(record, MemberTombstone):
            if record.is_last:
                self._note_member(group.committed, record.member_id)
        elif isinstance(record, ConsumerGroupEpochRecord):
            self._note(group, "new group epoch")
        elif isinstance(record, TargetAssignmentEpochRecord):
            self._note(group, "assignment committed")
        elif isinstance(record, GroupKeyTombstone) and record.is_last:
            self._note_end(record.group, first)
            if group.live.is_new and not group.unsettled:
                del self._groups[record.group]

    def replay(self, record: ConsumerGroupRecord, partition: int) -> None:
        """Applies a record of a partition that is being loaded."""
        group = self._groups.get(record.group) or self._created(record.group, partition)
        group.live.replay(record)
        if isinstance(record, GroupKeyTombstone) and record.is_last:
            del self._groups[record.group]

    def loaded(self, partition: int, now: Micros) -> None:
        """All records of the partition have been loaded: sessions begin again.

        Source: ``GroupMetadataManager.onLoaded``.
        """
        for group in self._groups.values():
            if group.live.partition == partition:
                group.committed = group.live.copy()
                self._note(group, "loaded")
                for member_id in group.live.members:
                    self._note_member(group.live, member_id)
                self._watch(group, now)

    def _watch(self, group: Coordinated, now: Micros) -> None:
        for member in group.live.members.values():
            self._await_next(group, member.member_id, now)
            self._await_revocation(group, member, now)

    def resigned(self, partition: int) -> None:
        """The partition has another leader: drops its groups."""
        for live in [g.live for g in self._groups.values() if g.live.partition == partition]:
            del self._groups[live.name]
            for member_id in live.members:
                self._forget_alarms(live.name, member_id)
            if not live.is_new:
                self._context.note_group(live.name, "Dead", live.epoch, 0, "coordinated elsewhere")

    # -- names and rows ----------------------------------------------------------------------------

    def _by_id(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        ids = self._image().topic_ids
        return tuple(TopicPartition(ids[p.topic], p.partition) for p in places if p.topic in ids)

    def _by_name(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        names = self._image().topic_names
        known = (TopicPartition(names[p.topic], p.partition) for p in places if p.topic in names)
        return tuple(sorted(known))

    def _note(self, group: Coordinated, reason: str) -> None:
        live, epoch = group.live, group.committed.epoch or group.live.epoch  # that is reached
        group.noted = live.state
        self._context.note_group(live.name, live.state.value, epoch, len(live.members), reason)

    def _note_end(self, name: str, written: Written) -> None:  # noqa: ARG002 - for the kinds
        """Row of a group whose deletion is committed."""
        self._context.note_group(name, "Dead", 0, 0, "deleted")

    def _note_member(self, group: ConsumerGroup, member_id: str) -> None:
        self._context.emit(member_row(self._context.broker, group, member_id, self._by_name))
