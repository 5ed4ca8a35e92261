"""A partition's Raft group as one member sees it: what a leader sends, commits, and changes.

The leader appends, and sends what is new to every follower at the same time as it flushes. One
append is under way to each follower; what comes meanwhile goes with the next. What is asked for
with acks=all is flushed by each member before it counts, and committed when a majority has it; what
is asked for with less is flushed a little later, and may be read once a majority has it.

Who is a member changes step by step towards what the controller wants; a leader that is none any
more at the end hands over.

Source: Raft, sections 5.3, 5.4 and 6; Redpanda's ``raft/{consensus,replicate_batcher}.cc``.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.ids import NO_LEADER, NodeId, Offset
from sim.protocol.broker.raft_storage import Membership
from sim.protocol.messages.raft_groups import (
    RaftAnswer,
    RaftAppend,
    RaftAppendRequest,
    RaftTimeoutNowRequest,
)
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.protocol.raft_groups.follower import RaftFollowing
from sim.protocol.raft_groups.membership import Nodes, everyone, next_membership
from sim.protocol.raft_groups.recovery import RecoveryThrottle
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    AGREED,
    RULES,
    Ask,
    Configured,
    Led,
    RaftConfig,
    RaftEffect,
    RaftMemory,
    RaftRecords,
    RaftRole,
    RaftRules,
    VisibleMoved,
    Wrote,
    term_before,
)
from sim.units import NEVER, Micros, timestamp_ms


class RaftFollower:
    """A follower as its leader knows it."""

    __slots__ = ("failed", "flushed", "is_learner", "last_heard", "match", "next_offset", "open")

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
        self.is_learner = False
        """Whether it counts for nothing as yet."""

    def go_back(self, offset: Offset) -> None:
        """Its log parts from the leader's above the offset; what it once had, it may have lost."""
        self.next_offset = offset
        self.match = min(self.match, offset)
        self.flushed = min(self.flushed, offset)


class RaftGroup(RaftFollowing):
    """One member of the group of one partition.

    Args:
        replica: The replica whose log this is.
        founders: Who the members are as long as neither the log nor the memory says so, in the
            order of the assignment; nobody: this one came later, and waits to be told.
        config: Settings.
        records: Makes and reads the control records of the log.
        unit: Draws the jitter of elections, uniform in [0, 1).
        memory: What was remembered from before the restart.
        rules: What may be voted for and committed.
        recovery: How fast this broker brings its learners up to date; ``None``: as it can.
    """

    def __init__(
        self,
        replica: RaftReplica,
        founders: Nodes,
        config: RaftConfig,
        records: RaftRecords,
        unit: Callable[[], float],
        memory: RaftMemory,
        rules: RaftRules = RULES,
        recovery: RecoveryThrottle | None = None,
    ) -> None:
        super().__init__(replica, founders, config, records, unit, memory, rules)
        self.followers: dict[NodeId, RaftFollower] = {}
        self.quorum_end: Offset = 0
        """End of the last write that has to be durable on a majority."""
        self.heir: NodeId = NO_LEADER
        """Who is being handed the leadership; -1 if nobody is."""
        self.target: Nodes = ()
        """Voters that the controller wants, in their order; nobody: it wants no change."""
        self._heir_until: Micros = NEVER
        self._term_start: Offset = 0
        self._is_plain = True
        self._recovery = recovery

    # -- leading ----------------------------------------------------------------------------------

    def _lead(self, now: Micros, out: list[RaftEffect]) -> None:
        log = self.replica.log
        self.role = RaftRole.LEADER
        self.leader = self.node
        self.deadline = NEVER
        self._term_start = log.log_end_offset
        self._track(now)
        self.replica.lead(self.term)
        out.append(Led())

    def open_term(self, now: Micros) -> list[RaftEffect]:
        """Write the term's first record, so that what is below it can be committed.

        The host asks for it at once when it hears :class:`Led`.
        """
        out: list[RaftEffect] = []
        batch = self._records.opening(self.node, self.membership, timestamp_ms(now))
        self._say(batch, now, out)
        return out

    def _say(self, batch: Batch, now: Micros, out: list[RaftEffect]) -> None:
        """Append what the leader itself has to say of the group's members."""
        log = self.replica.log
        appended = log.append_as_leader(batch, self.term, timestamp_ms(now))
        assert appended.error is ErrorCode.NONE, f"{self.partition}: {appended}"
        assert appended.batch is not None, "a new batch is written"
        out.append(Wrote((appended.batch,), as_leader=True))
        self._look_for_members((appended.batch,))
        self._track(now)
        out.append(Configured(appended.base_offset, self.membership))
        self._written(now, out, durable=True)

    def _track(self, now: Micros) -> None:
        """Follow up each member of the membership in force, and nobody else."""
        end = self.replica.log.log_end_offset
        known = self.followers
        self.followers = {
            node: known.get(node) or RaftFollower(end, now)
            for node in everyone(self.membership)
            if node != self.node
        }
        voters, old, learners = self.membership
        for node, follower in self.followers.items():
            follower.is_learner = node in learners
        self._is_plain = not old and not learners and self.node in voters

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
                self._send(voter, follower, now, out)
        self._advance(now, out)

    def _send(
        self, voter: NodeId, follower: RaftFollower, now: Micros, out: list[RaftEffect]
    ) -> None:
        log = self.replica.log
        end = log.log_end_offset
        if follower.open or (follower.next_offset >= end and follower.flushed >= self.quorum_end):
            return
        config = self.config
        behind = follower.next_offset < self.commit
        throttle = self._recovery if behind and follower.is_learner else None
        if throttle is not None and not throttle.allows(now):
            # The next heartbeat looks again.
            return
        limit = config.recovery_bytes_max if behind else config.append_bytes_max
        start = max(follower.next_offset, log.log_start_offset)
        try:
            batches = log.read(start, end, limit)
        except CorruptRecord:
            return  # what the leader cannot read nobody gets; the next heartbeat looks again
        if batches:
            start = min(start, batches[0].base_offset)
        if throttle is not None:
            throttle.take(sum(batch.size_bytes for batch in batches))
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
        if not all(self._is_heard(voters, now) for voters in self._electorates()):
            self.enter(self.term, now, out)
            return [], out
        if now >= self._heir_until:
            self.heir, self._heir_until = NO_LEADER, NEVER
        log = self.replica.log
        told: list[tuple[NodeId, RaftAppend]] = []
        for voter, follower in self.followers.items():
            follower.failed = False
            self._send(voter, follower, now, out)
            start = max(follower.next_offset, log.log_start_offset)
            told.append((voter, self._tell(follower, start, (), flush=False)))
        self._flush_old(now, out)
        self._change(now, out)
        return told, out

    def _electorates(self) -> tuple[Nodes, ...]:
        return self.rules.electorates(self.membership)

    def _is_heard(self, voters: Nodes, now: Micros) -> bool:
        """Whether a majority of these voters has answered within the election timeout."""
        silence, known = self.config.election_timeout_us, self.followers
        heard = sum(v == self.node or now - known[v].last_heard <= silence for v in voters)
        return heard > len(voters) // 2

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
            self._advance(now, out)
            if sender == self.heir:
                self._let_stand(out)
            elif follower.is_learner:
                self._change(now, out)
        elif sent.prev_offset <= follower.next_offset:
            follower.go_back(self._parting(sent, answer.parts))
        if sender in self.followers:
            self._send(sender, follower, now, out)
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

    def _advance(self, now: Micros, out: list[RaftEffect]) -> None:
        """Commit what a majority has on disk; let read what a majority has at all."""
        replica = self.replica
        reached = self._durable()
        if reached > self.commit and self.rules.may_commit(reached, self._term_start):
            self.commit = reached
            if self.later:
                self._settle(out)
        visible = self.commit
        if self.commit >= self.quorum_end:
            held = self._held()
            if self.rules.may_commit(held, self._term_start):
                visible = max(visible, held)
        if visible > replica.high_watermark:
            replica.majority_end = self._held()
            replica.high_watermark = visible
            out.append(VisibleMoved(visible))
        if self.target:
            self._change(now, out)

    def _durable(self) -> Offset:
        """How far a majority has the log on disk."""
        rules, followers = self.rules, self.followers
        own = rules.durable_end(self.replica.log.log_end_offset, self.flushed_end)
        if self._is_plain:
            ends = [own]
            ends.extend(rules.durable_end(f.match, f.flushed) for f in followers.values())
            return rules.reached(ends)
        known = {v: rules.durable_end(f.match, f.flushed) for v, f in followers.items()}
        return self._reached(known | {self.node: own})

    def _held(self) -> Offset:
        """How far a majority has the log at all."""
        own = self.replica.log.log_end_offset
        if self._is_plain:
            return self.rules.reached([own, *(f.match for f in self.followers.values())])
        known = {v: f.match for v, f in self.followers.items()}
        return self._reached(known | {self.node: own})

    def _reached(self, ends: dict[NodeId, Offset]) -> Offset:
        """How far a majority of each electorate has come."""
        rules = self.rules
        return min(rules.reached([ends[v] for v in voters]) for voters in self._electorates())

    # -- members ----------------------------------------------------------------------------------

    def aim(self, target: Nodes, now: Micros) -> list[RaftEffect]:
        """The controller wants these voters, in this order; nobody: it wants no change."""
        out: list[RaftEffect] = []
        self.target = target
        self._change(now, out)
        return out

    @property
    def has_arrived(self) -> bool:
        """Whether this member leads the very group that was aimed at, for good."""
        at_target = self.membership == Membership(self.target) and self.node in self.voters
        return self.is_leader and not self.later and at_target

    def _change(self, now: Micros, out: list[RaftEffect]) -> None:
        """Take the next step towards the target, if one may be taken."""
        if not self.target or not self.is_leader or self.heir != NO_LEADER:
            return
        if not self.rules.may_change(is_settled=not self.later):
            return
        step = next_membership(self.membership, self.target, self._is_ready)
        if step is not None:
            self._say(self._records.configuration(step, timestamp_ms(now)), now, out)
        elif self.node not in self.voters and not self.membership.learners:
            out.extend(self.transfer(self.successor(), now))

    def _is_ready(self, learner: NodeId) -> bool:
        """Whether it has what this leader has on disk.

        A leader that had to go and is called back before it has handed over is one, too.

        Source: ``consensus::maybe_promote_to_voter``.
        """
        if learner == self.node:
            return True
        follower = self.followers.get(learner)
        return follower is not None and follower.match >= self.flushed_end

    # -- handing over -----------------------------------------------------------------------------

    def transfer(self, to: NodeId, now: Micros) -> list[RaftEffect]:
        """Begin to hand the leadership to a follower: nothing is written until it has everything.

        Source: Raft, section 3.10 of the dissertation; ``consensus::transfer_leadership``.
        """
        out: list[RaftEffect] = []
        if to in self.followers and to in self.voters and self.heir == NO_LEADER:
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
            can_lead = voter in self.voters and not follower.failed
            if can_lead and follower.match > most:
                best, most = voter, follower.match
        return best
