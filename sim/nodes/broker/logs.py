"""What a broker does for its logs beside serving them: flushes and checkpoints, at their times.

Source: ``kafka.log.LogManager``'s scheduled tasks.
"""

from typing import TYPE_CHECKING

from sim.errors import StorageFailed
from sim.ids import METADATA_PARTITION, NO_EPOCH, NO_LEADER, TopicPartition
from sim.kernel import Task
from sim.log.directory.manager import LoadedLog
from sim.nodes.process.base import TRY_AGAIN_US
from sim.nodes.process.port import Port
from sim.nodes.storage.loading import loading_ends
from sim.protocol import effects as fx
from sim.protocol.broker.replication.removal import ReplicaRemoved
from sim.protocol.events import Flushed
from sim.protocol.metadata.image import MetadataImage
from sim.trace.rows.cluster import LeadershipRow
from sim.trace.writer import TableWriter
from sim.units import SECOND, Micros

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class BrokerLogs:
    """The duties of one broker process towards its log directories."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node

    def load(self, loaded: tuple[LoadedLog, ...]) -> Task:
        """Let the time pass that loading takes, log by log."""
        node = self._node
        kernel, storage = node.kernel, node.storage
        began = kernel.time
        while any(disk.stalled for disk in storage.disks):
            yield kernel.sleep(TRY_AGAIN_US)
        threads = node.settings.recovery_threads
        ends = loading_ends(loaded, storage.disks, threads, node.copy_us, kernel.time)
        for log, end in zip(loaded, ends, strict=True):
            node.call_at(end, storage.note_loaded, log, began)
        yield kernel.sleep(max(ends, default=kernel.time) - kernel.time)

    def keep(self) -> Task:
        """The process's own tasks, from the end of loading on."""
        node, settings = self._node, self._node.settings
        kernel = node.kernel
        next_points = kernel.time + settings.recovery_point_checkpoint_us
        next_starts = kernel.time + settings.upkeep.log_start_checkpoint_us
        next_watermarks = kernel.time + settings.high_watermark_checkpoint_us
        while True:
            yield kernel.sleep(SECOND)
            now = kernel.time
            node.call_at(now, self._flush_rolled)
            if now >= next_watermarks:
                next_watermarks += settings.high_watermark_checkpoint_us
                node.call_at(now, self.checkpoint_watermarks)
            if now >= next_points:
                next_points += settings.recovery_point_checkpoint_us
                node.call_at(now, self._checkpoint_recovery_points)
            if now >= next_starts:
                next_starts += settings.upkeep.log_start_checkpoint_us
                node.call_at(now, self._checkpoint_log_starts)

    def replica_removed(self, _port: Port, effect: ReplicaRemoved) -> None:
        """Delete a log: its directory is renamed at once, and its files go later."""
        node = self._node
        manager = node.storage.manager
        if manager.get(effect.partition) is None:
            return  # its directory has failed: the log is found to be a stray when it is back
        directory = manager.directory_of(effect.partition)
        name = manager.delete(effect.partition)
        delay = node.settings.file_delete_delay_us
        node.call_at(node.kernel.time + delay, self._remove_files, directory, name)

    def _remove_files(self, directory: int, name: str) -> None:
        self._node.storage.manager.remove_deleted(directory, name)

    def put_strays_aside(self, image: MetadataImage) -> tuple[TopicPartition, ...]:
        """Rename the logs found at the start that the metadata gives to nobody here.

        Their topic was deleted, or made anew under another id, or the replica moved away, while
        this broker did not run.

        Source: ``LogManager.isStrayKraftReplica``.
        """
        manager = self._node.storage.manager
        strays = tuple(
            partition
            for partition in manager.logs
            if partition != METADATA_PARTITION and self._is_stray(partition, image)
        )
        for partition in strays:
            manager.put_aside(partition)
            self._tell_removed(partition)
        if manager.futures.logs:
            self._node.moves.put_strays_aside(image)
            self._node.moves.finish_agreed(image)
        return strays

    def _tell_removed(self, partition: TopicPartition) -> None:
        node = self._node
        place = (node.node_id, partition.topic, partition.partition)
        nobody = (NO_LEADER, NO_EPOCH, -1, "", 0, 0)
        table: TableWriter[LeadershipRow] = node.trace.table("leadership")
        table.add((node.kernel.now(), *place, "removed", *nobody))

    def _is_stray(self, partition: TopicPartition, image: MetadataImage) -> bool:
        state = image.partitions.get(partition)
        if state is None or self._node.node_id not in state.replicas:
            return True
        return self._node.storage.manager.topic_id_of(partition) not in {"", state.topic_id}

    def flush(self, port: Port, effect: fx.Flush) -> None:
        """Fsync a log; the machine hears when that is done. Observers do not fsync metadata."""
        if effect.partition != METADATA_PARTITION:
            self._begin_flush(port, effect, self._node.kernel.time)

    def _begin_flush(self, port: Port, effect: fx.Flush, since: Micros) -> None:
        node = self._node
        now = node.kernel.time
        if node.storage.manager.get(effect.partition) is None:
            # Its directory has failed: whoever waits finds that out.
            node.call_at(now, self._flushed, port, effect)
            return
        done = node.storage.begin_fsync(effect.partition)
        if done is None:
            node.call_at(now + TRY_AGAIN_US, self._begin_flush, port, effect, since)
            return
        if effect.by_handler:
            node.host.request_handlers.hold(since, done)
        node.call_at(done, self._flushed, port, effect)

    def kept_waiting(self, _port: Port, effect: fx.KeptWaiting) -> None:
        """A handler had to wait for a log that another one flushed."""
        node = self._node
        node.host.request_handlers.hold(effect.since, node.kernel.time)

    def _flushed(self, port: Port, effect: fx.Flush) -> None:
        node = self._node
        log = node.storage.manager.get(effect.partition)
        if log is not None:
            try:
                log.flush()
                node.storage.flushed_us[effect.partition] = node.kernel.time
            except StorageFailed as failure:
                # First the failure, then who waited: nothing unflushed may be acknowledged.
                node.directory_failed(
                    node.storage.manager.directory_of(effect.partition), str(failure)
                )
                if not node.running:
                    return
        if effect.token is not None:
            node.deliver(port, Flushed(effect.token))

    def _flush_rolled(self) -> None:
        storage = self._node.storage
        for log, up_to, done in storage.flush_rolled():
            self._node.call_at(done, storage.flush_up_to, log, up_to)

    def checkpoint_watermarks(self) -> None:
        """Write the high watermarks of all replicas.

        Raises:
            DiskFailed: If a disk has failed or is full.
        """
        node, replicas = self._node, self._node.replica_manager
        node.storage.manager.checkpoint_high_watermarks(
            replicas.high_watermarks(), replicas.moves.high_watermarks()
        )

    def _checkpoint_recovery_points(self) -> None:
        self._node.storage.manager.checkpoint_recovery_points()

    def _checkpoint_log_starts(self) -> None:
        self._node.storage.manager.checkpoint_log_starts()
