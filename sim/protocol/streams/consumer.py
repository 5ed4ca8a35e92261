"""Consumer of a stream task: polls, processes, and begins the commit of a round.

The application polls, processes the records while outputs are sent, and polls again; the round is
committed after ``commit.interval.ms``, before partitions are revoked and at close. During a commit
the application waits. A failed round is rolled back: its partitions begin again at their committed
offsets.

An eager member commits and gives up everything before it joins. A cooperative one (KIP-429) polls
and processes while the group rebalances, and commits nothing meanwhile; when it learns which
partitions are no longer its own it commits the round, if that has anything of theirs, and only then
gives them up and joins once more. One that has lost its membership rolls the round back. A member
of a consumer-protocol group (KIP-848) does the same, and commits meanwhile: its listener is called
at a poll, and its reconciliation waits for that. Streams has no such members; the application is
KIP-447's.

Left out: an application that stops waiting for a commit; standby tasks, state, punctuation.

Source: ``StreamThread.{runOnce,maybeCommit,handleTaskMigrated}``,
``TaskManager.{handleRevocation,handleLostAll,rebalanceInProgress}``,
``examples.ExactlyOnceMessageProcessor``; KIP-98, KIP-429, KIP-447.
"""

from dataclasses import dataclass
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition
from sim.protocol.clients.consumer.config import ConsumerSetup
from sim.protocol.clients.consumer.consumer import Consumer, ConsumerEvent
from sim.protocol.clients.consumer.consumer_protocol import Then
from sim.protocol.clients.consumer.context import ConsumerEffect
from sim.protocol.clients.consumer.effects import Deliver
from sim.protocol.clients.consumer.positions import Stage
from sim.protocol.clients.consumer.work import OffsetsCommit, WorkEnded, WorkEnding, WorkTaken
from sim.trace.rows.clients import Commits
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class _Callback:
    """A call of the application's rebalance listener that the membership waits for."""

    partitions: tuple[TopicPartition, ...]
    """Revoked, or lost."""
    then: Then


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """Commits of a task."""

    offsets: OffsetsCommit
    commit_interval_us: Micros
    """``commit.interval.ms``."""
    sends_member: bool = True
    """True if offsets in transactions carry the member and its generation (KIP-447)."""
    commits_revoked: bool = True
    """True if it commits before it gives up partitions; false is a defect."""


class TaskConsumer(Consumer):
    """The consumer of one task; ``plan`` has its commits, the rest is a consumer's."""

    def __init__(self, setup: ConsumerSetup, plan: TaskPlan) -> None:
        config = setup.config
        assert config.group_id, "a task's consumer is in a group"
        assert config.enable_auto_commit == (plan.offsets == "auto"), "one of both commits"
        super().__init__(setup)
        self._plan = plan
        self._round = 0
        self._uncommitted: dict[TopicPartition, None] = {}
        """Partitions of which something was processed since the last commit."""
        self._callbacks: list[_Callback] = []
        """Calls of the listener that the next poll makes (KIP-848)."""
        self._due_at: Micros = 0
        self._after_round: Then | None = None
        """Continuation after the end of the round; ``None`` without one."""
        self._said: WorkEnding | None = None
        self._worker_free_at: Micros = 0

    @property
    def is_idle(self) -> bool:
        """True if everything that it has read is processed and committed."""
        return not self._uncommitted and self._after_round is None

    def handle(self, event: ConsumerEvent | WorkEnded, now: Micros) -> list[ConsumerEffect]:
        """Handles an event; returns effects in order."""
        if not isinstance(event, WorkEnded):
            return super().handle(event, now)
        if not self._closed:
            self._on_ended(event, now)
        return self._continue(now)

    @property
    def _is_ending(self) -> bool:
        """True from the end of a round's work until its outcome is known."""
        return self._after_round is not None

    # -- processing -------------------------------------------------------------------------------

    def _poll(self, now: Micros) -> None:
        if self._is_ending or self._ends_before_poll(now):
            return
        super()._poll(now)
        if self._polling and not self._is_ending:
            self._ends_before_poll(now)  # the rebalance that it waited for is complete

    def _ends_before_poll(self, now: Micros) -> bool:
        """Ends a round that is due, or that has anything of a partition which this poll revokes."""
        while self._callbacks:
            callback = self._callbacks.pop(0)
            if self._ends_with(callback, now):
                return True
            callback.then(now)
        return self._ends_with(_Callback(self._to_be_revoked(), _nothing), now) or (
            self._ends_in_time(now)
        )

    def _ends_with(self, callback: _Callback, now: Micros) -> bool:
        """Ends a round that has anything of the partitions of a listener's call.

        It is committed in the generation, or epoch, that takes them away; the call returns then.

        Source: ``TaskManager.handleRevocation``, ``onPartitionsLost``.
        """
        if not any(place in self._uncommitted for place in callback.partitions):
            return False
        if self._membership.is_member and not self._plan.commits_revoked:
            return False
        self._polling = False
        self._end_round(partial(self._called_back, callback), now, self.generation)
        return True

    def _called_back(self, callback: _Callback, now: Micros) -> None:
        """The listener has returned: what it could not commit is not its own any more."""
        for place in callback.partitions:
            self._uncommitted.pop(place, None)
        callback.then(now)
        self._poll_again(now)

    def _to_be_revoked(self) -> tuple[TopicPartition, ...]:
        """Partitions that are not in the assignment which the next poll takes over."""
        arrived = self._membership.arrived
        return () if arrived is None else tuple(p for p in self.assignment() if p not in arrived)

    def _ends_in_time(self, now: Micros) -> bool:
        """Ends a round that is due; not while the group rebalances, when it may not commit.

        Source: ``TaskManager.commitTasksAndMaybeUpdateCommittableOffsets``.
        """
        if not self._uncommitted or now < self._due_at or self._membership.rebalancing:
            return False
        self._polling = False
        self._end_round(self._poll_again, now)
        return True

    def _process(self, count: int, now: Micros) -> None:
        """Processes the polled records outside poll(), or passes them to a worker."""
        fresh = tuple(self._fetcher.collected)
        if self._plan.offsets == "auto":
            self._hand_over(fresh, count, now)
            return
        self._polling = False
        interval = self.config.poll_interval_us_max
        self._link.set_timer("too-long", now + interval, self._polls_too_rarely)
        if self._plan.offsets == "before":
            # A position under validation is in no commit, and none of these records is from there.
            read = dict.fromkeys(piece.partition for piece in fresh)
            places = self._positions.processed()
            offsets = {place: offset for place, offset, _ in places if place in read}
            done = partial(self._committed_before, fresh, count, offsets)
            self._commits.commit_and_wait(done, self.config.api_timeout_us, now)
        else:
            self._work(fresh, count, now)

    def _hand_over(self, fresh: tuple[Deliver, ...], count: int, now: Micros) -> None:
        """Queues polled records for the one worker; the application polls again at once."""
        each = self.config.processing_us
        begins = max(now, self._worker_free_at)
        self._worker_free_at = begins + count * each
        self._link.effects.append(WorkTaken(self._round, fresh, begins, each))

    def _committed_before(
        self,
        fresh: tuple[Deliver, ...],
        count: int,
        offsets: dict[TopicPartition, Offset],
        now: Micros,
    ) -> None:
        committed = self._commits.committed
        if all(committed.get(place, -1) >= offset for place, offset in offsets.items()):
            self._work(fresh, count, now)
        else:
            self._roll_back(now)

    def _work(self, fresh: tuple[Deliver, ...], count: int, now: Micros) -> None:
        each = self.config.processing_us
        self._link.effects.append(WorkTaken(self._round, fresh, now, each))
        if self._plan.offsets != "before":
            if not self._uncommitted:
                self._arm_round(now)
            self._uncommitted.update(dict.fromkeys(piece.partition for piece in fresh))
        if each:
            self._link.set_timer("processed", now + count * each, self._processed)
        else:
            self._processed(now)

    def _processed(self, now: Micros) -> None:
        self._link.cancel_timer("too-long")
        self._polling = True
        self._ends_in_time(now)

    # -- rounds -----------------------------------------------------------------------------------

    def _arm_round(self, now: Micros) -> None:
        self._due_at = now + self._plan.commit_interval_us
        # The poll that this wakes commits.
        self._link.set_timer("round", self._due_at, lambda _now: None)

    def _end_round(self, then: Then, now: Micros, generation: int | None = None) -> None:
        """Commits the processed records, or rolls back if this member has lost its generation.

        Args:
            then: Continues after the end of the round.
            now: Of the host's clock.
            generation: Of the commit; by default that of the last assignment.
        """
        self._after_round = then
        self._link.cancel_timer("round")
        interval = self.config.poll_interval_us_max
        self._link.set_timer("too-long", now + interval, self._polls_too_rarely)
        inside = self._plan.offsets == "inside"
        sends = inside and self._plan.sends_member
        if generation is None:
            generation = self._membership.completed_generation
        self._said = said = WorkEnding(
            self._round,
            commits=self._membership.is_member,
            group=self.config.group_id,
            member=self.member_id if sends else "",
            generation=generation if sends else -1,
            offsets=self._positions.processed() if inside else (),
            instance=self.config.group_instance_id if sends else "",
        )
        self._link.effects.append(said)

    def _on_ended(self, event: WorkEnded, now: Micros) -> None:
        self._round = event.round + 1
        then, self._after_round = self._after_round, None
        said, self._said = self._said, None
        if event.ok and then is not None and said is not None:
            if self._plan.offsets == "after":
                self._after_round = then
                done = partial(self._committed_after, then)
                self._commits.commit_and_wait(done, self.config.api_timeout_us, now)
                return
            self._uncommitted.clear()
            self._note_commits(said)
            self._link.cancel_timer("too-long")
            then(now)
            return
        if event.is_fenced:
            # As a task that was migrated: leave the group and come back as a new member.
            self._membership.expire(now)
        self._roll_back(now)
        if then is not None:
            then(now)

    def _committed_after(self, then: Then, now: Micros) -> None:
        self._after_round = None
        self._link.cancel_timer("too-long")
        committed = self._commits.committed
        places = self._positions.processed()
        self._uncommitted = {p: None for p, offset, _ in places if committed.get(p, -1) < offset}
        if self._uncommitted:
            self._arm_round(now)
        then(now)

    def _note_commits(self, said: WorkEnding) -> None:
        for place, offset, _ in said.offsets:
            self._commits.committed[place] = offset
            self._link.emit(
                Commits.row(
                    self.name,
                    said.group,
                    *place,
                    offset=offset,
                    generation=said.generation,
                    error=ErrorCode.NONE.name,
                )
            )

    def _roll_back(self, _now: Micros) -> None:
        """Seeks to the committed offsets (``resetToLastCommittedPositions``)."""
        self._uncommitted.clear()
        for timer in ("processed", "round", "too-long"):
            self._link.cancel_timer(timer)
        self._fetcher.forget()
        places = tuple(self._positions.all())
        if places:
            # Revoked first: positions of kept partitions would stay.
            self._positions.assign((), Stage.AWAITS_COMMITTED)
            self._positions.assign(places, Stage.AWAITS_COMMITTED)
            if self.generation >= 0:
                self._note_assignment()
        self._polling = True

    def _prepare(self, then: Then, now: Micros) -> None:
        """Before a rebalance: ends the round, then gives up all partitions.

        A cooperative member continues its round, unless it has lost its partitions.
        """
        if not self._uncommitted or self._keeps_partitions:
            super()._prepare(then, now)
            return
        if self.config.cooperates:
            self._polling = False
        self._end_round(partial(self._give_up, then), now)

    @property
    def _keeps_partitions(self) -> bool:
        """True if a rebalance leaves it its partitions until it has another assignment."""
        return self.config.cooperates and self._membership.is_member

    def _commit_before(self, revoked: tuple[TopicPartition, ...], then: Then, now: Micros) -> None:
        if self._plan.offsets == "auto":
            super()._commit_before(revoked, then, now)
        else:
            self._callbacks.append(_Callback(revoked, then))

    def _lost(self, then: Then, now: Micros) -> None:
        lost = self.assignment()
        if self._plan.offsets == "auto":
            super()._lost(then, now)
        else:
            super()._lost(_nothing, now)
            self._callbacks.append(_Callback(lost, then))

    def _give_up(self, then: Then, now: Micros) -> None:
        if not self._keeps_partitions:
            self._uncommitted.clear()
        super()._give_up(then, now)

    def _close(self, now: Micros) -> None:
        if self._uncommitted and self._after_round is None and not self._link.is_set("close"):
            self._polling = False
            self._link.cancel_timer("processed")
            self._end_round(self._close_clean, now)
        elif self._after_round is None:
            super()._close(now)
        else:
            self._after_round = self._close_clean

    def _close_clean(self, now: Micros) -> None:
        self._uncommitted.clear()
        super()._close(now)


def _nothing(_now: Micros) -> None:
    """Continues nothing."""
