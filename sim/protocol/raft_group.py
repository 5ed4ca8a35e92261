"""A partition's Raft group as one member sees it: what a leader sends, and what a follower does.

The leader appends, and sends what is new to every follower at the same time as it flushes. One
append is under way to each follower; what comes meanwhile goes with the next. What is asked for
with acks=all is flushed by each member before it counts, and committed when a majority has it; what
is asked for with less is flushed a little later, and may be read once a majority has it.

Left out: changes of the membership; snapshots (a follower that lies behind the leader's log start
is told to start there).

Source: Raft, sections 5.3 and 5.4; Redpanda's ``raft/{consensus,replicate_batcher}.cc``.
"""

from collections.abc import Callable
from typing import NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset
from sim.protocol.messages_raft import (
    RaftAnswer,
    RaftAppend,
    RaftAppendRequest,
    RaftAppendResponse,
    RaftTimeoutNowRequest,
)
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.protocol.raft_member import RaftMember
from sim.protocol.raft_replica import RaftReplica
from sim.protocol.raft_state import (
    AGREED,
    RULES,
    Answer,
    Ask,
    Cut,
    FlushLog,
    Led,
    PersistVote,
    RaftConfig,
    RaftEffect,
    RaftRole,
    RaftRules,
    RaftVote,
    StartLearned,
    VisibleMoved,
    Wrote,
    term_before,
)
from sim.units import NEVER, Micros, timestamp_ms


class RaftFollower:
    """A follower as its leader knows it."""

    __slots__ = ("failed", "flushed", "last_heard", "match", "next_offset", "open")

    def __init__(self, next_offset: Offset, now: Micros) -> None:
        self.next_offset = next_offset
        """Where the next records for it begin, as far as the leader believes."""
        self.match: Offset = -1
        """Up to here it has the leader's log."""
        self.flushed: Offset = -1
        """And up to here on its disk."""
        self.open = False
        """Whether an append is under way."""
        self.failed = False
        """Whether the last one was lost: the next heartbeat tries again."""
        self.last_heard: Micros = now

    def go_back(self, offset: Offset) -> None:
        """Its log parts from the leader's above the offset; what it once had, it may have lost."""
        self.next_offset = offset
        self.match = min(self.match, offset)
        self.flushed = min(self.flushed, offset)


class _Promise(NamedTuple):
    """An append that is answered when the log is durable up to its end."""

    token: int
    term: LeaderEpoch
    end: Offset
    generation: int


class RaftGroup(RaftMember):
    """One member of the group of one partition.

    Args:
        replica: The replica whose log this is.
        voters: Members in the order of the assignment, this one among them.
        config: Settings.
        opening: Makes the batch with which a leader opens its term: (node, voters, milliseconds).
        unit: Draws the jitter of elections, uniform in [0, 1).
        vote: What was remembered from before the restart.
        rules: What may be voted for and committed.
    """

    def __init__(
        self,
        replica: RaftReplica,
        voters: tuple[NodeId, ...],
        config: RaftConfig,
        opening: Callable[[NodeId, tuple[NodeId, ...], int], Batch],
        unit: Callable[[], float],
        vote: RaftVote,
        rules: RaftRules = RULES,
    ) -> None:
        super().__init__(replica, voters, config, rules, unit, vote)
        self.followers: dict[NodeId, RaftFollower] = {}
        self.commit: Offset = replica.high_watermark
        """Durable on a majority."""
        self.flushed_end: Offset = 0
        """Durable here: nothing is known to be when a process starts."""
        self.quorum_end: Offset = 0
        """End of the last write that has to be durable on a majority."""
        self.heir: NodeId = NO_LEADER
        """Who is being handed the leadership; -1 if nobody is."""
        self._heir_until: Micros = NEVER
        self._opening = opening
        self._term_start: Offset = 0
        self._flushing = False
        self._flush_to: Offset = 0
        self._generation = 0
        self._dirty_since: Micros = NEVER
        self._promises: list[_Promise] = []

    # -- leading ----------------------------------------------------------------------------------

    def _lead(self, now: Micros, out: list[RaftEffect]) -> None:
        log = self.replica.log
        self.role = RaftRole.LEADER
        self.leader = self.node
        self.deadline = NEVER
        self._term_start = log.log_end_offset
        self.followers = {
            voter: RaftFollower(log.log_end_offset, now)
            for voter in self.voters
            if voter != self.node
        }
        self.replica.lead(self.term)
        out.append(Led())

    def open_term(self, now: Micros) -> list[RaftEffect]:
        """Write the term's first record, so that what is below it can be committed.

        The host asks for it at once when it hears :class:`Led`.
        """
        out: list[RaftEffect] = []
        log = self.replica.log
        batch = self._opening(self.node, self.voters, timestamp_ms(now))
        appended = log.append_as_leader(batch, self.term, timestamp_ms(now))
        assert appended.error is ErrorCode.NONE, f"{self.partition}: {appended}"
        assert appended.batch is not None, "a new batch is written"
        out.append(Wrote((appended.batch,), as_leader=True))
        self._written(now, out, durable=True)
        return out

    def _stop_leading(self) -> None:
        self.followers = {}
        self.heir = NO_LEADER

    def written(self, now: Micros, *, durable: bool) -> list[RaftEffect]:
        """The leader has appended; ``durable``: acks=all was asked for."""
        out: list[RaftEffect] = []
        self._written(now, out, durable=durable and not self.config.write_caching)
        return out

    def _written(self, now: Micros, out: list[RaftEffect], *, durable: bool) -> None:
        if durable:
            self.quorum_end = self.replica.log.log_end_offset
            self._flush_up_to(self.quorum_end, out)
        else:
            self._soil(now, out)
        for voter, follower in self.followers.items():
            if not follower.failed:
                self._send(voter, follower, out)
        self._advance(out)

    def _send(self, voter: NodeId, follower: RaftFollower, out: list[RaftEffect]) -> None:
        log = self.replica.log
        end = log.log_end_offset
        if follower.open or (follower.next_offset >= end and follower.flushed >= self.quorum_end):
            return
        config = self.config
        behind = follower.next_offset < self.commit
        limit = config.recovery_bytes_max if behind else config.append_bytes_max
        start = max(follower.next_offset, log.log_start_offset)
        batches = log.read(start, end, limit)
        if batches:
            start = min(start, batches[0].base_offset)
        follower.open = True
        flush = self.quorum_end > follower.flushed
        told = self._tell(follower, start, batches, flush)
        out.append(Ask(voter, RaftAppendRequest(self.node, told)))

    def _tell(
        self,
        follower: RaftFollower,
        start: Offset,
        batches: tuple[Batch, ...],
        flush: bool,  # noqa: FBT001 - a field
    ) -> RaftAppend:
        log = self.replica.log
        term = term_before(log, start)
        return RaftAppend(
            self.partition,
            self.term,
            start,
            AGREED if term < 0 and follower.match >= start else term,
            self.commit,
            self.replica.high_watermark,
            log.log_start_offset,
            flush,
            batches,
        )

    def heartbeats(self, now: Micros) -> tuple[list[tuple[NodeId, RaftAppend]], list[RaftEffect]]:
        """It is time for a sign of life: what to tell whom, and what else there is to do.

        A leader that a majority has not answered for an election timeout steps down.
        """
        out: list[RaftEffect] = []
        if not self.is_leader:
            self._flush_old(now, out)
            return [], out
        silence = self.config.election_timeout_us
        heard = sum(now - f.last_heard <= silence for f in self.followers.values())
        if heard + 1 < len(self.voters) // 2 + 1:
            self.enter(self.term, now, out)
            return [], out
        if now >= self._heir_until:
            self.heir, self._heir_until = NO_LEADER, NEVER
        log = self.replica.log
        told: list[tuple[NodeId, RaftAppend]] = []
        for voter, follower in self.followers.items():
            follower.failed = False
            self._send(voter, follower, out)
            start = max(follower.next_offset, log.log_start_offset)
            told.append((voter, self._tell(follower, start, (), flush=False)))
        self._flush_old(now, out)
        return told, out

    def answered(
        self,
        sender: NodeId,
        sent: RaftAppend,
        answer: RaftAnswer,
        now: Micros,
        *,
        heartbeat: bool,
    ) -> list[RaftEffect]:
        """A follower has answered an append, or a heartbeat."""
        out: list[RaftEffect] = []
        follower = self.followers.get(sender)
        if follower is not None and not heartbeat and sent.term == self.term:
            follower.open = False
        if answer.term > self.term:
            self.enter(answer.term, now, out)
            self._remember(out)
            return out
        if follower is None or (sent.term, answer.term) != (self.term, self.term):
            return out
        follower.last_heard = now
        follower.failed = False
        if answer.end >= 0:
            follower.match = max(follower.match, answer.end)
            follower.flushed = max(follower.flushed, answer.flushed)
            follower.next_offset = max(follower.next_offset, follower.match)
            self._advance(out)
            if sender == self.heir:
                self._let_stand(out)
        elif sent.prev_offset <= follower.next_offset:
            follower.go_back(self._parting(sent, answer.parts))
        self._send(sender, follower, out)
        return out

    def _parting(self, sent: RaftAppend, parts: EpochEnd) -> Offset:
        """Where the two logs may agree, as far as the follower's answer tells (KIP-279's way)."""
        log = self.replica.log
        if parts == NO_EPOCH_END:
            return log.log_start_offset
        own = log.end_offset_for_epoch(parts.epoch)
        end = own.offset if own.epoch != parts.epoch else min(own.offset, parts.offset)
        return max(min(end, sent.prev_offset - 1), log.log_start_offset)

    def failed(self, sender: NodeId, sent: RaftAppend) -> None:
        """No answer came to an append."""
        follower = self.followers.get(sender)
        if follower is not None and sent.term == self.term:
            follower.open = False
            follower.failed = True

    def _advance(self, out: list[RaftEffect]) -> None:
        """Commit what a majority has on disk; let read what a majority has at all."""
        replica = self.replica
        log_end = replica.log.log_end_offset
        rules = self.rules
        durable = [rules.durable_end(log_end, self.flushed_end)]
        held = [log_end]
        for follower in self.followers.values():
            durable.append(rules.durable_end(follower.match, follower.flushed))
            held.append(follower.match)
        reached = rules.reached(durable)
        if rules.may_commit(reached, self._term_start) and reached > self.commit:
            self.commit = reached
        visible = self.commit
        if self.commit >= self.quorum_end:
            held_end = rules.reached(held)
            if rules.may_commit(held_end, self._term_start):
                visible = max(visible, held_end)
        if visible > replica.high_watermark:
            replica.majority_end = rules.reached(held)
            replica.high_watermark = visible
            out.append(VisibleMoved(visible))

    def transfer(self, to: NodeId, now: Micros) -> list[RaftEffect]:
        """Begin to hand the leadership to a follower: nothing is written until it has everything.

        Source: Raft, section 3.10 of the dissertation; ``consensus::transfer_leadership``.
        """
        out: list[RaftEffect] = []
        if to in self.followers and self.heir == NO_LEADER:
            self.heir = to
            self._heir_until = now + self.config.transfer_timeout_us
            self._let_stand(out)
        return out

    def _let_stand(self, out: list[RaftEffect]) -> None:
        """The heir stands as soon as it has everything."""
        if self.followers[self.heir].match >= self.replica.log.log_end_offset:
            request = RaftTimeoutNowRequest(self.partition, self.node, self.term)
            out.append(Ask(self.heir, request))

    def successor(self) -> NodeId:
        """The follower that has most, the first of the assignment among equals; -1 for none."""
        best, most = NO_LEADER, -1
        for voter, follower in self.followers.items():
            if not follower.failed and follower.match > most:
                best, most = voter, follower.match
        return best

    # -- following --------------------------------------------------------------------------------

    def append_asked(
        self, token: int, leader: NodeId, sent: RaftAppend, now: Micros
    ) -> list[RaftEffect]:
        """A leader sends records; the answer waits for the fsync if it asks for one."""
        out: list[RaftEffect] = []
        answer = self.take(leader, sent, now, out)
        if sent.flush and answer.end > self.flushed_end:
            promise = _Promise(token, self.term, answer.end, self._generation)
            self._promises.append(promise)
            self._flush_up_to(answer.end, out)
        else:
            out.append(Answer(token, RaftAppendResponse(answer)))
        return out

    def take(
        self, leader: NodeId, sent: RaftAppend, now: Micros, out: list[RaftEffect]
    ) -> RaftAnswer:
        """What a follower does with what a leader tells it; a heartbeat brings no records."""
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
        self._append(sent, now, out)
        end = sent.end
        self.commit = max(self.commit, min(sent.commit, end))
        visible = min(sent.visible, end)
        if visible > self.replica.high_watermark and self.replica.follower_advance(visible):
            out.append(VisibleMoved(sent.visible))
        if sent.log_start > log.log_start_offset:
            out.append(StartLearned(sent.log_start))
        return RaftAnswer(self.partition, self.term, end, min(end, self.flushed_end))

    def _agrees(self, sent: RaftAppend) -> bool:
        """Whether this log has the record before the leader's.

        What lies below a log start was committed once, on every log that starts there or later.
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

    def _append(self, sent: RaftAppend, now: Micros, out: list[RaftEffect]) -> None:
        log = self.replica.log
        if sent.prev_term == -1 and sent.prev_offset > log.log_start_offset:
            # The leader has let go what lies below, and whatever is here parted from that.
            self._cut(sent.prev_offset, out, anew=True)
        new = [b for b in sent.batches if not self._has(b)]
        if not new:
            return
        if new[0].base_offset < log.log_end_offset:
            self._cut(new[0].base_offset, out)
        log.append_as_follower(new)
        out.append(Wrote(tuple(new), as_leader=False))
        self._soil(now, out)

    def _has(self, batch: Batch) -> bool:
        end = batch.last_offset + 1
        log = self.replica.log
        return end <= log.log_end_offset and (
            end <= log.log_start_offset or term_before(log, end) == batch.leader_epoch
        )

    def _cut(self, offset: Offset, out: list[RaftEffect], *, anew: bool = False) -> None:
        replica, log = self.replica, self.replica.log
        before, high_watermark = log.log_end_offset, replica.high_watermark
        start = log.log_start_offset
        if anew:
            log.truncate_fully_and_start_at(offset)
            replica.high_watermark = offset
        else:
            replica.truncate_to(offset)
        self._generation += 1
        self.flushed_end = min(self.flushed_end, log.log_end_offset)
        self._flush_to = min(self._flush_to, log.log_end_offset)
        self.commit = min(self.commit, log.log_end_offset)
        out.append(Cut(before, log.log_end_offset, high_watermark, start, log.log_start_offset))

    # -- durability -------------------------------------------------------------------------------

    def _flush_up_to(self, end: Offset, out: list[RaftEffect]) -> None:
        self._flush_to = max(self._flush_to, end)
        self._flush(out)

    def _flush(self, out: list[RaftEffect]) -> None:
        """One fsync at a time; what is wanted meanwhile goes with the next."""
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
        promises, self._promises = self._promises, []
        for promise in promises:
            is_kept = (promise.term, promise.generation) == (self.term, self._generation)
            if is_kept and promise.end > self.flushed_end:
                self._promises.append(promise)
                continue
            # A promise of a former term, or of records since cut, says nothing about the log.
            answer = RaftAnswer(self.partition, self.term)
            if is_kept:
                answer = RaftAnswer(self.partition, self.term, promise.end, promise.end)
            elif promise.term == self.term:
                answer = RaftAnswer(self.partition, 0)
            out.append(Answer(promise.token, RaftAppendResponse(answer)))
        if self.is_leader:
            self._advance(out)
        self._flush(out)
        del now
        return out

    def _soil(self, now: Micros, out: list[RaftEffect]) -> None:
        """Something was written for which nobody waits: it is flushed by size, or by age."""
        log = self.replica.log
        if self._dirty_since == NEVER:
            self._dirty_since = now
        unflushed = max(self.flushed_end, self._flush_to, log.log_start_offset)
        if log.bytes_between(unflushed, log.log_end_offset) >= self.config.flush_bytes:
            self._flush_up_to(log.log_end_offset, out)

    def _flush_old(self, now: Micros, out: list[RaftEffect]) -> None:
        """Source: ``raft_replica_max_flush_delay_ms``; looked at with every heartbeat."""
        end = self.replica.log.log_end_offset
        if self._dirty_since + self.config.flush_delay_us <= now and self.flushed_end < end:
            self._flush_up_to(end, out)
