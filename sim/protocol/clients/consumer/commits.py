"""A consumer's offset commits, and their outcomes.

Auto-commit commits, at a poll, the positions of earlier polls, every ``auto.commit.interval.ms``,
before each rebalance and at close. The other modes are of an application that commits after it has
processed a poll's records: it waits for the outcome (``commitSync``), or polls on and is called
back later (``commitAsync``, which is never retried). Left out: offset metadata.

Source: ``ConsumerCoordinator`` (``maybeAutoCommitOffsetsAsync``, ``onJoinPrepare``,
``commitOffsetsAsync``, ``invokeCompletedOffsetCommitCallbacks``, ``OffsetCommitResponseHandler``).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.clients.consumer.classic_protocol import ConsumerMembership
from sim.protocol.clients.consumer.consumer_protocol import ConsumerMembershipManager
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.coordinator_lookup import CoordinatorFinder
from sim.protocol.clients.consumer.positions import ConsumerPositions
from sim.protocol.messages.base import Response
from sim.protocol.messages.group import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.trace.rows.clients import Commits
from sim.units import NEVER, Micros

Offsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]

Done: TypeAlias = Callable[[Micros], None]
"""Callback of a completed commit, with any outcome."""


Callback: TypeAlias = Callable[[Offsets, ErrorCode, Micros], None]
"""Callback of an application for an asynchronous commit."""


_UNAUTHORIZED = frozenset(
    {ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED}
)


@dataclass(frozen=True, slots=True)
class _AsyncCommit:
    """An asynchronous commit."""

    offsets: Offsets
    callback: Callback


@dataclass(slots=True)
class _SyncCommit:
    """A synchronous commit."""

    done: Done
    deadline: Micros
    failures: int = 0


class ConsumerCommits:
    """Commits and fetches of committed offsets of one consumer."""

    def __init__(
        self,
        link: ConsumerLink,
        positions: ConsumerPositions,
        finder: CoordinatorFinder,
        membership: ConsumerMembership | ConsumerMembershipManager,
        name: str,
    ) -> None:
        self.committed: dict[TopicPartition, Offset] = {}
        """Last offset acknowledged to this consumer."""
        self._link = link
        self._positions = positions
        self._finder = finder
        self._membership = membership
        self._name = name
        self.refused = ErrorCode.NONE
        """Error of the last ``commitSync`` that the client may not commit; NONE without one."""
        self._next_auto_at: Micros = NEVER
        self._sync: _SyncCommit | None = None
        self._unsent: list[_AsyncCommit] = []
        """Asynchronous commits that wait for a coordinator."""
        self._completed: list[tuple[_AsyncCommit, ErrorCode]] = []
        """Asynchronous commits whose callback is due."""
        finder.on_answer = self._on_coordinator
        self._fetching = False
        self._fetch_failures = 0

    # -- auto-commit ------------------------------------------------------------------------------

    def begin(self, now: Micros) -> None:
        """New partitions were assigned: the interval begins again."""
        if self._link.config.auto_commits:
            self._arm(now + self._link.config.auto_commit_interval_us)

    def pause(self) -> None:
        """Without partitions there is nothing to commit."""
        self._next_auto_at = NEVER
        self._link.cancel_timer("auto-commit")

    def auto(self, now: Micros) -> None:
        """Commits asynchronously, if the interval has passed and the coordinator is known."""
        if now < self._next_auto_at or not self._finder.known:
            return
        self._arm(now + self._link.config.auto_commit_interval_us)
        self._commit(self._on_auto)

    def _arm(self, at: Micros) -> None:
        self._next_auto_at = at
        # The poll that this wakes does the work.
        self._link.set_timer("auto-commit", at, lambda _now: None)

    def _on_auto(self, error: ErrorCode, now: Micros) -> None:
        again = error.retriable or self._membership.retries_commit(error)
        if again and self._next_auto_at < NEVER:
            soon = now + self._link.config.retry_backoff_us
            self._arm(min(self._next_auto_at, soon))

    # -- asynchronous commits ---------------------------------------------------------------------

    def commit_async(self, callback: Callback, now: Micros) -> None:
        """Commits the returned records once; the application's callback comes at a later poll.

        Without a coordinator the offsets wait for the end of one search for it.
        """
        commit = _AsyncCommit(self._positions.consumed(), callback)
        if not commit.offsets:
            return
        if not self._membership.may_commit:
            self._complete(commit, ErrorCode.UNKNOWN_MEMBER_ID)
        elif self._finder.known:
            self._send_async(commit)
        else:
            self._unsent.append(commit)
            self._finder.find(now)

    def invoke_callbacks(self, now: Micros) -> None:
        """Calls the callbacks of completed commits, in the order of completion."""
        completed, self._completed = self._completed, []
        for commit, error in completed:
            commit.callback(commit.offsets, error, now)

    def _on_coordinator(self, error: ErrorCode, now: Micros) -> None:  # noqa: ARG002 - of a search
        unsent, self._unsent = self._unsent, []
        for commit in unsent:
            if error is ErrorCode.NONE and self._membership.may_commit:
                self._send_async(commit)
            else:
                failed = ErrorCode.UNKNOWN_MEMBER_ID if error is ErrorCode.NONE else error
                self._complete(commit, failed)

    def _send_async(self, commit: _AsyncCommit) -> None:
        def done(error: ErrorCode, _now: Micros) -> None:
            self._completed.append((commit, error))

        self._commit(done, commit.offsets)

    def _complete(self, commit: _AsyncCommit, error: ErrorCode) -> None:
        """It failed before it was sent."""
        group, generation = self._link.config.group_id, self._membership.generation
        for partition, offset, _ in commit.offsets:
            self._note(group, partition, offset, generation, error)
        self._completed.append((commit, error))

    # -- synchronous commits -----------------------------------------------------------------------

    def commit_and_wait(self, done: Done, timeout_us: Micros, now: Micros) -> None:
        """Commits the returned records, with retries of retriable errors until the timeout."""
        self.refused = ErrorCode.NONE
        self._sync = _SyncCommit(done, now + timeout_us)
        self._send_sync(now)

    def give_up(self) -> None:
        """Ends the wait for a commit."""
        self._sync = None
        self._link.cancel_timer("commit")

    def _send_sync(self, now: Micros) -> None:
        sync = self._sync
        if sync is None:
            return
        if not self._membership.may_commit:
            self._finish(now)  # removed from the group meanwhile: the commit cannot succeed
        elif self._finder.known:
            if not self._commit(partial(self._on_sync, sync)):
                self._finish(now)
        else:
            self._finder.find(now)
            self._retry_sync(sync, now)

    def _on_sync(self, sync: _SyncCommit, error: ErrorCode, now: Micros) -> None:
        if self._sync is not sync:
            return
        if error.retriable or self._membership.retries_commit(error):
            self._retry_sync(sync, now)
        else:
            self.refused = error if error in _UNAUTHORIZED else ErrorCode.NONE
            self._finish(now)

    def _retry_sync(self, sync: _SyncCommit, now: Micros) -> None:
        at = now + self._link.backoff(sync.failures)
        sync.failures += 1
        if at > sync.deadline:
            self._finish(now)
        else:
            self._link.set_timer("commit", at, self._send_sync)

    def _finish(self, now: Micros) -> None:
        sync, self._sync = self._sync, None
        assert sync is not None
        self.invoke_callbacks(now)
        sync.done(now)

    # -- the request ------------------------------------------------------------------------------

    def _commit(
        self, then: Callable[[ErrorCode, Micros], None], offsets: Offsets | None = None
    ) -> bool:
        """Sends a commit, of all positions by default; false if there are none."""
        if offsets is None:
            offsets = self._positions.consumed()
        membership = self._membership
        if not membership.may_commit or not offsets:
            return False
        request = OffsetCommitRequest(
            self._link.config.group_id,
            membership.member_id,
            membership.generation,
            offsets,
            self._link.config.group_instance_id,
        )
        self._finder.send_for_group(request, partial(self._on_committed, request, then))
        return True

    def _on_committed(
        self,
        request: OffsetCommitRequest,
        then: Callable[[ErrorCode, Micros], None],
        response: Response | None,  # noqa: ARG002 - it says no more than its error
        error: ErrorCode,
        now: Micros,
    ) -> None:
        for partition, offset, _ in request.offsets:
            self._note(request.group, partition, offset, request.generation, error)
            if error is ErrorCode.NONE:
                self.committed[partition] = offset
        membership = self._membership
        if request.generation == membership.generation:
            membership.commit_refused(error)
        then(error, now)

    def _note(
        self,
        group: str,
        partition: TopicPartition,
        offset: Offset,
        generation: int,
        error: ErrorCode,
    ) -> None:
        name, topic, number = self._name, partition.topic, partition.partition
        self._link.emit(
            Commits.row(
                name, group, topic, number, offset=offset, generation=generation, error=error.name
            )
        )

    # -- committed offsets ------------------------------------------------------------------------

    def fetch_committed(self, _now: Micros) -> None:
        """Fetches the group's offsets, for partitions that begin there."""
        if self._fetching or not self._finder.known or self._link.is_set("offsets"):
            return
        partitions = self._positions.without_committed()
        if not partitions:
            return
        self._fetching = True
        request = OffsetFetchRequest(
            self._link.config.group_id, partitions, require_stable=self._link.config.require_stable
        )
        self._finder.send_for_group(request, partial(self._on_offsets, self._membership.generation))

    def _on_offsets(
        self, generation: int, response: Response | None, error: ErrorCode, now: Micros
    ) -> None:
        self._fetching = False
        if error is ErrorCode.NONE:
            self._fetch_failures = 0
            # Another member may have committed since an earlier generation.
            if generation == self._membership.generation:
                assert isinstance(response, OffsetFetchResponse)
                self._positions.take_committed(response.offsets)
        elif error.retriable:
            wait = self._link.backoff(self._fetch_failures)
            self._fetch_failures += 1
            self._link.set_timer("offsets", now + wait, self.fetch_committed)
        else:
            self._link.fail(error)
