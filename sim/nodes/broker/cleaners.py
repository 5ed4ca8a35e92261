"""A broker's log cleaners in simulated time: choice of the log, and cost of its reads and writes.

Each cleaner takes the dirtiest log that is due and that no other cleaner has, pays for the bytes of
each step on the log's own disk and within ``log.cleaner.io.max.bytes.per.second``, and sleeps when
there is nothing to do. After each round it deletes old segments of compacted logs, too.

Source: ``LogCleaner.CleanerThread``, ``LogCleanerManager.grabFilthiestCompactedLog``.
"""

from collections.abc import Callable

from sim.errors import CorruptRecord, StorageFailed
from sim.ids import METADATA_PARTITION, Offset, TopicPartition
from sim.log.cleaning.cleanable import Cleanable, bound_of, cleanable, first_dirty_offset
from sim.log.cleaning.cleaner import Cleaning
from sim.log.cleaning.offset_map import capacity_of
from sim.log.cleaning.uncleanable import Uncleanable
from sim.log.directory.cleaner_checkpoint import read_cleaned, write_cleaned
from sim.log.partition.log import PartitionLog
from sim.log.store.page_cache import ColdRead
from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.settings import UpkeepSettings
from sim.nodes.broker.upkeep import LogUpkeep
from sim.nodes.process.process import Process
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.tombstones import (
    UNKNOWN,
    CleanedLogs,
    LedLog,
    TombstoneCoordinator,
)
from sim.protocol.messages.leader_epochs import TombstoneOffsetsRequest
from sim.protocol.offset_runs import places_in
from sim.trace.rows.log import Cleanings, LogContents
from sim.units import LONG_AGO, MS, SECOND, Bytes, Micros, timestamp_ms
from sim.wire.primitives import MalformedBytes

_STALLED_US: Micros = 100 * MS
"""Interval at which a cleaner checks whether a stalled disk works again."""


class LogCleaner:
    """All cleaners of one broker process.

    Args:
        process: The broker.
        storage: Its logs.
        replicas: Its replicas.
        upkeep: Removes old segments.
        settings: Interval and cost of cleaning.
        tombstones: Says which tombstones may go; ``None``: each cleaner decides alone.
    """

    def __init__(
        self,
        process: Process,
        storage: Storage,
        replicas: Replicas,
        upkeep: LogUpkeep,
        settings: UpkeepSettings,
        tombstones: TombstoneCoordinator | None = None,
    ) -> None:
        self._tombstones = tombstones
        self._process = process
        self._storage = storage
        self._replicas = replicas
        self._upkeep = upkeep
        self._settings = settings
        self._in_progress: dict[TopicPartition, Micros] = {}
        """Logs that a cleaner has, and since when."""
        self._budget_at: Micros = LONG_AGO
        self._ended = False
        self._uncleanable = Uncleanable(ends_cleaner=settings.error_ends_cleaner)
        share = settings.dedupe_bytes // settings.cleaner_threads
        self._capacity = capacity_of(share, settings.load_factor)

    def begin(self) -> None:
        """Starts every cleaner, if they are enabled: logs are loaded."""
        if not self._settings.cleaner_enabled:
            return
        for _ in range(self._settings.cleaner_threads):
            self._process.call_at(self._process.kernel.time, self._clean_next)

    def replaced(self, settings: UpkeepSettings) -> "LogCleaner":
        """Cleaners with other settings; these end with the logs that they have.

        Source: ``LogCleaner.reconfigure``, which ends all threads and starts others.
        """
        self._ended = True
        heir = LogCleaner(
            self._process, self._storage, self._replicas, self._upkeep, settings, self._tombstones
        )
        heir._in_progress, heir._uncleanable = self._in_progress, self._uncleanable
        heir.begin()
        return heir

    # -- one cleaner ------------------------------------------------------------------------------

    def _clean_next(self) -> None:
        """Takes the dirtiest log that is due, or deletes old segments and sleeps."""
        if self._ended:
            return
        try:
            target = self._dirtiest()
        except (CorruptRecord, MalformedBytes):
            return  # where an error ends the cleaner
        if target is None:
            self._rest()
            return
        self._in_progress[target.log.partition] = self._process.kernel.time
        self._run_step(target.log, self._map, target)

    def _rest(self) -> None:
        self._clean_later()
        self._remove_old_segments()

    def _clean_later(self) -> None:
        backoff = self._settings.cleaner_backoff_us
        self._process.call_at(self._process.kernel.time + max(backoff, MS), self._clean_next)

    def _map(self, target: Cleanable) -> None:
        now_ms = timestamp_ms(self._process.now())
        checkpoint = self._storage.manager.checkpoint_recovery_points
        by_segment = self._settings.horizon_by_segment
        tombstones, partition = self._tombstones, target.log.partition
        cleaning = Cleaning(
            target,
            self._capacity,
            now_ms,
            checkpoint,
            horizon_by_segment=by_segment,
            tombstones_below=None if tombstones is None else tombstones.removable(partition),
        )
        self._after(cleaning.mapped_bytes, cleaning.use_map(), self._write, cleaning)

    def _write(self, cleaning: Cleaning) -> None:
        worked = cleaning.write_group()
        if worked is None:
            self._done(cleaning)
        else:
            self._after(worked, cleaning.use_group(), self._flush, cleaning)

    def _flush(self, cleaning: Cleaning) -> None:
        """The cleaned segment is written: its fsync takes time, too."""
        process, log = self._process, cleaning.log
        disk = self._storage.disk_of(log.partition)
        if disk.stalled:
            disk.refuse()
            again = process.kernel.time + _STALLED_US
            process.call_at(again, self._run_step, log, self._flush, cleaning)
            return
        done = disk.fsync(cleaning.unflushed_bytes, str(log.partition))
        process.call_at(done, self._run_step, log, self._swap, cleaning)

    def _swap(self, cleaning: Cleaning) -> None:
        doomed = cleaning.swap()
        if doomed is None:
            self._end_round(cleaning.log)
            return
        self._write_contents(cleaning)
        self._upkeep.unlink_later(cleaning.log, doomed)
        self._write(cleaning)

    def _write_contents(self, cleaning: Cleaning) -> None:
        """Writes the batches of the cleaned segment, which is now in the log, to the trace."""
        partition = cleaning.log.partition
        base, last = cleaning.group_range
        row = LogContents.row(
            self._storage.node,
            *partition,
            base_offset=base,
            last_offset=last,
            kept=places_in(cleaning.kept, base),
            how="cleaned",
            started_us=self._in_progress[partition],
            delete_retention_ms=cleaning.log.config.delete_retention_ms,
        )
        self._process.trace.write(self._process.kernel.time, row)

    def _done(self, cleaning: Cleaning) -> None:
        log, counts = cleaning.log, cleaning.counts
        write_cleaned(log, cleaning.end_offset, self._storage.manager.logs)
        row = Cleanings.row(
            self._storage.node,
            *log.partition,
            first_dirty_offset=cleaning.first_dirty_offset,
            end_offset=cleaning.end_offset,
            records_before=counts.records_before,
            records_after=counts.records_after,
            tombstones_removed=counts.tombstones_removed,
            bytes_before=counts.bytes_before,
            bytes_after=counts.bytes_after,
        )
        self._process.trace.write(self._process.kernel.time, row)
        self._end_round(log)

    def _end_round(self, log: PartitionLog) -> None:
        """This cleaner is free again: it deletes old segments, then looks for work at once."""
        self._in_progress.pop(log.partition, None)
        self._process.call_at(self._process.kernel.time, self._clean_next)
        self._remove_old_segments()

    # -- which log --------------------------------------------------------------------------------

    def _dirtiest(self) -> Cleanable | None:
        found: Cleanable | None = None
        for log in self._compacted():
            target = self._due_cleaning(log)
            if target is not None and (found is None or target.ratio > found.ratio):
                found = target
        return found

    def _due_cleaning(self, log: PartitionLog) -> Cleanable | None:
        """Cleanable range of a log, if it is due."""
        watermark = self._replicas.high_watermark(log.partition)
        bounded = self._settings.cleaning_bounded
        bound = bound_of(log, watermark, by_high_watermark=bounded)
        cleaned = read_cleaned(log, self._storage.manager.logs)
        try:
            target = cleanable(log, cleaned, bound, timestamp_ms(self._process.now()))
        except (CorruptRecord, MalformedBytes) as error:
            if self._uncleanable.mark(log.partition, error):
                return None
            raise
        total = target.clean_bytes + target.cleanable_bytes
        return target if total > 0 and target.is_due else None

    def _compacted(self) -> list[PartitionLog]:
        """Compacted logs that no cleaner has, that can be cleaned and are not being moved."""
        futures = self._storage.manager.futures.logs
        return [
            log
            for partition, log in self._storage.manager.logs.items()
            if log.config.compact
            and partition != METADATA_PARTITION
            and partition not in self._in_progress
            and partition not in self._uncleanable
            and partition not in futures
        ]

    def _remove_old_segments(self) -> None:
        for log in self._compacted():
            self._upkeep.remove_old_segments(log)

    # -- time and errors ---------------------------------------------------------------------------

    def _after(
        self,
        size: Bytes,
        cold: ColdRead | None,
        then: Callable[[Cleaning], None],
        cleaning: Cleaning,
    ) -> None:
        """Continues when so many bytes have been processed, of which some came from the disk."""
        process, log = self._process, cleaning.log
        now = process.kernel.time
        rate = self._settings.cleaner_bytes_per_s
        self._budget_at = max(self._budget_at, now) + int(size * SECOND / rate)
        disk = self._storage.disk_of(log.partition)
        done = now
        if cold is not None and disk.stalled:
            disk.refuse()
            done = now + _STALLED_US
        elif cold is not None:
            done = disk.read(cold, str(log.partition))
        process.call_at(max(done, self._budget_at), self._run_step, log, then, cleaning)

    def _run_step(self, log: PartitionLog, step: Callable[..., None], what: object) -> None:
        """Runs a step of a cleaning; this cleaner survives its errors."""
        manager = self._storage.manager
        if manager.get(log.partition) is not log or log.partition in manager.futures.logs:
            self._end_round(
                log
            )  # its directory failed, its topic was deleted, or it is being moved
            return
        try:
            step(what)
        except (CorruptRecord, MalformedBytes) as error:
            if self._uncleanable.mark(log.partition, error):
                self._end_round(log)
            else:
                self._in_progress.pop(log.partition, None)
        except StorageFailed:
            self._in_progress.pop(log.partition, None)
            self._clean_later()
            raise


class _CleanedLogs(CleanedLogs):
    """The logs of one broker process, as their cleaners have left them."""

    def __init__(self, storage: Storage, replicas: Replicas) -> None:
        self._storage = storage
        self._replicas = replicas

    def led(self) -> list[LedLog]:
        """Compacted partitions that this broker leads."""
        logs = self._storage.manager.logs
        return [
            LedLog(
                partition,
                tuple(b for b in replica.assigned if b != replica.broker),
                logs[partition].config.delete_retention_ms * MS,
            )
            for partition, replica in self._replicas.manager.replicas.items()
            if replica.is_leader and partition in logs and logs[partition].config.compact
        ]

    def cleaned(self, partition: TopicPartition) -> Offset:
        """First dirty offset of a log; ``UNKNOWN`` if it is not open."""
        manager = self._storage.manager
        log = manager.get(partition)
        if log is None:
            return UNKNOWN
        return first_dirty_offset(log, read_cleaned(log, manager.logs))


def coordinate_tombstones(
    node: ServerNode, storage: Storage, replicas: Replicas, settings: UpkeepSettings
) -> TombstoneCoordinator | None:
    """Adds the machine that coordinates the removal of tombstones, if it is on."""
    if not settings.coordinates_tombstones:
        return None
    coordinator = TombstoneCoordinator(storage.node, _CleanedLogs(storage, replicas))
    port = node.add_machine("tombstones", coordinator)
    node.route(port, TombstoneOffsetsRequest)
    node.perform(port, coordinator.start(node.now()))
    return coordinator
