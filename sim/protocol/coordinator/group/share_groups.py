"""Share groups at the coordinator: heartbeats, epochs, assignments (KIP-932).

Members come and go as in the consumer protocol, but partitions are nobody's own: a member has its
target at once, and nobody waits for anybody. Left out: the states of share partitions that the
coordinator has initialized (record type 15), and limits that a group sets for itself.

Source: ``GroupMetadataManager.shareGroupHeartbeat``, ``ShareGroupAssignmentBuilder``.
"""

from collections.abc import Mapping
from dataclasses import replace

from sim.error_codes import ErrorCode
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors import TopicDescription
from sim.protocol.coordinator.group.consumer_group_records import ConsumerGroupRecord
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.heartbeat_groups import Coordinated, ModernGroups
from sim.protocol.coordinator.group.simple_assignor import simple_assignor
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import JOIN_EPOCH, LEAVE_EPOCH
from sim.protocol.messages.share import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from sim.units import Micros


class ShareGroups(ModernGroups):
    """The share groups that one broker coordinates."""

    share = True

    def heartbeat(
        self,
        request: ShareGroupHeartbeatRequest,
        client: str,
        partition: int,
        token: int,
        now: Micros,
    ) -> None:
        """A member joins, shows that it lives, or leaves.

        Args:
            request: Its heartbeat.
            client: The name of the process that sent it.
            partition: Of the offsets topic, which keeps the group.
            token: For the answer.
            now: This instant.
        """
        error = self._refusal(request)
        if error is not ErrorCode.NONE:
            self._context.reply(token, self._refused(error, request.member_id))
        elif request.member_epoch == LEAVE_EPOCH:
            group = self._groups[request.group]
            left = ShareGroupHeartbeatResponse(ErrorCode.NONE, request.member_id, LEAVE_EPOCH)
            self._remove(group, request.member_id, left, token, now)
        else:
            self._proceed(self._group(request.group, partition), request, client, token, now)

    def _refusal(self, request: ShareGroupHeartbeatRequest) -> ErrorCode:
        """Kafka's checks in Kafka's order.

        Source: ``GroupMetadataManager.throwIfShareGroupMemberEpochIsInvalid``.
        """
        joins = request.member_epoch == JOIN_EPOCH
        group = self.get(request.group)
        if group is None:
            return ErrorCode.NONE if joins else ErrorCode.GROUP_ID_NOT_FOUND
        member = group.members.get(request.member_id)
        if member is None:
            if not joins:
                return ErrorCode.UNKNOWN_MEMBER_ID
            full = len(group.members) >= self._context.config.share_max_size
            return ErrorCode.GROUP_MAX_SIZE_REACHED if full else ErrorCode.NONE
        epoch = request.member_epoch
        # The answer that told it of its epoch may have been lost.
        known = joins or epoch in {LEAVE_EPOCH, member.epoch, member.previous_epoch}
        return ErrorCode.NONE if known else ErrorCode.FENCED_MEMBER_EPOCH

    def _proceed(
        self,
        group: Coordinated,
        request: ShareGroupHeartbeatRequest,
        client: str,
        token: int,
        now: Micros,
    ) -> None:
        name, records = request.group, list[ConsumerGroupRecord]()
        before = group.live.members.get(request.member_id, ConsumerGroupMember(request.member_id))
        member = _updated(before, request, client)
        if member != before:
            self._change(group, records, member.subscription(name, share=True))
        changed = member.topics != before.topics
        self._count_epoch(group, records, changed=changed)
        self._assign(group, records)
        after = self._moved_on(group.live, member, changed=changed)
        if after != member:
            self._change(group, records, after.assignment(name, share=True))
        self._await_next(group, after.member_id, now)
        tells = request.topics is not None or after.assigned != before.assigned
        response = ShareGroupHeartbeatResponse(
            ErrorCode.NONE,
            after.member_id,
            after.epoch,
            self._context.config.share_heartbeat_interval_us,
            self._by_name(after.assigned) if tells or request.member_epoch == JOIN_EPOCH else None,
        )
        self._settle(group, records, response, response.member_id, token, now)

    def _moved_on(
        self, group: ConsumerGroup, member: ConsumerGroupMember, *, changed: bool
    ) -> ConsumerGroupMember:
        """The member with what the target assignment gives it."""
        if not changed and member.epoch == group.assignment_epoch:
            return member
        names = self._image().topic_names
        target = group.target.get(member.member_id, ())
        return replace(
            member,
            epoch=group.assignment_epoch,
            previous_epoch=member.epoch,
            assigned=tuple(p for p in target if names.get(p.topic) in member.topics),
        )

    # -- what ModernGroups asks for ---------------------------------------------------------------

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        return simple_assignor(subscriptions, group.target, topics)

    def _refused(self, error: ErrorCode, member_id: str) -> Response:
        return ShareGroupHeartbeatResponse(error, member_id)

    def _session_timeout_us(self) -> Micros:
        return self._context.config.share_session_timeout_us


def _updated(
    member: ConsumerGroupMember, request: ShareGroupHeartbeatRequest, client: str
) -> ConsumerGroupMember:
    """The member with what a heartbeat says of it; what it does not say stays."""
    return replace(
        member,
        rack_id=request.rack_id or member.rack_id,
        client_id=client,
        client_host=f"/{client}",
        topics=member.topics if request.topics is None else tuple(sorted(request.topics)),
    )
