"""State of Raft groups on a broker's disks, and the effects that write it.

Declared below the groups, beside Kafka's own replication: both are one data plane, whose effects
are one union.
"""

from dataclasses import dataclass
from typing import NamedTuple

from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition


class Membership(NamedTuple):
    """A configuration of a group.

    A voter is never a learner at the same time, nor is anybody listed twice in one place.
    """

    voters: tuple[NodeId, ...] = ()
    """In the order of the assignment, whose first one should lead; nobody: not known yet."""
    old: tuple[NodeId, ...] = ()
    """Voters before, as long as a majority of them must agree, too; empty: none."""
    learners: tuple[NodeId, ...] = ()
    """Are sent everything, neither vote nor count."""


class CommittedMembership(NamedTuple):
    """A committed membership and the offset of its record."""

    offset: Offset
    """-1: no record, the membership is that with which the partition was created."""
    membership: Membership


class RaftVote(NamedTuple):
    """The term and the vote of a member, which survive restarts."""

    term: LeaderEpoch = 0
    voted_for: NodeId = -1
    """-1: nobody."""


class PersistRaftVote(NamedTuple):
    """Writes a group's vote and fsyncs it; see :class:`PersistRaftVotes`."""

    partition: TopicPartition
    vote: RaftVote
    settled: CommittedMembership
    """The group's committed membership."""


class PersistRaftVotes(NamedTuple):
    """Writes all votes of one decision and fsyncs them together; later effects wait."""

    votes: tuple[PersistRaftVote, ...]


class FlushRaftLog(NamedTuple):
    """Makes a log durable up to an offset; later effects do not wait.

    Completes with :class:`RaftFlushed`.
    """

    partition: TopicPartition
    up_to: Offset
    generation: int


@dataclass(frozen=True, slots=True)
class RaftFlushed:
    """Event: the fsync of a :class:`FlushRaftLog` is done."""

    partition: TopicPartition
    up_to: Offset
    generation: int
