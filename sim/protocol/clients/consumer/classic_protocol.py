"""Membership of the classic group protocol: join, sync, heartbeats, leave.

Before it rejoins, a member commits; an eager one also revokes all its partitions, a cooperative one
keeps them and reads on until it learns which are no longer its own, revokes those, and rejoins so
that they can be assigned to others (KIP-429). A static member sends no LeaveGroup. Left out:
KIP-848.

Source: ``AbstractCoordinator``, ``ConsumerCoordinator``, ``Heartbeat``; KIP-62, KIP-345, KIP-394.
"""

from collections.abc import Callable
from enum import Enum
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import ASSIGNORS, COOPERATIVE, Assignments
from sim.protocol.assignors.subscription import NO_GENERATION, Subscription, Topics
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.coordinator_lookup import CoordinatorFinder
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.messages.base import Response
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.units import LONG_AGO, SECOND, Micros

_JOIN_LAPSE_US: Micros = 5 * SECOND
"""Timeout of a join in addition to the rebalance timeout."""

_UNKNOWN_HERE = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION})

_JOINS_AT_ONCE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)


class MemberState(Enum):
    """State of the member."""

    UNJOINED = "unjoined"
    PREPARING = "preparing rebalance"
    COMPLETING = "completing rebalance"
    STABLE = "stable"


class ConsumerMembership:
    """One consumer's membership of its group.

    ``prepare`` is called once before each rebalance, to commit and revoke partitions, with a
    callback; ``assigned`` with the partitions of each new generation, at a poll, and returns true
    if it revoked any; ``owned`` returns the member's partitions; ``polls`` is true while the
    application is inside poll().
    """

    def __init__(
        self,
        link: ConsumerLink,
        metadata: ConsumerMetadata,
        finder: CoordinatorFinder,
        client_id: str,
        *,
        prepare: Callable[[Callable[[Micros], None], Micros], None],
        assigned: Callable[[tuple[TopicPartition, ...], Micros], bool],
        owned: Callable[[], tuple[TopicPartition, ...]],
        polls: Callable[[], bool],
    ) -> None:
        self.state = MemberState.UNJOINED
        self.member_id = ""
        self.generation = -1
        self._protocol = ""
        """Assignor of the generation."""
        self._link = link
        self._metadata = metadata
        self._finder = finder
        self._client_id = client_id
        self._prepare = prepare
        self._assigned = assigned
        self._owned = owned
        self._polls = polls
        self._arrived: tuple[TopicPartition, ...] | None = None
        """An assignment for the next poll."""
        self._remembered: tuple[TopicPartition, ...] = ()
        """The last assignment, which the sticky assignor remembers."""
        self.completed_generation = NO_GENERATION
        """Generation of the last assignment; ``ConsumerGroupMetadata`` has it."""
        self._rejoin_needed = True
        self._joining = False
        self._prepared = False
        self._failures = 0
        self._not_before: Micros = LONG_AGO
        self._heard_at: Micros = LONG_AGO
        self._heartbeat_open = False
        self._overdue = False
        """True if a heartbeat waits for its thread, or for a poll."""
        self._led: Topics | None = None
        """Topics of the assignment; ``None`` unless this member is the leader."""
        self._to_assign: JoinGroupResponse | None = None
        self._joined_topics: tuple[str, ...] = ()
        """Subscription with which it last joined."""
        self._awaited = -1
        """Version of the metadata that it waits to see replaced before it joins; -1: none."""
        metadata.on_change.append(self._on_metadata)

    @property
    def may_commit(self) -> bool:
        """True if it is a member of this generation at the coordinator."""
        return self.state is MemberState.STABLE

    @property
    def is_member(self) -> bool:
        """True if it has a generation, also while the group rebalances."""
        return self.generation >= 0

    @property
    def arrived(self) -> tuple[TopicPartition, ...] | None:
        """Assignment that the next poll takes over; ``None`` without one."""
        return self._arrived if self.state is MemberState.STABLE else None

    def retries_commit(self, error: ErrorCode) -> bool:
        """True if a commit that was refused for good is sent again: never."""
        del error
        return False

    def commit_refused(self, error: ErrorCode) -> None:
        """Handles the error of a commit of this generation."""
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif error in _UNKNOWN_HERE:
            self.forget(error)
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self._link.fail(error)

    def expire(self, now: Micros) -> None:
        """``max.poll.interval.ms`` has passed: the heartbeat thread leaves the group (KIP-62)."""
        self.leave(lambda _now: None, now)

    @property
    def rebalancing(self) -> bool:
        """True between the revocation of its partitions and the new assignment."""
        return self._joining or self._prepared

    # -- joining ----------------------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Group part of a poll: finds the coordinator, rejoins if needed, or completes."""
        if self._overdue:
            self._beat(now)
        if self._arrived is not None:
            self._take_over(self._arrived, now)
        if not self._finder.known:
            self._finder.find(now)
            return
        if self._joined_topics != self._metadata.subscribed and self.state is MemberState.STABLE:
            self._rejoin_needed = True
        if not self._rejoin_needed or self._joining or now < self._not_before:
            return
        if self._link.config.pattern and self._awaits_metadata(now):
            return
        self._awaited = -1
        self._joining = True
        if self._prepared:
            self._join(now)
        else:
            self._prepared = True
            self._prepare(self._join, now)

    def _awaits_metadata(self, now: Micros) -> bool:
        """True if newer metadata come first: so that members rejoin once for a new topic.

        Source: ``ConsumerCoordinator.poll``, with ``hasPatternSubscription``.
        """
        if self._awaited < 0 and self._metadata.begin_refresh(now):
            self._awaited = self._metadata.version
        return self._awaited == self._metadata.version

    def request_rejoin(self) -> None:
        """Rejoins at the next poll."""
        self._rejoin_needed = True

    def forget(self, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """The coordinator lost the member: rejoins, after ILLEGAL_GENERATION with its id.

        It prepares again, also in the middle of a rebalance: its partitions are lost.

        Source: ``AbstractCoordinator.resetStateAndRejoin`` (since 2.7.2, 2.8.1: KAFKA-12983).
        """
        if error is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""
        self.generation = -1
        self.state = MemberState.UNJOINED
        self._rejoin_needed = True
        self._prepared = False

    def _join(self, now: Micros) -> None:
        if not self._finder.known:
            self._try_again(now, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        config = self._link.config
        self.state = MemberState.PREPARING
        self._led = None
        request = JoinGroupRequest(
            config.group_id,
            self.member_id,
            self._client_id,
            self._subscription(),
            config.partition_assignment_strategy,
            config.session_timeout_us,
            config.poll_interval_us_max,
        )
        timeout = max(config.request_timeout_us, config.poll_interval_us_max + _JOIN_LAPSE_US)
        self._finder.send_for_group(request, self._on_join, timeout)

    def _subscription(self) -> Subscription:
        config = self._link.config
        strategy = config.partition_assignment_strategy
        self._joined_topics = self._metadata.subscribed
        sticky = "sticky" in strategy
        remembers = sticky or any(name in strategy for name in COOPERATIVE)
        return Subscription(
            self._joined_topics,
            self._owned(),
            self.generation if config.sends_generation else NO_GENERATION,
            config.client_rack,
            config.group_instance_id,
            self._remembered if sticky else (),
            self.completed_generation if remembers else NO_GENERATION,
        )

    def _on_join(self, response: Response | None, error: ErrorCode, now: Micros) -> None:
        assert response is None or isinstance(response, JoinGroupResponse)
        if self.state is not MemberState.PREPARING:
            self._try_again(now, error)  # left meanwhile
        elif response is None or error is not ErrorCode.NONE:
            if error is ErrorCode.MEMBER_ID_REQUIRED and response is not None:
                self.member_id = response.member_id
            elif error is ErrorCode.UNKNOWN_MEMBER_ID:
                self.forget()
            self._try_again(now, error)
        else:
            self._joined(response, now)

    def _joined(self, response: JoinGroupResponse, now: Micros) -> None:
        self.member_id = response.member_id
        self.generation = response.generation
        self._protocol = response.protocol
        self.state = MemberState.COMPLETING
        self._rejoin_needed = False
        self._heard_at = now
        self._heartbeat_open = False
        self._arm_heartbeat(now)
        if response.leader != response.member_id:
            self._sync({}, now)
            return
        self._to_assign = response
        topics = tuple(
            dict.fromkeys(topic for _, said in response.members for topic in said.topics)
        )
        self._metadata.add_topics(topics, now)
        own = self._metadata.subscribed
        if self._metadata.version > 0 and (
            all(topic in own for topic in topics) or self._metadata.knows(topics)
        ):
            self._assign(now)
        else:
            self._metadata.request_update(now)

    def _assign(self, now: Micros) -> None:
        response, self._to_assign = self._to_assign, None
        assert response is not None
        self._led = self._topics_known()
        if response.skip_assignment:
            self._sync({}, now)
        else:
            assign = ASSIGNORS[response.protocol]
            self._sync(assign(dict(response.members), self._metadata.racks), now)

    def _topics_known(self) -> Topics:
        """Topics whose change requires another assignment: with racks only if it has one."""
        racks = self._metadata.racks
        if self._link.config.client_rack:
            return dict(racks)
        return {topic: ((),) * len(placed) for topic, placed in racks.items()}

    def _sync(self, assignments: Assignments, now: Micros) -> None:
        if not self._finder.known:
            self._try_again(now, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        request = SyncGroupRequest(
            self._link.config.group_id,
            self.member_id,
            self.generation,
            assignments,
            self._link.config.group_instance_id,
            self._protocol,
        )
        self._finder.send_for_group(request, partial(self._on_sync, self.generation))

    def _on_sync(
        self, generation: int, response: Response | None, error: ErrorCode, now: Micros
    ) -> None:
        current = self.state is MemberState.COMPLETING and generation == self.generation
        if error is ErrorCode.NONE and current:
            assert isinstance(response, SyncGroupResponse)
            self.state = MemberState.STABLE
            self._failures = 0
            self._arrived = response.assignment
            return
        if error in _UNKNOWN_HERE and current:
            self.forget(error)
        self._try_again(now, error)

    def _take_over(self, partitions: tuple[TopicPartition, ...], now: Micros) -> None:
        """A poll completes the rebalance; revoked partitions require another one."""
        self._arrived = None
        self._joining = self._prepared = False
        if self.state is not MemberState.STABLE:
            return  # out of the group again; the next rebalance revokes its partitions
        self._remembered, self.completed_generation = partitions, self.generation
        if self._assigned(partitions, now):
            self.request_rejoin()

    def _try_again(self, now: Micros, error: ErrorCode) -> None:
        """This attempt to join failed; the next one follows, after a back-off if needed."""
        self._joining = False
        self._to_assign = None
        self._rejoin_needed = True
        self.state = MemberState.UNJOINED
        if error in _JOINS_AT_ONCE or error is ErrorCode.NONE:
            return
        if not error.retriable:
            self._rejoin_needed = False
            self._link.fail(error)
            return
        self._not_before = now + self._link.backoff(self._failures)
        self._failures += 1
        # The poll that this wakes joins, unless the consumer is being closed.
        self._link.set_timer("rejoin", self._not_before, lambda _now: None)

    def _on_metadata(self, now: Micros) -> None:
        if self._to_assign is not None:
            self._assign(now)
        elif self.state is MemberState.STABLE and self._led is not None:
            known = self._topics_known()
            if any(known.get(t) != self._led.get(t) for t in self._joined_topics):
                self.request_rejoin()

    # -- heartbeats -------------------------------------------------------------------------------

    def _arm_heartbeat(self, now: Micros) -> None:
        self._overdue = False
        self._link.set_timer(
            "heartbeat", now + self._link.config.heartbeat_interval_us, self._heartbeat_due
        )

    def _heartbeat_due(self, now: Micros) -> None:
        """The interval has passed: sends the heartbeat as soon as its thread wakes up.

        The thread wakes up every ``retry.backoff.ms``, at a drawn phase. A poll wakes it, and one
        that waits for records ends when a heartbeat is due.

        Source: ``AbstractCoordinator.HeartbeatThread.run``, ``pollHeartbeat``,
        ``ConsumerCoordinator.timeToNextPoll``.
        """
        if self._polls():
            self._beat(now)
            return
        self._overdue = True
        looks_in = int(self._link.unit() * self._link.config.retry_backoff_us)
        self._link.set_timer("heartbeat", now + looks_in, self._beat)

    def _beat(self, now: Micros) -> None:
        self._overdue = False
        if self.state not in {MemberState.COMPLETING, MemberState.STABLE}:
            return  # armed again by the next join
        heard_at = max(self._heard_at, self._finder.found_at)
        if now - heard_at > self._link.config.session_timeout_us:
            self._finder.lose(self._finder.node)
        if not self._finder.known:
            self._finder.find(now)
            self._link.set_timer("heartbeat", now + self._link.config.retry_backoff_us, self._beat)
            return
        self._arm_heartbeat(now)
        if not self._heartbeat_open:
            self._heartbeat_open = True
            config = self._link.config
            request = HeartbeatRequest(
                config.group_id, self.member_id, self.generation, config.group_instance_id
            )
            self._finder.send_for_group(request, partial(self._on_heartbeat, self.generation))

    def _on_heartbeat(
        self,
        generation: int,
        response: Response | None,  # noqa: ARG002 - it says no more than its error
        error: ErrorCode,
        now: Micros,
    ) -> None:
        if generation != self.generation:
            return  # of an earlier membership
        self._heartbeat_open = False
        if error in {ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS}:
            self._heard_at = now
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            if self.state is MemberState.STABLE:
                self.request_rejoin()
        elif error in _UNKNOWN_HERE:
            self.forget(error)
        elif error is not ErrorCode.NONE:
            if not error.retriable:
                self._link.fail(error)
                return
            self._link.set_timer("heartbeat", now + self._link.config.retry_backoff_us, self._beat)

    # -- leaving ----------------------------------------------------------------------------------

    def leave(self, done: Callable[[Micros], None], now: Micros) -> None:
        """Sends LeaveGroup; ``done`` is called at its response, or if it cannot be sent.

        Not for a static member, which may come back.
        """
        member_id = "" if self._link.config.group_instance_id else self.member_id
        self.forget()
        if not member_id or not self._finder.known:
            done(now)
            return
        request = LeaveGroupRequest(self._link.config.group_id, member_id)
        self._finder.send(request, lambda _sender, _response, _error, then: done(then))
