"""One member of a partition's Raft group: its term, its vote, and elections.

Elections begin with a pre-vote, and a member with recent contact to a leader refuses every
candidate but the one which that leader named. Replicas become candidates in the order of the
assignment: all but the first skip one round.

Left out: waiting for every voter's answer to find the longest log
(``raft_enable_longest_log_detection``).

Source: Raft, sections 5.2, 5.4 and 9.6; Redpanda's ``raft/{consensus,vote_stm,prevote_stm}.cc``.
"""

from collections.abc import Callable

from sim.ids import NO_LEADER, LeaderEpoch, NodeId, TopicPartition
from sim.protocol.broker.raft_storage import CommittedMembership, Membership, RaftVote
from sim.protocol.kraft.votes import Election
from sim.protocol.messages.raft_groups import RaftVoteRequest, RaftVoteResponse
from sim.protocol.raft_groups.membership import Nodes, electors
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    NOBODY,
    Followed,
    PersistedState,
    PersistVote,
    RaftConfig,
    RaftEffect,
    RaftRole,
    RaftRules,
    ReplyToMember,
    SendToMember,
)
from sim.units import LONG_AGO, NEVER, Micros


class RaftMember:
    """Follower and candidate; :class:`~sim.protocol.raft_groups.group.RaftGroup` leads.

    Args:
        replica: The replica whose log this is.
        founders: Members until the log or the persisted state has some, in the order of the
            assignment; none: this member was added later, and waits for its leader.
        config: Settings.
        rules: Rules of votes and commits.
        unit: Draws the jitter of elections, uniform in [0, 1).
        memory: State persisted before the restart.
    """

    def __init__(
        self,
        replica: RaftReplica,
        founders: Nodes,
        config: RaftConfig,
        rules: RaftRules,
        unit: Callable[[], float],
        memory: PersistedState,
    ) -> None:
        vote, settled, later = memory
        self.replica = replica
        self.node: NodeId = replica.broker
        self.partition: TopicPartition = replica.partition
        self.settled: CommittedMembership = (
            settled if settled.membership.voters else _founding(founders)
        )
        """The last membership that is known to be committed."""
        self.later: list[CommittedMembership] = list(later)
        """Memberships in the log above it."""
        self.membership: Membership = self.settled.membership
        """In force: the last one that the log has, committed or not."""
        self.config = config
        self.rules = rules
        self.role = RaftRole.FOLLOWER
        self.term: LeaderEpoch = max(vote.term, replica.log.latest_epoch, 0)
        self.voted_for: NodeId = vote.voted_for if vote.term == self.term else NOBODY
        self.leader: NodeId = NO_LEADER
        self.deadline: Micros = NEVER
        """End of the election timeout."""
        self.silent = False
        """True during shutdown: it does not become candidate any more."""
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
        """Voters, the preferred leader first."""
        return self.membership.voters

    @property
    def is_leader(self) -> bool:
        """True if it leads."""
        return self.role is RaftRole.LEADER

    def begin(self, now: Micros) -> list[RaftEffect]:
        """Begins after a start of the process, or when the partition was created here.

        In a new group the first replica becomes candidate at once, and the others leave it the time
        to win.
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
        """Checks the deadline: becomes candidate, or leaves the election to an earlier voter."""
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
        """True if a voter earlier in the assignment gets the first chance to become candidate."""
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
        out.extend(SendToMember(voter, request) for voter in voters if voter != self.node)
        self._count(now, out)

    def _forget_leader(self, out: list[RaftEffect]) -> None:
        if self.leader != NO_LEADER:
            self.leader = NO_LEADER
            self.replica.follow(NO_LEADER, self.term)
            out.append(Followed(was_leader=False))

    def on_vote_request(
        self, token: int, request: RaftVoteRequest, now: Micros
    ) -> list[RaftEffect]:
        """Handles a vote request."""
        out: list[RaftEffect] = []
        granted = False
        if request.term > self.term or (request.term == self.term and not request.pre_vote):
            granted = self._grants(request, now, out)
        out.append(ReplyToMember(token, RaftVoteResponse(self.partition, self.term, granted)))
        return out

    def _grants(self, request: RaftVoteRequest, now: Micros, out: list[RaftEffect]) -> bool:
        if not request.transfer and self._has_leader_contact(now):
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

    def _has_leader_contact(self, now: Micros) -> bool:
        if self.is_leader:
            return True
        recently = now - self._last_heard < self.config.election_timeout_us
        return self.leader != NO_LEADER and recently

    def voted(
        self, sender: NodeId, request: RaftVoteRequest, response: RaftVoteResponse, now: Micros
    ) -> list[RaftEffect]:
        """Handles a vote response."""
        out: list[RaftEffect] = []
        if response.term > self.term:
            self.enter(response.term, now, out)
            self._remember(out)
            return out
        expected = RaftRole.PRE_CANDIDATE if request.pre_vote else RaftRole.CANDIDATE
        term = self.term + 1 if request.pre_vote else self.term
        if self._election is None or self.role is not expected or request.term != term:
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
        """Hook: a majority has voted for this member."""
        raise NotImplementedError

    def timeout_now(self, term: LeaderEpoch, now: Micros) -> list[RaftEffect]:
        """Handles TimeoutNow: the leader of this term hands its leadership to this member."""
        out: list[RaftEffect] = []
        may_campaign = self.node in electors(self.membership) and not self.silent
        if term == self.term and not self.is_leader and may_campaign:
            self._campaign(now, out, pre_vote=False, transfer=True)
        return out

    # -- terms ------------------------------------------------------------------------------------

    def enter(
        self, term: LeaderEpoch, now: Micros, out: list[RaftEffect], leader: NodeId = NO_LEADER
    ) -> None:
        """Follows in a newer term, or in one whose leader is now known.

        The caller persists the vote before any response.
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
        """Hook: drops the leader's state of its followers."""

    def _heard(self, now: Micros) -> None:
        """Notes a contact of the leader."""
        self._last_heard = now
        self._has_waited = False
        self.deadline = now + self._round()


def _founding(founders: Nodes) -> CommittedMembership:
    return CommittedMembership(-1, Membership(founders))


def _lost(electorate: Nodes, election: Election) -> bool:
    """True if its majority can no longer be reached."""
    left = sum(voter not in election.rejected for voter in electorate)
    return left <= len(electorate) // 2
