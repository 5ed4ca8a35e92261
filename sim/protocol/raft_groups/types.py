"""Words of a partition's Raft group: roles, settings, what is durable, and what it may ask for.

Source: Raft (Ongaro, 2014); Redpanda v25.1 ``raft/consensus``, ``config/configuration``.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple, Protocol

from sim.ids import LeaderEpoch, NodeId, Offset
from sim.protocol.broker.raft_storage import Membership, RaftVote, Settled
from sim.protocol.kraft.votes import up_to_date
from sim.protocol.majority import reached_by_majority
from sim.protocol.messages.base import Request, Response
from sim.protocol.ports import Batch, ReplicaLog
from sim.protocol.raft_groups.membership import Nodes
from sim.units import KIB, MIB, MS, SECOND, Bytes, Micros

NOBODY: Final[NodeId] = -1
"""No vote given, no leader known."""


AGREED: Final[LeaderEpoch] = -2
"""Stands for the term of a record that the leader has let go: the follower has said before that its
log agrees up to there."""


class RaftRole(StrEnum):
    """What a member is at the moment."""

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
    """``raft_recovery_default_read_size``: at once, to a follower that lies behind."""
    transfer_timeout_us: Micros = 10 * SECOND
    """``raft_transfer_leader_recovery_timeout_ms``: how long the next leader may take to have
    everything; meanwhile nothing is written."""
    flush_bytes: Bytes = 256 * KIB
    """``raft_replica_max_pending_flush_bytes``: more is flushed though nobody waits for it."""
    flush_delay_us: Micros = 100 * MS
    """``raft_replica_max_flush_delay_ms``: after which it is flushed, too."""
    learner_recovery_rate: Bytes = 100 * MIB
    """``raft_learner_recovery_rate``: bytes a second that a broker sends to its learners."""
    write_caching: bool = False
    """``write_caching_default``: acks=all means a majority's memory, not its disks."""


class RaftMemory(NamedTuple):
    """What a member finds on its disk when its process starts."""

    vote: RaftVote = RaftVote()
    settled: Settled = Settled(-1, Membership())
    """The last committed membership it knew of; of nobody if it never knew any."""
    later: tuple[Settled, ...] = ()
    """What the log says of members above that, in the log's order."""


class RaftRecords(Protocol):
    """Control records of a group's log: they are bytes, which machines never see."""

    def opening(self, leader: NodeId, membership: Membership, now_ms: int) -> Batch:
        """The batch with which a leader opens its term; it says who is a member, too."""

    def configuration(self, membership: Membership, now_ms: int) -> Batch:
        """The batch that changes who is a member."""

    def membership_of(self, batch: Batch) -> Membership | None:
        """What a control batch says of members; ``None`` if it is about something else."""


# -- effects --------------------------------------------------------------------------------------


class PersistVote(NamedTuple):
    """Write the vote, with the settled membership, and fsync both; effects behind it wait."""

    vote: RaftVote


class FlushLog(NamedTuple):
    """Make the log durable up to an offset, beside whatever else goes on.

    Comes back as :meth:`~sim.protocol.raft_groups.group.RaftGroup.flushed` with the same numbers.
    """

    up_to: Offset
    generation: int
    """Counts truncations: an fsync that began before one says nothing about what came after."""


class Ask(NamedTuple):
    """Send a request to another member."""

    to: NodeId
    request: Request


class Answer(NamedTuple):
    """Answer a request of another member."""

    token: int
    response: Response


class Led(NamedTuple):
    """This member leads from now on; it must be asked to open its term at once."""


class Configured(NamedTuple):
    """This leader's log says who is a member, from the offset on.

    At the start of its term, and each time that changes.
    """

    offset: Offset
    membership: Membership


class Followed(NamedTuple):
    """This member follows another leader from now on, or nobody."""

    was_leader: bool


class Wrote(NamedTuple):
    """These batches were appended."""

    batches: tuple[Batch, ...]
    as_leader: bool


class Cut(NamedTuple):
    """The log was cut, for it parted from the leader's."""

    before: Offset
    after: Offset
    high_watermark: Offset
    """Before the cut."""
    start_before: Offset
    start_after: Offset


class VisibleMoved(NamedTuple):
    """The high watermark moved: consumers may read more, and writes are committed."""

    sent: Offset
    """To a follower: what its leader said; to a leader: its own high watermark."""


class StartLearned(NamedTuple):
    """The leader's log starts at this offset."""

    offset: Offset


RaftEffect = (
    PersistVote
    | FlushLog
    | Ask
    | Answer
    | Led
    | Configured
    | Followed
    | Wrote
    | Cut
    | VisibleMoved
    | StartLearned
)
"""What a group's member may ask of its host, or tell it; performed in order."""


# -- rules that the tests plant defects in -------------------------------------------------------


class RaftRules:
    """The decisions on which Raft's safety rests, one method each. Without state."""

    def is_up_to_date(
        self, last_term: LeaderEpoch, last_offset: Offset, own_term: LeaderEpoch, own_end: Offset
    ) -> bool:
        """Whether a candidate's log lets it lead this voter (Raft, section 5.4.1)."""
        return up_to_date(last_term, last_offset, own_term, own_end)

    def may_commit(self, offset: Offset, term_start: Offset) -> bool:
        """Whether what a majority has is committed: only under a record of the leader's own term.

        What an earlier leader wrote could be overwritten by a third one although a majority has it
        (Raft, section 5.4.2, figure 8).
        """
        return offset > term_start

    def durable_end(self, end: Offset, flushed: Offset) -> Offset:
        """How much of its log a member counts with: what it has flushed (Redpanda)."""
        return min(end, flushed)

    def reached(self, ends: list[Offset]) -> Offset:
        """How far a majority has come."""
        return reached_by_majority(ends)

    def voters_needed(self, voters: int) -> int:
        """How many of the voters make a majority."""
        return voters // 2 + 1

    def electorates(self, membership: Membership) -> tuple[Nodes, ...]:
        """Each of these has to agree by a majority: the voters, and the old ones while they count.

        Source: Raft, section 6.
        """
        voters, old, _ = membership
        return (voters, old) if old else (voters,)

    def may_change(self, *, is_settled: bool) -> bool:
        """Whether a leader may write another membership: only when the last in its log is settled.

        The record that opens a leader's term says who is a member, too; so nothing is changed
        before one of its own records is committed, either. Without that, two leaders' changes could
        each find a majority that misses the other's (Ongaro, 2015: "bug in single-server membership
        changes").
        """
        return is_settled


RULES: Final = RaftRules()
"""Raft as it is."""


def term_before(log: ReplicaLog, offset: Offset) -> LeaderEpoch:
    """Term of the record right before an offset of the log; -1 if the log has no such record."""
    if not log.log_start_offset < offset <= log.log_end_offset:
        return -1
    term = log.latest_epoch
    while term >= 0:
        # Where the term began is where the one before it ended.
        former = log.end_offset_for_epoch(term - 1)
        if former.offset < offset:
            return term
        term = former.epoch
    return -1
