"""Who is in a partition's Raft group, and how one membership becomes another.

New members come as learners, which are sent everything and count for nothing. A learner that has
caught up is given its vote, one at a time. Voters leave by joint consensus: for a while a majority
of the old ones and a majority of those that stay must both agree. Each membership is a record of
the log, in force from where it stands there, committed or not.

Left out: of the old configuration, a voter that goes is not made a learner first; learners that
Redpanda's ``force_update`` and recovery from a lost majority would make.

Source: Raft, section 6, and sections 4.1 to 4.3 of the dissertation; Redpanda v25.1
``raft/group_configuration.cc``, ``consensus::maybe_commit_configuration``.
"""

from collections.abc import Callable

from sim.ids import NodeId
from sim.protocol.broker.raft_storage import Membership

Nodes = tuple[NodeId, ...]


def everyone(membership: Membership) -> Nodes:
    """All that the leader sends to, itself among them: voters, old voters, learners."""
    voters, old, learners = membership
    if not old and not learners:
        return voters
    return tuple(dict.fromkeys((*voters, *old, *learners)))


def electors(membership: Membership) -> Nodes:
    """All whose vote counts in some majority."""
    if not membership.old:
        return membership.voters
    return tuple(dict.fromkeys((*membership.voters, *membership.old)))


def next_membership(
    membership: Membership, target: Nodes, is_ready: Callable[[NodeId], bool]
) -> Membership | None:
    """The next step towards the target, ``None`` if there is none, or if learners are waited for.

    Args:
        membership: The present one, committed.
        target: The voters that are wanted, in their order; at least one.
        is_ready: Whether a learner has caught up.
    """
    voters, old, learners = membership
    if old:
        return Membership(voters, (), learners)
    wanted = tuple(n for n in target if n not in voters)
    if tuple(sorted(wanted)) != tuple(sorted(learners)):
        return Membership(voters, (), wanted)
    ready = next((learner for learner in learners if is_ready(learner)), None)
    if ready is not None:
        left = tuple(n for n in learners if n != ready)
        return Membership((*voters, ready), (), left)
    if learners or voters == target:
        return None
    if len(voters) == len(target):
        # Nobody comes or goes: another one should lead.
        return Membership(target)
    return Membership(target, voters)
