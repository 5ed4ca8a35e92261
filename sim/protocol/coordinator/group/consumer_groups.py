"""The consumer group protocol at the coordinator: heartbeats, epochs, assignments (KIP-848).

A heartbeat is all that a member sends. Left out: static members, regular expressions, groups that
change their protocol, and limits that a group sets for itself.

Source: ``GroupMetadataManager.consumerGroupHeartbeat``.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors import SERVER_ASSIGNORS, TopicDescription
from sim.protocol.coordinator.group.consumer_group_records import ConsumerGroupRecord, MemberState
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.heartbeat_groups import Coordinated, ModernGroups
from sim.protocol.coordinator.group.reconciliation import reconcile
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.units import Micros


class ConsumerGroups(ModernGroups):
    """The groups of the consumer protocol that one broker coordinates."""

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
            self._context.reply(token, ConsumerGroupHeartbeatResponse(error, request.member_id))
        elif request.member_epoch == LEAVE_EPOCH:
            self._leave(self._groups[request.group], request, token, now)
        else:
            self._proceed(self._group(request.group, partition), request, client, token, now)

    def _refusal(self, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``GroupCoordinatorService.throwIfConsumerGroupHeartbeatRequestIsInvalid``,
        ``GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid``.
        """
        config, joins = self._context.config, request.member_epoch == JOIN_EPOCH
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
        group: Coordinated,
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
            self._context.config.consumer_heartbeat_interval_us,
            self._by_name(after.assigned) if tells or request.member_epoch == JOIN_EPOCH else None,
        )
        self._settle(group, records, response, response.member_id, token, now)

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

    # -- what ModernGroups asks for ---------------------------------------------------------------

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        assignor = group.assignor(self._context.config.consumer_assignors)
        return SERVER_ASSIGNORS[assignor](subscriptions, group.target, topics)

    def _refused(self, error: ErrorCode, member_id: str) -> Response:
        return ConsumerGroupHeartbeatResponse(error, member_id)

    def _session_timeout_us(self) -> Micros:
        return self._context.config.consumer_session_timeout_us

    def _watch_member(self, group: Coordinated, member: ConsumerGroupMember, now: Micros) -> None:
        super()._watch_member(group, member, now)
        self._await_revocation(group, member, now)

    # -- who goes ---------------------------------------------------------------------------------

    def _leave(
        self, group: Coordinated, request: ConsumerGroupHeartbeatRequest, token: int, now: Micros
    ) -> None:
        response = ConsumerGroupHeartbeatResponse(
            ErrorCode.NONE, request.member_id, request.member_epoch
        )
        self._remove(group, request.member_id, response, token, now)

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
        """``max.poll.interval.ms`` is over, and it has not given up what it was told to."""
        member = group.live.members.get(member_id)
        if member is not None and member.epoch == epoch:
            self._note(group, f"{member_id} did not revoke in time")
            self._remove(group, member_id, None, None, now)


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
