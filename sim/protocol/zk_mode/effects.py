"""The effects of a broker's control plane in ZooKeeper mode, the controller's among them."""

from typing import TypeAlias

from sim.protocol import effects as fx
from sim.protocol.zk_mode.broker_types import (
    IsrWritesDone,
    LeaderAndIsrApplied,
    MetadataTold,
    Registered,
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
    | MetadataTold
    | ReplicasStopped
    | IsrWritesDone
    | ShutDownGranted
    | ControllerElected
    | ControllerLoaded
    | ControllerResigned
    | StatesLogged
)
"""What the control plane of a broker in ZooKeeper mode asks of its host."""

Effects: TypeAlias = list[ZkBrokerEffect]
"""Where the effects of one decision go, in the order in which they are performed."""
