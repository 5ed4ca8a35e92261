"""What passes between the two clients of one task, which reads, makes outputs and commits.

A round is everything between two commits. Both sides number the rounds: what belongs to a round
that the other side has ended meanwhile is dropped.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.clients.consumer.effects import Deliver
from sim.units import Micros

OffsetsCommit: TypeAlias = Literal["inside", "after", "before", "auto"]
"""When a task commits its input: inside the transaction of its outputs, after they were
acknowledged, or before they are made; ``auto``: its client commits what polls returned, whatever
became of it."""


@dataclass(frozen=True, slots=True)
class WorkTaken:
    """The application begins to process what a poll returned; outputs come as it goes on."""

    round: int
    pieces: tuple[Deliver, ...]
    begun_us: Micros
    """By the host's clock."""
    each_us: Micros
    """Time that each input record takes; its outputs are sent at the end of it."""


@dataclass(frozen=True, slots=True)
class WorkEnding:
    """The application wants every output of the round to be written, or the round given up."""

    round: int
    commits: bool
    """Whether the round is to be committed; if not, a transaction is aborted."""
    group: str = ""
    member: str = ""
    generation: int = -1
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...] = ()
    """What goes into the transaction; nothing if the input is committed outside of it."""


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """The round is over on the producer's side, asked for or not."""

    round: int
    ok: bool
    """Whether every output is acknowledged, and the transaction, if there is one, committed."""
    is_fenced: bool = False
    """Whether the producer was of no more use, and another one takes its place."""
