"""Leader election in ZooKeeper mode.

There are no eligible leader replicas, and the last member of an ISR stays in it.

Source: ``kafka.controller.Election``, ``PartitionLeaderElectionAlgorithms`` (3.9).
"""

from collections.abc import Collection
from enum import Enum, auto

from sim.ids import NO_LEADER, NodeId
from sim.protocol.zk_mode.znodes import LeaderIsr

Nodes = tuple[NodeId, ...]


class ZkElection(Enum):
    """Reason of an election."""

    OFFLINE = auto()
    """The leader has failed."""
    PREFERRED = auto()
    """The preferred replica is to lead."""
    SHUTDOWN = auto()
    """The leader is about to stop."""
    REASSIGN = auto()
    """The leader is not among the replicas any more."""
    UNCLEAN = auto()
    """The leader has failed, and an administrator accepts any live replica (KIP-460)."""


def elect(
    kind: ZkElection,
    old: LeaderIsr,
    replicas: Nodes,
    live: Collection[NodeId],
    *,
    stopping: Collection[NodeId] = (),
    unclean: bool = False,
) -> tuple[NodeId, Nodes] | None:
    """New leader and ISR; ``None`` if no replica may lead.

    Args:
        kind: The reason.
        old: Leader and ISR before.
        replicas: The assignment, in its order.
        live: Live brokers, those that shut down included.
        stopping: Brokers in controlled shutdown.
        unclean: True if any live replica may lead if none of the ISR is left.
    """
    in_sync = old.in_sync
    if kind is ZkElection.PREFERRED:
        first = replicas[0]
        return (first, in_sync) if first in live and first in in_sync else None
    if kind is ZkElection.REASSIGN:
        able = [broker for broker in replicas if broker in live and broker in in_sync]
        return (able[0], in_sync) if able else None
    if kind is ZkElection.SHUTDOWN:
        left = tuple(b for b in in_sync if b not in stopping)
        for broker in replicas:
            if broker in live and broker in left:
                return broker, left
        return None
    for broker in replicas:
        if broker in live and broker in in_sync:
            return broker, tuple(b for b in in_sync if b in live)
    if unclean or kind is ZkElection.UNCLEAN:
        for broker in replicas:
            if broker in live:
                return broker, (broker,)
    return None


def without(old: LeaderIsr, broker: NodeId, controller_epoch: int) -> LeaderIsr | None:
    """State after the broker's replica goes offline; ``None`` if it was not in the ISR.

    Source: ``ZkReplicaStateMachine.doRemoveReplicasFromIsr``.
    """
    if broker not in old.in_sync:
        return None
    leader = NO_LEADER if broker == old.leader else old.leader
    in_sync = old.in_sync
    if len(in_sync) > 1:
        in_sync = tuple(b for b in in_sync if b != broker)
    return LeaderIsr(leader, old.leader_epoch + 1, in_sync, controller_epoch)


def initial(replicas: Nodes, live: Collection[NodeId], controller_epoch: int) -> LeaderIsr | None:
    """Leader and ISR of a new partition: its live replicas; ``None`` if there are none."""
    in_sync = tuple(b for b in replicas if b in live)
    return LeaderIsr(in_sync[0], 0, in_sync, controller_epoch) if in_sync else None
