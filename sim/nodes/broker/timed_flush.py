"""Flushes by time: fsyncs each log whose last flush is ``flush.ms`` ago.

Nothing is flushed unless ``log.flush.scheduler.interval.ms`` is set: ``flush.ms`` alone flushes
nothing, as in Kafka. One thread of the process does it, one log after the other, so a slow disk
makes the next log wait; requests do not wait for that thread, but queue behind it at the disk.

Source: ``LogManager.flushDirtyLogs``, ``LocalLog.markFlushed``.
"""

from sim.ids import METADATA_PARTITION
from sim.kernel import Task
from sim.log.partition.log import PartitionLog
from sim.nodes.broker.settings import UpkeepSettings
from sim.nodes.process.dispatcher import TRY_AGAIN_US
from sim.nodes.process.process import Process
from sim.nodes.storage.log_dirs import Storage
from sim.units import MS


class TimedFlushes:
    """The flusher of one broker process.

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
