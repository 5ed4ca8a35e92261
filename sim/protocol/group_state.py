"""A classic group and its members, as their coordinator holds them in memory.

Data with the small questions one asks of it; the rules of who may do what when are in
:mod:`sim.protocol.group_membership`. Left out: static members (``group.instance.id``) and protocols
other than ``consumer``.

Source: ``org.apache.kafka.coordinator.group.classic.{ClassicGroup,ClassicGroupMember}``.
"""

from dataclasses import dataclass, field
from enum import Enum

from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.group_records import GroupMetadataRecord, MemberRecord
from sim.protocol.messages import JoinGroupRequest
from sim.units import Micros


class GroupState(Enum):
    """Where a group stands; values are Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(slots=True)
class Member:
    """One member; ``join_token`` and ``sync_token`` are its parked requests, ``None`` for none."""

    member_id: str
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    protocols: tuple[str, ...]
    owned: tuple[TopicPartition, ...]
    session_timeout_us: Micros
    rebalance_timeout_us: Micros
    is_new: bool = True
    """It has never been answered with a generation: its join is held without a session."""
    join_token: int | None = None
    sync_token: int | None = None
    assignment: tuple[TopicPartition, ...] = ()
    session_ends_at: Micros = 0

    def says_the_same_as(self, request: JoinGroupRequest) -> bool:
        """Whether a rejoin would change nothing for the assignor."""
        return (
            self.topics == request.topics
            and self.protocols == request.protocols
            and self.owned == request.owned
        )

    def update(self, request: JoinGroupRequest) -> None:
        """Take over what a rejoin says."""
        self.topics = request.topics
        self.protocols = request.protocols
        self.owned = request.owned
        self.session_timeout_us = request.session_timeout_us
        self.rebalance_timeout_us = request.rebalance_timeout_us

    def record(self) -> MemberRecord:
        """The member as it is written with its group."""
        return MemberRecord(
            self.member_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_us,
            self.session_timeout_us,
            self.topics,
            self.assignment,
        )


@dataclass(slots=True)
class Group:
    """One group. Changed only by its coordinator."""

    name: str
    partition: int
    """Of ``__consumer_offsets``."""
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    """In the order in which they joined."""
    pending: dict[str, Micros] = field(default_factory=dict)
    """Ids given out whose member has not joined with them yet, and when they lapse."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    """Members of this generation that have not asked for their assignment yet."""
    member_added: bool = False
    """A member joined during the initial delay, which is therefore extended."""
    initial_remaining_us: Micros = 0
    """How much longer the initial delay may be extended."""
    initial_delay_us: Micros = 0
    offsets: dict[TopicPartition, tuple[Offset, LeaderEpoch]] = field(default_factory=dict)
    """Committed offsets only: what an OffsetFetch may see."""

    def move_to(self, state: GroupState) -> None:
        """Enter a state."""
        self.previous_state = self.state
        self.state = state

    def all_have_joined(self) -> bool:
        """Every member waits for the next generation, and no id given out is unused."""
        return not self.pending and all(m.join_token is not None for m in self.members.values())

    def rebalance_timeout_us(self) -> Micros:
        """The longest of its members."""
        return max((m.rebalance_timeout_us for m in self.members.values()), default=0)

    def supports(self, protocols: tuple[str, ...]) -> bool:
        """Whether someone with these protocols could agree with all members."""
        if not protocols:
            return False
        return not self.members or any(name in protocols for name in self._common_protocols())

    def vote(self) -> str:
        """The protocol most members prefer among those that all support; the first at a tie.

        Raises:
            AssertionError: If there is none: members are let in only if they agree on one.
        """
        common = self._common_protocols()
        votes = dict.fromkeys(common, 0)
        for member in self.members.values():
            votes[next(name for name in member.protocols if name in common)] += 1
        return max(votes, key=lambda name: votes[name])

    def begin_generation(self) -> None:
        """Count on, and enter CompletingRebalance, or Empty if nobody is left."""
        self.generation += 1
        self.pending_sync.clear()
        if not self.members:
            self.protocol = self.leader = ""
            self.move_to(GroupState.EMPTY)
            return
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.protocol = self.vote()
        self.move_to(GroupState.COMPLETING)

    def roster(self) -> tuple[tuple[str, tuple[str, ...], tuple[TopicPartition, ...]], ...]:
        """What the leader is told of all members: id, topics, owned partitions."""
        return tuple((m.member_id, m.topics, m.owned) for m in self.members.values())

    def record(self, timestamp_ms: int) -> GroupMetadataRecord:
        """The group as it is written."""
        return GroupMetadataRecord(
            self.name,
            self.generation,
            self.protocol,
            self.leader,
            timestamp_ms,
            tuple(member.record() for member in self.members.values()),
        )

    def restore(self, record: GroupMetadataRecord) -> None:
        """Become what a record says: Stable with its members, or Empty without."""
        self.generation = record.generation
        self.protocol = record.protocol
        self.leader = record.leader
        self.members = {m.member_id: _restored(m, record.protocol) for m in record.members}
        self.move_to(GroupState.STABLE if self.members else GroupState.EMPTY)

    def _common_protocols(self) -> list[str]:
        first, *others = self.members.values()
        return [name for name in first.protocols if all(name in m.protocols for m in others)]


def _restored(record: MemberRecord, protocol: str) -> Member:
    # Only the protocol chosen is written; a member that prefers another says so when it rejoins.
    return Member(
        record.member_id,
        record.client_id,
        record.client_host,
        record.topics,
        (protocol,),
        (),
        record.session_timeout_us,
        record.rebalance_timeout_us,
        is_new=False,
        assignment=record.assignment,
    )
