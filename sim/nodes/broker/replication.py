"""Replica managers of both kinds, Kafka's replication and Raft groups, and the groups' disks.

Source: ``kafka.server.ReplicaManager``; Redpanda v25.1 ``raft/consensus.cc``.
"""

from collections.abc import Callable
from typing import cast

from sim.ids import Offset, TopicPartition
from sim.nodes.broker.future_storage import FutureStorage
from sim.nodes.broker.raft_group_records import GroupRecords, read_persisted, write_persisted
from sim.nodes.process.dispatcher import TRY_AGAIN, TRY_AGAIN_US, Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.authorization import ApiAuthorizer
from sim.protocol.broker.raft_storage import FlushRaftLog, PersistRaftVotes, RaftFlushed
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.ports import ReplicaLog
from sim.protocol.quotas.client import ClientQuotas
from sim.protocol.raft_groups.manager import RaftReplicaManager
from sim.protocol.raft_groups.types import PersistedState, RaftConfig
from sim.substrate.disk import Disk
from sim.units import Micros


def replica_manager_of(
    storage: Storage,
    config: ReplicaManagerConfig,
    watermarks: dict[TopicPartition, Offset],
    futures: FutureStorage,
    quotas: ClientQuotas | None,
    authorizer: ApiAuthorizer | None,
    *,
    has_placement: bool,
) -> ReplicaManager:
    """Creates the replica manager of Kafka's replication.

    Args:
        storage: The logs.
        config: Settings.
        watermarks: Checkpointed high watermarks.
        futures: The log directories, as replicas are moved between them.
        quotas: Of clients; ``None`` if the scenario has none.
        authorizer: Rights of clients; ``None`` without one.
        has_placement: True if the controller knows log directories; not in ZooKeeper mode, nor
            before 3.7, where there is one.
    """
    placement = storage if has_placement else None
    return ReplicaManager(
        storage.node,
        config,
        _open_log_of(storage),
        watermarks,
        placement,
        futures,
        quotas,
        authorizer=authorizer,
    )


def raft_manager_of(
    storage: Storage,
    config: ReplicaManagerConfig,
    raft: RaftConfig,
    watermarks: dict[TopicPartition, Offset],
    recall: Callable[[TopicPartition], PersistedState],
    unit: Callable[[], float],
) -> RaftReplicaManager:
    """Creates the replica manager whose partitions are Raft groups.

    Args:
        storage: The logs.
        config: Settings.
        raft: Settings of the groups.
        watermarks: Checkpointed high watermarks.
        recall: Reads a partition's persisted votes and members.
        unit: Draws the jitter of elections, uniform in [0, 1).
    """
    return RaftReplicaManager(
        storage.node,
        config,
        raft,
        _open_log_of(storage),
        watermarks,
        storage,
        recall,
        GroupRecords(),
        unit,
    )


def _open_log_of(storage: Storage) -> Callable[[TopicPartition, str, dict[str, str]], ReplicaLog]:
    # The log's answers have the port's shape; their classes live on a lower floor.
    return cast("Callable[[TopicPartition, str, dict[str, str]], ReplicaLog]", storage.open_log)


class RaftDisks:
    """Persists votes and members of one broker process's groups.

    Args:
        process: The broker.
        storage: Its logs.
    """

    def __init__(self, process: Dispatcher, storage: Storage) -> None:
        self._process = process
        self._storage = storage
        self.performers: dict[type, Performer] = {
            PersistRaftVotes: self._persist,
            FlushRaftLog: self._flush,
        }

    def recall(self, partition: TopicPartition) -> PersistedState:
        """State persisted before the process started.

        Raises:
            DiskFailed: If the disk has failed.
        """
        storage = self._storage
        store, log = storage.disk_of(partition).store, storage.manager.get(partition)
        assert log is not None, "a log is opened before its vote file is read"
        return read_persisted(store, log)

    def _persist(self, port: Port, effect: PersistRaftVotes) -> Micros | None:  # noqa: ARG002
        """Fsyncs votes, once for each disk; later effects wait. A failed directory is skipped."""
        process, storage = self._process, self._storage
        disks: dict[int, Disk] = {}
        for vote in effect.votes:
            disk = storage.disk_under(vote.partition)
            if disk is not None:
                disks[storage.manager.directory_of(vote.partition)] = disk
        if any(disk.stalled for disk in disks.values()):
            for disk in disks.values():
                disk.refuse()
            return TRY_AGAIN
        ends = [disk.fsync(0, "quorum-state") for disk in disks.values()]
        done = max(ends, default=process.kernel.time)
        process.call_at(done, self._write, effect)
        return done

    def _write(self, effect: PersistRaftVotes) -> None:
        for partition, vote, settled in effect.votes:
            disk = self._storage.disk_under(partition)
            if disk is not None:
                write_persisted(disk.store, partition, vote, settled)

    def _flush(self, port: Port, effect: FlushRaftLog) -> None:
        """Fsyncs a log in the background: no request handler is held."""
        storage = self._storage
        if storage.manager.get(effect.partition) is None:
            return
        done = storage.begin_fsync(effect.partition)
        if done is None:
            again = self._process.kernel.time + TRY_AGAIN_US
            self._process.call_at(again, self._flush, port, effect)
        else:
            self._process.call_at(done, self._flushed, port, effect)

    def _flushed(self, port: Port, effect: FlushRaftLog) -> None:
        storage = self._storage
        log = storage.manager.get(effect.partition)
        if log is None:
            return
        storage.flush_up_to(log, min(effect.up_to, log.log_end_offset))
        self._process.deliver(port, RaftFlushed(effect.partition, effect.up_to, effect.generation))
