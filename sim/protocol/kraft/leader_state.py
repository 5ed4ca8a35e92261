"""A quorum leader's state of voters and observers, and the fetches parked at it.

Arithmetic only; called by :mod:`sim.protocol.kraft.raft`.

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
"""An observer must have caught up within this time to be added as a voter; a constant in Kafka."""


@dataclass(slots=True)
class ObserverState:
    """State of an observer at the leader."""

    end: Offset = -1
    fetched_at: Micros = -1
    caught_up_at: Micros = -1
    """Last time at which it had everything that the leader had then; -1: never."""
    leader_end: Offset = -1
    """The leader's log end at its last fetch."""

    def note_fetch(self, offset: Offset, leader_end: Offset, now: Micros) -> None:
        """Notes a fetch: it has everything below the offset.

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
        """True if it can become a voter without delaying commits for long."""
        return self.caught_up_at >= 0 and self.fetched_at > now - CAUGHT_UP_WITHIN_US


@dataclass(slots=True)
class VoterChange:
    """The change of the voters in progress."""

    token: int | None
    """Request to answer; ``None``: already answered with a timeout."""
    voters: tuple[Voter, ...]
    """Voters after the change."""
    adds: bool
    deadline: Micros
    added: Voter | None = None
    """The new voter, until its ApiVersions response has come."""
    offset: Offset = -1
    """Offset of the record; -1: it has not been appended."""
    answers_early: bool = False
    """True if the record's append is answered, not its commit."""


@dataclass(slots=True)
class ParkedFetch:
    """A fetch that waits for records, or since KIP-1166 for a higher high watermark."""

    token: int
    request: QuorumFetchRequest
    deadline: Micros
    high_watermark: Offset
    """The leader's when the fetch came: that of its response if it expires."""


@dataclass(slots=True)
class Leadership:
    """One leadership, from election to its end."""

    node: NodeId
    voters: tuple[NodeId, ...]
    epoch_start: Offset
    granting: tuple[NodeId, ...]
    accumulator: BatchAccumulator
    """Records of the controller that are not in the log yet."""
    end_offsets: dict[NodeId, Offset] = field(default_factory=dict)
    """Log ends of the other voters, by their fetches in this epoch."""
    acknowledged: dict[NodeId, None] = field(default_factory=dict)
    """Voters that have acknowledged this leadership."""
    in_contact: dict[NodeId, None] = field(default_factory=dict)
    """Voters that fetched since the check-quorum timer was last reset."""
    high_watermark: Offset = -1
    """-1 until a record of this epoch is committed."""
    parked: list[ParkedFetch] = field(default_factory=list)
    park_timer_at: Micros = NEVER
    observers: dict[Voter, ObserverState] = field(default_factory=dict)
    """Of a dynamic quorum: members that fetch without a vote."""
    change: VoterChange | None = None

    def update_voters(self, former: tuple[Voter, ...], voters: tuple[Voter, ...]) -> None:
        """Changes the voters; the state of each that fetches is kept.

        Source: ``LeaderState.updateVoterAndObserverStates``.
        """
        for voter in former:
            if voter not in voters:
                known = self.observers.setdefault(voter, ObserverState())
                known.end = self.end_offsets.pop(voter.node, -1)
                self.acknowledged.pop(voter.node, None)
        for voter in voters:
            observed = self.observers.pop(voter, None)
            if observed is not None and voter not in former:
                self.end_offsets[voter.node] = observed.end
                self.acknowledged[voter.node] = None
        self.voters = tuple(voter.node for voter in voters)

    def committable(self, own_end: Offset) -> Offset:
        """Largest offset up to which a majority of the voters has the log.

        Not yet committed by that: see :meth:`may_commit`.
        """
        return reached_by_majority(
            own_end if v == self.node else self.end_offsets.get(v, -1) for v in self.voters
        )

    def may_commit(self, offset: Offset) -> bool:
        """True if the offset moves the high watermark.

        A record of the leader's own epoch must be below it: records of an earlier leader could be
        overwritten by a third one although a majority has them (Raft, section 5.4.2).
        """
        return offset > self.epoch_start and offset > self.high_watermark

    def note_contact(self, voter: NodeId) -> bool:
        """Notes a voter's fetch; true if a majority, with this leader, has fetched by now."""
        if voter not in self.voters:
            return False
        self.in_contact[voter] = None
        others_needed = (len(self.voters) // 2 + 1) - (self.node in self.voters)
        if len(self.in_contact) < others_needed:
            return False
        self.in_contact.clear()
        return True

    def non_acknowledging(self) -> tuple[NodeId, ...]:
        """Voters that have not acknowledged this leadership."""
        return tuple(v for v in self.voters if v != self.node and v not in self.acknowledged)

    def successors(self) -> tuple[NodeId, ...]:
        """The other voters as preferred successors: longest log first."""
        others = [v for v in self.voters if v != self.node]
        return tuple(sorted(others, key=lambda v: (-self.end_offsets.get(v, -1), v)))

    def take_parked(self, *, end: Offset, now: Micros, on_commit: bool) -> list[ParkedFetch]:
        """Takes fetches to be answered now: for records, a new high watermark, or their timeout.

        Each with the high watermark of its response. That of an expired fetch was made when it
        came; a commit since then is in it only if commits wake fetches (``on_commit``, KIP-1166).

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
