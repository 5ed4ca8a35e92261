"""Flushes by time: every so often, each log whose last flush lies ``flush.ms`` back is fsynced.

Nothing is looked at unless ``log.flush.scheduler.interval.ms`` is set: ``flush.ms`` alone flushes
nothing, as in Kafka. One thread of the process does it, one log after the other, so a slow disk
makes the next log wait; requests do not wait for that thread, but queue behind it at the disk.

Source: ``LogManager.flushDirtyLogs``, ``LocalLog.markFlushed``.
"""

from typing import TYPE_CHECKING

from sim.ids import METADATA_PARTITION
from sim.kernel import Task
from sim.log.partition.log import PartitionLog
from sim.nodes.process.base import TRY_AGAIN_US
from sim.units import MS

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class TimedFlushes:
    """The flusher of one broker process."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node

    def run(self) -> Task:
        """First ``log.initial.task.delay.ms`` after loading, then at the scheduler's interval."""
        node, upkeep = self._node, self._node.settings.upkeep
        kernel = node.kernel
        next_run = kernel.time + upkeep.initial_delay_us
        while True:
            yield kernel.sleep(max(next_run - kernel.time, 0))
            next_run += upkeep.flush_check_us
            for log in list(node.storage.manager.logs.values()):
                if self._is_due(log):
                    yield from self._flush(log)

    def _is_due(self, log: PartitionLog) -> bool:
        """Whether the log is open, and its last flush far enough back."""
        node = self._node
        storage, partition = node.storage, log.partition
        if node.still or partition == METADATA_PARTITION or storage.manager.get(partition) != log:
            return False
        return node.kernel.time - storage.flushed_us[partition] >= log.config.flush_ms * MS

    def _flush(self, log: PartitionLog) -> Task:
        node = self._node
        kernel, storage = node.kernel, node.storage
        up_to = log.log_end_offset
        if up_to <= log.recovery_point:
            return
        while storage.manager.get(log.partition) is log:
            done = storage.begin_fsync(log.partition)
            if done is not None:
                node.call_at(done, storage.flush_up_to, log, up_to)
                yield kernel.sleep(done - kernel.time)
                return
            yield kernel.sleep(TRY_AGAIN_US)
