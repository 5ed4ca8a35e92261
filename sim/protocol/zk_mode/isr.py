"""ISR changes that leaders write to ZooKeeper themselves, as before 2.7.

A write is conditional on the version that the leader has cached. One that is refused is dropped
with the cached version kept: only a LeaderAndIsr brings a new one. What was written is announced to
the controller in batches.

Source: ``kafka.utils.ReplicationUtils.updateLeaderAndIsr``,
``ReplicaManager.maybePropagateIsrChanges`` (2.6), ``kafka.server.ZkIsrManager``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.broker.replication.events import IsrWritesWanted
from sim.protocol.messages.cluster import AlterPartitionResponse, AlterPartitionResult
from sim.protocol.zk_mode.broker_types import (
    ISR_LATEST_US,
    ISR_QUIET_US,
    IsrWish,
    IsrWritesDone,
)
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.znodes import ISR_CHANGES, LeaderIsr, PartitionEntry, state_path
from sim.protocol.zookeeper.session import Ask
from sim.protocol.zookeeper.tree import Create, Outcome, SetData, ZkCode
from sim.units import Micros


@dataclass(slots=True)
class _Asked:
    """Wishes that came together."""

    correlation: int
    left: int
    results: list[AlterPartitionResult] = field(default_factory=list)


class IsrWriter:
    """The writes of one broker's leaders.

    Args:
        node: ``broker.id``.
        replicas: What the broker leads and follows, with cached versions; written to here.
        tag: Numbers for writes, all different.
    """

    def __init__(
        self,
        node: NodeId,
        replicas: dict[TopicPartition, PartitionEntry],
        tag: Callable[[], int],
    ) -> None:
        self.skipped = 0
        """"Cached zkVersion not equal to that in zookeeper, skip updating ISR"."""
        self._node = node
        self._replicas = replicas
        self._tag = tag
        self._writes: dict[int, tuple[PartitionEntry, _Asked | None]] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._changed_at: Micros = 0
        self._told_at: Micros = 0

    def wish(self, wish: IsrWish, asked: _Asked | None = None) -> tuple[int, Ask] | None:
        """The write that a wish becomes, with its number; ``None`` if the broker does not lead.

        It carries the epoch of the controller that decided on the leader.
        Source: ``Partition.makeLeader`` (2.6).
        """
        entry = self._replicas.get(wish.partition)
        if entry is None or entry.state.leader != self._node:
            return None
        old = entry.state
        state = LeaderIsr(old.leader, old.leader_epoch, wish.in_sync, old.controller_epoch)
        tag = self._tag()
        self._writes[tag] = (entry._replace(state=state), asked)
        return tag, Ask(SetData(state_path(wish.partition), state, entry.version))

    def wishes(self, wanted: IsrWritesWanted, effects: Effects) -> list[tuple[int, Ask]]:
        """The writes that the wishes of the replica manager become."""
        asked = _Asked(wanted.correlation, len(wanted.request.items))
        writes: list[tuple[int, Ask]] = []
        for item in wanted.request.items:
            members = tuple(member.broker for member in item.in_sync)
            write = self.wish(IsrWish(item.partition, members), asked)
            if write is None:
                self._settle(asked, _refused(item.partition), effects)
            else:
                writes.append(write)
        return writes

    def written(self, tag: int, outcome: Outcome, now: Micros, effects: Effects) -> None:
        """ZooKeeper has answered a write."""
        wished, asked = self._writes.pop(tag)
        partition = wished.partition
        entry = self._replicas.get(partition)
        is_current = entry is not None and entry.state.leader_epoch == wished.state.leader_epoch
        done = is_current and outcome.code is ZkCode.OK
        if done:
            self._replicas[partition] = wished._replace(version=wished.version + 1)
            self._changed[partition] = None
            self._changed_at = now
        elif is_current:
            self.skipped += 1
        if asked is not None:
            state = wished.state
            result = AlterPartitionResult(
                partition,
                ErrorCode.NONE,
                state.leader,
                state.leader_epoch,
                state.in_sync,
                wished.version + 1,
            )
            self._settle(asked, result if done else _refused(partition), effects)

    def announcement(self, now: Micros) -> Ask | None:
        """What to tell the controller now: ISRs that changed, once it has become quiet."""
        quiet = now - self._changed_at >= ISR_QUIET_US
        if not self._changed or not (quiet or now - self._told_at >= ISR_LATEST_US):
            return None
        changed = tuple(self._changed)
        self._changed = {}
        self._told_at = now
        return Ask(Create(f"{ISR_CHANGES}/isr_change_", changed, sequential=True))

    def _settle(self, asked: _Asked, result: AlterPartitionResult, effects: Effects) -> None:
        asked.results.append(result)
        asked.left -= 1
        if asked.left == 0:
            response = AlterPartitionResponse(ErrorCode.NONE, tuple(asked.results))
            effects.append(IsrWritesDone(asked.correlation, response))


def _refused(partition: TopicPartition) -> AlterPartitionResult:
    return AlterPartitionResult(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
