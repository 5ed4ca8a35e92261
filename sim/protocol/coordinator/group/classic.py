"""The classic group protocol at the coordinator: join, sync, heartbeat, leave, expiration.

A group waits for its members in PreparingRebalance, for its leader's assignment in
CompletingRebalance, and works in Stable. A member with an instance id is static: it may come back
under another member id, and only the end of its session takes it out of the group. A group that
becomes one of the consumer protocol: :mod:`sim.protocol.coordinator.group.migration`.

Source: ``GroupMetadataManager`` (classic part); KIP-62, KIP-134, KIP-345, KIP-389, KIP-394,
KIP-559, KIP-814.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from sim.error_codes import ErrorCode
from sim.protocol.coordinator.group.classic_state import Group, GroupState, Member
from sim.protocol.coordinator.group.context import CoordinatorContext
from sim.protocol.coordinator.group.records import GroupRecord
from sim.protocol.coordinator.log import error_for_client
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
from sim.units import Micros, timestamp_ms


class GroupMembership:
    """Rules of a classic group's membership."""

    def __init__(self, context: CoordinatorContext[GroupRecord], member_id_suffix: str) -> None:
        self._context = context
        self._rule = context.config.missing_sync
        self._suffix = member_id_suffix
        self._ids_given = 0

    # -- requests ---------------------------------------------------------------------------------

    def join(
        self, group: Group, request: JoinGroupRequest, client: str, token: int, now: Micros
    ) -> None:
        """JoinGroup: a member, or a new one, requests the next generation."""
        if not group.accepts(request.member_id, self._context.config.size_max):
            self._turn_away(group, request.member_id, token)
        elif not group.supports(request.protocols):
            self._refuse_join(token, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif not request.member_id:
            self._join_newcomer(group, request, client, token, now)
        elif request.member_id in group.pending:
            del group.pending[request.member_id]
            self._add(group, request, request.member_id, client, token, now)
        else:
            error = group.member_error(request.member_id, request.subscription.instance_id)
            if error is ErrorCode.NONE:
                self._rejoin(group, group.members[request.member_id], request, token, now)
            else:
                self._refuse_join(token, error, request.member_id)

    def sync(self, group: Group, request: SyncGroupRequest, token: int, now: Micros) -> None:
        """SyncGroup: a member requests its assignment; the leader sends all assignments."""
        error = group.member_error(request.member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            self._context.reply(token, SyncGroupResponse(error))
            return
        member = group.members[request.member_id]
        if request.generation != group.generation:
            self._context.reply(token, SyncGroupResponse(ErrorCode.ILLEGAL_GENERATION))
        elif group.state is GroupState.PREPARING:
            self._context.reply(token, SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS))
        elif group.state is GroupState.STABLE:
            group.pending_sync.pop(member.member_id, None)
            self._context.reply(token, SyncGroupResponse(ErrorCode.NONE, member.assignment))
            self.refresh_session(group, member, now)
        else:
            self._context.reply(member.sync_token, None)
            member.sync_token = token
            group.pending_sync.pop(member.member_id, None)
            if member.member_id == group.leader:
                self._write_assignment(group, request, now)

    def heartbeat(self, group: Group, request: HeartbeatRequest, token: int, now: Micros) -> None:
        """Heartbeat: renews the session, and returns REBALANCE_IN_PROGRESS if needed."""
        error = group.member_error(request.member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            pass
        elif request.generation != group.generation:
            error = ErrorCode.ILLEGAL_GENERATION
        elif group.state is GroupState.COMPLETING and not self._rule.takes_heartbeats:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        else:
            self.refresh_session(group, group.members[request.member_id], now)
            preparing = group.state is GroupState.PREPARING
            error = ErrorCode.REBALANCE_IN_PROGRESS if preparing else ErrorCode.NONE
        self._context.reply(token, HeartbeatResponse(error))

    def leave(self, group: Group, request: LeaveGroupRequest, token: int, now: Micros) -> None:
        """LeaveGroup of a member."""
        member_id = request.member_id
        if not member_id and request.instance_id:
            member_id = group.static.get(request.instance_id, "")
        if member_id in group.pending:
            self._drop_pending(group, member_id, now)
            self._context.reply(token, LeaveGroupResponse(ErrorCode.NONE))
            return
        error = group.member_error(member_id, request.instance_id)
        if error is ErrorCode.NONE:
            self._remove(group, group.members[member_id], f"{member_id} left", now)
        self._context.reply(token, LeaveGroupResponse(error))

    def refresh_session(self, group: Group, member: Member, now: Micros) -> None:
        """Renews the member's session."""
        self._let_expire(group, member, now + member.session_timeout_us)

    def forget(self, group: Group, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Drops parked requests and timers of a group that is a classic one here no more."""
        for name in (f"join/{group.name}", f"sync/{group.name}"):
            self._context.cancel_alarm(name)
        for member_id in [*group.pending, *group.members]:
            self._context.cancel_alarm(f"session/{group.name}/{member_id}")
        self.interrupt(group, error)

    def interrupt(self, group: Group, error: ErrorCode) -> None:
        """Answers all parked requests of a group with an error."""
        for member in group.members.values():
            self._answer_join(member, JoinGroupResponse(error, member.member_id))
            self._answer_sync(member, SyncGroupResponse(error))

    def found(
        self, group: Group, members: Sequence[Member], generation: int, leader: str, now: Micros
    ) -> None:
        """Makes it a stable group of these members, whose sessions begin.

        Source: ``ClassicGroup.fromConsumerGroup``, ``rescheduleClassicGroupMemberHeartbeat``.
        """
        for member in members:
            group.add(member)
            self.refresh_session(group, member, now)
        group.generation, group.protocol = generation, group.vote()
        group.leader = leader or members[0].member_id
        group.move_to(GroupState.STABLE)

    def rebalance(self, group: Group, reason: str, now: Micros) -> None:
        """Has all members of a stable group join again."""
        self._prepare(group, reason, now)

    def new_member_id(self, instance_or_client: str) -> str:
        """An id that this process has given to no other member."""
        self._ids_given += 1
        return f"{instance_or_client}-{self._suffix}.{self._ids_given:04d}"

    # -- joining ----------------------------------------------------------------------------------

    def _turn_away(self, group: Group, member_id: str, token: int) -> None:
        """The group is full (KIP-389); a member with an id loses it."""
        if member_id in group.pending:
            del group.pending[member_id]
        elif member_id in group.members:
            group.remove(group.members[member_id])
        self._context.cancel_alarm(f"session/{group.name}/{member_id}")
        self._refuse_join(token, ErrorCode.GROUP_MAX_SIZE_REACHED, "")

    def _join_newcomer(
        self, group: Group, request: JoinGroupRequest, client: str, token: int, now: Micros
    ) -> None:
        """Assigns an id first; membership follows when the member rejoins with it (KIP-394).

        A static member joins at once, and replaces the one that had its instance id (KIP-345).
        """
        instance = request.subscription.instance_id
        member_id = self.new_member_id(instance or request.client_id)
        if not instance:
            self._give_id(group, request, member_id, token, now)
        elif instance in group.static:
            self._replace(group, request, member_id, token, now)
        else:
            self._add(group, request, member_id, client, token, now)

    def _give_id(
        self, group: Group, request: JoinGroupRequest, member_id: str, token: int, now: Micros
    ) -> None:
        group.pending[member_id] = now + request.session_timeout_us
        self._context.set_alarm(
            f"session/{group.name}/{member_id}",
            group.pending[member_id],
            partial(self._pending_expired, group, member_id),
        )
        self._refuse_join(token, ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _add(
        self,
        group: Group,
        request: JoinGroupRequest,
        member_id: str,
        client: str,
        token: int,
        now: Micros,
    ) -> None:
        member = Member(
            member_id,
            request.client_id,
            f"/{client}",
            request.subscription,
            request.protocols,
            request.session_timeout_us,
            request.rebalance_timeout_us,
            join_token=token,
        )
        group.add(member)
        group.leader = group.leader or member.member_id
        if group.state is GroupState.PREPARING and group.previous_state is GroupState.EMPTY:
            group.member_added = True
        # It cannot send heartbeats before its response.
        self._let_expire(group, member, now + self._context.config.new_member_join_timeout_us)
        self._rebalance_or_complete(group, f"{member.member_id} joined", now)

    def _replace(
        self, group: Group, request: JoinGroupRequest, member_id: str, token: int, now: Micros
    ) -> None:
        """A static member rejoins under another member id; the old one is fenced.

        Its generation continues if the group is stable and would choose the same protocol.

        Source: ``GroupMetadataManager.updateStaticMemberThenRebalanceOrCompleteJoin``.
        """
        member = group.members[group.static[request.subscription.instance_id]]
        old = replace(member)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self._answer_join(member, JoinGroupResponse(fenced, member.member_id))
        self._answer_sync(member, SyncGroupResponse(fenced))
        self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        group.replace(member, member_id)
        self.refresh_session(group, member, now)
        member.update(request)
        member.join_token = token
        if group.state is GroupState.STABLE and group.vote() == group.protocol:
            self._context.note(group, f"{member_id} is back as {member.instance_id}")
            self._context.write(
                group.partition,
                (group.record(timestamp_ms(now)),),
                partial(self._replaced, group, member, old),
                now,
            )
        elif group.state is GroupState.PREPARING:
            self._complete_if_joined(group, f"{member_id} is back", now)
        else:
            self._prepare(group, f"{member_id} is back", now)

    def _replaced(
        self, group: Group, member: Member, old: Member, error: ErrorCode, now: Micros
    ) -> None:
        """The group is written with the member's new id, or reverts to the old one."""
        if group.members.get(member.member_id) is not member or member.join_token is None:
            return  # it has left meanwhile, or another rebalance has answered it
        if error is ErrorCode.NONE:
            leads = member.member_id == group.leader
            self._answer_join(member, replace(self._joined(group, member), skip_assignment=leads))
            return
        refusal = JoinGroupResponse(error_for_client(error), "", group.generation)
        self._answer_join(member, refusal)
        self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        group.replace(member, old.member_id)
        member.subscription, member.protocols = old.subscription, old.protocols
        member.session_timeout_us = old.session_timeout_us
        member.rebalance_timeout_us = old.rebalance_timeout_us
        self.refresh_session(group, member, now)

    def _rejoin(
        self, group: Group, member: Member, request: JoinGroupRequest, token: int, now: Micros
    ) -> None:
        unchanged = member.says_the_same_as(request)
        is_leader = member.member_id == group.leader
        settled = (group.state is GroupState.COMPLETING and unchanged) or (
            group.state is GroupState.STABLE and unchanged and not is_leader
        )
        if settled:
            # It has missed the response to its last join.
            self._context.reply(token, self._joined(group, member))
            return
        self._context.reply(member.join_token, None)
        member.update(request)
        member.join_token = token
        self._rebalance_or_complete(group, f"{member.member_id} rejoined", now)

    def _rebalance_or_complete(self, group: Group, reason: str, now: Micros) -> None:
        if group.state is GroupState.PREPARING:
            self._complete_if_joined(group, reason, now)
        else:
            self._prepare(group, reason, now)

    def _complete_if_joined(self, group: Group, reason: str, now: Micros) -> None:
        if group.previous_state is not GroupState.EMPTY and group.all_have_joined():
            self._complete_join(group, reason, now)

    def _prepare(self, group: Group, reason: str, now: Micros) -> None:
        if group.state is GroupState.COMPLETING:
            self._fail_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now)
        self._context.cancel_alarm(f"sync/{group.name}")
        config = self._context.config
        first = group.state is GroupState.EMPTY
        self._context.move(group, GroupState.PREPARING, reason)
        if first:
            delay = config.initial_rebalance_delay_us
            group.member_added = False
            group.initial_delay_us = delay
            group.initial_remaining_us = max(group.rebalance_timeout_us() - delay, 0)
            self._await_joins(group, now + delay, first=True)
        elif group.all_have_joined():
            self._complete_join(group, reason, now)
        else:
            self._await_joins(group, now + group.rebalance_timeout_us(), first=False)

    def _await_joins(self, group: Group, at: Micros, *, first: bool) -> None:
        over = self._initial_delay_over if first else self._joins_timed_out
        self._context.set_alarm(f"join/{group.name}", at, partial(over, group))

    def _initial_delay_over(self, group: Group, now: Micros) -> None:
        if not group.member_added or group.initial_remaining_us == 0:
            self._complete_join(group, "initial delay over", now)
            return
        group.member_added = False
        delay = min(self._context.config.initial_rebalance_delay_us, group.initial_remaining_us)
        group.initial_remaining_us = max(group.initial_remaining_us - group.initial_delay_us, 0)
        group.initial_delay_us = delay
        self._await_joins(group, now + delay, first=True)

    def _joins_timed_out(self, group: Group, now: Micros) -> None:
        self._complete_join(group, "rebalance timeout", now)

    def _complete_join(self, group: Group, reason: str, now: Micros) -> None:
        """Begins the next generation with the joined members, and static members that have not."""
        self._context.cancel_alarm(f"join/{group.name}")
        absent = [m for m in group.members.values() if m.join_token is None]
        for member in absent:
            if not member.instance_id:
                group.remove(member)
                self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        if group.members and not group.elect_joined_leader():
            # Only static members are left, and none has joined: until their sessions expire.
            self._await_joins(group, now + group.rebalance_timeout_us(), first=False)
            return
        group.begin_generation()
        self._context.note(group, reason)
        if group.state is GroupState.EMPTY:
            group.empty_since_ms = timestamp_ms(now)
            self._context.write(group.partition, (group.record(timestamp_ms(now)),), _heed_not, now)
            return
        for member in group.members.values():
            self._answer_join(member, self._joined(group, member))
            self._await_sync(group, member, now)
        if self._rule.has_deadline:
            self._context.set_alarm(
                f"sync/{group.name}",
                now + group.rebalance_timeout_us(),
                partial(self._syncs_timed_out, group, group.generation),
            )

    # -- syncing ----------------------------------------------------------------------------------

    def _await_sync(self, group: Group, member: Member, now: Micros) -> None:
        was_new, member.is_new = member.is_new, False
        group.pending_sync[member.member_id] = None
        if was_new and self._rule.forgets_new_members:
            self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        else:
            self.refresh_session(group, member, now)

    def _write_assignment(self, group: Group, request: SyncGroupRequest, now: Micros) -> None:
        shares = request.assignments
        for member in group.members.values():
            member.assignment = shares.get(member.member_id, ())
        self._context.write(
            group.partition,
            (group.record(timestamp_ms(now)),),
            partial(self._assignment_written, group, group.generation),
            now,
        )

    def _assignment_written(
        self, group: Group, generation: int, error: ErrorCode, now: Micros
    ) -> None:
        if group.state is not GroupState.COMPLETING or group.generation != generation:
            return  # another member has joined meanwhile, and all rejoin
        if error is not ErrorCode.NONE:
            client_error = error_for_client(error)
            self._fail_syncs(group, client_error, now)
            self._rebalance_or_complete(group, f"assignment not written: {error.name}", now)
            return
        self._context.move(group, GroupState.STABLE, "assignment committed")
        for member in group.members.values():
            if member.sync_token is not None:
                self._answer_sync(member, SyncGroupResponse(ErrorCode.NONE, member.assignment))
                self.refresh_session(group, member, now)

    def _fail_syncs(self, group: Group, error: ErrorCode, now: Micros) -> None:
        for member in group.members.values():
            member.assignment = ()
            if member.sync_token is not None:
                self._answer_sync(member, SyncGroupResponse(error))
                self.refresh_session(group, member, now)

    def _syncs_timed_out(self, group: Group, generation: int, now: Micros) -> None:
        late = [group.members[m] for m in group.pending_sync if m in group.members]
        settled = group.state in {GroupState.COMPLETING, GroupState.STABLE}
        if generation != group.generation or not settled or not late:
            return
        for member in late:
            group.remove(member)
            self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        self._prepare(group, "members did not sync in time", now)

    # -- leaving ----------------------------------------------------------------------------------

    def _let_expire(self, group: Group, member: Member, at: Micros) -> None:
        member.session_ends_at = at
        self._context.set_alarm(
            f"session/{group.name}/{member.member_id}",
            at,
            partial(self._session_expired, group, member),
        )

    def _session_expired(self, group: Group, member: Member, now: Micros) -> None:
        waits = member.join_token is not None or member.sync_token is not None
        if waits and not member.is_new:
            return  # its request is parked; the session starts with the response
        self._remove(group, member, f"session of {member.member_id} expired", now)

    def _pending_expired(self, group: Group, member_id: str, now: Micros) -> None:
        self._drop_pending(group, member_id, now)

    def _drop_pending(self, group: Group, member_id: str, now: Micros) -> None:
        del group.pending[member_id]
        self._context.cancel_alarm(f"session/{group.name}/{member_id}")
        if group.state is GroupState.PREPARING:
            self._rebalance_or_complete(group, f"{member_id} never joined", now)

    def _remove(self, group: Group, member: Member, reason: str, now: Micros) -> None:
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        self._answer_join(member, JoinGroupResponse(unknown, member.member_id))
        self._answer_sync(member, SyncGroupResponse(unknown))
        group.remove(member)
        self._context.cancel_alarm(f"session/{group.name}/{member.member_id}")
        self._rebalance_or_complete(group, reason, now)

    # -- answers ----------------------------------------------------------------------------------

    def _joined(self, group: Group, member: Member) -> JoinGroupResponse:
        roster = group.roster() if member.member_id == group.leader else ()
        return JoinGroupResponse(
            ErrorCode.NONE, member.member_id, group.generation, group.protocol, group.leader, roster
        )

    def _answer_join(self, member: Member, response: JoinGroupResponse) -> None:
        self._context.reply(member.join_token, response)
        member.join_token = None

    def _answer_sync(self, member: Member, response: SyncGroupResponse) -> None:
        self._context.reply(member.sync_token, response)
        member.sync_token = None

    def _refuse_join(self, token: int, error: ErrorCode, member_id: str) -> None:
        self._context.reply(token, JoinGroupResponse(error, member_id))


def _heed_not(_error: ErrorCode, _now: Micros) -> None:
    """Ignores a failed write of an empty group: its next member finds it again."""
