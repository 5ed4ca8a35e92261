"""A server's log directories in simulated time: costs of loading, flushing and checkpoints.

Combines the files of :mod:`sim.log` with the latencies of the disks. Each log directory has a disk
of its own; the metadata log is in the first.

Source: ``kafka.log.LogManager``; ``log.flush.offset.checkpoint.interval.ms``.
"""

import shutil
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from sim.errors import StorageFailed
from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition, uuid_text
from sim.log.directory.manager import LoadedLog, LogManager
from sim.log.partition.log import PartitionLog
from sim.log.store.files import DiskFailed, FileStore
from sim.nodes.storage.log_settings import ProducerUpkeep, jitter_from, log_config
from sim.nodes.storage.metadata_log import MetadataLogConfig, format_directories
from sim.protocol.metadata.records import UNASSIGNED_DIRECTORY
from sim.rng import Streams
from sim.substrate.disk import Disk
from sim.trace.rows.log import LogHoles, LogStarts, Recoveries, Truncations
from sim.trace.writer import Trace
from sim.units import LONG_AGO, Bytes, Micros

CLUSTER_ID = uuid_text("logquake")
"""``cluster.id`` of every simulated cluster."""

METADATA_DIRECTORY = 0
"""Number of the log directory with the metadata log; Kafka: the first, without
``metadata.log.dir``."""


def directory_id(server: str, number: int, replacements: int) -> str:
    """``directory.id`` of a server's log directory; a replaced disk is formatted with another."""
    name = f"{server}/{number}"
    return uuid_text(f"{name}/{replacements}" if replacements else name)


class LogDirFailureChannel:
    """Receives failures of log directories.

    Source: ``org.apache.kafka.storage.internals.log.LogDirFailureChannel``.
    """

    @abstractmethod
    def directory_failed(self, number: int, reason: str) -> None:
        """Takes a log directory offline, unless it is offline already."""


class Storage:
    """One server's logs on its disks. A new one is created at each start of the process.

    Args:
        node: ``node.id``.
        name: Printed name of the server.
        disks: The disks, which outlive the process.
        trace: Receives rows of loading, and of truncation by loss.
        configs_of: Topic settings of a partition, in Kafka's names.
        ends: Log ends at the last stop, from which losses follow; kept up to date here.
        starts: Log starts at the last stop, likewise.
        streams: Random streams, for the jitter of segments.
        metadata_log: Settings of the metadata log, and of the formatting of new directories.
        now_ms: Time of formatting.
        producers: Settings of producer state.
        by_last_offset: Whether a batch may begin within the one before it, as before 0.11.
        has_metadata_log: True if the first directory has a log that the server cannot be without;
            false in ZooKeeper mode.
    """

    def __init__(
        self,
        node: NodeId,
        name: str,
        disks: list[Disk],
        trace: Trace,
        configs_of: Callable[[TopicPartition], Mapping[str, str]],
        ends: dict[TopicPartition, Offset],
        starts: dict[TopicPartition, Offset],
        streams: Streams,
        metadata_log: MetadataLogConfig,
        now_ms: int,
        producers: ProducerUpkeep,
        *,
        by_last_offset: bool = False,
        has_metadata_log: bool = True,
    ) -> None:
        self.node = node
        self._has_metadata_log = has_metadata_log
        self._config_from = partial(log_config, producers=producers, by_last_offset=by_last_offset)
        self.flushed_us: dict[TopicPartition, Micros] = {}
        """Time of each open log's last flush, or of its opening."""
        self.disks = disks
        self.ends = ends
        self.starts = starts
        self._trace = trace
        stores = tuple(disk.store for disk in disks)
        format_directories(stores, metadata_log, now_ms)
        self._manage = partial(
            LogManager,
            node_id=node,
            cluster_id=CLUSTER_ID,
            directory_ids=tuple(
                directory_id(name, number, disk.store.replacements)
                for number, disk in enumerate(disks)
            ),
            config_of=lambda partition: (
                metadata_log.log
                if partition == METADATA_PARTITION
                else self._config_from(configs_of(partition))
            ),
            jitter_of=lambda partition: jitter_from(streams, f"roll/{name}/{partition}"),
        )
        self.manager = self._manage(stores)

    def load(self, now: Micros) -> tuple[LoadedLog, ...]:
        """Loads every log found, and writes losses since the last stop to the trace.

        Args:
            now: This instant.

        Raises:
            DiskFailed: If the metadata log's directory has failed, or all have.
        """
        loaded = self.manager.load()
        if self._has_metadata_log and METADATA_DIRECTORY in self.manager.offline:
            raise DiskFailed(self.manager.offline[METADATA_DIRECTORY])
        self._note_losses(loaded, now, "recovery", is_whole=not self.manager.offline)
        self.flushed_us = dict.fromkeys(self.manager.logs, now)
        return loaded

    def note_loaded(self, log: LoadedLog, began: Micros) -> None:
        """Writes a loaded log to the trace; future logs have no row."""
        if log.is_future:
            return
        now = self.disks[0].kernel.time
        recovery = log.recovery
        row = Recoveries.row(
            self.node,
            *log.partition,
            clean=recovery.clean,
            recovery_point=recovery.recovery_point,
            log_end_offset=recovery.log_end_offset,
            scanned_bytes=recovery.scanned_bytes,
            truncated_bytes=recovery.truncated_bytes,
            read_bytes=recovery.cold.bytes if recovery.cold is not None else 0,
            took_us=now - began,
        )
        self._trace.write(now, row)

    def note_unrecovered(self, scratch: Path) -> None:
        """Writes losses on the disks of a process that is not started again to the trace.

        The files stay as the last stop has left them: copies are recovered.

        Args:
            scratch: An empty directory for the copies.
        """
        copies = []
        for number, disk in enumerate(self.disks):
            disk.store.write_back_all()
            disk.store.settle()
            disk.store.close()
            copies.append(FileStore(shutil.copytree(disk.store.root, scratch / str(number))))
        manager, now = self._manage(tuple(copies)), self.disks[0].kernel.time
        try:
            loaded = manager.load()
            self._note_losses(loaded, now, "unrecovered", is_whole=not manager.offline)
        except StorageFailed:
            return  # No process could start from these disks, so their losses are unknown.
        finally:
            for copy in copies:
                copy.close()

    def _note_losses(
        self, found: Iterable[LoadedLog], now: Micros, reason: str, *, is_whole: bool
    ) -> None:
        """Writes losses since the last stop to the trace."""
        loaded = {log.partition: log for log in found if not log.is_future}
        for each in loaded.values():
            self._note_start(now, each.partition, each.log.log_start_offset)
            for begin, end in each.recovery.holes:
                hole = LogHoles.row(self.node, *each.partition, from_offset=begin, to_offset=end)
                self._trace.write(now, hole)
        if not is_whole:
            # A log that was not found may be in a directory that is offline.
            self.ends = {p: end for p, end in self.ends.items() if p not in loaded}
            self.starts = {p: start for p, start in self.starts.items() if p not in loaded}
            return
        for partition, before in self.ends.items():
            log = loaded.get(partition)
            after = 0 if log is None else log.recovery.log_end_offset
            if log is None:
                self._note_start(now, partition, 0)
            if after < before:
                row = Truncations.row(
                    self.node,
                    *partition,
                    from_offset=before,
                    to_offset=after,
                    high_watermark=-1,
                    leader_epoch=-1,
                    reason="wiped" if log is None else reason,
                )
                self._trace.write(now, row)
        self.ends.clear()
        self.starts.clear()

    def _note_start(self, now: Micros, partition: TopicPartition, after: Offset) -> None:
        """A log starts elsewhere than at the last stop: its checkpoint was older, or lost."""
        before = self.starts.get(partition, after)
        if after != before:
            row = LogStarts.row(
                self.node, *partition, from_offset=before, to_offset=after, reason="recovery"
            )
            self._trace.write(now, row)

    def note_ends(self) -> None:
        """Keeps every log's start and end, at the moment the process stops."""
        for partition, log in self.manager.logs.items():
            self.ends[partition] = log.log_end_offset
            self.starts[partition] = log.log_start_offset

    def open_log(
        self, partition: TopicPartition, topic_id: str, configs: Mapping[str, str]
    ) -> PartitionLog:
        """Opens the partition's log, or creates it."""
        log = self.manager.get(partition)
        if log is None:
            self.flushed_us[partition] = self.disks[0].kernel.time
            return self.manager.create(partition, topic_id)
        log.config = self._config_from(configs)
        future = self.manager.futures.get(partition)
        if future is not None:
            future.config = log.config
        return log

    # -- log directories --------------------------------------------------------------------------

    def directory_id_of(self, partition: TopicPartition) -> str:
        """``directory.id`` of the directory that holds an open log."""
        return self.manager.directory_ids[self.manager.directory_of(partition)]

    def may_open(self, partition: TopicPartition, directory: str) -> bool:
        """True if a log may be opened or created: not if it may be in an offline directory.

        Source: ``LogManager.getOrCreateLog``; KIP-858.
        """
        manager = self.manager
        if not manager.offline or partition in manager.logs or directory == UNASSIGNED_DIRECTORY:
            return True
        return directory in self.online_ids

    @property
    def online_ids(self) -> tuple[str, ...]:
        """``directory.id`` of every directory that works."""
        return tuple(
            name
            for number, name in enumerate(self.manager.directory_ids)
            if number not in self.manager.offline
        )

    @property
    def offline_ids(self) -> tuple[str, ...]:
        """``directory.id`` of every directory that has failed."""
        ids = self.manager.directory_ids
        return tuple(ids[number] for number in sorted(self.manager.offline))

    def failing(self, failure: StorageFailed) -> int | None:
        """Number of the directory of an error; ``None`` for none, or if it is offline already."""
        root = failure.root if isinstance(failure, DiskFailed) else None
        for number, disk in enumerate(self.disks):
            if number not in self.manager.offline and disk.store.root == root:
                return number
        return None

    def failing_under(self, partition: TopicPartition) -> int | None:
        """Number of the failed directory of a partition; ``None`` if it is offline already."""
        if partition in self.manager.logs:
            return self.manager.directory_of(partition)
        for number, disk in enumerate(self.disks):
            if number not in self.manager.offline and disk.store.refuses_writes:
                return number
        return None

    def take_offline(self, directory: int, reason: str) -> tuple[TopicPartition, ...]:
        """Takes a failed directory offline; closes its logs and returns their partitions."""
        for partition, log in self.manager.logs.items():
            if self.manager.directory_of(partition) == directory:
                self.ends[partition] = log.log_end_offset
                self.starts[partition] = log.log_start_offset
        return self.manager.take_offline(directory, reason)

    def must_halt(self) -> bool:
        """True if the process must end: the metadata log's directory failed, or all did."""
        offline = self.manager.offline
        lost = self._has_metadata_log and METADATA_DIRECTORY in offline
        return lost or len(offline) == len(self.disks)

    def writers_wait_until(self, partitions: Iterable[TopicPartition]) -> Micros:
        """Instant until which writers to these partitions wait for their disks."""
        disks = self.disks
        if len(disks) == 1:
            return disks[0].writers_wait_until()
        logs = self.manager.logs
        numbers = {self.manager.directory_of(p): None for p in partitions if p in logs}
        return max([disks[number].writers_wait_until() for number in numbers], default=LONG_AGO)

    def fsync_everything(self) -> Micros:
        """Queues an fsync of all dirty data; returns the instant at which every disk is done."""
        until: Micros = 0
        for number, disk in enumerate(self.disks):
            if number not in self.manager.offline and not disk.stalled:
                until = max(until, disk.fsync(disk.store.dirty_bytes, ""))
        return until

    def is_online(self, store: FileStore) -> bool:
        """True if a log directory works, as far as the process knows."""
        return any(
            known is store and number not in self.manager.offline
            for number, known in enumerate(self.manager.directories)
        )

    def disk_of(self, partition: TopicPartition) -> Disk:
        """Disk of the partition's log."""
        return self.disks[self.manager.directory_of(partition)]

    def disk_under(self, partition: TopicPartition) -> Disk | None:
        """Disk of an open log; ``None`` if the log is not open."""
        return self.disk_of(partition) if partition in self.manager.logs else None

    def read_all(self, partition: TopicPartition) -> Micros | None:
        """Reads a whole open log; returns the end of the read, ``None`` on a stalled disk."""
        disk = self.disk_of(partition)
        if disk.stalled:
            disk.refuse()
            return None
        cold = self.manager.logs[partition].use_all()
        return disk.kernel.time if cold is None else disk.read(cold, str(partition))

    def begin_fsync(self, partition: TopicPartition) -> Micros | None:
        """Queues an fsync of an open log; returns its end, or ``None`` if it cannot begin."""
        disk = self.disk_of(partition)
        if disk.stalled:
            disk.refuse()
            return None
        return disk.fsync(self.manager.logs[partition].flush_bytes(), str(partition))

    def flush_rolled(self) -> list[tuple[PartitionLog, Offset, Micros]]:
        """Queues the fsyncs that rolls have scheduled; returns log, offset, and end of each."""
        rolled_in = [store for store in self.manager.directories if store.has_rolled]
        if not rolled_in:
            return []  # thousands of idle logs are not looked at each second
        for store in rolled_in:
            store.has_rolled = False
        due = []
        for log in [*self.manager.logs.values(), *self.manager.futures.logs.values()]:
            rolled = log.take_rolled()
            if rolled is not None:
                disk = next(disk for disk in self.disks if disk.store is log.store)
                size: Bytes = rolled.bytes
                file = str(log.partition)
                done = disk.fsync(size, file) if not disk.stalled else disk.busy_until
                due.append((log, rolled.up_to, done))
        return due

    def flush_up_to(self, log: PartitionLog, up_to: Offset) -> None:
        """Completes an fsync in the background, unless the directory has failed meanwhile."""
        if self.manager.get(log.partition) is log:
            log.flush(up_to)
            self.flushed_us[log.partition] = self.disks[0].kernel.time
        elif self.manager.futures.get(log.partition) is log:
            log.flush(up_to)
