"""A consumer as a member of a group: it joins, is assigned or assigns, sends heartbeats, leaves.

Before it joins again, a member commits; an eager one also gives up all its partitions, a
cooperative one keeps them and goes on reading until it is told which of them are not its own any
more, gives those up, and joins once more so that they can be given to others (KIP-429). A member
with an instance id does not say that it leaves. Left out: KIP-848.

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
"""A join may take the rebalance timeout and this long."""

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
    """Where the member stands."""

    UNJOINED = "unjoined"
    PREPARING = "preparing rebalance"
    COMPLETING = "completing rebalance"
    STABLE = "stable"


class ConsumerMembership:
    """One consumer's membership of its group.

    ``prepare`` is called once before each rebalance, to commit and give up partitions, with what to
    call when that is done; ``assigned`` with the partitions of each new generation, at a poll, and
    says whether partitions were given up by it; ``owned`` says what the member has; ``polls``
    whether the application is inside poll().
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
        self._link = link
        self._metadata = metadata
        self._finder = finder
        self._client_id = client_id
        self._prepare = prepare
        self._assigned = assigned
        self._owned = owned
        self._polls = polls
        self._arrived: tuple[TopicPartition, ...] | None = None
        """An assignment that the next poll takes over."""
        self._remembered: tuple[TopicPartition, ...] = ()
        """The last assignment; the sticky assignor's memory."""
        self._remembered_generation = NO_GENERATION
        self._rejoin_needed = True
        self._joining = False
        self._prepared = False
        self._failures = 0
        self._not_before: Micros = LONG_AGO
        self._heard_at: Micros = LONG_AGO
        self._heartbeat_open = False
        self._overdue = False
        """A heartbeat waits until its thread looks, or the application polls."""
        self._led: Topics | None = None
        """Topics the assignment was made from; ``None`` unless this member made it."""
        self._to_assign: JoinGroupResponse | None = None
        metadata.on_change.append(self._on_metadata)

    @property
    def may_commit(self) -> bool:
        """Whether the coordinator takes it for a member of this generation."""
        return self.state is MemberState.STABLE

    def retries_commit(self, error: ErrorCode) -> bool:
        """Whether a commit that was refused for good is sent again: it is not."""
        del error
        return False

    def commit_refused(self, error: ErrorCode) -> None:
        """A commit of this generation was refused: heed what that says of the membership."""
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif error in _UNKNOWN_HERE:
            self.forget(error)
        elif error is ErrorCode.FENCED_INSTANCE_ID:
            self._link.fail(error)

    def expire(self, now: Micros) -> None:
        """``max.poll.interval.ms`` is over: the heartbeat thread leaves the group (KIP-62)."""
        self.leave(lambda _now: None, now)

    @property
    def rebalancing(self) -> bool:
        """It has begun to give up its partitions, and has no new ones yet."""
        return self._joining or self._prepared

    # -- joining ----------------------------------------------------------------------------------

    def progress(self, now: Micros) -> None:
        """Do what a poll does for the group: find the coordinator, join if needed, or be done."""
        if self._overdue:
            self._beat(now)
        if self._arrived is not None:
            self._take_over(self._arrived, now)
        if not self._finder.known:
            self._finder.find(now)
            return
        if not self._rejoin_needed or self._joining or now < self._not_before:
            return
        self._joining = True
        if self._prepared:
            self._join(now)
        else:
            self._prepared = True
            self._prepare(self._join, now)

    def request_rejoin(self) -> None:
        """Join again at the next poll."""
        self._rejoin_needed = True

    def forget(self, error: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> None:
        """The coordinator does not know us: come back, after ILLEGAL_GENERATION as who we were."""
        if error is not ErrorCode.ILLEGAL_GENERATION:
            self.member_id = ""
        self.generation = -1
        self.state = MemberState.UNJOINED
        self._rejoin_needed = True

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
        self._finder.ask(request, self._on_join, timeout)

    def _subscription(self) -> Subscription:
        config = self._link.config
        strategy = config.partition_assignment_strategy
        sticky = "sticky" in strategy
        remembers = sticky or any(name in strategy for name in COOPERATIVE)
        return Subscription(
            config.topics,
            self._owned(),
            self.generation if config.tells_generation else NO_GENERATION,
            config.client_rack,
            config.group_instance_id,
            self._remembered if sticky else (),
            self._remembered_generation if remembers else NO_GENERATION,
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
        own = self._link.config.topics
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
        """What another assignment is to be made for if it changes: racks only if it has one."""
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
        )
        self._finder.ask(request, partial(self._on_sync, self.generation))

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
        """A poll is done with the rebalance; what it gave up is for the next one."""
        self._arrived = None
        self._joining = self._prepared = False
        if self.state is not MemberState.STABLE:
            return  # out of the group again; the next rebalance gives up what it has
        self._remembered, self._remembered_generation = partitions, self.generation
        if self._assigned(partitions, now):
            self.request_rejoin()

    def _try_again(self, now: Micros, error: ErrorCode) -> None:
        """This attempt to join failed; the next one follows, after a back-off if need be."""
        self._joining = False
        self._to_assign = None
        self._rejoin_needed = True
        self.state = MemberState.UNJOINED
        if error in _JOINS_AT_ONCE or error is ErrorCode.NONE:
            return
        if not error.retriable:
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
            if any(known.get(t) != self._led.get(t) for t in self._link.config.topics):
                self.request_rejoin()

    # -- heartbeats -------------------------------------------------------------------------------

    def _arm_heartbeat(self, now: Micros) -> None:
        self._overdue = False
        self._link.set_timer(
            "heartbeat", now + self._link.config.heartbeat_interval_us, self._heartbeat_due
        )

    def _heartbeat_due(self, now: Micros) -> None:
        """The interval is over: send the heartbeat as soon as its thread sees that.

        The thread looks every ``retry.backoff.ms``; where that falls drifts with each look, so it
        is drawn. A poll wakes it, and one that waits for records ends when a heartbeat is due.

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
            self._finder.ask(request, partial(self._on_heartbeat, self.generation))

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
        """Tell the coordinator that we go; ``done`` is called when it knows, or cannot be told.

        It is not told of a static member, which may come back.
        """
        member_id = "" if self._link.config.group_instance_id else self.member_id
        self.forget()
        if not member_id or not self._finder.known:
            done(now)
            return
        request = LeaveGroupRequest(self._link.config.group_id, member_id)
        self._finder.send(request, lambda _sender, _response, _error, then: done(then))
