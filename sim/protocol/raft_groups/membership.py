"""Membership of a partition's Raft group, and its changes.

New members begin as learners, which receive all records and count for nothing. A learner that has
caught up becomes a voter, one at a time. Voters leave by joint consensus: for a while a majority of
the old ones and a majority of those that stay must both agree. Each membership is a record of the
log, in force from its offset on, committed or not.

Left out: of the old configuration, a voter that leaves does not become a learner first; learners
that Redpanda's ``force_update`` and recovery from a lost majority would make.

Source: Raft, section 6, and sections 4.1 to 4.3 of the dissertation; Redpanda v25.1
``raft/group_configuration.cc``, ``consensus::maybe_commit_configuration``.
"""

from collections.abc import Callable

from sim.ids import NodeId
from sim.protocol.broker.raft_storage import Membership

Nodes = tuple[NodeId, ...]


def everyone(membership: Membership) -> Nodes:
    """All members, with the leader: voters, old voters, learners."""
    voters, old, learners = membership
    if not old and not learners:
        return voters
    return tuple(dict.fromkeys((*voters, *old, *learners)))


def electors(membership: Membership) -> Nodes:
    """All members whose vote counts in some majority."""
    if not membership.old:
        return membership.voters
    return tuple(dict.fromkeys((*membership.voters, *membership.old)))


def next_membership(
    membership: Membership, target: Nodes, is_ready: Callable[[NodeId], bool]
) -> Membership | None:
    """The next step towards the target; ``None`` without one, or while learners catch up.

    Args:
        membership: The present one, committed.
        target: The target's voters, in their order; at least one.
        is_ready: True if a learner has caught up.
    """
    voters, old, learners = membership
    if old:
        return Membership(voters, (), learners)
    added = tuple(n for n in target if n not in voters)
    if tuple(sorted(added)) != tuple(sorted(learners)):
        return Membership(voters, (), added)
    ready = next((learner for learner in learners if is_ready(learner)), None)
    if ready is not None:
        left = tuple(n for n in learners if n != ready)
        return Membership((*voters, ready), (), left)
    if learners or voters == target:
        return None
    if len(voters) == len(target):
        # Same members: another one should lead.
        return Membership(target)
    return Membership(target, voters)
