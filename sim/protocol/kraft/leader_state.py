"""What a quorum leader knows of the others, and the fetches that wait at it.

Arithmetic only; :mod:`sim.protocol.kraft.raft` decides when to ask it.

Source: ``org.apache.kafka.raft.LeaderState``; KIP-595, KIP-1166.
"""

from dataclasses import dataclass, field

from sim.ids import NodeId, Offset
from sim.protocol.kraft.batch_accumulator import BatchAccumulator
from sim.protocol.majority import reached_by_majority
from sim.protocol.messages.quorum import QuorumFetchRequest
from sim.protocol.metadata.records import Voter
from sim.units import NEVER, SECOND, Micros

CAUGHT_UP_WITHIN_US: Micros = 3_600 * SECOND
"""How recently an observer must have fetched to be added as a voter; a constant in Kafka."""


@dataclass(slots=True)
class Observed:
    """What a leader knows of one that fetches without a vote."""

    end: Offset = -1
    fetched_at: Micros = -1
    caught_up_at: Micros = -1
    """When it last had everything that the leader had then; -1: never."""
    leader_end: Offset = -1
    """Where the leader's log ended at its last fetch."""

    def note_fetch(self, offset: Offset, leader_end: Offset, now: Micros) -> None:
        """It has everything below the offset.

        Source: ``LeaderState.ReplicaState.updateFollowerState``.
        """
        if offset >= leader_end:
            self.caught_up_at = now
        elif 0 < self.leader_end <= offset:
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.leader_end = leader_end
        self.fetched_at = now
        self.end = offset

    def is_caught_up(self, now: Micros) -> bool:
        """Whether it may be made a voter without holding up commits for long."""
        return self.caught_up_at >= 0 and self.fetched_at > now - CAUGHT_UP_WITHIN_US


@dataclass(slots=True)
class VoterChange:
    """The one change of the voters that is under way."""

    token: int | None
    """Whom to answer; ``None``: has been told that it takes too long."""
    voters: tuple[Voter, ...]
    """Who shall vote."""
    adds: bool
    deadline: Micros
    added: Voter | None = None
    """The new voter, until it has said what it can do."""
    offset: Offset = -1
    """Where the record stands; -1: it has not been appended."""


@dataclass(slots=True)
class ParkedFetch:
    """A fetch that waits for records, or since KIP-1166 for a higher high watermark."""

    token: int
    request: QuorumFetchRequest
    deadline: Micros
    high_watermark: Offset
    """The leader's when the fetch came: its answer was made then, for the case that it expires."""


@dataclass(slots=True)
class Leadership:
    """One leadership, from election to its end."""

    node: NodeId
    voters: tuple[NodeId, ...]
    epoch_start: Offset
    granting: tuple[NodeId, ...]
    accumulator: BatchAccumulator
    """What the controller has appended and is not in the log yet."""
    end_offsets: dict[NodeId, Offset] = field(default_factory=dict)
    """Log ends of the other voters, as told by their fetches in this epoch."""
    acknowledged: dict[NodeId, None] = field(default_factory=dict)
    """Voters that know of this leadership."""
    in_contact: dict[NodeId, None] = field(default_factory=dict)
    """Voters that fetched since the check-quorum timer was last moved."""
    high_watermark: Offset = -1
    """-1 until a record of this epoch is committed."""
    parked: list[ParkedFetch] = field(default_factory=list)
    park_timer_at: Micros = NEVER
    observers: dict[Voter, Observed] = field(default_factory=dict)
    """Of a dynamic quorum: who fetches without a vote."""
    change: VoterChange | None = None

    def take_voters(self, former: tuple[Voter, ...], voters: tuple[Voter, ...]) -> None:
        """Others vote from now on; what is known of each that fetches stays known.

        Source: ``LeaderState.updateVoterAndObserverStates``.
        """
        for voter in former:
            if voter not in voters:
                known = self.observers.setdefault(voter, Observed())
                known.end = self.end_offsets.pop(voter.node, -1)
                self.acknowledged.pop(voter.node, None)
        for voter in voters:
            observed = self.observers.pop(voter, None)
            if observed is not None and voter not in former:
                self.end_offsets[voter.node] = observed.end
                self.acknowledged[voter.node] = None
        self.voters = tuple(voter.node for voter in voters)

    def committable(self, own_end: Offset) -> Offset:
        """The largest offset up to which a majority of the voters has the log.

        Not yet committed by that alone: see :meth:`may_commit`.
        """
        return reached_by_majority(
            own_end if v == self.node else self.end_offsets.get(v, -1) for v in self.voters
        )

    def may_commit(self, offset: Offset) -> bool:
        """Whether the offset moves the high watermark.

        A record of the leader's own epoch must be under it: what an earlier leader wrote could be
        overwritten by a third one although a majority has it (Raft, section 5.4.2).
        """
        return offset > self.epoch_start and offset > self.high_watermark

    def note_contact(self, voter: NodeId) -> bool:
        """A voter fetched. Whether a majority, this leader included, has done so by now."""
        if voter not in self.voters:
            return False
        self.in_contact[voter] = None
        others_needed = (len(self.voters) // 2 + 1) - (self.node in self.voters)
        if len(self.in_contact) < others_needed:
            return False
        self.in_contact.clear()
        return True

    def unaware(self) -> tuple[NodeId, ...]:
        """Voters that have not acknowledged this leadership."""
        return tuple(v for v in self.voters if v != self.node and v not in self.acknowledged)

    def successors(self) -> tuple[NodeId, ...]:
        """The other voters in the order in which they should stand: longest log first."""
        others = [v for v in self.voters if v != self.node]
        return tuple(sorted(others, key=lambda v: (-self.end_offsets.get(v, -1), v)))

    def take_parked(self, *, end: Offset, now: Micros, on_commit: bool) -> list[ParkedFetch]:
        """Fetches to be answered now: there are records, a new high watermark, or no time left.

        Each with the high watermark of its answer. That of an expired fetch was made when it came;
        a commit since then is in it only if commits wake fetches (``on_commit``, KIP-1166).

        Source: ``KafkaRaftClient.handleFetchRequest``.
        """
        due: list[ParkedFetch] = []
        still: list[ParkedFetch] = []
        for fetch in self.parked:
            request = fetch.request
            if request.fetch_offset < end or (
                on_commit and request.high_watermark < self.high_watermark
            ):
                fetch.high_watermark = self.high_watermark
                due.append(fetch)
            elif fetch.deadline <= now:
                due.append(fetch)
            else:
                still.append(fetch)
        self.parked = still
        return due
