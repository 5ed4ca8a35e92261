"""A partition's Raft group at one member: the leader's replication, commits and changes.

The leader appends, and sends new records to every follower while it flushes. One append is in
flight to each follower; later records go with the next. A write with acks=all is flushed by each
member before it counts, and committed when a majority has it; one with less is flushed a little
later, and may be read once a majority has it.

The membership changes step by step towards the controller's target; a leader that is no longer a
member at the end hands over.

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
from sim.protocol.raft_groups.recovery_throttle import RecoveryThrottle
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    AGREED,
    RULES,
    Configured,
    Led,
    PersistedState,
    RaftConfig,
    RaftEffect,
    RaftRecords,
    RaftRole,
    RaftRules,
    SendToMember,
    VisibleMoved,
    Wrote,
    term_before,
)
from sim.units import NEVER, Micros, timestamp_ms


class RaftFollower:
    """The leader's state of one follower."""

    __slots__ = ("failed", "flushed", "is_learner", "last_heard", "match", "next_offset", "open")

    def __init__(self, next_offset: Offset, now: Micros) -> None:
        self.next_offset = next_offset
        """Offset of the next records for it, as far as the leader knows."""
        self.match: Offset = -1
        """End of the common log."""
        self.flushed: Offset = -1
        """End of the common log on its disk."""
        self.open = False
        """True if an append is in flight."""
        self.failed = False
        """True if the last one failed: the next heartbeat sends again."""
        self.last_heard: Micros = now
        self.is_learner = False
        """True if it does not count yet."""

    def go_back(self, offset: Offset) -> None:
        """Its log diverges from the leader's above the offset; records after it may be lost."""
        self.next_offset = offset
        self.match = min(self.match, offset)
        self.flushed = min(self.flushed, offset)


class RaftGroup(RaftFollowing):
    """One member of the group of one partition.

    Args:
        replica: The replica whose log this is.
        founders: Members until the log or the persisted state has some, in the order of the
            assignment; none: this member was added later, and waits for its leader.
        config: Settings.
        records: Makes and reads the control records of the log.
        unit: Draws the jitter of elections, uniform in [0, 1).
        memory: State persisted before the restart.
        rules: Rules of votes and commits.
        recovery: Limit of this broker's learner recovery; ``None``: no limit.
    """

    def __init__(
        self,
        replica: RaftReplica,
        founders: Nodes,
        config: RaftConfig,
        records: RaftRecords,
        unit: Callable[[], float],
        memory: PersistedState,
        rules: RaftRules = RULES,
        recovery: RecoveryThrottle | None = None,
    ) -> None:
        super().__init__(replica, founders, config, records, unit, memory, rules)
        self.followers: dict[NodeId, RaftFollower] = {}
        self.quorum_end: Offset = 0
        """End of the last write that has to be durable on a majority."""
        self.heir: NodeId = NO_LEADER
        """Target of a leadership transfer; -1 without one."""
        self.target: Nodes = ()
        """Voters of the controller's target, in their order; none: no change."""
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
        """Writes the term's first record, so that earlier ones can be committed.

        The broker's process calls it at once on :class:`Led`.
        """
        out: list[RaftEffect] = []
        batch = self._records.opening(self.node, self.membership, timestamp_ms(now))
        self._append_control(batch, now, out)
        return out

    def _append_control(self, batch: Batch, now: Micros, out: list[RaftEffect]) -> None:
        """Appends a record of the leader's own about members."""
        log = self.replica.log
        appended = log.append_as_leader(batch, self.term, timestamp_ms(now))
        assert appended.error is ErrorCode.NONE, f"{self.partition}: {appended}"
        assert appended.batch is not None, "a new batch is written"
        out.append(Wrote((appended.batch,), as_leader=True))
        self._read_memberships((appended.batch,))
        self._track(now)
        out.append(Configured(appended.base_offset, self.membership))
        self._written(now, out, durable=True)

    def _track(self, now: Micros) -> None:
        """Tracks the members of the membership in force."""
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
        """The leader has appended; ``durable``: for acks=all."""
        out: list[RaftEffect] = []
        self._written(now, out, durable=durable and not self.config.write_caching)
        return out

    def _written(self, now: Micros, out: list[RaftEffect], *, durable: bool) -> None:
        if durable:
            self.quorum_end = self.replica.log.log_end_offset
            self._flush_up_to(self.quorum_end, out)
        else:
            self._note_unflushed(now, out)
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
            # The next heartbeat tries again.
            return
        limit = config.recovery_bytes_max if behind else config.append_bytes_max
        start = max(follower.next_offset, log.log_start_offset)
        try:
            batches = log.read(start, end, limit)
        except CorruptRecord:
            return  # damaged records cannot be sent; the next heartbeat tries again
        if batches:
            start = min(start, batches[0].base_offset)
        if throttle is not None:
            throttle.take(sum(batch.size_bytes for batch in batches))
        follower.open = True
        flush = self.quorum_end > follower.flushed
        message = self._append_message(follower, start, batches, flush)
        out.append(SendToMember(voter, RaftAppendRequest(self.node, message)))

    def _append_message(
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
        """Heartbeats to send, and the effects of timeouts.

        A leader without responses of a majority for an election timeout steps down.
        """
        out: list[RaftEffect] = []
        if not self.is_leader:
            self._flush_old(now, out)
            return [], out
        if not all(self._has_contact(voters, now) for voters in self._electorates()):
            self.enter(self.term, now, out)
            return [], out
        if now >= self._heir_until:
            self.heir, self._heir_until = NO_LEADER, NEVER
        log = self.replica.log
        message: list[tuple[NodeId, RaftAppend]] = []
        for voter, follower in self.followers.items():
            follower.failed = False
            self._send(voter, follower, now, out)
            start = max(follower.next_offset, log.log_start_offset)
            message.append((voter, self._append_message(follower, start, (), flush=False)))
        self._flush_old(now, out)
        self._change(now, out)
        return message, out

    def _electorates(self) -> tuple[Nodes, ...]:
        return self.rules.electorates(self.membership)

    def _has_contact(self, voters: Nodes, now: Micros) -> bool:
        """True if a majority of these voters has responded within the election timeout."""
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
        """Handles a follower's response to an append, or to a heartbeat."""
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
                self._finish_transfer(out)
            elif follower.is_learner:
                self._change(now, out)
        elif sent.prev_offset <= follower.next_offset:
            follower.go_back(self._divergence(sent, answer.parts))
        if sender in self.followers:
            self._send(sender, follower, now, out)
        return out

    def _divergence(self, sent: RaftAppend, parts: EpochEnd) -> Offset:
        """Offset up to which the two logs may agree, by the follower's response (as in KIP-279)."""
        log = self.replica.log
        if parts == NO_EPOCH_END:
            return log.log_start_offset
        own = log.end_offset_for_epoch(parts.epoch)
        end = own.offset if own.epoch != parts.epoch else min(own.offset, parts.offset)
        return max(min(end, sent.prev_offset - 1), log.log_start_offset)

    def failed(self, sender: NodeId, sent: RaftAppend) -> None:
        """An append got no response."""
        follower = self.followers.get(sender)
        if follower is not None and sent.term == self.term:
            follower.open = False
            follower.failed = True

    def _advance(self, now: Micros, out: list[RaftEffect]) -> None:
        """Commits what a majority has on disk; exposes what a majority has at all."""
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
        """End of the log on the disks of a majority."""
        rules, followers = self.rules, self.followers
        own = rules.durable_end(self.replica.log.log_end_offset, self.flushed_end)
        if self._is_plain:
            ends = [own]
            ends.extend(rules.durable_end(f.match, f.flushed) for f in followers.values())
            return rules.reached(ends)
        known = {v: rules.durable_end(f.match, f.flushed) for v, f in followers.items()}
        return self._reached(known | {self.node: own})

    def _held(self) -> Offset:
        """End of the log at a majority."""
        own = self.replica.log.log_end_offset
        if self._is_plain:
            return self.rules.reached([own, *(f.match for f in self.followers.values())])
        known = {v: f.match for v, f in self.followers.items()}
        return self._reached(known | {self.node: own})

    def _reached(self, ends: dict[NodeId, Offset]) -> Offset:
        """Least end that a majority of each electorate has reached."""
        rules = self.rules
        return min(rules.reached([ends[v] for v in voters]) for voters in self._electorates())

    # -- members ----------------------------------------------------------------------------------

    def aim(self, target: Nodes, now: Micros) -> list[RaftEffect]:
        """Sets the controller's target voters, in order; none: no change."""
        out: list[RaftEffect] = []
        self.target = target
        self._change(now, out)
        return out

    @property
    def has_reached_target(self) -> bool:
        """True if this member leads the target group, and its membership is committed."""
        at_target = self.membership == Membership(self.target) and self.node in self.voters
        return self.is_leader and not self.later and at_target

    def _change(self, now: Micros, out: list[RaftEffect]) -> None:
        """Takes the next step towards the target, if possible."""
        if not self.target or not self.is_leader or self.heir != NO_LEADER:
            return
        if not self.rules.may_change(is_settled=not self.later):
            return
        step = next_membership(self.membership, self.target, self._is_ready)
        if step is not None:
            self._append_control(self._records.configuration(step, timestamp_ms(now)), now, out)
        elif self.node not in self.voters and not self.membership.learners:
            out.extend(self.transfer(self.successor(), now))

    def _is_ready(self, learner: NodeId) -> bool:
        """True if the learner has everything that is on this leader's disk.

        A leader that had to leave and is added back before it has handed over is one, too.

        Source: ``consensus::maybe_promote_to_voter``.
        """
        if learner == self.node:
            return True
        follower = self.followers.get(learner)
        return follower is not None and follower.match >= self.flushed_end

    # -- handing over -----------------------------------------------------------------------------

    def transfer(self, to: NodeId, now: Micros) -> list[RaftEffect]:
        """Begins a leadership transfer to a follower: no writes until it has everything.

        Source: Raft, section 3.10 of the dissertation; ``consensus::transfer_leadership``.
        """
        out: list[RaftEffect] = []
        if to in self.followers and to in self.voters and self.heir == NO_LEADER:
            self.heir = to
            self._heir_until = now + self.config.transfer_timeout_us
            self._finish_transfer(out)
        return out

    def _finish_transfer(self, out: list[RaftEffect]) -> None:
        """Lets the transfer's target begin its election as soon as it has everything."""
        if self.followers[self.heir].match >= self.replica.log.log_end_offset:
            request = RaftTimeoutNowRequest(self.partition, self.node, self.term)
            out.append(SendToMember(self.heir, request))

    def successor(self) -> NodeId:
        """The follower with the longest log, the first of the assignment if equal; -1 for none."""
        best, most = NO_LEADER, -1
        for voter, follower in self.followers.items():
            can_lead = voter in self.voters and not follower.failed
            if can_lead and follower.match > most:
                best, most = voter, follower.match
        return best
