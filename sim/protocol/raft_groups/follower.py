"""A member's log: appends of a follower, and durability.

Membership is read from the log: every appended batch is checked for it, and truncation restores the
membership before.

Left out: snapshots (a follower behind the leader's log start restarts its log there).

Source: Raft, sections 5.3 and 6; Redpanda's ``raft/{consensus,configuration_manager}.cc``.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from sim.errors import CorruptRecord
from sim.ids import LeaderEpoch, NodeId, Offset
from sim.protocol.broker.raft_storage import CommittedMembership, RaftVote
from sim.protocol.messages.raft_groups import RaftAnswer, RaftAppend, RaftAppendResponse
from sim.protocol.ports import Batch
from sim.protocol.raft_groups.member import RaftMember
from sim.protocol.raft_groups.membership import Nodes
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    AGREED,
    FlushLog,
    PersistedState,
    PersistVote,
    RaftConfig,
    RaftEffect,
    RaftRecords,
    RaftRules,
    ReplyToMember,
    StartLearned,
    Truncated,
    VisibleMoved,
    Wrote,
    term_before,
)
from sim.units import NEVER, Micros


class _OpenAppend(NamedTuple):
    """An append whose response waits until the log is durable up to its end."""

    token: int
    term: LeaderEpoch
    end: Offset
    generation: int


class RaftFollowing(RaftMember):
    """The follower's part; :class:`~sim.protocol.raft_groups.group.RaftGroup` leads.

    Args:
        replica: The replica whose log this is.
        founders: See :class:`~sim.protocol.raft_groups.member.RaftMember`.
        config: Settings.
        records: Makes and reads the control records of the log.
        unit: Draws the jitter of elections, uniform in [0, 1).
        memory: State persisted before the restart.
        rules: Rules of votes and commits.
    """

    def __init__(
        self,
        replica: RaftReplica,
        founders: Nodes,
        config: RaftConfig,
        records: RaftRecords,
        unit: Callable[[], float],
        memory: PersistedState,
        rules: RaftRules,
    ) -> None:
        super().__init__(replica, founders, config, rules, unit, memory)
        self.commit: Offset = replica.high_watermark
        """End of the log that is durable on a majority."""
        self.flushed_end: Offset = 0
        """End of the log that is durable here: unknown when a process starts."""
        self._records = records
        self._flushing = False
        self._flush_to: Offset = 0
        self._generation = 0
        self._dirty_since: Micros = NEVER
        self._open_appends: list[_OpenAppend] = []

    # -- members ----------------------------------------------------------------------------------

    def _read_memberships(self, batches: Iterable[Batch]) -> None:
        """Reads memberships from appended batches: each is in force as soon as it is in the log."""
        for batch in batches:
            if batch.is_control:
                found = self._records.membership_of(batch)
                if found is not None:
                    self.later.append(CommittedMembership(batch.base_offset, found))
                    self._use_latest()

    def _settle(self, out: list[RaftEffect]) -> None:
        """The commit index has advanced: memberships below it are final.

        The committed one is persisted apart, for the log may drop its record.
        """
        before = self.settled.membership
        while self.later and self.later[0].offset < self.commit:
            self.settled = self.later.pop(0)
        if self.settled.membership != before:
            self._remember(out)

    def _drop_memberships(self, end: Offset) -> None:
        """Drops memberships above a truncation."""
        while self.later and self.later[-1].offset >= end:
            self.later.pop()
        self._use_latest()

    # -- following --------------------------------------------------------------------------------

    def on_append_request(
        self, token: int, leader: NodeId, sent: RaftAppend, now: Micros
    ) -> list[RaftEffect]:
        """Handles a leader's append; the response waits for the fsync if it requires one."""
        out: list[RaftEffect] = []
        answer = self.take(leader, sent, now, out)
        if sent.flush and answer.end > self.flushed_end:
            promise = _OpenAppend(token, self.term, answer.end, self._generation)
            self._open_appends.append(promise)
            self._flush_up_to(answer.end, out)
        else:
            out.append(ReplyToMember(token, RaftAppendResponse(answer)))
        return out

    def take(
        self, leader: NodeId, sent: RaftAppend, now: Micros, out: list[RaftEffect]
    ) -> RaftAnswer:
        """Applies a leader's append; a heartbeat has no records."""
        if sent.term < self.term:
            return RaftAnswer(self.partition, self.term)
        assert not (self.is_leader and sent.term == self.term), f"two leaders in {sent.term}"
        if sent.term > self.term or self.leader != leader:
            is_new = sent.term > self.term
            self.enter(sent.term, now, out, leader)
            if is_new:
                out.append(PersistVote(RaftVote(self.term, self.voted_for)))
        self._heard(now)
        log = self.replica.log
        if not self._agrees(sent):
            parts = log.end_offset_for_epoch(min(sent.prev_term, log.latest_epoch))
            return RaftAnswer(self.partition, self.term, parts=parts)
        if not self._append(sent, now, out):
            return RaftAnswer(self.partition, 0)
        end = sent.end
        self.commit = max(self.commit, min(sent.commit, end))
        if self.later:
            self._settle(out)
        visible = min(sent.visible, end)
        if visible > self.replica.high_watermark and self.replica.follower_advance(visible):
            out.append(VisibleMoved(sent.visible))
        if sent.log_start > log.log_start_offset:
            out.append(StartLearned(sent.log_start))
        return RaftAnswer(self.partition, self.term, end, min(end, self.flushed_end))

    def _agrees(self, sent: RaftAppend) -> bool:
        """True if this log has the record before the leader's.

        Records below a log start were committed, on every log that starts there or later.
        """
        log = self.replica.log
        offset = sent.prev_offset
        if offset <= log.log_start_offset:
            return True
        if sent.prev_term == AGREED:
            return offset <= log.log_end_offset
        if sent.prev_term < 0:
            return offset == sent.log_start
        return offset <= log.log_end_offset and term_before(log, offset) == sent.prev_term

    def _append(self, sent: RaftAppend, now: Micros, out: list[RaftEffect]) -> bool:
        """Writes new records; returns true if the log then ends as the leader's does.

        It does not where damage on the platter prevents a truncation.
        """
        log = self.replica.log
        if sent.prev_term == -1 and sent.prev_offset > log.log_start_offset:
            # The leader has deleted what is below, and this log diverges from it.
            self._cut(sent.prev_offset, out, restart=True)
        new = [b for b in sent.batches if not self._has(b)]
        if not new:
            return True
        base = new[0].base_offset
        if base < log.log_end_offset:
            self._cut(base, out)
            if log.log_end_offset > base:
                return False
        log.append_as_follower(new)
        self._read_memberships(new)
        out.append(Wrote(tuple(new), as_leader=False))
        self._note_unflushed(now, out)
        return True

    def _has(self, batch: Batch) -> bool:
        end = batch.last_offset + 1
        log = self.replica.log
        return end <= log.log_end_offset and (
            end <= log.log_start_offset or term_before(log, end) == batch.leader_epoch
        )

    def _cut(self, offset: Offset, out: list[RaftEffect], *, restart: bool = False) -> None:
        replica, log = self.replica, self.replica.log
        before, high_watermark = log.log_end_offset, replica.high_watermark
        start = log.log_start_offset
        if restart:
            log.truncate_fully_and_start_at(offset)
            replica.high_watermark = offset
            self.later.clear()
        else:
            try:
                replica.truncate_to(offset)
            except CorruptRecord:
                # Producer state is rebuilt as far as the log could be read, which is now its end.
                if log.log_end_offset == before:
                    return
        self._generation += 1
        self.flushed_end = min(self.flushed_end, log.log_end_offset)
        self._flush_to = min(self._flush_to, log.log_end_offset)
        self.commit = min(self.commit, log.log_end_offset)
        self._drop_memberships(log.log_end_offset)
        out.append(
            Truncated(before, log.log_end_offset, high_watermark, start, log.log_start_offset)
        )

    # -- durability -------------------------------------------------------------------------------

    def _flush_up_to(self, end: Offset, out: list[RaftEffect]) -> None:
        self._flush_to = max(self._flush_to, end)
        self._flush(out)

    def _flush(self, out: list[RaftEffect]) -> None:
        """Begins an fsync, one at a time; later ones are combined into the next."""
        if self._flushing or self._flush_to <= self.flushed_end:
            return
        self._flushing = True
        self._dirty_since = NEVER
        out.append(FlushLog(self.replica.log.log_end_offset, self._generation))

    def flushed(self, up_to: Offset, generation: int, now: Micros) -> list[RaftEffect]:
        """An fsync is done."""
        out: list[RaftEffect] = []
        self._flushing = False
        if generation == self._generation:
            self.flushed_end = max(self.flushed_end, up_to)
        promises, self._open_appends = self._open_appends, []
        for promise in promises:
            is_kept = (promise.term, promise.generation) == (self.term, self._generation)
            if is_kept and promise.end > self.flushed_end:
                self._open_appends.append(promise)
                continue
            # An open append of a former term, or of records truncated since, does not count.
            answer = RaftAnswer(self.partition, self.term)
            if is_kept:
                answer = RaftAnswer(self.partition, self.term, promise.end, promise.end)
            elif promise.term == self.term:
                answer = RaftAnswer(self.partition, 0)
            out.append(ReplyToMember(promise.token, RaftAppendResponse(answer)))
        if self.is_leader:
            self._advance(now, out)
        self._flush(out)
        return out

    def _advance(self, now: Micros, out: list[RaftEffect]) -> None:
        """Hook: a leader's own disk has more."""
        raise NotImplementedError

    def _note_unflushed(self, now: Micros, out: list[RaftEffect]) -> None:
        """Notes a write without a waiting request: it is flushed by size, or by age."""
        log = self.replica.log
        if self._dirty_since == NEVER:
            self._dirty_since = now
        unflushed = max(self.flushed_end, self._flush_to, log.log_start_offset)
        if log.bytes_between(unflushed, log.log_end_offset) >= self.config.flush_bytes:
            self._flush_up_to(log.log_end_offset, out)

    def _flush_old(self, now: Micros, out: list[RaftEffect]) -> None:
        """Source: ``raft_replica_max_flush_delay_ms``; checked with every heartbeat."""
        end = self.replica.log.log_end_offset
        if self._dirty_since + self.config.flush_delay_us <= now and self.flushed_end < end:
            self._flush_up_to(end, out)
