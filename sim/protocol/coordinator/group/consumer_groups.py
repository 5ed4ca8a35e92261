"""The consumer group protocol at the coordinator: heartbeats, epochs, assignments (KIP-848).

Members send only heartbeats. A static member that leaves keeps its partitions until its session
ends: the next member of its instance id takes its place, without a new group epoch. Members of the
classic protocol: :mod:`sim.protocol.coordinator.group.mixed_groups`. Left out: regular expressions,
and group-level limits.

Source: ``GroupMetadataManager.{consumerGroupHeartbeat,consumerGroupStaticMemberGroupLeave,
getOrMaybeSubscribeStaticConsumerGroupMember,replaceMember}``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors.registry import SERVER_ASSIGNORS, TopicDescription
from sim.protocol.coordinator.group.consumer_group_records import (
    ConsumerGroupRecord,
    MemberState,
    TargetAssignmentMemberRecord,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.coordinated import Coordinated, nobody_waits
from sim.protocol.coordinator.group.heartbeat_groups import ModernGroups
from sim.protocol.coordinator.group.reconciliation import drop_unsubscribed, reconcile, with_epochs
from sim.protocol.messages.consumer_group import (
    JOIN_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
)
from sim.protocol.messages.group import CommittedOffsets
from sim.units import Micros


class ConsumerGroups(ModernGroups[ConsumerGroupHeartbeatRequest]):
    """Consumer-protocol groups of one broker."""

    def commit_error(
        self, name: str, member_id: str, epoch: int, offsets: CommittedOffsets
    ) -> ErrorCode | None:
        """Error of an offset commit; ``None`` if there is no such group here.

        Since 4.3 an older epoch is enough for partitions that the member had then (KIP-1251).

        Source: ``ConsumerGroup.validateOffsetCommit``, ``createAssignmentEpochValidator`` (4.3).
        """
        group = self.get(name)
        if group is None:
            return None
        if epoch < 0 and not group.members:
            return ErrorCode.NONE
        member = group.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if epoch == member.epoch:
            return ErrorCode.NONE
        if member.classic is not None:
            return ErrorCode.ILLEGAL_GENERATION
        if epoch > member.epoch or not self._context.config.fences_by_assignment:
            return ErrorCode.STALE_MEMBER_EPOCH
        since, ids = member.assignment_epochs(), self._image().topic_ids
        places = (TopicPartition(ids.get(p.topic, ""), p.partition) for p, _, _ in offsets)
        had = all(place in since and since[place] <= epoch for place in places)
        return ErrorCode.NONE if had else ErrorCode.STALE_MEMBER_EPOCH

    def topic_id_of(self, name: str, member_id: str) -> Callable[[str], str | None]:
        """Ids of topics as a member's commit names them: none of the classic protocol.

        Source: ``CommitRequestManager``, ``ConsumerCoordinator`` (4.2), of which only the first
        commits by topic id.
        """
        if not self._context.config.has_topic_ids:
            unnamed = self._context.config.no_topic_id
            return lambda topic: unnamed  # noqa: ARG005
        group = self.get(name)
        member = None if group is None else group.members.get(member_id)
        is_classic = group is None or (member is not None and member.classic is not None)
        ids = {} if is_classic else self._image().topic_ids
        return lambda topic: ids.get(topic, "")

    # -- static members ---------------------------------------------------------------------------

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        partition: int,
        token: int,
        now: Micros,
    ) -> None:
        """As of any member; a static one may leave its place to its successor."""
        leaves = request.member_epoch == STATIC_LEAVE_EPOCH
        if not leaves or self._refusal(request) is not ErrorCode.NONE:
            super().heartbeat(request, client, partition, token, now)
            return
        group, member_id = self._groups[request.group], request.member_id
        member = replace(
            group.live.members[member_id], epoch=STATIC_LEAVE_EPOCH, pending_revocation=()
        )
        records = list[ConsumerGroupRecord]()
        self._change(group, records, member.assignment(request.group))
        left = self._answer(ErrorCode.NONE, member_id, STATIC_LEAVE_EPOCH)
        self._settle(group, records, self._answers(left, member_id, token), now)

    def _static_refusal(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Refusal of a static member, in Kafka's order; NONE leaves it to the other checks.

        Source: ``throwIfInstanceIdIsUnreleased``, ``throwIfInstanceIdIsFenced``,
        ``throwIfStaticMemberIsUnknown``.
        """
        group, epoch = self.get(request.group), request.member_epoch
        if group is None:
            return ErrorCode.NONE if epoch == JOIN_EPOCH else ErrorCode.GROUP_ID_NOT_FOUND
        known = group.static_member(request.instance_id)
        if epoch == JOIN_EPOCH:
            full = len(group.members) >= self._settings(request.group).max_size
            if full and request.member_id not in group.members:
                return ErrorCode.GROUP_MAX_SIZE_REACHED
            # One of the classic protocol has its place taken, as in a classic group.
            new = known is not None and known.classic is None
            taken = new and known is not None and known.epoch != STATIC_LEAVE_EPOCH
            return ErrorCode.UNRELEASED_INSTANCE_ID if taken else ErrorCode.NONE
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        fenced = known.member_id != request.member_id
        return ErrorCode.FENCED_INSTANCE_ID if fenced else ErrorCode.NONE

    def _before(
        self,
        group: Coordinated,
        request: ConsumerGroupHeartbeatRequest,
        records: list[ConsumerGroupRecord],
    ) -> ConsumerGroupMember:
        """The member as it is known; a static one has what its predecessor had."""
        live, member_id = group.live, request.member_id
        joins = request.instance_id and request.member_epoch == JOIN_EPOCH
        former = live.static_member(request.instance_id) if joins else None
        if former is None:
            return super()._before(group, request, records)
        return self._succeed(group, former, member_id, records)

    def _succeed(
        self,
        group: Coordinated,
        former: ConsumerGroupMember,
        member_id: str,
        records: list[ConsumerGroupRecord],
    ) -> ConsumerGroupMember:
        """The member that takes a static one's place, with its partitions (``replaceMember``)."""
        live = group.live
        target = live.target.get(former.member_id, ())
        member = replace(former, member_id=member_id, epoch=JOIN_EPOCH, previous_epoch=JOIN_EPOCH)
        self._bury(group, former.member_id, records)
        self._forget_alarms(live.name, former.member_id)
        self._change(group, records, member.subscription(live.name))
        self._change(group, records, TargetAssignmentMemberRecord(live.name, member_id, target))
        self._change(group, records, member.assignment(live.name))
        return member

    # -- what its heartbeats say ------------------------------------------------------------------

    def _refusal(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``.
        """
        assignors = self._context.config.consumer_assignors
        if request.server_assignor and request.server_assignor not in assignors:
            return ErrorCode.UNSUPPORTED_ASSIGNOR
        if request.instance_id:
            refusal = self._static_refusal(request)
            if refusal is not ErrorCode.NONE or request.member_epoch == STATIC_LEAVE_EPOCH:
                return refusal
        return super()._refusal(request)

    def _repeats(self, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest) -> bool:
        owned = request.owned
        return owned is not None and all(p in member.assigned for p in self._by_id(owned))

    def _updated(
        self, member: ConsumerGroupMember, request: ConsumerGroupHeartbeatRequest
    ) -> ConsumerGroupMember:
        timeout = request.rebalance_timeout_us
        return replace(
            member,
            rebalance_timeout_us=member.rebalance_timeout_us if timeout is None else timeout,
            server_assignor=request.server_assignor or member.server_assignor,
            instance_id=request.instance_id or member.instance_id,
            classic=None,
        )

    def _is_full(self, request: ConsumerGroupHeartbeatRequest) -> bool:
        said = (request.rebalance_timeout_us, request.topics, request.owned)
        return all(each is not None for each in said)

    def _reconciled(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        request: ConsumerGroupHeartbeatRequest,
        *,
        changed: bool,
    ) -> ConsumerGroupMember:
        owned = None if request.owned is None else self._by_id(request.owned)
        return self._advanced(group, member, owned, changed=changed)

    def _advanced(
        self,
        group: ConsumerGroup,
        member: ConsumerGroupMember,
        owned: tuple[TopicPartition, ...] | None,
        *,
        changed: bool,
    ) -> ConsumerGroupMember:
        """The member one step nearer to its target; ``owned`` are partitions by topic id."""
        epoch = group.assignment_epoch
        if changed and group.epoch > epoch and member.epoch == epoch:
            after = drop_unsubscribed(member, self._subscribed(member), owned)
        elif member.is_reconciled_to(epoch):
            return member
        else:
            target = self._target(group, member)
            after = reconcile(member, epoch, target, group.owners(), owned)
        if self._context.config.fences_by_assignment:
            return with_epochs(member, after, epoch)
        return after

    def _subscribed(self, member: ConsumerGroupMember) -> tuple[str, ...]:
        """Ids of the topics that it subscribes to."""
        ids = self._image().topic_ids
        return tuple(ids[topic] for topic in member.topics if topic in ids)

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        assignor = group.assignor(self._context.config.consumer_assignors)
        return SERVER_ASSIGNORS[assignor](subscriptions, group.target, topics)

    # -- late revocations -------------------------------------------------------------------------

    def _await_revocation(
        self, group: Coordinated, member: ConsumerGroupMember, now: Micros
    ) -> None:
        alarm = f"revoke/{group.live.name}/{member.member_id}"
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            late = partial(self._too_slow, group, member.member_id, member.epoch)
            self._context.set_alarm(alarm, now + member.rebalance_timeout_us, late)
        else:
            self._context.cancel_alarm(alarm)

    def _too_slow(self, group: Coordinated, member_id: str, epoch: int, now: Micros) -> None:
        """``max.poll.interval.ms`` has passed, and its revocation is still pending."""
        member = group.live.members.get(member_id)
        if member is not None and member.epoch == epoch:
            self._note(group, f"{member_id} did not revoke in time")
            self._remove(group, member_id, nobody_waits, now)
