"""How a broker's partitions are replicated: Kafka's way, or as Raft groups; and the groups' disks.

Source: ``kafka.server.ReplicaManager``; Redpanda v25.1 ``raft/consensus.cc``.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from sim.ids import TopicPartition
from sim.nodes.broker.raft_group_records import GroupRecords, read_memory, write_memory
from sim.nodes.process.base import TRY_AGAIN, TRY_AGAIN_US
from sim.nodes.process.port import Port
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.ports import ReplicaLog
from sim.protocol.raft_groups.effects import FlushRaftLog, PersistRaftVotes, RaftFlushed
from sim.protocol.raft_groups.manager import RAFT_REQUESTS, RaftReplicaManager
from sim.protocol.raft_groups.types import RaftMemory
from sim.substrate.disk import Disk
from sim.units import Micros

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


def replica_manager_of(node: "BrokerNode") -> ReplicaManager:
    """The machine of a broker's data plane, as its settings want it."""
    config, storage = node.settings.replica, node.storage
    # The log's answers have the port's shape; their classes live on a lower floor.
    open_log = cast("Callable[[TopicPartition, str, dict[str, str]], ReplicaLog]", storage.open_log)
    watermarks = storage.manager.read_high_watermarks()
    if node.settings.raft is None:
        moves = node.moves.over(storage)
        # In ZooKeeper mode there is one log directory, and nobody asks which it is.
        placement = storage if node.settings.zookeeper is None else None
        quotas = node.throttling.quotas if node.throttling is not None else None
        return ReplicaManager(node.node_id, config, open_log, watermarks, placement, moves, quotas)
    disks = RaftDisks(node)
    node.performers[PersistRaftVotes] = disks.persist
    node.performers[FlushRaftLog] = disks.flush
    return RaftReplicaManager(
        node.node_id,
        config,
        node.settings.raft,
        open_log,
        watermarks,
        storage,
        disks.recall,
        GroupRecords(),
        node.streams.named(f"raft/{node.name}").unit,
    )


def route_groups(node: "BrokerNode", port: Port) -> None:
    """What members of groups ask each other goes to the data plane's machine.

    It comes by a port of its own, which is open before that of clients.

    Source: Redpanda v25.1 ``redpanda/application.cc``: ``rpc_server`` is open before the partitions
    are, and Kafka's API is started last.
    """
    if node.settings.raft is not None:
        node.route(port, *RAFT_REQUESTS)
        node.served_before += RAFT_REQUESTS


class RaftDisks:
    """What the groups of one broker process write beside their records."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node

    def recall(self, partition: TopicPartition) -> RaftMemory:
        """What was remembered before the process started.

        Raises:
            DiskFailed: If the disk has failed.
        """
        storage = self._node.storage
        store, log = storage.disk_of(partition).store, storage.manager.get(partition)
        assert log is not None, "a log is opened before anybody asks what lies beside it"
        return read_memory(store, log)

    def persist(self, port: Port, effect: PersistRaftVotes) -> Micros | None:  # noqa: ARG002
        """Fsync votes, once for each disk; what follows waits. A failed directory has none."""
        node = self._node
        disks: dict[int, Disk] = {}
        for vote in effect.votes:
            disk = node.disk_under(vote.partition)
            if disk is not None:
                disks[node.storage.manager.directory_of(vote.partition)] = disk
        if any(disk.stalled for disk in disks.values()):
            for disk in disks.values():
                disk.refuse()
            return TRY_AGAIN
        ends = [disk.fsync(0, "quorum-state") for disk in disks.values()]
        done = max(ends, default=node.kernel.time)
        node.call_at(done, self._write, effect)
        return done

    def _write(self, effect: PersistRaftVotes) -> None:
        for partition, vote, settled in effect.votes:
            disk = self._node.disk_under(partition)
            if disk is not None:
                write_memory(disk.store, partition, vote, settled)

    def flush(self, port: Port, effect: FlushRaftLog) -> None:
        """Fsync a log while everything else goes on: no request handler is held."""
        storage = self._node.storage
        if storage.manager.get(effect.partition) is None:
            return
        done = storage.begin_fsync(effect.partition)
        if done is None:
            again = self._node.kernel.time + TRY_AGAIN_US
            self._node.call_at(again, self.flush, port, effect)
        else:
            self._node.call_at(done, self._flushed, port, effect)

    def _flushed(self, port: Port, effect: FlushRaftLog) -> None:
        storage = self._node.storage
        log = storage.manager.get(effect.partition)
        if log is None:
            return
        storage.flush_up_to(log, min(effect.up_to, log.log_end_offset))
        self._node.deliver(port, RaftFlushed(effect.partition, effect.up_to, effect.generation))
