"""One reconciliation step of a member towards its target assignment (KIP-848).

A partition is assigned only when no member owns it: a member with partitions to revoke keeps its
epoch until it has acknowledged that, and one with partitions to get waits until they are free.
There is no barrier that all members have to reach.

Source: ``CurrentAssignmentBuilder`` of the group coordinator (4.3); subscriptions that change while
a member is in the group are left out.
"""

from collections.abc import Mapping
from dataclasses import replace

from sim.ids import TopicPartition
from sim.protocol.coordinator.group.consumer_group_records import MemberState
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroupMember


def reconcile(
    member: ConsumerGroupMember,
    target_epoch: int,
    target: tuple[TopicPartition, ...],
    owners: Mapping[TopicPartition, str],
    owned: tuple[TopicPartition, ...] | None,
) -> ConsumerGroupMember:
    """The member after a heartbeat; the same if it cannot advance.

    Args:
        member: The member.
        target_epoch: Of the target assignment.
        target: Its target assignment, of subscribed topics.
        owners: Owner of each partition, also while it is pending revocation.
        owned: Partitions in the heartbeat; ``None`` if absent.
    """
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if unrevoked and _still_owns(owned, member.pending_revocation):
        return member
    targets = frozenset(target)
    keeps = tuple(p for p in member.assigned if p in targets)
    revokes = tuple(p for p in member.assigned if p not in targets)
    missing = [p for p in target if p not in keeps]
    # Partitions pending revocation are its own again if the target has changed back.
    adds = [p for p in missing if p not in owners or p in member.pending_revocation]
    if revokes and _still_owns(owned, revokes):
        return replace(
            member,
            state=MemberState.UNREVOKED_PARTITIONS,
            previous_epoch=member.epoch,
            assigned=keeps,
            pending_revocation=revokes,
        )
    waits = len(adds) < len(missing)
    return replace(
        member,
        state=MemberState.UNRELEASED_PARTITIONS if waits else MemberState.STABLE,
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=tuple(sorted((*keeps, *adds))),
        pending_revocation=(),
    )


def drop_unsubscribed(
    member: ConsumerGroupMember,
    subscribed: tuple[str, ...],
    owned: tuple[TopicPartition, ...] | None,
) -> ConsumerGroupMember:
    """The member of a new subscription that has no target assignment yet, at its epoch.

    Args:
        member: The member, of the epoch of the last target assignment.
        subscribed: Ids of its topics.
        owned: Partitions in the heartbeat; ``None`` if absent.

    Source: ``CurrentAssignmentBuilder.updateCurrentAssignment`` (4.3).
    """
    keeps = tuple(p for p in member.assigned if p.topic in subscribed)
    if len(keeps) == len(member.assigned):
        return member
    dropped = tuple(p for p in member.assigned if p.topic not in subscribed)
    revokes = tuple(sorted((*member.pending_revocation, *dropped)))
    after = replace(member, previous_epoch=member.epoch, assigned=keeps)
    if not _still_owns(owned, revokes):
        return after
    return replace(after, state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=revokes)


def with_epochs(
    before: ConsumerGroupMember, after: ConsumerGroupMember, target_epoch: int
) -> ConsumerGroupMember:
    """The member after a heartbeat, with the epochs at which it was assigned its partitions.

    Args:
        before: The member before it.
        after: The member after it, with its partitions.
        target_epoch: Of the target assignment, from which new partitions are.

    Source: KIP-1251, ``CurrentAssignmentBuilder.computeNextAssignment`` (4.3).
    """
    if after is before:
        return before
    known = before.assignment_epochs()
    kept = {place: known[place] for place in before.assigned}
    return replace(
        after,
        assigned_epochs=tuple(kept.get(place, target_epoch) for place in after.assigned),
        pending_epochs=tuple(known.get(place, target_epoch) for place in after.pending_revocation),
    )


def _still_owns(
    owned: tuple[TopicPartition, ...] | None, revoked: tuple[TopicPartition, ...]
) -> bool:
    return owned is None or any(partition in revoked for partition in owned)
