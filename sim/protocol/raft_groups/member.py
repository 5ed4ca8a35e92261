"""One member of a partition's Raft group: its term, its vote, and how it comes to lead.

Elections are asked about first (pre-vote), and a member that has heard from a leader lately refuses
every candidate but the one which that leader named itself. Replicas stand in the order of the
assignment: all but the first let one round pass.

Left out: waiting for every voter's answer to find the longest log
(``raft_enable_longest_log_detection``).

Source: Raft, sections 5.2, 5.4 and 9.6; Redpanda's ``raft/{consensus,vote_stm,prevote_stm}.cc``.
"""

from collections.abc import Callable

from sim.ids import NO_LEADER, LeaderEpoch, NodeId, TopicPartition
from sim.protocol.broker.raft_storage import Membership, RaftVote, Settled
from sim.protocol.kraft.votes import Election
from sim.protocol.messages.raft_groups import RaftVoteRequest, RaftVoteResponse
from sim.protocol.raft_groups.membership import Nodes, electors
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    NOBODY,
    Answer,
    Ask,
    Followed,
    PersistVote,
    RaftConfig,
    RaftEffect,
    RaftMemory,
    RaftRole,
    RaftRules,
)
from sim.units import LONG_AGO, NEVER, Micros


class RaftMember:
    """Follower and candidate; :class:`~sim.protocol.raft_groups.group.RaftGroup` leads.

    Args:
        replica: The replica whose log this is.
        founders: Who the members are as long as neither the log nor the memory says so, in the
            order of the assignment; nobody: this one came later, and waits to be told.
        config: Settings.
        rules: What may be voted for and committed.
        unit: Draws the jitter of elections, uniform in [0, 1).
        memory: What was remembered from before the restart.
    """

    def __init__(
        self,
        replica: RaftReplica,
        founders: Nodes,
        config: RaftConfig,
        rules: RaftRules,
        unit: Callable[[], float],
        memory: RaftMemory,
    ) -> None:
        vote, settled, later = memory
        self.replica = replica
        self.node: NodeId = replica.broker
        self.partition: TopicPartition = replica.partition
        self.settled: Settled = settled if settled.membership.voters else _founding(founders)
        """The last membership that is known to be committed."""
        self.later: list[Settled] = list(later)
        """What the log says above that."""
        self.membership: Membership = self.settled.membership
        """In force: the last one that the log has, committed or not."""
        self.config = config
        self.rules = rules
        self.role = RaftRole.FOLLOWER
        self.term: LeaderEpoch = max(vote.term, replica.log.latest_epoch, 0)
        self.voted_for: NodeId = vote.voted_for if vote.term == self.term else NOBODY
        self.leader: NodeId = NO_LEADER
        self.deadline: Micros = NEVER
        """When a member that hears of no leader does something about it."""
        self.silent = False
        """Whether it shuts down, and does not stand any more."""
        self._unit = unit
        self._last_heard: Micros = LONG_AGO
        self._has_waited = False
        self._election: Election | None = None
        self._use_latest()

    def _use_latest(self) -> None:
        self.membership = self.later[-1].membership if self.later else self.settled.membership
        self.replica.vote_with(self.membership.voters)

    @property
    def voters(self) -> Nodes:
        """Who votes, the one that should lead first."""
        return self.membership.voters

    @property
    def is_leader(self) -> bool:
        """Whether it leads."""
        return self.role is RaftRole.LEADER

    def begin(self, now: Micros) -> list[RaftEffect]:
        """The process has started, or the partition was created here.

        In a new group the first replica stands at once, and the others leave it the time to win.
        """
        timeout = self.config.election_timeout_us
        if not self.voters:
            self.deadline = NEVER
        elif self.term or self.replica.log.log_end_offset:
            self.deadline = now + self._round()
        elif self.voters[0] == self.node:
            self.deadline = now
        else:
            self.deadline = now + 2 * timeout + self._jitter()
        return []

    def _jitter(self) -> Micros:
        return int(self._unit() * self.config.election_timeout_us) // 2

    def _round(self) -> Micros:
        return self.config.election_timeout_us + self._jitter()

    # -- elections --------------------------------------------------------------------------------

    def due(self, now: Micros) -> list[RaftEffect]:
        """The deadline may have passed: stand for election, or let the first in the order."""
        out: list[RaftEffect] = []
        if now < self.deadline or self.is_leader:
            return out
        if self.silent or self.node not in electors(self.membership):
            self.deadline = NEVER
        elif self._yields():
            self._has_waited = True
            self.deadline = now + self._jitter() + 1
        else:
            self._campaign(now, out, pre_vote=True)
        return out

    def _yields(self) -> bool:
        """Whether a voter that comes earlier in the assignment is given a chance to stand first."""
        return self.voters[0] != self.node and not self._has_waited and self.term > 0

    def _campaign(
        self, now: Micros, out: list[RaftEffect], *, pre_vote: bool, transfer: bool = False
    ) -> None:
        self.deadline = now + self._round()
        self._forget_leader(out)
        self.role = RaftRole.PRE_CANDIDATE if pre_vote else RaftRole.CANDIDATE
        if not pre_vote:
            self.term += 1
            self.voted_for = self.node
            out.append(PersistVote(RaftVote(self.term, self.node)))
        voters = electors(self.membership)
        election = self._election = Election(voters)
        election.record(self.node, granted=True)
        log = self.replica.log
        request = RaftVoteRequest(
            self.partition,
            self.node,
            self.term + 1 if pre_vote else self.term,
            log.latest_epoch,
            log.log_end_offset,
            pre_vote,
            transfer,
        )
        out.extend(Ask(voter, request) for voter in voters if voter != self.node)
        self._count(now, out)

    def _forget_leader(self, out: list[RaftEffect]) -> None:
        if self.leader != NO_LEADER:
            self.leader = NO_LEADER
            self.replica.follow(NO_LEADER, self.term)
            out.append(Followed(was_leader=False))

    def vote_asked(self, token: int, request: RaftVoteRequest, now: Micros) -> list[RaftEffect]:
        """A candidate asks."""
        out: list[RaftEffect] = []
        granted = False
        if request.term > self.term or (request.term == self.term and not request.pre_vote):
            granted = self._grants(request, now, out)
        out.append(Answer(token, RaftVoteResponse(self.partition, self.term, granted)))
        return out

    def _grants(self, request: RaftVoteRequest, now: Micros, out: list[RaftEffect]) -> bool:
        if not request.transfer and self._hears_a_leader(now):
            return False
        log = self.replica.log
        fresh = self.rules.is_up_to_date(
            request.last_term, request.last_offset, log.latest_epoch, log.log_end_offset
        )
        if request.pre_vote:
            return fresh
        if request.term > self.term:
            self.enter(request.term, now, out)
        if not fresh or self.voted_for not in {NOBODY, request.candidate} or self.is_leader:
            self._remember(out)
            return False
        self.voted_for = request.candidate
        self.deadline = now + self._round()
        self._remember(out)
        return True

    def _remember(self, out: list[RaftEffect]) -> None:
        out.append(PersistVote(RaftVote(self.term, self.voted_for)))

    def _hears_a_leader(self, now: Micros) -> bool:
        if self.is_leader:
            return True
        recently = now - self._last_heard < self.config.election_timeout_us
        return self.leader != NO_LEADER and recently

    def voted(
        self, sender: NodeId, request: RaftVoteRequest, response: RaftVoteResponse, now: Micros
    ) -> list[RaftEffect]:
        """A voter has answered."""
        out: list[RaftEffect] = []
        if response.term > self.term:
            self.enter(response.term, now, out)
            self._remember(out)
            return out
        wanted = RaftRole.PRE_CANDIDATE if request.pre_vote else RaftRole.CANDIDATE
        asked = self.term + 1 if request.pre_vote else self.term
        if self._election is None or self.role is not wanted or request.term != asked:
            return out
        self._election.record(sender, granted=response.granted)
        self._count(now, out)
        return out

    def _count(self, now: Micros, out: list[RaftEffect]) -> None:
        election = self._election
        assert election is not None, "votes are counted in an election"
        electorates = self.rules.electorates(self.membership)
        if all(self._carries(electorate, election) for electorate in electorates):
            if self.role is RaftRole.PRE_CANDIDATE:
                self._campaign(now, out, pre_vote=False)
            else:
                self._election = None
                self._lead(now, out)
        elif any(_lost(electorate, election) for electorate in electorates):
            self.role = RaftRole.FOLLOWER
            self._election = None

    def _carries(self, electorate: Nodes, election: Election) -> bool:
        granted = sum(voter in election.granted for voter in electorate)
        return granted >= self.rules.voters_needed(len(electorate))

    def _lead(self, now: Micros, out: list[RaftEffect]) -> None:
        """A majority has voted for this member; the subclass leads."""
        raise NotImplementedError

    def stand_now(self, term: LeaderEpoch, now: Micros) -> list[RaftEffect]:
        """The leader of this term hands its leadership to this member."""
        out: list[RaftEffect] = []
        may_stand = self.node in electors(self.membership) and not self.silent
        if term == self.term and not self.is_leader and may_stand:
            self._campaign(now, out, pre_vote=False, transfer=True)
        return out

    # -- terms ------------------------------------------------------------------------------------

    def enter(
        self, term: LeaderEpoch, now: Micros, out: list[RaftEffect], leader: NodeId = NO_LEADER
    ) -> None:
        """Follow in a term that is newer, or whose leader is now known.

        The caller has what is to be remembered persisted before anything is answered.
        """
        was_leader = self.is_leader
        was_known = (self.term, self.leader) == (term, leader)
        if term > self.term:
            self.term = term
            self.voted_for = NOBODY
        self.role = RaftRole.FOLLOWER
        self._election = None
        self.leader = leader
        if was_leader or self.deadline == NEVER:
            self.deadline = now + self._round()
        if was_leader:
            self._stop_leading()
        if was_leader or not was_known:
            self.replica.follow(leader, self.term)
            out.append(Followed(was_leader=was_leader))

    def _stop_leading(self) -> None:
        """What a leader knew of its followers counts no more."""

    def _heard(self, now: Micros) -> None:
        """The leader is there."""
        self._last_heard = now
        self._has_waited = False
        self.deadline = now + self._round()


def _founding(founders: Nodes) -> Settled:
    return Settled(-1, Membership(founders))


def _lost(electorate: Nodes, election: Election) -> bool:
    """Whether its majority can no longer be had."""
    left = sum(voter not in election.rejected for voter in electorate)
    return left <= len(electorate) // 2
