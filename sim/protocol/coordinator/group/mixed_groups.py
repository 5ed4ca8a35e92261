"""Consumer groups with members of the classic protocol, and the change of a group's protocol.

The first member of the consumer protocol makes a classic group a consumer group, in one write with
its own join. The others keep JoinGroup, SyncGroup and Heartbeat: nobody leads, a join is a member's
own step, and REBALANCE_IN_PROGRESS says that there is another one to take. When the last member of
the consumer protocol leaves, a classic group remains, which rebalances. Each direction needs
``group.consumer.migration.policy``.

Source: ``GroupMetadataManager.{convertToConsumerGroup,convertToClassicGroup,validateOnlineUpgrade,
validateOnlineDowngradeWithFencedMembers,validateOnlineDowngradeWithReplacedMember,
classicGroupJoinToConsumerGroup,classicGroupSyncToConsumerGroup,classicGroupHeartbeatToConsumerGroup,
classicGroupLeaveToConsumerGroup}`` (4.3); KIP-848.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.group import migration
from sim.protocol.coordinator.group.classic import GroupMembership
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.consumer_group_records import (
    ClassicMember,
    ConsumerGroupRecord,
    MemberState,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.consumer_groups import ConsumerGroups
from sim.protocol.coordinator.group.context import CoordinatorContext, Outcome
from sim.protocol.coordinator.group.coordinated import Coordinated, Written, nobody_waits
from sim.protocol.coordinator.group.migration_policy import MigrationPolicy
from sim.protocol.coordinator.group.records import GroupRecord, GroupTombstone
from sim.protocol.coordinator.group.requests import refusal
from sim.protocol.coordinator.log import error_for_client
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import JOIN_EPOCH, ConsumerGroupHeartbeatRequest
from sim.protocol.messages.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.units import Micros, timestamp_ms

ClassicRequest: TypeAlias = (
    JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
)
"""Requests of a member of the classic protocol to its group."""


class MixedGroups(ConsumerGroups):
    """Consumer groups of one broker, with members of either protocol.

    ``classic`` are the classic groups by name, which keep the offsets of all groups;
    ``membership`` has their rules.
    """

    def __init__(
        self,
        context: CoordinatorContext[GroupRecord],
        image: Callable[[], MetadataImage],
        classic: dict[str, Group],
        membership: GroupMembership,
    ) -> None:
        super().__init__(context, image)
        self._classic = classic
        self._membership = membership
        self._policy = context.config.migration

    def has_members(self, name: str) -> bool:
        """True if requests of the classic protocol go to a consumer group."""
        group = self.get(name)
        return group is not None and bool(group.members)

    def vacate(self, name: str, now: Micros) -> None:
        """Deletes a consumer group without members, whose name a classic member takes.

        Source: ``GroupMetadataManager.maybeDeleteEmptyConsumerGroup``.
        """
        if self.get(name) is not None:
            self.delete(name, nobody_waits, now)

    # -- from the classic to the consumer protocol ------------------------------------------------

    def heartbeat(
        self,
        request: ConsumerGroupHeartbeatRequest,
        client: str,
        partition: int,
        token: int,
        now: Micros,
    ) -> None:
        """As of any member; the first one of its protocol changes a classic group's."""
        classic = self._classic.get(request.group)
        if classic is None or not classic.members:
            super().heartbeat(request, client, partition, token, now)
            return
        error = self._upgrade_refusal(classic, request)
        if error is ErrorCode.NONE and not classic.protocol:
            # Kafka fails on a group that has not chosen its assignor yet, when it has answered.
            self._membership.interrupt(classic, ErrorCode.REBALANCE_IN_PROGRESS)
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        if error is not ErrorCode.NONE:
            self._context.reply(token, self._answer(error, request.member_id))
            return
        group = self._upgrade(classic, now)
        super().heartbeat(request, client, partition, token, now)
        group.unsettled[-1].outcomes.append(partial(_upgraded, group))

    def _upgrade_refusal(self, classic: Group, request: ConsumerGroupHeartbeatRequest) -> ErrorCode:
        error = self._refusal(request)
        size, most = len(classic.members), self._settings(classic.name).max_size
        if error is not ErrorCode.NONE:
            return error
        if request.member_epoch != JOIN_EPOCH or not self._policy.upgrades or size > most:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.GROUP_MAX_SIZE_REACHED if size == most else ErrorCode.NONE

    def _upgrade(self, classic: Group, now: Micros) -> Coordinated:
        """Makes it a consumer group, whose records are written with the next change."""
        dated = self._context.config.fences_by_assignment
        records = migration.consumer_group_records(
            classic, self._by_id, self._image(), dates_assignments=dated
        )
        self._membership.forget(classic, ErrorCode.REBALANCE_IN_PROGRESS)
        name, home = classic.name, classic.partition
        group = self._groups.get(name) or self._created(name, home)
        group.former = replace(classic, members=dict(classic.members))
        classic.clear()
        group.predecessor = GroupTombstone(name)
        for record in records:
            self._change(group, group.opening, record)
        self._note(group, "upgraded")
        for member in group.live.members.values():
            self._await_classic(group, member, now)
        return group

    def _taken_back(self, group: Coordinated, now: Micros) -> None:
        """A change of protocol that could not be written has not happened.

        The classic group that was to become a consumer group rebalances, if it did.
        """
        name, former = group.live.name, group.former
        classic = self._classic.get(name)
        if group.live.is_new and former is not None:
            group.former = None
            classic = self._classic.setdefault(name, Group(name, former.partition))
            members = list(former.members.values())
            self._membership.found(classic, members, former.generation, former.leader, now)
            self._context.note(classic, "upgrade not written")
            if former.state is not GroupState.STABLE:
                self._membership.rebalance(classic, "upgrade not written", now)
        elif not group.live.is_new and classic is not None and classic.members:
            self._membership.forget(classic, ErrorCode.REBALANCE_IN_PROGRESS)
            classic.clear()

    # -- from the consumer to the classic protocol ------------------------------------------------

    def _remove(self, group: Coordinated, member_id: str, answer: Outcome, now: Micros) -> None:
        """Removes a member, and with the last one of its protocol the consumer group."""
        live = group.live
        if not migration.is_classic_without(live, member_id) or not self._may_downgrade(
            len(live.members) - 1
        ):
            super()._remove(group, member_id, answer, now)
            return
        rest = live.copy()
        del rest.members[member_id]
        self._downgrade(group, rest, [], answer, now)
        reason = f"downgraded: {member_id} left"
        self._membership.rebalance(self._classic[live.name], reason, now)

    def _may_downgrade(self, size: int) -> bool:
        return self._policy.downgrades and size <= self._context.config.size_max

    def _downgrade(
        self,
        group: Coordinated,
        rest: ConsumerGroup,
        records: list[ConsumerGroupRecord],
        answer: Outcome,
        now: Micros,
    ) -> None:
        """Makes it a classic group of the members that remain; ``records`` come before."""
        name = rest.name
        for member_id in group.live.members:
            self._forget_alarms(name, member_id)
        for record in migration.group_tombstones(group.live):
            self._change(group, records, record)
        classic = self._classic.setdefault(name, Group(name, rest.partition))
        members = migration.classic_members(rest, self._by_name)
        self._membership.found(classic, members, rest.epoch, "", now)
        self._context.note(classic, "downgrade")
        self._write(group, records, answer, now, classic.record(timestamp_ms(now)))

    def _note_end(self, name: str, written: Written) -> None:
        classic = self._classic.get(name)
        if written.successor is None or classic is None:
            super()._note_end(name, written)
        else:
            self._context.note(classic, "downgraded")

    # -- requests of the classic protocol ---------------------------------------------------------

    def request(self, request: ClassicRequest, client: str, token: int, now: Micros) -> None:
        """A request of the classic protocol to a consumer group with members."""
        group = self._groups[request.group]
        if isinstance(request, JoinGroupRequest):
            self._join(group, request, client, token, now)
            return
        member, error = self._sender(group.live, request)
        said = None if member is None else member.classic
        if member is not None and isinstance(request, LeaveGroupRequest):
            left = LeaveGroupResponse(ErrorCode.NONE)
            self._remove(group, member.member_id, self._reply(request, left, token), now)
        elif member is None or said is None:
            self._context.reply(token, refusal(request, error))
        elif isinstance(request, SyncGroupRequest):
            self._sync(group, member, said, request, token, now)
        elif isinstance(request, HeartbeatRequest):
            self._beat(group, member, request, token, now)

    def _sender(
        self, group: ConsumerGroup, request: SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest
    ) -> tuple[ConsumerGroupMember | None, ErrorCode]:
        """The member that sends the request, with the error for one of the other protocol.

        Source: ``validateConsumerGroupMember``, ``throwIfMemberDoesNotUseClassicProtocol``.
        """
        member_id, instance = request.member_id, request.instance_id
        known = group.static_member(instance) if instance else group.members.get(member_id)
        by_instance = isinstance(request, LeaveGroupRequest) and not member_id
        if known is not None and known.member_id != member_id and not by_instance:
            return None, ErrorCode.FENCED_INSTANCE_ID
        return known, ErrorCode.UNKNOWN_MEMBER_ID

    def _reply(self, request: ClassicRequest, response: Response, token: int) -> Outcome:
        """Outcome that sends the response, or the error of the write."""

        def answer(error: ErrorCode, _now: Micros) -> None:
            failed = refusal(request, error_for_client(error))
            self._context.reply(token, response if error is ErrorCode.NONE else failed)

        return answer

    # -- JoinGroup --------------------------------------------------------------------------------

    def _join(
        self,
        group: Coordinated,
        request: JoinGroupRequest,
        client: str,
        token: int,
        now: Micros,
    ) -> None:
        """The member joins, or says what it has and takes its next step."""
        live, instance = group.live, request.subscription.instance_id
        error = self._join_refusal(live, request)
        if error is not ErrorCode.NONE:
            self._context.reply(token, refusal(request, error))
            return
        member_id = request.member_id
        if not member_id:
            member_id = self._membership.new_member_id(instance or request.client_id)
            if not instance:
                required = JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, member_id)
                self._context.reply(token, required)
                return
        records, epoch = list[ConsumerGroupRecord](), live.epoch
        former = live.static_member(instance) if instance and not request.member_id else None
        downgrades = former is not None and self._is_last(live, former)
        if former is None:
            before = live.members.get(member_id, ConsumerGroupMember(member_id))
        else:
            before = self._succeed(group, former, member_id, records)
        member = _updated(before, request, client)
        if member != before:
            self._change(group, records, member.subscription(live.name))
        changed = member.topics != before.topics
        self._count_epoch(group, records, changed=changed)
        if not downgrades:
            self._assign(group, records, now)
        after = member
        if not downgrades or not changed:
            owned = tuple(sorted(self._by_id(request.subscription.owned)))
            after = self._advanced(live, member, owned, changed=changed)
        if after != member:
            self._change(group, records, after.assignment(live.name))
        answer = self._joined(group, request, after, token)
        if not downgrades:
            self._settle(group, records, answer, now)
            return
        self._downgrade(group, replace(live.copy(), epoch=epoch), records, answer, now)
        if changed:
            classic = self._classic[request.group]
            self._membership.rebalance(classic, f"downgraded: {member_id} joined", now)

    def _join_refusal(self, group: ConsumerGroup, request: JoinGroupRequest) -> ErrorCode:
        member_id, instance = request.member_id, request.subscription.instance_id
        full = len(group.members) >= self._settings(group.name).max_size
        disabled = self._policy is MigrationPolicy.DISABLED
        keeps_out = disabled and self._context.config.refuses_classic_joins
        if full and member_id not in group.members and not keeps_out:
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if keeps_out or not migration.supports(group, request.protocols):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if not instance or not member_id:
            return ErrorCode.NONE
        known = group.static_member(instance)
        if known is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        fenced = known.member_id != member_id
        return ErrorCode.FENCED_INSTANCE_ID if fenced else ErrorCode.NONE

    def _is_last(self, group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
        """True if the group is a classic one without this static member."""
        alone = len(group.members) == 1
        last = alone or migration.is_classic_without(group, member.member_id)
        return member.classic is None and last and self._may_downgrade(len(group.members))

    def _joined(
        self, group: Coordinated, request: JoinGroupRequest, member: ConsumerGroupMember, token: int
    ) -> Outcome:
        """Outcome of a join: its generation is the member's epoch, and it leads nobody."""
        member_id, protocol = member.member_id, request.protocols[0]
        response = JoinGroupResponse(ErrorCode.NONE, member_id, member.epoch, protocol)
        answer = self._reply(request, response, token)

        def joined(error: ErrorCode, now: Micros) -> None:
            name = group.live.name
            self._context.cancel_alarm(f"rejoin/{name}/{member_id}")
            present = group.live.members.get(member_id)
            if error is ErrorCode.NONE and present is not None:
                self._await_classic(group, present, now)
                self._context.set_alarm(
                    f"missing-sync/{name}/{member_id}",
                    now + request.rebalance_timeout_us,
                    partial(self._late, group, member_id, "did not sync in time"),
                )
            answer(error, now)

        return joined

    # -- SyncGroup, Heartbeat ---------------------------------------------------------------------

    def _sync(
        self,
        group: Coordinated,
        member: ConsumerGroupMember,
        said: ClassicMember,
        request: SyncGroupRequest,
        token: int,
        now: Micros,
    ) -> None:
        """The member gets its partitions, unless it has to join again first."""
        error = ErrorCode.NONE
        if request.generation != member.epoch:
            error = ErrorCode.ILLEGAL_GENERATION
        elif request.protocol and request.protocol != said.protocols[0]:
            error = ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        elif (
            group.live.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS
        ):
            self._await_rejoin(group, member, now)
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            self._context.reply(token, refusal(request, error))
            return
        assignment = self._by_name(member.assigned)
        answer = self._reply(request, SyncGroupResponse(ErrorCode.NONE, assignment), token)

        def synced(failure: ErrorCode, then: Micros) -> None:
            present = group.live.members.get(member.member_id)
            if failure is ErrorCode.NONE and present is not None:
                self._context.cancel_alarm(f"missing-sync/{group.live.name}/{member.member_id}")
                self._await_classic(group, present, then)
            answer(failure, then)

        self._settle(group, [], synced, now)

    def _beat(
        self,
        group: Coordinated,
        member: ConsumerGroupMember,
        request: HeartbeatRequest,
        token: int,
        now: Micros,
    ) -> None:
        """The member lives, and joins again if there is another step for it to take."""
        if request.generation != member.epoch:
            self._context.reply(token, HeartbeatResponse(ErrorCode.ILLEGAL_GENERATION))
            return
        self._await_classic(group, member, now)
        waits = member.state is MemberState.UNRELEASED_PARTITIONS
        rejoins = (
            member.epoch < group.live.epoch
            or member.state is MemberState.UNREVOKED_PARTITIONS
            or (waits and not migration.awaits_release(group.live, member))
        )
        if rejoins:
            self._await_rejoin(group, member, now)
        error = ErrorCode.REBALANCE_IN_PROGRESS if rejoins else ErrorCode.NONE
        self._settle(group, [], self._reply(request, HeartbeatResponse(error), token), now)

    # -- timers of its members --------------------------------------------------------------------

    def _await_classic(self, group: Coordinated, member: ConsumerGroupMember, now: Micros) -> None:
        """Renews a session, which has the member's own timeout (``session.timeout.ms``)."""
        assert member.classic is not None, f"{member.member_id} speaks the consumer protocol"
        self._context.set_alarm(
            f"session/{group.live.name}/{member.member_id}",
            now + member.classic.session_timeout_us,
            partial(self._silent, group, member.member_id),
        )

    def _await_rejoin(self, group: Coordinated, member: ConsumerGroupMember, now: Micros) -> None:
        """Misses a member that does not join again, from when it first had to."""
        alarm = f"rejoin/{group.live.name}/{member.member_id}"
        if not self._context.has_alarm(alarm):
            late = partial(self._late, group, member.member_id, "did not join in time")
            self._context.set_alarm(alarm, now + member.rebalance_timeout_us, late)

    def _late(self, group: Coordinated, member_id: str, reason: str, now: Micros) -> None:
        if member_id in group.live.members:
            self._note(group, f"{member_id} {reason}")
            self._remove(group, member_id, nobody_waits, now)

    def _forget_alarms(self, name: str, member_id: str) -> None:
        super()._forget_alarms(name, member_id)
        self._context.cancel_alarm(f"rejoin/{name}/{member_id}")
        self._context.cancel_alarm(f"missing-sync/{name}/{member_id}")


def _upgraded(group: Coordinated, error: ErrorCode, _now: Micros) -> None:
    """The change of protocol is committed: the classic group does not come back."""
    if error is ErrorCode.NONE:
        group.former = None


def _updated(
    member: ConsumerGroupMember, request: JoinGroupRequest, client: str
) -> ConsumerGroupMember:
    said = request.subscription
    return replace(
        member,
        rack_id=said.rack or member.rack_id,
        client_id=request.client_id,
        client_host=f"/{client}",
        topics=tuple(sorted(said.topics)),
        rebalance_timeout_us=request.rebalance_timeout_us,
        instance_id=said.instance_id or member.instance_id,
        classic=ClassicMember(request.session_timeout_us, request.protocols, said),
    )
