"""Selects the part of a compacted log that may be cleaned, and judges whether it is worth it.

Source: ``LogCleanerManager.cleanableOffsets``, ``calculateCleanableBytes``, ``maxCompactionDelay``,
``LogToClean``.
"""

from typing import NamedTuple

from sim.ids import Offset
from sim.log.cleaning.offset_map import segments_between
from sim.log.config import NO_LIMIT
from sim.log.partition.log import PartitionLog
from sim.units import Bytes


class Cleanable(NamedTuple):
    """The dirty part of a log, as far as it may be cleaned: whole segments."""

    log: PartitionLog
    first_dirty_offset: Offset
    first_uncleanable_offset: Offset
    """Base of the first segment that must stay as it is."""
    clean_bytes: Bytes
    cleanable_bytes: Bytes
    is_overdue: bool
    """True if ``max.compaction.lag.ms`` requires a cleaning."""

    @property
    def ratio(self) -> float:
        """Share of the dirty bytes."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """True if it is dirty enough, or has been so for too long."""
        if self.is_overdue and self.cleanable_bytes > 0:
            return True
        return self.ratio > self.log.config.min_cleanable_dirty_ratio


def last_stable_offset(log: PartitionLog, high_watermark: Offset) -> Offset:
    """First unstable offset: below it every transaction is decided, and its marker is committed."""
    return log.transactions.last_stable_offset(high_watermark)


def cleaning_bound(high_watermark: Offset, last_stable_offset: Offset) -> Offset:
    """First uncleanable offset: data there may still be truncated, or is undecided."""
    return min(high_watermark, last_stable_offset)


def bound_of(log: PartitionLog, high_watermark: Offset, *, by_high_watermark: bool) -> Offset:
    """Upper bound of cleaning; before 3.1 only undecided transactions bounded it.

    Source: KAFKA-13194; ``LogCleanerManager.cleanableOffsets``.
    """
    watermark = high_watermark if by_high_watermark else log.log_end_offset
    return cleaning_bound(watermark, last_stable_offset(log, watermark))


def first_dirty_offset(log: PartitionLog, checkpoint: Offset | None) -> Offset:
    """First dirty offset; the log start if the checkpoint has none, or an impossible one."""
    if checkpoint is None or not log.log_start_offset <= checkpoint <= log.log_end_offset:
        return log.log_start_offset
    return checkpoint


def cleanable(
    log: PartitionLog, checkpoint: Offset | None, bound: Offset, now_ms: int
) -> Cleanable:
    """The part that may be cleaned now.

    Args:
        log: A compacted log.
        checkpoint: How far it was cleaned; ``None`` if it never was.
        bound: From :func:`cleaning_bound`.
        now_ms: Wall clock.

    Raises:
        DiskFailed: If the disk has failed.
        MalformedBytes: If a header that has to be read is damaged.
    """
    config = log.config
    active = log.segments[-1].base_offset
    dirty = first_dirty_offset(log, checkpoint)
    aging = segments_between(log, dirty, active)
    limit = min(bound, active)
    if config.min_compaction_lag_ms > 0:
        newest = now_ms - config.min_compaction_lag_ms
        young = (s.base_offset for s in aging if s.largest_timestamp_ms() > newest)
        limit = min(limit, next(young, limit))
    limit = max(limit, dirty)
    # Whole segments: the one that would hold the limit is the first that stays.
    beyond = segments_between(log, limit, active)
    end = beyond[0].base_offset if beyond else active
    first_timestamps = [s.first_timestamp_ms for s in aging if s.first_timestamp_ms > 0]
    overdue_below = now_ms - config.max_compaction_lag_ms
    return Cleanable(
        log,
        dirty,
        end,
        sum([s.size for s in log.segments if s.base_offset < dirty]),
        sum([s.size for s in segments_between(log, min(dirty, end), end)]),
        min(first_timestamps, default=NO_LIMIT) < overdue_below,
    )
