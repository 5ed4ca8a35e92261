"""Types of a partition's Raft group: roles, settings, durable state, effects and rules.

Source: Raft (Ongaro, 2014); Redpanda v25.1 ``raft/consensus``, ``config/configuration``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from sim.ids import LeaderEpoch, NodeId, Offset
from sim.protocol.broker.raft_storage import CommittedMembership, Membership, RaftVote
from sim.protocol.kraft.votes import up_to_date
from sim.protocol.majority import reached_by_majority
from sim.protocol.messages.base import Request, Response
from sim.protocol.ports import Batch, ReplicaLog
from sim.protocol.raft_groups.membership import Nodes
from sim.units import KIB, MIB, MS, SECOND, Bytes, Micros

NOBODY: Final[NodeId] = -1
"""No vote given, no leader known."""


AGREED: Final[LeaderEpoch] = -2
"""Term of a record that the leader has deleted: the follower has acknowledged before that its log
agrees up to there."""


class RaftRole(StrEnum):
    """Role of a member."""

    FOLLOWER = "follower"
    PRE_CANDIDATE = "pre_candidate"
    CANDIDATE = "candidate"
    LEADER = "leader"


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Redpanda's settings, with its defaults."""

    heartbeat_interval_us: Micros = 150 * MS
    """``raft_heartbeat_interval_ms``."""
    heartbeat_timeout_us: Micros = 3 * SECOND
    """``raft_heartbeat_timeout_ms``: of the request."""
    election_timeout_us: Micros = 1_500 * MS
    """``raft_election_timeout_ms``: without contact, for followers and for leaders."""
    append_timeout_us: Micros = 3 * SECOND
    """``replicate_append_timeout_ms``."""
    append_bytes_max: Bytes = MIB
    """``raft_replicate_batch_window_size``."""
    recovery_bytes_max: Bytes = 512 * KIB
    """``raft_recovery_default_read_size``: at once, to a follower that is behind."""
    transfer_timeout_us: Micros = 10 * SECOND
    """``raft_transfer_leader_recovery_timeout_ms``: time for the next leader to have everything;
    nothing is written meanwhile."""
    flush_bytes: Bytes = 256 * KIB
    """``raft_replica_max_pending_flush_bytes``: more is flushed without a waiting request."""
    flush_delay_us: Micros = 100 * MS
    """``raft_replica_max_flush_delay_ms``: after which it is flushed, too."""
    learner_recovery_rate: Bytes = 100 * MIB
    """``raft_learner_recovery_rate``: bytes a second that a broker sends to its learners."""
    write_caching: bool = False
    """``write_caching_default``: acks=all waits for a majority's memory, not its disks."""


class PersistedState(NamedTuple):
    """State on a member's disk when its process starts."""

    vote: RaftVote = RaftVote()
    settled: CommittedMembership = CommittedMembership(-1, Membership())
    """The last committed membership; empty if it never knew any."""
    later: tuple[CommittedMembership, ...] = ()
    """Memberships in the log above that, in the log's order."""


class RaftRecords(Protocol):
    """Codec of control records of a group's log, whose bytes machines never see."""

    def opening(self, leader: NodeId, membership: Membership, now_ms: int) -> Batch:
        """The batch with which a leader opens its term; it has the membership, too."""

    def configuration(self, membership: Membership, now_ms: int) -> Batch:
        """The batch of a membership change."""

    def membership_of(self, batch: Batch) -> Membership | None:
        """Membership in a control batch; ``None`` if it has another content."""


# -- effects --------------------------------------------------------------------------------------


class PersistVote(NamedTuple):
    """Writes the vote, with the committed membership, and fsyncs both; later effects wait."""

    vote: RaftVote


class FlushLog(NamedTuple):
    """Makes the log durable up to an offset; later effects do not wait.

    Completes with :meth:`~sim.protocol.raft_groups.group.RaftGroup.flushed` with the same numbers.
    """

    up_to: Offset
    generation: int
    """Counts truncations: an fsync that began before one does not count for what came after."""


class SendToMember(NamedTuple):
    """Sends a request to another member."""

    to: NodeId
    request: Request


class ReplyToMember(NamedTuple):
    """Answers a request of another member."""

    token: int
    response: Response


class Led(NamedTuple):
    """This member leads from now on; the caller must let it open its term at once."""


class Configured(NamedTuple):
    """Membership in this leader's log, from the offset on.

    At the start of its term, and each time that changes.
    """

    offset: Offset
    membership: Membership


class Followed(NamedTuple):
    """This member follows another leader from now on, or none."""

    was_leader: bool


class Wrote(NamedTuple):
    """These batches were appended."""

    batches: tuple[Batch, ...]
    as_leader: bool


class Truncated(NamedTuple):
    """The log was truncated at its divergence from the leader's."""

    before: Offset
    after: Offset
    high_watermark: Offset
    """High watermark before the truncation."""
    start_before: Offset
    start_after: Offset


class VisibleMoved(NamedTuple):
    """The high watermark moved: consumers may read more, and writes are committed."""

    sent: Offset
    """For a follower: the leader's high watermark; for a leader: its own."""


class StartLearned(NamedTuple):
    """The leader's log starts at this offset."""

    offset: Offset


RaftEffect = (
    PersistVote
    | FlushLog
    | SendToMember
    | ReplyToMember
    | Led
    | Configured
    | Followed
    | Wrote
    | Truncated
    | VisibleMoved
    | StartLearned
)
"""Effects of a group's member, performed in order."""


# -- rules, in which tests plant defects -----------------------------------------------------------


class RaftRules:
    """The rules on which Raft's safety rests, one method each. Without state."""

    def is_up_to_date(
        self, last_term: LeaderEpoch, last_offset: Offset, own_term: LeaderEpoch, own_end: Offset
    ) -> bool:
        """True if a candidate's log lets it lead this voter (Raft, section 5.4.1)."""
        return up_to_date(last_term, last_offset, own_term, own_end)

    def may_commit(self, offset: Offset, term_start: Offset) -> bool:
        """True if a majority's offset is committed: only under a record of the leader's own term.

        Records of an earlier leader could be overwritten by a third one although a majority has
        them (Raft, section 5.4.2, figure 8).
        """
        return offset > term_start

    def durable_end(self, end: Offset, flushed: Offset) -> Offset:
        """End of a member's log that counts: its flushed end (Redpanda)."""
        return min(end, flushed)

    def reached(self, ends: list[Offset]) -> Offset:
        """Offset that a majority has reached."""
        return reached_by_majority(ends)

    def voters_needed(self, voters: int) -> int:
        """Number of voters in a majority."""
        return voters // 2 + 1

    def electorates(self, membership: Membership) -> tuple[Nodes, ...]:
        """Voter sets that each need a majority: the voters, and the old ones while they count.

        Source: Raft, section 6.
        """
        voters, old, _ = membership
        return (voters, old) if old else (voters,)

    def may_change(self, *, is_settled: bool) -> bool:
        """True if a leader may write another membership: only if the last one is committed.

        The record that opens a leader's term has the membership, too; so nothing is changed before
        one of its own records is committed, either. Without that, two leaders' changes could each
        find a majority that misses the other's (Ongaro, 2015: "bug in single-server membership
        changes").
        """
        return is_settled


RULES: Final = RaftRules()
"""The rules of Raft."""


def term_before(log: ReplicaLog, offset: Offset) -> LeaderEpoch:
    """Term of the record right before an offset of the log; -1 if the log has no such record."""
    if not log.log_start_offset < offset <= log.log_end_offset:
        return -1
    term = log.latest_epoch
    while term >= 0:
        # A term begins where the one before it ends.
        former = log.end_offset_for_epoch(term - 1)
        if former.offset < offset:
            return term
        term = former.epoch
    return -1
