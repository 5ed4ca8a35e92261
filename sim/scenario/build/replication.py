"""Checks of a run that are others for partitions that are Raft groups.

Apart from :mod:`sim.scenario.rules.replication`: reading a scenario does not import the simulator.
"""

from sim.checking.invariant import Invariant
from sim.checking.invariants.raft import RAFT_INVARIANTS
from sim.ids import TopicPartition
from sim.nodes.cluster import Cluster


def invariants(replication: str) -> tuple[type[Invariant], ...]:
    """Invariants of this replication alone."""
    return RAFT_INVARIANTS if replication == "raft" else ()


def is_level(replication: str, cluster: Cluster, partition: TopicPartition) -> bool:
    """True if every replica has what the leader has committed, where no ISR says so."""
    if replication != "raft":
        return True
    replicas = cluster.image.partitions[partition].replicas
    reached = [cluster.brokers[broker].high_watermark(partition) for broker in replicas]
    return min(reached) == max(reached)
