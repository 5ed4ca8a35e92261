"""A broker's threads that copy replicas between log directories, in simulated time.

Reads that the page cache does not hold come from the current log's disk; copying and checking cost
the thread CPU time of its own (a core is always free); before it writes, it waits as any writer
does while too much of the other disk's page cache is dirty.

Source: ``ReplicaAlterLogDirsManager``; ``num.replica.alter.log.dirs.threads``.
"""

from sim.errors import StorageFailed
from sim.ids import TopicPartition
from sim.log.partition.log import PartitionLog
from sim.log.store.page_cache import ColdRead
from sim.nodes.broker.future_storage import FutureStorage
from sim.nodes.broker.replicas import Replicas
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN_US, Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import LogDirFailureChannel, Storage
from sim.protocol.broker.log_dirs import Doomed
from sim.protocol.broker.replication.events import (
    AlterLogDirsTurn,
    CopyTurn,
    FormerBroke,
    FutureBroke,
    StorageBroke,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY
from sim.substrate.disk import Disk
from sim.trace.rows.log import LogDirMoves, LogStarts, Truncations
from sim.units import Micros


class DirectoryMoves:
    """The moves of one broker process; each start of the process has its own.

    Args:
        process: The broker.
        storage: Its logs.
        futures: Its log directories, as replicas are moved between them.
        cpu: Costs of copying.
        delete_delay_us: Time that a deleted log's files stay.
        failures: Where failed log directories are reported.
    """

    def __init__(
        self,
        process: Dispatcher,
        storage: Storage,
        futures: FutureStorage,
        cpu: CpuSpec,
        delete_delay_us: Micros,
        failures: LogDirFailureChannel,
    ) -> None:
        self._process = process
        self._storage = storage
        self._futures = futures
        self._cpu = cpu
        self._delete_delay_us = delete_delay_us
        self._failures = failures
        self.performers: dict[type, Performer] = {
            CopyTurn: self._copy,
            Doomed: self._doom,
            StorageBroke: self._storage_broke,
            FutureBroke: self._future_broke,
            FormerBroke: self._former_broke,
        }
        """Performers of its machine's effects."""

    # -- at a start -------------------------------------------------------------------------------

    def finish_agreed(self, image: MetadataImage, replicas: Replicas) -> None:
        """Promotes future logs found at the start whose directory the controller has assigned.

        The process ended after the controller had acknowledged the assignment and before the
        promotion. As in Kafka, such a log is not checked for having caught up.

        Source: ``LogManager.recoverAbandonedFutureLogs`` (KAFKA-16082).
        """
        storage = self._storage
        futures = storage.manager.futures
        for partition in list(futures.logs):
            state = image.partitions.get(partition)
            if state is None or state.topic_id != futures.topic_id_of(partition):
                continue
            place = state.replicas.index(storage.node)
            known = state.directories[place] if state.directories else UNASSIGNED_DIRECTORY
            if known == storage.manager.directory_ids[futures.directory_of(partition)]:
                self._finish(partition, storage.manager.get(partition), replicas)

    def _finish(
        self, partition: TopicPartition, former: PartitionLog | None, replicas: Replicas
    ) -> None:
        process, node_id = self._process, self._storage.node
        log = self._storage.manager.futures.logs[partition]
        was = (0, 0) if former is None else (former.log_start_offset, former.log_end_offset)
        origin = "" if former is None else former.store.root.name
        watermark = self._futures.future_watermark(partition)
        promoted = self._futures.replace_current(partition)
        replicas.note_high_watermark(partition, watermark)
        now, trace = process.kernel.now(), process.trace
        end, start = log.log_end_offset, log.log_start_offset
        moved = LogDirMoves.row(
            node_id,
            *partition,
            phase="swapped",
            from_directory=origin,
            to_directory=log.store.root.name,
            future_end=end,
            log_end_offset=was[1],
        )
        trace.write(now, moved)
        if end < was[1]:
            lost = Truncations.row(
                node_id,
                *partition,
                from_offset=was[1],
                to_offset=end,
                high_watermark=-1,
                leader_epoch=-1,
                reason="recovery",
            )
            trace.write(now, lost)
        if start != was[0]:
            row = LogStarts.row(
                node_id, *partition, from_offset=was[0], to_offset=start, reason="moved"
            )
            trace.write(now, row)
        if promoted.doomed is not None:
            self._delete_later(promoted.doomed)
        if promoted.failure:
            self._failures.directory_failed(promoted.source, promoted.failure)

    # -- copying ----------------------------------------------------------------------------------

    def _copy(self, port: Port, effect: CopyTurn) -> None:
        """Pays for a read or an fsync of a thread, then runs the thread again."""
        partition = effect.partition
        if partition is not None and effect.flush:
            self._flush(port, effect, partition)
            return
        cold = None
        if partition is not None:
            # Read in this very instant, so the cold read that is taken here is this thread's.
            cold = self._process.host.page_cache.pending.pop(partition, None)
        self._read(port, effect, cold)

    def _read(self, port: Port, effect: CopyTurn, cold: ColdRead | None) -> None:
        process = self._process
        done = process.kernel.time
        if cold is not None and effect.partition is not None:
            disk = self._storage.disk_under(effect.partition)
            if disk is not None and disk.stalled:
                disk.refuse()
                process.call_at(done + TRY_AGAIN_US, self._read, port, effect, cold)
                return
            if disk is not None:
                done = disk.read(cold, str(effect.partition))
        cpu = self._cpu.copy_us(effect.size_bytes) if effect.size_bytes else 0
        process.call_at(done + cpu + effect.pause_us, self._continue_copy, port, effect)

    def _continue_copy(self, port: Port, effect: CopyTurn) -> None:
        """Waits until the other disk takes more, then writes."""
        process = self._process
        disk = self._disk_of(effect.partition)
        if disk is not None:
            now, until = process.kernel.time, disk.writers_wait_until()
            if until > now:
                process.call_at(min(until, now + TRY_AGAIN_US), self._continue_copy, port, effect)
                return
        process.deliver(port, AlterLogDirsTurn(effect.thread))

    def _flush(self, port: Port, effect: CopyTurn, partition: TopicPartition) -> None:
        """Fsyncs the future log, as ``flush.messages`` requires, before its thread continues."""
        process = self._process
        log, disk = self._storage.manager.futures.get(partition), self._disk_of(partition)
        now = process.kernel.time
        if log is None or disk is None:
            process.call_at(now, process.deliver, port, AlterLogDirsTurn(effect.thread))
        elif disk.stalled:
            disk.refuse()
            process.call_at(now + TRY_AGAIN_US, self._flush, port, effect, partition)
        else:
            done = disk.fsync(log.flush_bytes(), str(partition))
            process.call_at(done, self._flushed, port, effect, log)

    def _flushed(self, port: Port, effect: CopyTurn, log: PartitionLog) -> None:
        process = self._process
        if self._storage.manager.futures.get(log.partition) is log:
            try:
                log.flush()
            except StorageFailed as failure:
                self._future_broke(port, FutureBroke(log.partition, str(failure)))
        process.deliver(port, AlterLogDirsTurn(effect.thread))

    def _disk_of(self, partition: TopicPartition | None) -> Disk | None:
        """Disk of a future log; ``None`` if the log does not exist any more."""
        storage = self._storage
        futures = storage.manager.futures
        if partition is None or futures.get(partition) is None:
            return None
        return storage.disks[futures.directory_of(partition)]

    # -- strays and failures -----------------------------------------------------------------------

    def _doom(self, _port: Port, effect: Doomed) -> None:
        self._delete_later(effect)

    def _delete_later(self, doomed: Doomed) -> None:
        process = self._process
        at = process.kernel.time + self._delete_delay_us
        process.call_at(at, self._storage.manager.remove_deleted, doomed.directory, doomed.name)

    def _storage_broke(self, _port: Port, effect: StorageBroke) -> None:
        self._failed(self._storage.failing_under(effect.partition), effect.reason)

    def _future_broke(self, _port: Port, effect: FutureBroke) -> None:
        futures = self._storage.manager.futures
        if futures.get(effect.partition) is not None:
            self._failed(futures.directory_of(effect.partition), effect.reason)

    def _former_broke(self, _port: Port, effect: FormerBroke) -> None:
        self._failed(effect.directory, effect.reason)

    def _failed(self, number: int | None, reason: str) -> None:
        process = self._process
        if number is not None:
            process.call_at(process.kernel.time, self._failures.directory_failed, number, reason)

    def put_strays_aside(self, image: MetadataImage) -> None:
        """Renames future logs found at the start that the metadata does not assign here."""
        futures = self._storage.manager.futures
        for partition in list(futures.logs):
            state = image.partitions.get(partition)
            if (
                state is None
                or self._storage.node not in state.replicas
                or state.topic_id != futures.topic_id_of(partition)
            ):
                futures.put_aside(partition)
