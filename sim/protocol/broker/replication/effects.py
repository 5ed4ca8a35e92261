"""The effects of a replica manager: those that every host performs, and its own."""

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
    IsrWritesWanted,
    LeadershipApplied,
    ReplicaRemoved,
    StorageBroke,
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
    | fx.KeptWaiting
    | fx.Close
    | Emit
    | Preempt
    | LeadershipApplied
    | HighWatermarkMoved
    | IsrWritesWanted
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
    | PersistRaftVotes
    | FlushRaftLog
)
"""What a replica manager asks of its host; the last two only if its partitions are Raft groups."""

Effects: TypeAlias = list[ReplicaEffect]
"""Where the effects of one decision go, in the order in which they are performed."""
