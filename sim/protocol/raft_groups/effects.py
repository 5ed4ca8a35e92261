"""What a broker's groups ask of its disks, partition by partition, and what comes back."""

from dataclasses import dataclass
from typing import NamedTuple

from sim.ids import Offset, TopicPartition
from sim.protocol.raft_groups.membership import Settled
from sim.protocol.raft_groups.types import RaftVote


class PersistRaftVote(NamedTuple):
    """Write a group's vote and fsync it; see :class:`PersistRaftVotes`."""

    partition: TopicPartition
    vote: RaftVote
    settled: Settled
    """The group's members, as far as they are committed."""


class PersistRaftVotes(NamedTuple):
    """Write all votes of one decision and fsync them together; effects behind it wait."""

    votes: tuple[PersistRaftVote, ...]


class FlushRaftLog(NamedTuple):
    """Make a log durable up to an offset, without holding up anything else.

    Comes back as :class:`RaftFlushed`.
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
