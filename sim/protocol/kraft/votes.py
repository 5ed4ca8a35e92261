"""Rules of voting: grants, and won and lost elections.

Pure rules; the roles are in :mod:`sim.protocol.kraft.raft`.

Source: KIP-595, KIP-996; ``EpochState.canGrantVote`` of each role, ``EpochElection`` (4.1).
"""

from dataclasses import dataclass, field

from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset
from sim.protocol.kraft.types import NOBODY, Role
from sim.units import Micros


def up_to_date(
    last_epoch: LeaderEpoch, last_offset: Offset, own_epoch: LeaderEpoch, own_end: Offset
) -> bool:
    """True if a candidate's log is at least as complete as one's own."""
    return (last_epoch, last_offset) >= (own_epoch, own_end)


def grants_pre_vote(role: Role, *, is_up_to_date: bool, has_fetched: bool) -> bool:
    """Grants a pre-vote, which does not bind: the voter has no working leader either (KIP-996).

    ``has_fetched``: a follower has fetched successfully from its leader in this epoch.
    """
    if role is Role.LEADER or (role is Role.FOLLOWER and has_fetched):
        return False
    return is_up_to_date


def grants_vote(
    role: Role, *, is_up_to_date: bool, candidate: NodeId, voted_for: NodeId, leader: NodeId
) -> bool:
    """Grants a vote in the voter's own epoch; a later epoch's request has moved the voter first."""
    if role not in {Role.UNATTACHED, Role.PROSPECTIVE}:
        return False
    if voted_for != NOBODY:
        return voted_for == candidate
    return leader == NO_LEADER and is_up_to_date


def end_quorum_backoff_us(
    node: NodeId, preferred: tuple[NodeId, ...], backoff_max: Micros
) -> Micros:
    """Time until a voter becomes candidate after its leader resigned.

    The first preferred successor does so at once, each next one twice as late as the one before it.
    """
    if node not in preferred:
        return backoff_max
    position = preferred.index(node)
    if position == 0:
        return 0
    return min(backoff_max, (backoff_max >> (len(preferred) - 1)) << (position - 1))


@dataclass(slots=True)
class Election:
    """Votes, or pre-votes, of one attempt."""

    voters: tuple[NodeId, ...]
    granted: dict[NodeId, None] = field(default_factory=dict)
    rejected: dict[NodeId, None] = field(default_factory=dict)

    @property
    def won(self) -> bool:
        """True if a majority has granted."""
        return len(self.granted) > len(self.voters) // 2

    @property
    def lost(self) -> bool:
        """True if a majority can no longer be reached."""
        return len(self.voters) - len(self.rejected) <= len(self.voters) // 2

    def unanswered(self) -> tuple[NodeId, ...]:
        """Voters that have not answered."""
        return tuple(v for v in self.voters if v not in self.granted and v not in self.rejected)

    def record(self, voter: NodeId, *, granted: bool) -> None:
        """Notes a voter's answer; a granted vote is final."""
        if voter not in self.voters:
            return
        if granted:
            self.rejected.pop(voter, None)
            self.granted[voter] = None
        elif voter not in self.granted:
            self.rejected[voter] = None
