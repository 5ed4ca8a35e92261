"""The consumer group protocol at the coordinator: heartbeats, epochs, assignments (KIP-848).

A heartbeat is all that a member sends. What follows from it is written, changes memory at once and
is answered when it is committed; a write that fails takes its change back. Left out: static
members, regular expressions, groups that change their protocol, and limits that a group sets for
itself.

Source: ``GroupMetadataManager.consumerGroupHeartbeat``, ``TargetAssignmentBuilder``.
"""

import hashlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.consumer_group_records import (
    CURRENT_KEY,
    MEMBER_KEY,
    TARGET_KEY,
    ConsumerGroupEpochRecord,
    ConsumerGroupRecord,
    CurrentMemberAssignmentRecord,
    MemberGoneRecord,
    MemberState,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
)
from sim.protocol.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator_log import error_for_client
from sim.protocol.group_desk import MAY_BE_COMMITTED_LATER, GroupDesk, Outcome
from sim.protocol.member_reconciliation import reconcile
from sim.protocol.messages_consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.metadata import MetadataImage
from sim.protocol.server_assignors import SERVER_ASSIGNORS, TopicDescription
from sim.units import Micros


@dataclass(slots=True)
class _Written:
    records: tuple[ConsumerGroupRecord, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    is_doubtful: bool = False
    """It stands in the log, and it took too long to be committed."""


@dataclass(slots=True)
class _Coordinated:
    """A group with what is written of it, and what is committed."""

    live: ConsumerGroup
    committed: ConsumerGroup
    unsettled: deque[_Written] = field(default_factory=deque)


class ConsumerGroups:
    """The groups of the consumer protocol that one broker coordinates.

    ``image`` is the broker's metadata: which topics there are, under which ids.
    """

    def __init__(self, desk: GroupDesk, image: Callable[[], MetadataImage]) -> None:
        self._desk = desk
        self._image = image
        self._groups: dict[str, _Coordinated] = {}

    # -- views ------------------------------------------------------------------------------------

    def get(self, name: str) -> ConsumerGroup | None:
        """The group as it stands; ``None`` if it is not known here. Not to be changed."""
        group = self._groups.get(name)
        return group.live if group is not None else None

    def commit_error(self, name: str, member_id: str, epoch: int) -> ErrorCode | None:
        """What a commit of offsets is told; ``None`` if there is no such group here.

        Source: ``ConsumerGroup.validateOffsetCommit`` (4.1).
        """
        group = self.get(name)
        if group is None:
            return None
        if epoch < 0 and not group.members:
            return ErrorCode.NONE
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return ErrorCode.NONE if epoch == member.epoch else ErrorCode.STALE_MEMBER_EPOCH

    # -- heartbeats -------------------------------------------------------------------------------

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        partition: int,
        token: int,
        now: Micros,
    ) -> None:
        """A member joins, shows that it lives and what it has, or leaves.

        Args:
            request: Its heartbeat.
            client: The name of the process that sent it.
            partition: Of the offsets topic, which keeps the group.
            token: For the answer.
            now: This instant.
        """
        error = self._refusal(request)
        if error is not ErrorCode.NONE:
            self._desk.reply(token, ConsumerGroupHeartbeatResponse(error, request.member_id))
        elif request.member_epoch == LEAVE_EPOCH:
            self._leave(self._groups[request.group], request, token, now)
        else:
            group = self._groups.get(request.group)
            if group is None:
                fresh = ConsumerGroup(request.group, partition)
                group = self._groups[request.group] = _Coordinated(fresh, fresh.copy())
                self._note(group, "created")
            self._proceed(group, request, client, token, now)

    def _refusal(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``,
        ``GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid``.
        """
        config, joins = self._desk.config, request.member_epoch == JOIN_EPOCH
        if request.server_assignor and request.server_assignor not in config.consumer_assignors:
            return ErrorCode.UNSUPPORTED_ASSIGNOR
        group = self.get(request.group)
        if group is None:
            return ErrorCode.NONE if joins else ErrorCode.GROUP_ID_NOT_FOUND
        member = group.members.get(request.member_id)
        if member is None:
            if not joins:
                return ErrorCode.UNKNOWN_MEMBER_ID
            full = len(group.members) >= config.consumer_max_size
            return ErrorCode.GROUP_MAX_SIZE_REACHED if full else ErrorCode.NONE
        epoch = request.member_epoch
        if joins or epoch in {LEAVE_EPOCH, member.epoch}:
            return ErrorCode.NONE
        # The answer that told it of its epoch may have been lost.
        owned = request.owned
        lost = owned is not None and all(p in member.assigned for p in self._by_id(owned))
        return ErrorCode.NONE if epoch == member.previous_epoch and lost else _FENCED

    def _proceed(
        self,
        group: _Coordinated,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        token: int,
        now: Micros,
    ) -> None:
        name, records = request.group, list[ConsumerGroupRecord]()
        before = group.live.members.get(request.member_id, ConsumerGroupMember(request.member_id))
        member = _updated(before, request, client)
        if member != before:
            self._change(group, records, member.subscription(name))
        self._count_epoch(group, records, changed=member.topics != before.topics)
        self._assign(group, records)
        owned = None if request.owned is None else self._by_id(request.owned)
        after = self._reconciled(group.live, member, owned)
        if after != member:
            self._change(group, records, after.assignment(name))
            self._await_revocation(group, after, now)
        self._await_next(group, after.member_id, now)
        full = request.rebalance_timeout_us is not None and request.topics is not None
        tells = (full and owned is not None) or after.assigned != before.assigned
        response = ConsumerGroupHeartbeatResponse(
            ErrorCode.NONE,
            after.member_id,
            after.epoch,
            self._desk.config.consumer_heartbeat_interval_us,
            self._by_name(after.assigned) if tells or request.member_epoch == JOIN_EPOCH else None,
        )
        self._settle(group, records, response, token, now)

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        owned: tuple[TopicPartition, ...] | None,
    ) -> ConsumerGroupMember:
        if member.is_reconciled_to(group.assignment_epoch):
            return member
        names = self._image().topic_names
        target = tuple(
            p for p in group.target.get(member.member_id, ()) if names.get(p.topic) in member.topics
        )
        return reconcile(member, group.assignment_epoch, target, group.owners(), owned)

    # -- epochs and assignments -------------------------------------------------------------------

    def _count_epoch(
        self, group: _Coordinated, records: list[ConsumerGroupRecord], *, changed: bool
    ) -> None:
        """A new group epoch, if subscriptions or topics are other than they were."""
        live = group.live
        fingerprint = self._metadata_hash(live)
        if changed or live.epoch == 0 or fingerprint != live.metadata_hash:
            epoch = live.epoch + 1
            self._change(group, records, ConsumerGroupEpochRecord(live.name, epoch, fingerprint))

    def _assign(self, group: _Coordinated, records: list[ConsumerGroupRecord]) -> None:
        """A new target assignment, if the group's epoch is ahead of it."""
        live = group.live
        if live.epoch <= live.assignment_epoch:
            return
        image = self._image()
        topics = {
            topic_id: TopicDescription(topic_id, image.partition_counts[name])
            for name, topic_id in image.topic_ids.items()
            if image.partition_counts[name]
        }
        subscriptions = {
            member.member_id: tuple(image.topic_ids.get(topic, topic) for topic in member.topics)
            for member in live.members.values()
        }
        assignor = live.assignor(self._desk.config.consumer_assignors)
        shares = SERVER_ASSIGNORS[assignor](subscriptions, live.target, topics)
        for member_id, partitions in shares.items():
            if live.target.get(member_id) != partitions:
                self._change(
                    group, records, TargetAssignmentMemberRecord(live.name, member_id, partitions)
                )
        self._change(group, records, TargetAssignmentEpochRecord(live.name, live.epoch))

    def _metadata_hash(self, group: ConsumerGroup) -> int:
        """Over the topics that members subscribe to; Kafka's is another function of the same.

        Source: ``Utils.computeGroupHash``.
        """
        image = self._image()
        wanted = {topic for member in group.members.values() for topic in member.topics}
        known = [topic for topic in sorted(wanted) if topic in image.topic_ids]
        if not known:
            return 0
        said = ";".join(f"{t} {image.topic_ids[t]} {image.partition_counts[t]}" for t in known)
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big", signed=True)

    # -- who goes ---------------------------------------------------------------------------------

    def _leave(
        self, group: _Coordinated, request: ConsumerGroupHeartbeatRequest, token: int, now: Micros
    ) -> None:
        response = ConsumerGroupHeartbeatResponse(
            ErrorCode.NONE, request.member_id, request.member_epoch
        )
        self._remove(group, request.member_id, response, token, now)

    def _remove(
        self,
        group: _Coordinated,
        member_id: str,
        response: ConsumerGroupHeartbeatResponse | None,
        token: int | None,
        now: Micros,
    ) -> None:
        """A member goes, its partitions are free, and the others get a new epoch.

        Source: ``GroupMetadataManager.consumerGroupFenceMember``.
        """
        name, records = group.live.name, list[ConsumerGroupRecord]()
        for key_type in (CURRENT_KEY, TARGET_KEY, MEMBER_KEY):
            self._change(group, records, MemberGoneRecord(name, member_id, key_type))
        epoch, fingerprint = group.live.epoch + 1, self._metadata_hash(group.live)
        self._change(group, records, ConsumerGroupEpochRecord(name, epoch, fingerprint))
        self._forget_alarms(name, member_id)
        self._settle(group, records, response, token, now)

    def _await_next(self, group: _Coordinated, member_id: str, now: Micros) -> None:
        self._desk.set_alarm(
            f"session/{group.live.name}/{member_id}",
            now + self._desk.config.consumer_session_timeout_us,
            partial(self._silent, group, member_id),
        )

    def _await_revocation(
        self, group: _Coordinated, member: ConsumerGroupMember, now: Micros
    ) -> None:
        alarm = f"revoke/{group.live.name}/{member.member_id}"
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            late = partial(self._too_slow, group, member.member_id, member.epoch)
            self._desk.set_alarm(alarm, now + member.rebalance_timeout_us, late)
        else:
            self._desk.cancel_alarm(alarm)

    def _silent(self, group: _Coordinated, member_id: str, now: Micros) -> None:
        if member_id in group.live.members:
            self._note(group, f"session of {member_id} expired")
            self._remove(group, member_id, None, None, now)

    def _too_slow(self, group: _Coordinated, member_id: str, epoch: int, now: Micros) -> None:
        """``max.poll.interval.ms`` is over, and it has not given up what it was told to."""
        member = group.live.members.get(member_id)
        if member is not None and member.epoch == epoch:
            self._note(group, f"{member_id} did not revoke in time")
            self._remove(group, member_id, None, None, now)

    def _forget_alarms(self, name: str, member_id: str) -> None:
        self._desk.cancel_alarm(f"session/{name}/{member_id}")
        self._desk.cancel_alarm(f"revoke/{name}/{member_id}")

    # -- the log ----------------------------------------------------------------------------------

    def _change(
        self,
        group: _Coordinated,
        records: list[ConsumerGroupRecord],
        record: ConsumerGroupRecord,
    ) -> None:
        records.append(record)
        group.live.replay(record)

    def _settle(
        self,
        group: _Coordinated,
        records: list[ConsumerGroupRecord],
        response: ConsumerGroupHeartbeatResponse | None,
        token: int | None,
        now: Micros,
    ) -> None:
        """Write, and answer when that and all before it is committed."""

        def answer(error: ErrorCode, _now: Micros) -> None:
            if error is ErrorCode.NONE or response is None:
                self._desk.reply(token, response)
            else:
                told = error_for_client(error)
                self._desk.reply(token, ConsumerGroupHeartbeatResponse(told, response.member_id))

        if not records and not group.unsettled:
            answer(ErrorCode.NONE, now)
        elif not records and group.unsettled[-1].is_doubtful:
            answer(ErrorCode.REQUEST_TIMED_OUT, now)
        elif not records:
            group.unsettled[-1].outcomes.append(answer)
        else:
            written = _Written(tuple(records), [answer])
            group.unsettled.append(written)
            outcome = partial(self._outcome, group, written)
            self._desk.write(group.live.partition, written.records, outcome, now)

    def _outcome(
        self, group: _Coordinated, written: _Written, error: ErrorCode, now: Micros
    ) -> None:
        if error in MAY_BE_COMMITTED_LATER:
            written.is_doubtful = True
        elif error is not ErrorCode.NONE and self._groups.get(group.live.name) is group:
            self._take_back(group, written, now)
        outcomes, written.outcomes = written.outcomes, []
        for outcome in outcomes:
            outcome(error, now)

    def _take_back(self, group: _Coordinated, written: _Written, now: Micros) -> None:
        """The log does not have it: be what the rest of the records say."""
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

    def apply(self, record: ConsumerGroupRecord) -> None:
        """A record is committed, in the order of the log."""
        group = self._groups.get(record.group)
        assert group is not None, f"a record of {record.group}, which is not coordinated here"
        group.committed.replay(record)
        first = group.unsettled[0]
        assert record in first.records, f"{record} is committed out of turn"
        if record is first.records[-1]:
            group.unsettled.popleft()
        if isinstance(record, CurrentMemberAssignmentRecord):
            self._note_member(group.committed, record.member_id)
        elif isinstance(record, MemberGoneRecord):
            if record.key_type == MEMBER_KEY:
                self._note_member(group.committed, record.member_id)
        elif isinstance(record, ConsumerGroupEpochRecord):
            self._note(group, "new group epoch")
        elif isinstance(record, TargetAssignmentEpochRecord):
            self._note(group, "assignment committed")

    def replay(self, record: ConsumerGroupRecord, partition: int) -> None:
        """A record is read, of a partition that is being loaded."""
        group = self._groups.get(record.group)
        if group is None:
            fresh = ConsumerGroup(record.group, partition)
            group = self._groups[record.group] = _Coordinated(fresh, fresh)
        group.live.replay(record)

    def loaded(self, partition: int, now: Micros) -> None:
        """All records of the partition have been read: sessions begin anew.

        Source: ``GroupMetadataManager.onLoaded``.
        """
        for group in self._groups.values():
            if group.live.partition == partition:
                group.committed = group.live.copy()
                self._note(group, "loaded")
                for member_id in group.live.members:
                    self._note_member(group.live, member_id)
                self._watch(group, now)

    def _watch(self, group: _Coordinated, now: Micros) -> None:
        for member in group.live.members.values():
            self._await_next(group, member.member_id, now)
            self._await_revocation(group, member, now)

    def resigned(self, partition: int) -> None:
        """The partition is led elsewhere: its groups are not ours any more."""
        for group in [g for g in self._groups.values() if g.live.partition == partition]:
            del self._groups[group.live.name]
            for member_id in group.live.members:
                self._forget_alarms(group.live.name, member_id)
            row = (group.live.name, "Dead", group.live.epoch, 0, "coordinated elsewhere")
            self._desk.emit("groups", *row)

    # -- names and facts --------------------------------------------------------------------------

    def _by_id(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        ids = self._image().topic_ids
        return tuple(TopicPartition(ids[p.topic], p.partition) for p in places if p.topic in ids)

    def _by_name(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        names = self._image().topic_names
        return tuple(
            sorted(TopicPartition(names[p.topic], p.partition) for p in places if p.topic in names)
        )

    def _note(self, group: _Coordinated, reason: str) -> None:
        live = group.live
        self._desk.emit(
            "groups", live.name, live.state.value, live.epoch, len(live.members), reason
        )

    def _note_member(self, group: ConsumerGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        gone = member is None
        shown = ConsumerGroupMember(member_id) if member is None else member
        self._desk.emit(
            "group_members",
            group.name,
            member_id,
            shown.client_id,
            LEAVE_EPOCH if gone else shown.epoch,
            "GONE" if gone else shown.state.name,
            _text(self._by_name(shown.assigned)),
            _text(self._by_name(shown.pending_revocation)),
        )


_FENCED = ErrorCode.FENCED_MEMBER_EPOCH


def _updated(
    member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest, client: str
) -> ConsumerGroupMember:
    """The member with what a heartbeat says of it; what it does not say stays."""
    timeout = request.rebalance_timeout_us
    return replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        client_id=client,
        client_host=f"/{client}",
        topics=member.topics if request.topics is None else tuple(sorted(request.topics)),
        rebalance_timeout_us=member.rebalance_timeout_us if timeout is None else timeout,
        server_assignor=request.server_assignor or member.server_assignor,
    )


def _text(places: tuple[TopicPartition, ...]) -> str:
    return ",".join(map(str, places))
