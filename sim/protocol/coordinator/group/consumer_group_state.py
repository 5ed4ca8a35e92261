"""State of a consumer-protocol group or a share group at its coordinator.

In a share group (KIP-932) members revoke nothing before others are assigned it, unlike in the
consumer protocol (KIP-848).

Everything here follows from records: :meth:`ConsumerGroup.replay` is the only way to change it.
Partitions are named by topic id.

Source: ``org.apache.kafka.coordinator.group.modern.consumer.{ConsumerGroup,ConsumerGroupMember}``.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias, assert_never

from sim.ids import NodeId, TopicPartition
from sim.protocol.coordinator.group.consumer_group_records import (
    CURRENT_KEY,
    SHARE_CURRENT_KEY,
    SHARE_TARGET_KEY,
    TARGET_KEY,
    ClassicMember,
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerGroupRecord,
    CurrentMemberAssignmentRecord,
    GroupKeyTombstone,
    MemberState,
    MemberTombstone,
    SharedTopic,
    ShareStatePartitionsRecord,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
)
from sim.protocol.messages.consumer_group import LEAVE_EPOCH
from sim.protocol.metadata.image import MetadataImage
from sim.trace.emit import Emit
from sim.trace.rows.clients import GroupMembers
from sim.units import Micros


class ConsumerGroupState(Enum):
    """State of a group; values are Kafka's names."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class ConsumerGroupMember:
    """One member; a new one has epoch 0 and no partitions."""

    member_id: str
    rack_id: str = ""
    client_id: str = ""
    client_host: str = ""
    topics: tuple[str, ...] = ()
    rebalance_timeout_us: Micros = 0
    server_assignor: str = ""
    instance_id: str = ""
    """``group.instance.id``; empty for a dynamic member."""
    classic: ClassicMember | None = None
    """Its JoinGroup in the classic protocol; ``None`` if it speaks the consumer protocol."""
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: tuple[TopicPartition, ...] = ()
    pending_revocation: tuple[TopicPartition, ...] = ()
    assigned_epochs: tuple[int, ...] = ()
    """Epoch at which each was assigned (KIP-1251); empty before 4.3."""
    pending_epochs: tuple[int, ...] = ()

    def assignment_epochs(self) -> dict[TopicPartition, int]:
        """Epoch at which each partition was assigned, also those pending revocation.

        Where the log does not say it, that is the member's epoch.

        Source: ``Utils.assignmentFromTopicPartitions`` (4.3).
        """
        places = (*self.pending_revocation, *self.assigned)
        epochs = (*self.pending_epochs, *self.assigned_epochs)
        if len(epochs) != len(places):
            return dict.fromkeys(places, max(self.epoch, 0))
        return dict(zip(places, epochs, strict=True))

    def is_reconciled_to(self, target_epoch: int) -> bool:
        """True if it has its target assignment of that epoch."""
        return self.state is MemberState.STABLE and self.epoch == target_epoch

    def subscription(self, group: str, *, share: bool = False) -> ConsumerGroupMemberRecord:
        """The member's metadata as a record."""
        return ConsumerGroupMemberRecord(
            group,
            self.member_id,
            self.rack_id,
            self.client_id,
            self.client_host,
            self.topics,
            self.rebalance_timeout_us,
            self.server_assignor,
            share,
            self.instance_id,
            self.classic,
        )

    def assignment(self, group: str, *, share: bool = False) -> CurrentMemberAssignmentRecord:
        """The member's present assignment as a record."""
        return CurrentMemberAssignmentRecord(
            group,
            self.member_id,
            self.epoch,
            self.previous_epoch,
            self.state,
            self.assigned,
            self.pending_revocation,
            share,
            self.assigned_epochs,
            self.pending_epochs,
        )


@dataclass(slots=True)
class ConsumerGroup:
    """One group."""

    name: str
    partition: int
    """Of ``__consumer_offsets``."""
    share: bool = False
    """True if it is a share group."""
    epoch: int = 0
    metadata_hash: int = 0
    assignment_epoch: int = 0
    assigned_at_ms: int = 0
    """Milliseconds since 1970 at which the target assignment was computed; 0 if that is not known
    (before 4.3)."""
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    """In the order in which they joined."""
    target: dict[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    """Target assignment by member; members that joined since have no entry."""
    initializing: tuple[SharedTopic, ...] = ()
    """A share group's partitions whose states are being made."""
    initialized: tuple[SharedTopic, ...] = ()
    """A share group's partitions that may be assigned."""
    initializing_since_us: Micros = 0
    """Instant of the last change of either."""

    @property
    def state(self) -> ConsumerGroupState:
        """State of the group; members of a share group own nothing that another one waits for.

        Source: ``maybeUpdateGroupState`` of ``ConsumerGroup`` and ``ShareGroup``.
        """
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.share:
            return ConsumerGroupState.STABLE
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        epoch = self.assignment_epoch
        if all(member.is_reconciled_to(epoch) for member in self.members.values()):
            return ConsumerGroupState.STABLE
        return ConsumerGroupState.RECONCILING

    @property
    def is_new(self) -> bool:
        """True before its first epoch, and after its deletion."""
        return self.epoch == 0 and not self.members

    def copy(self) -> "ConsumerGroup":
        """A copy of the group; members are immutable and shared."""
        return replace(self, members=dict(self.members), target=dict(self.target))

    def static_member(self, instance_id: str) -> ConsumerGroupMember | None:
        """Member with an instance id; ``None`` without one."""
        known = self.members.values()
        return next((member for member in known if member.instance_id == instance_id), None)

    def owners(self) -> dict[TopicPartition, str]:
        """Owner of each partition, also while it is pending revocation."""
        return {
            partition: member.member_id
            for member in self.members.values()
            for partition in (*member.assigned, *member.pending_revocation)
        }

    def assignor(self, known: tuple[str, ...]) -> str:
        """Assignor that most members prefer, or the coordinator's first.

        Source: ``ConsumerGroup.computePreferredServerAssignor``.
        """
        votes: dict[str, int] = {}
        for member in self.members.values():
            if member.server_assignor:
                votes[member.server_assignor] = votes.get(member.server_assignor, 0) + 1
        return max(votes, key=lambda name: votes[name]) if votes else known[0]

    def replay(self, record: ConsumerGroupRecord) -> None:
        """Applies a record."""
        match record:
            case ConsumerGroupEpochRecord():
                self.epoch, self.metadata_hash = record.epoch, record.metadata_hash
            case ConsumerGroupMemberRecord():
                self._subscribe(record)
            case TargetAssignmentEpochRecord():
                self.assignment_epoch = record.epoch
                self.assigned_at_ms = record.timestamp_ms
            case TargetAssignmentMemberRecord():
                self.target[record.member_id] = record.partitions
            case CurrentMemberAssignmentRecord():
                self.members[record.member_id] = replace(
                    self._member(record.member_id),
                    epoch=record.epoch,
                    previous_epoch=record.previous_epoch,
                    state=record.state,
                    assigned=record.assigned,
                    pending_revocation=record.pending_revocation,
                    assigned_epochs=record.assigned_epochs,
                    pending_epochs=record.pending_epochs,
                )
            case ShareStatePartitionsRecord():
                self.initializing, self.initialized = record.initializing, record.initialized
                self.initializing_since_us = record.since_us
            case MemberTombstone():
                self._forget(record)
            case GroupKeyTombstone():
                self.epoch = self.metadata_hash = self.assignment_epoch = 0
            case _:
                assert_never(record)

    def _subscribe(self, record: ConsumerGroupMemberRecord) -> None:
        self.members[record.member_id] = replace(
            self._member(record.member_id),
            rack_id=record.rack_id,
            client_id=record.client_id,
            client_host=record.client_host,
            topics=record.topics,
            rebalance_timeout_us=record.rebalance_timeout_us,
            server_assignor=record.server_assignor,
            instance_id=record.instance_id,
            classic=record.classic,
        )

    def _member(self, member_id: str) -> ConsumerGroupMember:
        return self.members.get(member_id) or ConsumerGroupMember(member_id)

    def _forget(self, record: MemberTombstone) -> None:
        member = self.members.get(record.member_id)
        if record.key_type in {TARGET_KEY, SHARE_TARGET_KEY}:
            self.target.pop(record.member_id, None)
        elif record.is_last:
            self.members.pop(record.member_id, None)
        elif record.key_type in {CURRENT_KEY, SHARE_CURRENT_KEY} and member is not None:
            self.members[record.member_id] = replace(
                member,
                epoch=0,
                previous_epoch=0,
                state=MemberState.STABLE,
                assigned=(),
                pending_revocation=(),
                assigned_epochs=(),
                pending_epochs=(),
            )


def metadata_hash(group: ConsumerGroup, image: MetadataImage) -> int:
    """Hash of the subscribed topics; Kafka's is another function of the same.

    Source: ``Utils.computeGroupHash``.
    """
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    known = [topic for topic in sorted(subscribed) if topic in image.topic_ids]
    if not known:
        return 0
    said = ";".join(f"{t} {image.topic_ids[t]} {image.partition_counts[t]}" for t in known)
    return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big", signed=True)


Places: TypeAlias = tuple[TopicPartition, ...]


def member_row(
    broker: NodeId, group: ConsumerGroup, member_id: str, by_name: Callable[[Places], Places]
) -> Emit:
    """Row of a member in the trace; of one that has left, with :data:`LEAVE_EPOCH`.

    Args:
        broker: Coordinator.
        group: State of the group.
        member_id: Member.
        by_name: Partitions by their topics' names, for those that are known by topic id.
    """
    member = group.members.get(member_id)
    shown = ConsumerGroupMember(member_id) if member is None else member
    return GroupMembers.row(
        broker,
        group.name,
        member_id=member_id,
        consumer=shown.client_host.removeprefix("/"),
        member_epoch=LEAVE_EPOCH if member is None else shown.epoch,
        state="GONE" if member is None else shown.state.name,
        assigned=",".join(map(str, by_name(shown.assigned))),
        pending_revocation=",".join(map(str, by_name(shown.pending_revocation))),
    )
