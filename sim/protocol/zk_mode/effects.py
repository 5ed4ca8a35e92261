"""Effects of a broker's control plane in ZooKeeper mode, with those of the controller."""

from typing import TypeAlias

from sim.protocol import effects as fx
from sim.protocol.zk_mode.broker_types import (
    ConfigsRead,
    IsrWritesDone,
    LeaderAndIsrApplied,
    MetadataUpdated,
    Registered,
    ReplicasOffline,
    ReplicasStopped,
    ShutDownGranted,
)
from sim.protocol.zk_mode.controller_types import (
    ControllerElected,
    ControllerLoaded,
    ControllerResigned,
    StatesLogged,
)

ZkBrokerEffect: TypeAlias = (
    fx.Effect
    | Registered
    | LeaderAndIsrApplied
    | MetadataUpdated
    | ReplicasStopped
    | IsrWritesDone
    | ShutDownGranted
    | ConfigsRead
    | ReplicasOffline
    | ControllerElected
    | ControllerLoaded
    | ControllerResigned
    | StatesLogged
)
"""Union of the effects."""

Effects: TypeAlias = list[ZkBrokerEffect]
"""List that receives the effects of one decision, in order."""
