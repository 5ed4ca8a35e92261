"""Background tasks of a broker's logs: retention, unlinking of removed files, timed flushes.

Compacted topics are left to the cleaners, which also remove segments below their log starts.

Source: ``LogManager.cleanupLogs``, ``LogManager.startupWithConfigOverrides``.
"""

from collections.abc import Sequence

from sim.ids import METADATA_PARTITION, Offset
from sim.kernel import Task
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.retention import Removal, delete_old_segments
from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.settings import UpkeepSettings
from sim.nodes.process.dispatcher import TRY_AGAIN_US
from sim.nodes.process.process import Process
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.replication.events import LogStartMoved
from sim.trace.rows.tiered import (
    LocalLogStarts,
)
from sim.units import MS, NEVER, Micros, timestamp_ms
from sim.wire.primitives import MalformedBytes


class TimedFlushes:
    """Flushes by time of one broker process: logs whose last fsync is ``flush.ms`` ago.

    Nothing is flushed unless ``log.flush.scheduler.interval.ms`` is set: ``flush.ms`` alone flushes
    nothing, as in Kafka. One thread of the process does it, one log after the other, so a slow disk
    makes the next log wait; requests do not wait for that thread, but queue behind it at the disk.

    Source: ``LogManager.flushDirtyLogs``, ``LocalLog.markFlushed``.

    Args:
        process: The broker.
        storage: Its logs.
        upkeep: Interval of the scheduler.
    """

    def __init__(self, process: Process, storage: Storage, upkeep: UpkeepSettings) -> None:
        self._process = process
        self._storage = storage
        self._upkeep = upkeep

    def run(self) -> Task:
        """First ``log.initial.task.delay.ms`` after loading, then at the scheduler's interval."""
        kernel, upkeep = self._process.kernel, self._upkeep
        next_run = kernel.time + upkeep.initial_delay_us
        while True:
            yield kernel.sleep(max(next_run - kernel.time, 0))
            next_run += upkeep.flush_check_us
            for log in list(self._storage.manager.logs.values()):
                if self._is_due(log):
                    yield from self._flush(log)

    def _is_due(self, log: PartitionLog) -> bool:
        """True if the log is open, and its last flush long enough ago."""
        process, storage, partition = self._process, self._storage, log.partition
        if process.frozen or partition == METADATA_PARTITION:
            return False
        if storage.manager.get(partition) != log:
            return False
        return process.kernel.time - storage.flushed_us[partition] >= log.config.flush_ms * MS

    def _flush(self, log: PartitionLog) -> Task:
        process, storage = self._process, self._storage
        kernel = process.kernel
        up_to = log.log_end_offset
        if up_to <= log.recovery_point:
            return
        while storage.manager.get(log.partition) is log:
            done = storage.begin_fsync(log.partition)
            if done is not None:
                process.call_at(done, storage.flush_up_to, log, up_to)
                yield kernel.sleep(done - kernel.time)
                return
            yield kernel.sleep(TRY_AGAIN_US)


class LogUpkeep:
    """Background work on the logs of one broker process.

    Args:
        process: The broker.
        storage: Its logs.
        replicas: Its replicas.
        settings: Tasks and their intervals.
        expiry_check_us: Interval of the check for expired producers.
    """

    def __init__(
        self,
        process: Process,
        storage: Storage,
        replicas: Replicas,
        settings: UpkeepSettings,
        expiry_check_us: Micros,
    ) -> None:
        self._process = process
        self._storage = storage
        self._replicas = replicas
        self._settings = settings
        self._expiry_check_us = expiry_check_us

    def begin(self) -> None:
        """Logs are loaded: the first run comes after ``log.initial.task.delay.ms``."""
        process, settings = self._process, self._settings
        now = process.kernel.time
        process.call_at(now + settings.initial_delay_us, self._look_for_old_segments)
        process.call_at(now + self._expiry_check_us, self._expire_producers)
        if settings.flush_check_us < NEVER:
            process.spawn(TimedFlushes(process, self._storage, settings).run())

    def _look_for_old_segments(self) -> None:
        process, manager = self._process, self._storage.manager
        interval = self._settings.retention_check_us
        process.call_at(process.kernel.time + interval, self._look_for_old_segments)
        for partition, log in list(manager.logs.items()):
            if partition != METADATA_PARTITION and not log.config.compact:
                self.remove_old_segments(log)
        for log in list(manager.futures.logs.values()):
            self._shorten_future(log)

    def _expire_producers(self) -> None:
        """Evicts producers idle for ``producer.id.expiration.ms``.

        Source: ``UnifiedLog.removeExpiredProducers``, which each log schedules for itself.
        """
        process, manager = self._process, self._storage.manager
        process.call_at(process.kernel.time + self._expiry_check_us, self._expire_producers)
        now_ms = timestamp_ms(process.now())
        for partition, log in manager.logs.items():
            if partition != METADATA_PARTITION:
                log.expire_producers(now_ms)
        for log in manager.futures.logs.values():
            log.expire_producers(now_ms)

    def _shorten_future(self, log: PartitionLog) -> None:
        """Retention of a future log; the rows of deletions are written for the current one."""
        watermark = self._replicas.future_watermark(log.partition)
        if watermark is None or log.config.compact:
            return
        try:
            removal = self._remove(log, watermark)
        except MalformedBytes:
            return
        if removal.doomed:
            self.unlink_later(log, removal.doomed)

    def remove_old_segments(self, log: PartitionLog) -> None:
        """Retention of one log; its replica gets the new log start.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        partition = log.partition
        watermark = self._replicas.high_watermark(partition)
        try:
            removal = self._remove(log, watermark)
        except MalformedBytes:
            return  # the age of a damaged segment is unknown; recovery will find it
        for before, after, reason in removal.moves:
            if log.is_tiered:
                self._note_local_start(log, before, after, reason)
                continue
            self._replicas.deliver(LogStartMoved(partition, before, after, reason))
        if removal.doomed:
            self.unlink_later(log, removal.doomed)

    def _note_local_start(
        self, log: PartitionLog, before: Offset, after: Offset, reason: str
    ) -> None:
        row = LocalLogStarts.row(
            self._storage.node,
            *log.partition,
            from_offset=before,
            to_offset=after,
            log_start_offset=log.log_start_offset,
            reason=reason,
        )
        self._process.trace.write(self._process.kernel.now(), row)

    def _remove(self, log: PartitionLog, high_watermark: Offset) -> Removal:
        now_ms = timestamp_ms(self._process.now())
        is_bounded = self._settings.retention_bounded
        return delete_old_segments(log, high_watermark, now_ms, is_bounded=is_bounded)

    def unlink_later(self, log: PartitionLog, names: Sequence[str]) -> None:
        """Unlinks renamed files ``file.delete.delay.ms`` later, if the process still runs."""
        process = self._process
        delay = log.config.file_delete_delay_ms * MS
        process.call_at(process.kernel.time + delay, self._unlink, log, names)

    def _unlink(self, log: PartitionLog, names: Sequence[str]) -> None:
        if self._storage.is_online(log.store):
            # The directory may have got another name meanwhile.
            files = [name.rpartition("/")[2] for name in names]
            unlink(log.store, [f"{log.directory}/{file}" for file in files])
