"""Events between the consumer and the producer of one task.

A round is everything between two commits. Both sides number the rounds: events of a round that the
other side has ended meanwhile are dropped.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.clients.consumer.effects import Deliver
from sim.units import Micros

OffsetsCommit: TypeAlias = Literal["inside", "after", "before", "auto"]
"""Commit of a task's input: inside the transaction of its outputs, after they were acknowledged, or
before they are made; ``auto``: its client auto-commits, whatever the outcome."""


@dataclass(frozen=True, slots=True)
class WorkTaken:
    """The application begins to process a poll's records; outputs are made meanwhile."""

    round: int
    pieces: tuple[Deliver, ...]
    begun_us: Micros
    """By the host's clock."""
    each_us: Micros
    """Time of each input record; its outputs are sent at the end of it."""


@dataclass(frozen=True, slots=True)
class WorkEnding:
    """The application ends the round: every output is to be written, or the round rolled back."""

    round: int
    commits: bool
    """True to commit the round; if not, a transaction is aborted."""
    group: str = ""
    member: str = ""
    generation: int = -1
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...] = ()
    """Offsets for the transaction; none if the input is committed outside of it."""
    instance: str = ""
    """``group.instance.id`` of a static member."""


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """The round has ended on the producer's side, also without a request."""

    round: int
    ok: bool
    """True if every output is acknowledged, and the transaction, if there is one, committed."""
    is_fenced: bool = False
    """True if the producer was fenced, and another one replaces it."""
