"""Membership of the consumer protocol (KIP-848).

It sends heartbeats, gets its target assignment in their responses, revokes partitions (after a
commit, with auto-commit), adds new ones, and reports that in the next heartbeat. It continues to
read partitions that it keeps. Where the application has a listener, a reconciliation waits for it,
and a fenced member joins again when its listener knows that its partitions are lost. A pattern is
matched by the client, whose next heartbeat has what is new. Left out: regular expressions of the
coordinator.

Source: ``AbstractMembershipManager``, ``ConsumerMembershipManager``,
``AbstractHeartbeatRequestManager``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.coordinator_lookup import CoordinatorFinder
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.consumer_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from sim.protocol.messages.share import ShareGroupHeartbeatResponse
from sim.units import LONG_AGO, Micros

Then: TypeAlias = Callable[[Micros], None]
"""Continuation of a step that the application may take time for."""

_HEARTBEATS = (ConsumerGroupHeartbeatResponse, ShareGroupHeartbeatResponse)

_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class HeartbeatState(Enum):
    """State of the member; Kafka's ``MemberState`` of the client, without transient states."""

    UNSUBSCRIBED = "unsubscribed"
    JOINING = "joining"
    RECONCILING = "reconciling"
    ACKNOWLEDGING = "acknowledging"
    STABLE = "stable"
    FENCED = "fenced"
    """The coordinator does not know it; it rejoins when its application knows what is lost."""
    STALE = "stale"
    """It has left because its application polls too rarely, and rejoins at the next poll."""
    LEFT = "left"


_OUTSIDE = frozenset(
    {
        HeartbeatState.UNSUBSCRIBED,
        HeartbeatState.FENCED,
        HeartbeatState.STALE,
        HeartbeatState.LEFT,
    }
)
"""States without heartbeats."""


@dataclass(frozen=True, slots=True)
class _LocalAssignment:
    """An assignment with a counter: an equal one after a change is another one."""

    number: int
    partitions: tuple[TopicPartition, ...]


_NONE = _LocalAssignment(-1, ())


class Holdings:
    """Port to the partitions of the membership's consumer; each call is one step.

    Args:
        hold: Stops reading these, which keep their positions.
        take: Sets the partitions.
        lose: Removes all partitions, and calls back when the application knows.
        revoke: Commits what these were read for, if anybody does, and calls back at the end.
    """

    def __init__(
        self,
        *,
        hold: Callable[[tuple[TopicPartition, ...]], None],
        take: Callable[[tuple[TopicPartition, ...], Micros], None],
        lose: Callable[[Then, Micros], None],
        revoke: Callable[[tuple[TopicPartition, ...], Then, Micros], None],
    ) -> None:
        self.hold = hold
        self.take = take
        self.lose = lose
        self.revoke = revoke


class ConsumerMembershipManager:
    """One consumer's membership of its group.

    ``member_id`` is the same for the whole process; ``holdings`` are its partitions.
    """

    rebalancing = False
    """Always false: it reads kept partitions on, so a poll never waits for the group."""

    def __init__(
        self,
        link: ConsumerLink,
        finder: CoordinatorFinder,
        member_id: str,
        holdings: Holdings,
        topics: Callable[[], tuple[str, ...]],
    ) -> None:
        self._topics = topics
        self._sent_topics: tuple[str, ...] = ()
        self.member_id = member_id
        self.generation = JOIN_EPOCH
        """The member epoch."""
        self.state = HeartbeatState.UNSUBSCRIBED
        self._link = link
        self._finder = finder
        self._holdings = holdings
        self._current = _NONE
        self._target = _NONE
        self._reconciling = False
        self._life = 0
        """Number of its joins: requests before a new one are ignored."""
        self._in_flight = False
        self._interval_us: Micros = 0
        self._next_at: Micros = LONG_AGO
        self._not_before: Micros = LONG_AGO
        self._failures = 0
        self._sent: _LocalAssignment | None = None
        """Last assignment sent to the coordinator; ``None``: the next heartbeat is full."""

    @property
    def may_commit(self) -> bool:
        """True if it is a member at the coordinator."""
        return self.generation > JOIN_EPOCH

    @property
    def is_member(self) -> bool:
        """True if it has an epoch."""
        return self.generation > JOIN_EPOCH

    @property
    def completed_generation(self) -> int:
        """Epoch of commits: the last one that the coordinator sent (``ConsumerGroupMetadata``)."""
        return self.generation

    @property
    def arrived(self) -> tuple[TopicPartition, ...] | None:
        """Always ``None``: assignments are reconciled, not taken over by a poll."""
        return None

    def retries_commit(self, error: ErrorCode) -> bool:
        """True if a refused commit is sent again, with the present epoch."""
        return error is ErrorCode.STALE_MEMBER_EPOCH and self.may_commit

    def commit_refused(self, error: ErrorCode) -> None:
        """A commit was refused: the next heartbeat gets the reason."""

    # -- at a poll --------------------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Group part of a poll: joins, reconciles."""
        if self.state in {HeartbeatState.UNSUBSCRIBED, HeartbeatState.STALE}:
            self._join()
        self._reconcile(now, can_commit=True)
        self._beat(now)

    def _join(self) -> None:
        self._life += 1
        self.generation = JOIN_EPOCH
        self.state = HeartbeatState.JOINING
        self._target = _NONE
        self._sent = None
        self._in_flight = False

    def expire(self, now: Micros) -> None:
        """``max.poll.interval.ms`` has passed: leaves, and rejoins at the next poll."""
        if self.may_commit and self._finder.known:
            self._say_goodbye(lambda _now: None)
        self._release(HeartbeatState.STALE, now)

    def leave(self, done: Then, now: Micros) -> None:
        """Sends a leaving heartbeat; ``done`` is called at its response, or if it is impossible."""
        is_sent = self.may_commit and self._finder.known
        if is_sent:
            self._say_goodbye(done)
        self._release(HeartbeatState.LEFT, now)
        if not is_sent:
            done(now)

    def _say_goodbye(self, done: Then) -> None:
        self._finder.send(self._goodbye(), lambda _sender, _response, _error, then: done(then))

    def _goodbye(self) -> Request:
        """A static member leaves its place to the next one of its instance id.

        Source: ``ConsumerMembershipManager.leaveGroupEpoch``.
        """
        group, instance = self._link.config.group_id, self._link.config.group_instance_id
        epoch = STATIC_LEAVE_EPOCH if instance else LEAVE_EPOCH
        return ConsumerGroupHeartbeatRequest(group, self.member_id, epoch, instance_id=instance)

    def _release(self, state: HeartbeatState, now: Micros) -> None:
        """Removes all partitions; a fenced member rejoins then."""
        self._life += 1
        self.generation = JOIN_EPOCH
        self.state = state
        self._current = self._target = _NONE
        self._holdings.lose(self._released, now)

    def _released(self, now: Micros) -> None:
        """The application knows that its partitions are lost.

        Source: ``AbstractMembershipManager.transitionToFenced``.
        """
        if self.state is HeartbeatState.FENCED:
            self._join()
            self._beat(now)

    # -- reconciliation ---------------------------------------------------------------------------

    def _on_assignment(self, assignment: tuple[TopicPartition, ...]) -> None:
        if self._target is _NONE or self._target.partitions != assignment:
            self._target = _LocalAssignment(self._target.number + 1, assignment)
        if self._target != self._current:
            self.state = HeartbeatState.RECONCILING
        elif self.state in {HeartbeatState.RECONCILING, HeartbeatState.JOINING}:
            self.state = HeartbeatState.STABLE

    def _reconcile(self, now: Micros, *, can_commit: bool) -> None:
        if self.state is not HeartbeatState.RECONCILING or self._reconciling:
            return
        if self._target == self._current or (self._link.config.auto_commits and not can_commit):
            return
        self._reconciling = True
        target = self._target
        revoked = tuple(p for p in self._current.partitions if p not in target.partitions)
        self._holdings.hold(revoked)
        self._holdings.revoke(revoked, partial(self._revoke_and_assign, target, self._life), now)

    def _revoke_and_assign(self, target: _LocalAssignment, life: int, now: Micros) -> None:
        self._reconciling = False
        if life != self._life or self.state is not HeartbeatState.RECONCILING:
            return  # fenced or left meanwhile
        self._current = target
        self._holdings.take(target.partitions, now)
        self.state = HeartbeatState.ACKNOWLEDGING
        self._beat(now)

    # -- heartbeats -------------------------------------------------------------------------------

    def _beat(self, now: Micros) -> None:
        """Sends a heartbeat if one is due, and schedules the next."""
        if self.state in _OUTSIDE or self._in_flight:
            return
        if not self._finder.known:
            self._finder.find(now)
            self._arm(now + self._link.config.retry_backoff_us)
            return
        at_once = self.state in {HeartbeatState.JOINING, HeartbeatState.ACKNOWLEDGING}
        due = self._not_before if at_once else max(self._not_before, self._next_at)
        if now < due:
            self._arm(due)
            return
        request = self._request()
        self._sent = self._current
        if self.state is HeartbeatState.ACKNOWLEDGING:
            done = self._target == self._current
            self.state = HeartbeatState.STABLE if done else HeartbeatState.RECONCILING
        self._in_flight = True
        self._next_at = now + self._interval_us
        self._finder.send_for_group(request, partial(self._on_heartbeat, self._life))

    def _request(self) -> Request:
        """A full heartbeat for a coordinator that may not know the member; else the changes.

        Source: ``ConsumerHeartbeatRequestManager.HeartbeatState.buildRequestData``.
        """
        config = self._link.config
        before, self._sent_topics = self._sent_topics, self._topics()
        joins = self.state is HeartbeatState.JOINING
        if joins or self._sent is None:
            owned = () if joins else self._current.partitions
            return ConsumerGroupHeartbeatRequest(
                config.group_id,
                self.member_id,
                self.generation,
                config.poll_interval_us_max,
                self._sent_topics,
                config.group_remote_assignor,
                owned,
                config.client_rack,
                config.group_instance_id,
            )
        owned_now = self._current.partitions if self._sent != self._current else None
        return ConsumerGroupHeartbeatRequest(
            config.group_id,
            self.member_id,
            self.generation,
            topics=self._sent_topics if self._sent_topics != before else None,
            owned=owned_now,
            instance_id=config.group_instance_id,
        )

    def _arm(self, at: Micros) -> None:
        self._link.set_timer("heartbeat", at, self._beat)

    def _on_heartbeat(
        self, life: int, response: Response | None, error: ErrorCode, now: Micros
    ) -> None:
        if life != self._life:
            return
        self._in_flight = False
        if isinstance(response, _HEARTBEATS) and error is ErrorCode.NONE:
            self._take(response, now)
        else:
            self._failed(error, now, answered=response is not None)

    def _take(
        self, response: ConsumerGroupHeartbeatResponse | ShareGroupHeartbeatResponse, now: Micros
    ) -> None:
        self._failures = 0
        self._next_at += response.heartbeat_interval_us - self._interval_us
        self._interval_us = response.heartbeat_interval_us
        self.generation = response.member_epoch
        if response.assignment is not None:
            self._on_assignment(response.assignment)
            self._reconcile(now, can_commit=False)
        self._beat(now)

    def _failed(self, error: ErrorCode, now: Micros, *, answered: bool) -> None:
        if error in _FENCED:
            self._release(HeartbeatState.FENCED, now)
            return
        if answered and not error.retriable:
            self._link.fail(error)
            return
        self._sent = None
        self._next_at = now  # HeartbeatRequestState.onFailedAttempt: the interval is not waited for
        if not answered or error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            self._not_before = now + self._link.backoff(self._failures)
            self._failures += 1
        # Otherwise another coordinator is looked up, and gets it at once.
        self._arm(max(self._not_before, now + self._link.config.retry_backoff_us))
