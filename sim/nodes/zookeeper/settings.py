"""Settings of a ZooKeeper server."""

from dataclasses import dataclass

from sim.ids import NodeId
from sim.protocol.zookeeper.ensemble import ZkConfig


@dataclass(frozen=True, slots=True)
class ZooKeeperSettings:
    """Settings of one server."""

    members: tuple[NodeId, ...]
    """The ensemble."""
    config: ZkConfig
