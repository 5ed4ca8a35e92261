"""ISR changes that leaders write to ZooKeeper, as before 2.7.

A write is conditional on the version that the leader has cached. One that is refused is dropped
with the cached version kept: only a LeaderAndIsr brings a new one. Changes are announced to the
controller in batches.

Source: ``kafka.utils.ReplicationUtils.updateLeaderAndIsr``,
``ReplicaManager.maybePropagateIsrChanges`` (2.6), ``kafka.server.ZkIsrManager``.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import NodeId, TopicPartition
from sim.protocol.broker.replication.events import IsrWritesRequested
from sim.protocol.messages.cluster import AlterPartitionResponse, AlterPartitionResult
from sim.protocol.zk_mode.broker_types import (
    ISR_LATEST_US,
    ISR_QUIET_US,
    IsrUpdate,
    IsrWritesDone,
)
from sim.protocol.zk_mode.effects import Effects
from sim.protocol.zk_mode.znodes import ISR_CHANGES, LeaderIsr, PartitionEntry, state_path
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import Create, SetData, ZkCode, ZkOutcome
from sim.units import Micros


@dataclass(slots=True)
class _Batch:
    """ISR updates of one batch."""

    correlation: int
    left: int
    results: list[AlterPartitionResult] = field(default_factory=list)


class IsrWriter:
    """The writes of one broker's leaders.

    Args:
        node: ``broker.id``.
        replicas: Partitions that the broker leads and follows, with cached versions; updated here.
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
        self._writes: dict[int, tuple[PartitionEntry, _Batch | None]] = {}
        self._changed: dict[TopicPartition, None] = {}
        self._changed_at: Micros = 0
        self._announced_at: Micros = 0

    def write_of(
        self, update: IsrUpdate, batch: _Batch | None = None
    ) -> tuple[int, ZkOperation] | None:
        """The write of an ISR update, with its number; ``None`` if the broker does not lead.

        It carries the epoch of the controller that chose the leader.
        """
        entry = self._replicas.get(update.partition)
        if entry is None or entry.state.leader != self._node:
            return None
        old = entry.state
        state = LeaderIsr(old.leader, old.leader_epoch, update.in_sync, old.controller_epoch)
        tag = self._tag()
        self._writes[tag] = (entry._replace(state=state), batch)
        return tag, ZkOperation(SetData(state_path(update.partition), state, entry.version))

    def writes_of(
        self, event: IsrWritesRequested, effects: Effects
    ) -> list[tuple[int, ZkOperation]]:
        """The writes of the replica manager's ISR updates."""
        batch = _Batch(event.correlation, len(event.request.items))
        writes: list[tuple[int, ZkOperation]] = []
        for item in event.request.items:
            members = tuple(member.broker for member in item.in_sync)
            write = self.write_of(IsrUpdate(item.partition, members), batch)
            if write is None:
                self._settle(batch, _refused(item.partition), effects)
            else:
                writes.append(write)
        return writes

    def written(self, tag: int, outcome: ZkOutcome, now: Micros, effects: Effects) -> None:
        """Handles the outcome of a write."""
        update, batch = self._writes.pop(tag)
        partition = update.partition
        entry = self._replicas.get(partition)
        is_current = entry is not None and entry.state.leader_epoch == update.state.leader_epoch
        done = is_current and outcome.code is ZkCode.OK
        if done:
            self._replicas[partition] = update._replace(version=update.version + 1)
            self._changed[partition] = None
            self._changed_at = now
        elif is_current:
            self.skipped += 1
        if batch is not None:
            state = update.state
            result = AlterPartitionResult(
                partition,
                ErrorCode.NONE,
                state.leader,
                state.leader_epoch,
                state.in_sync,
                update.version + 1,
            )
            self._settle(batch, result if done else _refused(partition), effects)

    def announcement(self, now: Micros) -> ZkOperation | None:
        """Announcement of changed ISRs to the controller, once there is a pause in changes."""
        quiet = now - self._changed_at >= ISR_QUIET_US
        if not self._changed or not (quiet or now - self._announced_at >= ISR_LATEST_US):
            return None
        changed = tuple(self._changed)
        self._changed = {}
        self._announced_at = now
        return ZkOperation(Create(f"{ISR_CHANGES}/isr_change_", changed, sequential=True))

    def _settle(self, batch: _Batch, result: AlterPartitionResult, effects: Effects) -> None:
        batch.results.append(result)
        batch.left -= 1
        if batch.left == 0:
            response = AlterPartitionResponse(ErrorCode.NONE, tuple(batch.results))
            effects.append(IsrWritesDone(batch.correlation, response))


def _refused(partition: TopicPartition) -> AlterPartitionResult:
    return AlterPartitionResult(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
