"""Periodic tasks of a broker's logs: flushes and checkpoints.

Source: ``kafka.log.LogManager``'s scheduled tasks.
"""

from sim.errors import StorageFailed
from sim.ids import METADATA_PARTITION, NO_EPOCH, NO_LEADER, TopicPartition
from sim.kernel import Task
from sim.log.directory.manager import LoadedLog
from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN_US, Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.nodes.storage.loading import loading_ends
from sim.nodes.storage.log_dirs import LogDirFailureChannel, Storage
from sim.protocol import effects as fx
from sim.protocol.broker.replication.events import ReplicaRemoved
from sim.protocol.events import Flushed
from sim.protocol.metadata.image import MetadataImage
from sim.trace.rows.cluster import Leadership
from sim.units import SECOND, Micros


class BrokerLogs:
    """Scheduled tasks of one broker process for its log directories.

    Args:
        process: The broker.
        storage: Its logs.
        replicas: Its replicas.
        cpu: Costs of loading.
        settings: Of the broker.
        failures: Where failed log directories are reported.
    """

    def __init__(
        self,
        process: Dispatcher,
        storage: Storage,
        replicas: Replicas,
        cpu: CpuSpec,
        settings: BrokerSettings,
        failures: LogDirFailureChannel,
    ) -> None:
        self._process = process
        self._storage = storage
        self._replicas = replicas
        self._cpu = cpu
        self._settings = settings
        self._failures = failures
        self.performers: dict[type, Performer] = {
            fx.HandlerBlocked: self._kept_waiting,
            ReplicaRemoved: self._replica_removed,
        }
        """Performers of effects, except :meth:`flush`, which the process performs."""

    def load(self, loaded: tuple[LoadedLog, ...]) -> Task:
        """Takes the time of loading, log by log."""
        process, storage = self._process, self._storage
        kernel = process.kernel
        began = kernel.time
        while any(disk.stalled for disk in storage.disks):
            yield kernel.sleep(TRY_AGAIN_US)
        threads = self._settings.recovery_threads
        ends = loading_ends(loaded, storage.disks, threads, self._cpu.copy_us, kernel.time)
        for log, end in zip(loaded, ends, strict=True):
            process.call_at(end, storage.note_loaded, log, began)
        yield kernel.sleep(max(ends, default=kernel.time) - kernel.time)

    def keep(self) -> Task:
        """Starts the scheduled tasks at the end of loading."""
        process, settings = self._process, self._settings
        kernel = process.kernel
        next_points = kernel.time + settings.recovery_point_checkpoint_us
        next_starts = kernel.time + settings.upkeep.log_start_checkpoint_us
        next_watermarks = kernel.time + settings.high_watermark_checkpoint_us
        while True:
            yield kernel.sleep(SECOND)
            now = kernel.time
            process.call_at(now, self._flush_rolled)
            if now >= next_watermarks:
                next_watermarks += settings.high_watermark_checkpoint_us
                process.call_at(now, self.checkpoint_watermarks)
            if now >= next_points:
                next_points += settings.recovery_point_checkpoint_us
                process.call_at(now, self._checkpoint_recovery_points)
            if now >= next_starts:
                next_starts += settings.upkeep.log_start_checkpoint_us
                process.call_at(now, self._checkpoint_log_starts)

    def _replica_removed(self, _port: Port, effect: ReplicaRemoved) -> None:
        """Deletes a log: its directory is renamed at once, and its files are unlinked later."""
        process, manager = self._process, self._storage.manager
        if manager.get(effect.partition) is None:
            return  # its directory has failed: the log is a stray when it is back
        if not effect.was_hosted:
            self._note_removed(effect.partition)
        directory = manager.directory_of(effect.partition)
        name = manager.delete(effect.partition)
        delay = self._settings.file_delete_delay_us
        process.call_at(process.kernel.time + delay, self._remove_files, directory, name)

    def _remove_files(self, directory: int, name: str) -> None:
        self._storage.manager.remove_deleted(directory, name)

    def put_strays_aside(self, image: MetadataImage) -> tuple[TopicPartition, ...]:
        """Renames the logs found at the start that the metadata does not assign to this broker.

        Their topic was deleted, or created again under another id, or the replica moved away, while
        this broker did not run.

        Source: ``LogManager.isStrayKraftReplica``.
        """
        manager = self._storage.manager
        strays = tuple(
            partition
            for partition in manager.logs
            if partition != METADATA_PARTITION and self._is_stray(partition, image)
        )
        for partition in strays:
            manager.put_aside(partition)
            self._note_removed(partition)
        return strays

    def _note_removed(self, partition: TopicPartition) -> None:
        process = self._process
        row = Leadership.row(
            self._storage.node,
            *partition,
            role="removed",
            leader=NO_LEADER,
            leader_epoch=NO_EPOCH,
            partition_epoch=-1,
            in_sync="",
            log_end_offset=0,
            high_watermark=0,
        )
        process.trace.write(process.kernel.now(), row)

    def _is_stray(self, partition: TopicPartition, image: MetadataImage) -> bool:
        state = image.partitions.get(partition)
        if state is None or self._storage.node not in state.replicas:
            return True
        return self._storage.manager.topic_id_of(partition) not in {"", state.topic_id}

    def flush(self, port: Port, effect: fx.Flush) -> None:
        """Fsyncs a log; the machine gets an event at its end. Observers do not fsync metadata."""
        if effect.partition != METADATA_PARTITION:
            self._begin_flush(port, effect, self._process.kernel.time)

    def _begin_flush(self, port: Port, effect: fx.Flush, since: Micros) -> None:
        process = self._process
        now = process.kernel.time
        if self._storage.manager.get(effect.partition) is None:
            # Its directory has failed: waiting machines get that event.
            process.call_at(now, self._flushed, port, effect)
            return
        done = self._storage.begin_fsync(effect.partition)
        if done is None:
            process.call_at(now + TRY_AGAIN_US, self._begin_flush, port, effect, since)
            return
        if effect.by_handler:
            process.host.request_handlers.hold(since, done)
        process.call_at(done, self._flushed, port, effect)

    def _kept_waiting(self, _port: Port, effect: fx.HandlerBlocked) -> None:
        """A handler had to wait for a log that another one flushed."""
        process = self._process
        process.host.request_handlers.hold(effect.since, process.kernel.time)

    def _flushed(self, port: Port, effect: fx.Flush) -> None:
        process = self._process
        log = self._storage.manager.get(effect.partition)
        if log is not None:
            try:
                log.flush()
                self._storage.flushed_us[effect.partition] = process.kernel.time
            except StorageFailed as failure:
                # The failure first, then waiting machines: nothing unflushed may be acknowledged.
                self._failures.directory_failed(
                    self._storage.manager.directory_of(effect.partition), str(failure)
                )
                if not process.running:
                    return
        if effect.token is not None:
            process.deliver(port, Flushed(effect.token))

    def _flush_rolled(self) -> None:
        storage = self._storage
        for log, up_to, done in storage.flush_rolled():
            self._process.call_at(done, storage.flush_up_to, log, up_to)

    def checkpoint_watermarks(self) -> None:
        """Writes the high watermarks of all replicas.

        Raises:
            DiskFailed: If a disk has failed or is full.
        """
        replicas = self._replicas
        self._storage.manager.checkpoint_high_watermarks(
            replicas.high_watermarks(), replicas.future_watermarks()
        )

    def _checkpoint_recovery_points(self) -> None:
        self._storage.manager.checkpoint_recovery_points()

    def _checkpoint_log_starts(self) -> None:
        self._storage.manager.checkpoint_log_starts()
