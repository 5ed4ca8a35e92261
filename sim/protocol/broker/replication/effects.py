"""Effects of a replica manager: those that every process performs, and its own."""

from typing import TypeAlias

from sim.protocol import effects as fx
from sim.protocol.broker.log_dirs import Doomed
from sim.protocol.broker.raft_storage import FlushRaftLog, PersistRaftVotes
from sim.protocol.broker.replication.events import (
    CopyTurn,
    FormerBroke,
    FutureBroke,
    HighWatermarkMoved,
    InternalAppended,
    InternalVerified,
    IsrWritesRequested,
    LeadershipApplied,
    ReplicaRemoved,
    StorageBroke,
)
from sim.protocol.broker.tiered.ports import (
    AuxStateRequested,
    PartitionStopped,
    RemoteReadCancelled,
    RemoteReadRequested,
    RoleApplied,
)
from sim.protocol.broker.truncation.out_of_range import TruncationForbidden
from sim.protocol.coordinator.group.records import TransactionEnded
from sim.protocol.preemption import Preempt
from sim.trace.emit import Emit

ReplicaEffect: TypeAlias = (
    fx.Send
    | fx.Reply
    | fx.SetTimer
    | fx.Flush
    | fx.HandlerBlocked
    | fx.Close
    | Emit
    | Preempt
    | LeadershipApplied
    | HighWatermarkMoved
    | IsrWritesRequested
    | InternalAppended
    | InternalVerified
    | TransactionEnded
    | StorageBroke
    | ReplicaRemoved
    | TruncationForbidden
    | CopyTurn
    | FutureBroke
    | FormerBroke
    | Doomed
    | RoleApplied
    | PartitionStopped
    | RemoteReadRequested
    | RemoteReadCancelled
    | AuxStateRequested
    | PersistRaftVotes
    | FlushRaftLog
)
"""Union of the effects; the last two only if its partitions are Raft groups."""

Effects: TypeAlias = list[ReplicaEffect]
"""List that receives the effects of one decision, in order."""
