"""What a broker is configured with, in the terms of its machines."""

from dataclasses import dataclass, field

from sim.ids import NodeId
from sim.protocol.broker_lifecycle import LifecycleConfig
from sim.protocol.group_desk import GroupConfig
from sim.protocol.quorum_state import QuorumConfig
from sim.protocol.replica_manager import ReplicaManagerConfig
from sim.units import SECOND, Micros


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """Settings of one broker process."""

    voters: tuple[NodeId, ...]
    replica: ReplicaManagerConfig = field(default_factory=ReplicaManagerConfig)
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    lifecycle: LifecycleConfig = field(default_factory=LifecycleConfig)
    group: GroupConfig = field(default_factory=GroupConfig)
    high_watermark_checkpoint_us: Micros = 5 * SECOND
    """``replica.high.watermark.checkpoint.interval.ms``."""
    recovery_point_checkpoint_us: Micros = 60 * SECOND
    """``log.flush.offset.checkpoint.interval.ms``."""
    file_delete_delay_us: Micros = 60 * SECOND
    """``log.segment.delete.delay.ms``: how long a deleted log's files stay."""
    apply_partition_us: Micros = 20
    """Applying one partition's new metadata; a modelling choice."""
