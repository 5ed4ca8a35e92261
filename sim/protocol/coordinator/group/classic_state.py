"""State of a classic group and its members at their coordinator.

Data with small predicates; the rules of the protocol are in
:mod:`sim.protocol.coordinator.group.classic`. Left out: protocols other than ``consumer``.

Source: ``org.apache.kafka.coordinator.group.classic.{ClassicGroup,ClassicGroupMember}``.
"""

from dataclasses import dataclass, field
from enum import Enum

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    MemberRecord,
    OffsetCommitRecord,
)
from sim.protocol.messages.group import JoinGroupRequest, OffsetCommitRequest
from sim.units import Micros


class GroupState(Enum):
    """State of a group; values are Kafka's names."""

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
    subscription: Subscription
    protocols: tuple[str, ...]
    session_timeout_us: Micros
    rebalance_timeout_us: Micros
    is_new: bool = True
    """True before its first generation: its join is held without a session."""
    join_token: int | None = None
    sync_token: int | None = None
    assignment: tuple[TopicPartition, ...] = ()
    session_ends_at: Micros = 0

    @property
    def instance_id(self) -> str:
        """``group.instance.id``; empty for a dynamic member."""
        return self.subscription.instance_id

    def says_the_same_as(self, request: JoinGroupRequest) -> bool:
        """True if a rejoin would change nothing for the assignor."""
        return self.subscription == request.subscription and self.protocols == request.protocols

    def update(self, request: JoinGroupRequest) -> None:
        """Applies the values of a rejoin."""
        self.subscription = request.subscription
        self.protocols = request.protocols
        self.session_timeout_us = request.session_timeout_us
        self.rebalance_timeout_us = request.rebalance_timeout_us

    def record(self) -> MemberRecord:
        """The member as written with its group."""
        return MemberRecord(
            self.member_id,
            self.client_id,
            self.client_host,
            self.rebalance_timeout_us,
            self.session_timeout_us,
            self.subscription,
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
    static: dict[str, str] = field(default_factory=dict)
    """Member ids by ``group.instance.id``."""
    pending: dict[str, Micros] = field(default_factory=dict)
    """Member ids given out and not joined yet, and their expiration."""
    pending_sync: dict[str, None] = field(default_factory=dict)
    """Members of this generation without a SyncGroup so far."""
    member_added: bool = False
    """A member joined during the initial delay, which is therefore extended."""
    initial_remaining_us: Micros = 0
    """Remaining time by which the initial delay may be extended."""
    initial_delay_us: Micros = 0
    offsets: dict[TopicPartition, tuple[Offset, LeaderEpoch]] = field(default_factory=dict)
    """Committed offsets only: those that OffsetFetch returns."""
    committed_ms: dict[TopicPartition, int] = field(default_factory=dict)
    """Commit time of each, in milliseconds since 1970."""
    empty_since_ms: int = 0
    """Time when the group last became Empty, in milliseconds since 1970."""

    def take_offset(self, record: OffsetCommitRecord) -> None:
        """Sets a committed offset."""
        self.offsets[record.partition] = (record.offset, record.leader_epoch)
        self.committed_ms[record.partition] = record.timestamp_ms

    def drop_offset(self, partition: TopicPartition) -> None:
        """Removes the partition's offset."""
        self.offsets.pop(partition, None)
        self.committed_ms.pop(partition, None)

    def move_to(self, state: GroupState) -> None:
        """Enters a state."""
        self.previous_state = self.state
        self.state = state

    def all_have_joined(self) -> bool:
        """True if every member has joined the next generation, and no id given out is pending."""
        return not self.pending and all(m.join_token is not None for m in self.members.values())

    def rebalance_timeout_us(self) -> Micros:
        """Longest rebalance timeout of its members."""
        return max((m.rebalance_timeout_us for m in self.members.values()), default=0)

    def accepts(self, member_id: str, size_max: int) -> bool:
        """True if there is a place for a member, with this id or (empty) a new one.

        Source: ``GroupMetadataManager.acceptJoiningMember``; KIP-389.
        """
        if self.state in {GroupState.EMPTY, GroupState.DEAD}:
            return True
        member = self.members.get(member_id)
        if self.state is not GroupState.PREPARING:
            return member is not None or len(self.members) < size_max
        if member is not None and member.join_token is not None:
            return True
        return sum(m.join_token is not None for m in self.members.values()) < size_max

    def member_error(self, member_id: str, instance_id: str) -> ErrorCode:
        """NONE for a member as it is known; FENCED_INSTANCE_ID if another has its instance id.

        Source: ``ClassicGroup.validateMember``.
        """
        if instance_id:
            known = self.static.get(instance_id)
            if known is not None and known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports(self, protocols: tuple[str, ...]) -> bool:
        """True if a member with these protocols could agree with all others."""
        if not protocols:
            return False
        return not self.members or any(name in protocols for name in self._common_protocols())

    def vote(self) -> str:
        """Protocol that most members prefer among those that all support; the first at a tie.

        Raises:
            AssertionError: If there is none: members are admitted only if they agree on one.
        """
        common = self._common_protocols()
        votes = dict.fromkeys(common, 0)
        for member in self.members.values():
            votes[next(name for name in member.protocols if name in common)] += 1
        return max(votes, key=lambda name: votes[name])

    def begin_generation(self) -> None:
        """Increments the generation, and enters CompletingRebalance, or Empty without members.

        The leader must have joined, or be elected by :meth:`elect_joined_leader`.
        """
        self.generation += 1
        self.pending_sync.clear()
        if not self.members:
            self.protocol = self.leader = ""
            self.move_to(GroupState.EMPTY)
            return
        self.protocol = self.vote()
        self.move_to(GroupState.COMPLETING)

    def elect_joined_leader(self) -> bool:
        """Elects a leader among joined members, the former one if possible; true if there is one.

        Source: ``ClassicGroup.maybeElectNewJoinedLeader``.
        """
        joined = [m.member_id for m in self.members.values() if m.join_token is not None]
        if self.leader not in joined and joined:
            self.leader = joined[0]
        return bool(joined)

    def roster(self) -> tuple[tuple[str, Subscription], ...]:
        """Members' subscriptions, for the leader."""
        return tuple((m.member_id, m.subscription) for m in self.members.values())

    def add(self, member: Member) -> None:
        """Adds a member."""
        self.members[member.member_id] = member
        if member.instance_id:
            self.static[member.instance_id] = member.member_id

    def remove(self, member: Member) -> None:
        """Removes a member; if it was leader, the first one left becomes leader."""
        del self.members[member.member_id]
        self.pending_sync.pop(member.member_id, None)
        self.static.pop(member.instance_id, None)
        if self.leader == member.member_id:
            self.leader = next(iter(self.members), "")

    def replace(self, member: Member, member_id: str) -> None:
        """A static member gets another id, and stays leader if it was."""
        if self.leader == member.member_id:
            self.leader = member_id
        del self.members[member.member_id]
        self.pending_sync.pop(member.member_id, None)
        member.member_id = member_id
        self.add(member)

    @property
    def is_unused(self) -> bool:
        """True without members, ids that were given out, and offsets."""
        return not (self.members or self.pending or self.offsets)

    def clear(self) -> None:
        """Leaves the committed offsets alone: of another kind of group, or of none."""
        self.generation, self.protocol, self.leader = 0, "", ""
        for known in (self.members, self.static, self.pending, self.pending_sync):
            known.clear()
        self.move_to(GroupState.EMPTY)

    def record(self, timestamp_ms: int) -> GroupMetadataRecord:
        """The group as a record."""
        return GroupMetadataRecord(
            self.name,
            self.generation,
            self.protocol,
            self.leader,
            timestamp_ms,
            tuple(member.record() for member in self.members.values()),
        )

    def restore(self, record: GroupMetadataRecord) -> None:
        """Restores the state of a record: Stable with its members, or Empty without."""
        self.generation = record.generation
        self.protocol = record.protocol
        self.leader = record.leader
        self.empty_since_ms = record.timestamp_ms
        self.members.clear()
        self.static.clear()
        for member in record.members:
            self.add(_restored(member, record.protocol))
        self.move_to(GroupState.STABLE if self.members else GroupState.EMPTY)

    def _common_protocols(self) -> list[str]:
        first, *others = self.members.values()
        return [name for name in first.protocols if all(name in m.protocols for m in others)]


def commit_error(group: Group | None, request: OffsetCommitRequest) -> ErrorCode:
    """Kafka's checks of an offset commit in Kafka's order; ``None`` is no group.

    Source: ``ClassicGroup.validateOffsetCommit``.
    """
    if group is None:
        known = request.generation < 0
        return ErrorCode.NONE if known else ErrorCode.GROUP_ID_NOT_FOUND
    if request.generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE  # a consumer that only keeps its offsets here
    error = group.member_error(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.COMPLETING:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _restored(record: MemberRecord, protocol: str) -> Member:
    # Only the chosen protocol is written; others come with members' next joins.
    return Member(
        record.member_id,
        record.client_id,
        record.client_host,
        record.subscription,
        (protocol,),
        record.session_timeout_us,
        record.rebalance_timeout_us,
        is_new=False,
        assignment=record.assignment,
    )
