"""Conversion of groups with members between the classic and the consumer protocol (KIP-848).

A classic group becomes a consumer group in its generation, with its last assignment, and its
members keep their protocol; a consumer group whose other members have left becomes a classic group
in its epoch, with its target assignment. Nothing here changes a group.

Source: ``ConsumerGroup.{fromClassicGroup,createConsumerGroupRecords,createGroupTombstoneRecords}``,
``ClassicGroup.fromConsumerGroup``.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from sim.ids import TopicPartition
from sim.protocol.coordinator.group.classic_state import Group, Member
from sim.protocol.coordinator.group.consumer_group_records import (
    CURRENT_KEY,
    GROUP_KEYS,
    MEMBER_KEY,
    TARGET_KEY,
    ClassicMember,
    ConsumerGroupEpochRecord,
    ConsumerGroupRecord,
    GroupKeyTombstone,
    MemberTombstone,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
)
from sim.protocol.coordinator.group.consumer_group_state import (
    ConsumerGroup,
    ConsumerGroupMember,
    metadata_hash,
)
from sim.protocol.metadata.image import MetadataImage

_Renamed: TypeAlias = Callable[[tuple[TopicPartition, ...]], tuple[TopicPartition, ...]]
"""Partitions, by topic id instead of by name, or the other way round."""


def consumer_group_records(
    group: Group, by_id: _Renamed, image: MetadataImage, *, dates_assignments: bool
) -> list[ConsumerGroupRecord]:
    """Records of the consumer group that a classic group becomes, in the order of the log.

    Args:
        group: The classic group, of any state.
        by_id: Names partitions by topic id.
        image: The broker's metadata.
        dates_assignments: True if the epochs of partitions are written (4.3).
    """
    name, epoch = group.name, group.generation
    members = [
        _converted(member, epoch, by_id, dates_assignments=dates_assignments)
        for member in group.members.values()
    ]
    known = {member.member_id: member for member in members}
    fingerprint = metadata_hash(ConsumerGroup(name, group.partition, members=known), image)
    return [
        *(member.subscription(name) for member in members),
        ConsumerGroupEpochRecord(name, epoch, fingerprint),
        *(TargetAssignmentMemberRecord(name, m.member_id, m.assigned) for m in members),
        TargetAssignmentEpochRecord(name, epoch),
        *(member.assignment(name) for member in members),
    ]


def _converted(
    member: Member, epoch: int, by_id: _Renamed, *, dates_assignments: bool
) -> ConsumerGroupMember:
    said = member.subscription
    assigned = tuple(sorted(by_id(member.assignment)))
    return ConsumerGroupMember(
        member.member_id,
        said.rack,
        member.client_id,
        member.client_host,
        tuple(sorted(said.topics)),
        member.rebalance_timeout_us,
        instance_id=said.instance_id,
        classic=ClassicMember(member.session_timeout_us, member.protocols, said),
        epoch=epoch,
        previous_epoch=epoch,
        assigned=assigned,
        assigned_epochs=(epoch,) * len(assigned) if dates_assignments else (),
    )


def classic_members(group: ConsumerGroup, by_name: _Renamed) -> list[Member]:
    """Members of the classic group that a consumer group becomes; its others have left.

    Args:
        group: The consumer group.
        by_name: Names partitions by their topics' names.
    """
    return [
        Member(
            member.member_id,
            member.client_id,
            member.client_host,
            member.classic.subscription,
            member.classic.protocols,
            member.classic.session_timeout_us,
            member.rebalance_timeout_us,
            is_new=False,
            assignment=by_name(group.target.get(member.member_id, ())),
        )
        for member in group.members.values()
        if member.classic is not None
    ]


def group_tombstones(group: ConsumerGroup) -> list[ConsumerGroupRecord]:
    """Tombstones of a consumer group with its members, in the order of the log."""
    name, members = group.name, tuple(group.members)
    target_epoch, *others = GROUP_KEYS
    return [
        *(MemberTombstone(name, member, CURRENT_KEY) for member in members),
        *(MemberTombstone(name, member, TARGET_KEY) for member in members),
        GroupKeyTombstone(name, target_epoch),
        *(MemberTombstone(name, member, MEMBER_KEY) for member in members),
        *(GroupKeyTombstone(name, key) for key in others),
    ]


def supports(group: ConsumerGroup, protocols: Sequence[str]) -> bool:
    """True if one of the assignors is known to all members of the classic protocol.

    Source: ``ConsumerGroup.supportsClassicProtocols``.
    """
    known = [m.classic.protocols for m in group.members.values() if m.classic is not None]
    return any(all(name in theirs for theirs in known) for name in protocols)


def is_classic_without(group: ConsumerGroup, member_id: str) -> bool:
    """True if all members but this one, of which there are some, speak the classic protocol."""
    others = [member for key, member in group.members.items() if key != member_id]
    return bool(others) and all(member.classic is not None for member in others)


def awaits_release(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """True if a partition of the member's target is another's still.

    Source: ``ConsumerGroup.waitingOnUnreleasedPartition``.
    """
    owners = group.owners()
    target = group.target.get(member.member_id, ())
    return any(place in owners and place not in member.assigned for place in target)
