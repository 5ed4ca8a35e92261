"""One step of a member from what it has towards what it is to have (KIP-848).

A partition goes to a member only when nobody has it: a member that is to give some up keeps its
epoch until it says that it has, and one that is to get some waits until they are free. There is no
barrier that all members have to reach.

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
    """The member as it is after a heartbeat; the same if it cannot go on.

    Args:
        member: As it stands.
        target_epoch: Of the target assignment.
        target: What the member is to have, of topics that it subscribes to.
        owners: Who has each partition or still has to give it up.
        owned: What the member says it reads; ``None`` if it does not say.
    """
    if member.state is MemberState.STABLE and member.epoch == target_epoch:
        return member
    unrevoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if unrevoked and _still_owns(owned, member.pending_revocation):
        return member
    wanted = frozenset(target)
    keeps = tuple(p for p in member.assigned if p in wanted)
    revokes = tuple(p for p in member.assigned if p not in wanted)
    missing = [p for p in target if p not in keeps]
    # What it was to give up is its own, should the target have changed its mind.
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


def _still_owns(
    owned: tuple[TopicPartition, ...] | None, revoked: tuple[TopicPartition, ...]
) -> bool:
    return owned is None or any(partition in revoked for partition in owned)
