"""What goes on in a broker's logs in the background: retention, and unlinking what was removed.

Compacted topics are left to the cleaners, which remove what lies below their log starts, too.

Source: ``LogManager.cleanupLogs``, ``LogManager.startupWithConfigOverrides``.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sim.ids import METADATA_PARTITION, Offset
from sim.log.partition.deletion import unlink
from sim.log.partition.log import PartitionLog
from sim.log.partition.retention import Removal, delete_old_segments
from sim.nodes.broker.timed_flush import TimedFlushes
from sim.protocol.broker.replication.events import LogStartMoved
from sim.units import MS, NEVER, timestamp_ms
from sim.wire.primitives import MalformedBytes

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class LogUpkeep:
    """Background work on the logs of one broker process."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node

    def begin(self) -> None:
        """Logs are loaded: the first run comes after ``log.initial.task.delay.ms``."""
        node = self._node
        delay = node.settings.upkeep.initial_delay_us
        node.call_at(node.kernel.time + delay, self._look_for_old_segments)
        node.call_at(node.kernel.time + node.settings.producers.check_us, self._expire_producers)
        if node.settings.upkeep.flush_check_us < NEVER:
            node.spawn(TimedFlushes(node).run())

    def _look_for_old_segments(self) -> None:
        node = self._node
        interval = node.settings.upkeep.retention_check_us
        node.call_at(node.kernel.time + interval, self._look_for_old_segments)
        for partition, log in list(node.storage.manager.logs.items()):
            if partition != METADATA_PARTITION and not log.config.compact:
                self.remove_old_segments(log)
        for log in list(node.storage.manager.futures.logs.values()):
            self._shorten_future(log)

    def _expire_producers(self) -> None:
        """Forget producers that were silent for ``producer.id.expiration.ms``.

        Source: ``UnifiedLog.removeExpiredProducers``, which each log schedules for itself.
        """
        node = self._node
        node.call_at(node.kernel.time + node.settings.producers.check_us, self._expire_producers)
        now_ms = timestamp_ms(node.now())
        for partition, log in node.storage.manager.logs.items():
            if partition != METADATA_PARTITION:
                log.expire_producers(now_ms)
        for log in node.storage.manager.futures.logs.values():
            log.expire_producers(now_ms)

    def _shorten_future(self, log: PartitionLog) -> None:
        """Retention of a log on its way; the one in use tells what is gone."""
        move = self._node.replica_manager.moves.moves.get(log.partition)
        if move is None or log.config.compact:
            return
        try:
            removal = self._remove(log, move.high_watermark)
        except MalformedBytes:
            return
        if removal.doomed:
            self.unlink_later(log, removal.doomed)

    def remove_old_segments(self, log: PartitionLog) -> None:
        """Retention of one log; its replica hears where the log starts now.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        node = self._node
        partition = log.partition
        watermark = node.high_watermark(partition)
        try:
            removal = self._remove(log, watermark)
        except MalformedBytes:
            return  # how old a damaged segment is cannot be told; recovery will find it
        for before, after, reason in removal.moves:
            node.log_start_moved(LogStartMoved(partition, before, after, reason))
        if removal.doomed:
            self.unlink_later(log, removal.doomed)

    def _remove(self, log: PartitionLog, high_watermark: Offset) -> Removal:
        now_ms = timestamp_ms(self._node.now())
        is_bounded = self._node.settings.upkeep.retention_bounded
        return delete_old_segments(log, high_watermark, now_ms, is_bounded=is_bounded)

    def unlink_later(self, log: PartitionLog, names: Sequence[str]) -> None:
        """Renamed files are unlinked ``file.delete.delay.ms`` later, if the process still runs."""
        node = self._node
        delay = log.config.file_delete_delay_ms * MS
        node.call_at(node.kernel.time + delay, self._unlink, log, names)

    def _unlink(self, log: PartitionLog, names: Sequence[str]) -> None:
        if self._node.storage.is_online(log.store):
            # The directory may have got another name meanwhile.
            files = [name.rpartition("/")[2] for name in names]
            unlink(log.store, [f"{log.directory}/{file}" for file in files])
