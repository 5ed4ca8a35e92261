"""Cleaner of a compacted log: of each key the last record stays, at its offset.

A cleaning makes two passes. The first maps the keys of the dirty part; the second
rewrites all segments up to there, group by group, each group into one segment that replaces it
before the next is begun. The caller pays for the bytes between the steps.

Source: ``Cleaner.doClean``, ``groupSegmentsBySize``, ``cleanSegments``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sim.ids import Offset
from sim.log.cleaning.batch_filter import BatchFilter
from sim.log.cleaning.cleanable import Cleanable
from sim.log.cleaning.cleaned_transactions import (
    TRANSACTION_INDEX,
    CleanedTransactions,
    aborted_between,
)
from sim.log.cleaning.offset_map import build_offset_map, checked_batches, segments_between
from sim.log.config import LogConfig
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment
from sim.log.partition.swap import CLEANED, discard_cleaned, replace_segments
from sim.log.producers.transaction_index import encode_aborted
from sim.log.store.page_cache import ColdRead, all_of
from sim.units import Bytes

_LARGEST_RELATIVE_OFFSET = (1 << 31) - 1


@dataclass(slots=True)
class CleaningCounts:
    """Bytes and records that a cleaning has read and kept so far."""

    records_before: int = 0
    records_after: int = 0
    tombstones_removed: int = 0
    bytes_before: Bytes = 0
    bytes_after: Bytes = 0


class Cleaning:
    """One cleaning of one log, step by step: :meth:`write_group` and :meth:`swap` by turns."""

    def __init__(
        self,
        target: Cleanable,
        capacity: int,
        now_ms: int,
        checkpoint: Callable[[], object],
        *,
        horizon_by_segment: bool = False,
        tombstones_below: Offset | None = None,
    ) -> None:
        """Maps the keys of the dirty part; nothing is written yet.

        Args:
            target: What to clean.
            capacity: How many keys the map may hold.
            now_ms: Wall clock, which horizons are held against and set by.
            checkpoint: Writes the recovery points, before anything is replaced.
            horizon_by_segment: Tombstones go by the age of their segment, as before 3.1.
            tombstones_below: Bound of tombstones that may go; ``None``: there is none.

        Raises:
            DiskFailed: If the disk has failed.
            CorruptRecord: If a checksum is wrong.
            MalformedBytes: If a header or a record cannot be read.
        """
        self.log = target.log
        self.first_dirty_offset = target.first_dirty_offset
        self.counts = CleaningCounts()
        self._bound = target.first_uncleanable_offset
        self._map = build_offset_map(self.log, self.first_dirty_offset, self._bound, capacity)
        self._transactions = CleanedTransactions()
        self._now_ms = now_ms
        self._checkpoint = checkpoint
        self._is_secured = False
        self._tombstones_below = tombstones_below
        self._horizon_ms = (
            legacy_horizon_ms(self.log, self.first_dirty_offset) if horizon_by_segment else None
        )
        self._groups = group_segments(
            segments_between(self.log, 0, self.end_offset), self.log.config, self._bound
        )
        self._group: list[Segment] = []
        self._group_end: Offset = 0
        self._sizes: list[Bytes] = []
        self._cleaned: Segment | None = None
        self.kept: list[tuple[Offset, Offset]] = []
        """First and last offsets of runs of records in the cleaned segment written last."""

    @property
    def end_offset(self) -> Offset:
        """End of the part that is clean afterwards: as far as keys were mapped."""
        return self._map.latest_offset + 1

    @property
    def mapped_bytes(self) -> Bytes:
        """Bytes that the first pass has read."""
        return self._map.read_bytes

    def use_map(self) -> ColdRead | None:
        """Touches what the first pass reads; returns what is not in memory."""
        part = segments_between(self.log, self.first_dirty_offset, self.end_offset)
        return all_of(segment.log.use(0, segment.size) for segment in part)

    def use_group(self) -> ColdRead | None:
        """Touches what the second pass reads of a group; returns what is not in memory."""
        return all_of(segment.log.use(0, segment.size) for segment in self._group)

    def write_group(self) -> Bytes | None:
        """Writes the next group's cleaned segment, into the page cache.

        Returns:
            Bytes read and written; ``None`` if every group is done.

        Raises:
            DiskFailed: If the disk has failed or is full.
            CorruptRecord: If a checksum is wrong.
            MalformedBytes: If a header or a record cannot be read.
        """
        if not self._groups:
            return None
        log = self.log
        self._group = group = self._groups.pop(0)
        self._sizes = [segment.size for segment in group]
        base = group[0].base_offset
        discard_cleaned(log.store, log.directory, base)
        cleaned = Segment.create(log.store, log.directory, base, log.config, CLEANED)
        self._transactions.kept = []
        self._group_end = group[-1].next_offset()
        self.kept = []
        for segment in group:
            self._clean_into(cleaned, segment)
        cleaned.close_out()
        cleaned.modified_ms = group[-1].last_modified_ms()
        kept = self._transactions.kept
        if kept:
            name = f"{log.directory}/{base:020d}{TRANSACTION_INDEX}{CLEANED}"
            log.store.create(name).append(encode_aborted(kept))
        self._cleaned = cleaned
        return sum(self._sizes) + cleaned.size

    @property
    def group_range(self) -> tuple[Offset, Offset]:
        """First and last offset of the group that was written last."""
        return self._group[0].base_offset, self._group_end - 1

    @property
    def unflushed_bytes(self) -> Bytes:
        """Bytes that :meth:`swap` has to make durable first."""
        if self._cleaned is None:
            return 0
        return self._cleaned.dirty_bytes + self.log.flush_bytes(self.end_offset)

    def swap(self) -> list[str] | None:
        """Flushes the cleaned segment and replaces its group with it.

        Returns:
            Files to be unlinked after ``file.delete.delay.ms``; ``None`` if the log has been
            truncated or has deleted segments meanwhile, which cancels the cleaning.

        Raises:
            DiskFailed: If the disk has failed.
        """
        log, cleaned, group = self.log, self._cleaned, self._group
        assert cleaned is not None, "a group is written before it is swapped"
        self._cleaned = None
        present = segments_between(log, group[0].base_offset, self._bound)[: len(group)]
        if present != group or [segment.size for segment in present] != self._sizes:
            discard_cleaned(log.store, log.directory, cleaned.base_offset)
            return None
        self._secure()
        cleaned.flush()
        name = f"{log.directory}/{cleaned.base_offset:020d}{TRANSACTION_INDEX}{CLEANED}"
        if log.store.exists(name):
            log.store.flush(name)
        return replace_segments(log, cleaned, group)

    def _secure(self) -> None:
        """Makes the cleaned part durable and checkpointed before offsets are removed.

        Kafka does not: after a power loss it takes the lost end of an old segment for a gap left by
        a cleaner.
        """
        if self._is_secured:
            return
        if self.log.recovery_point < self.end_offset:
            self.log.flush(self.end_offset)
        self._checkpoint()
        self._is_secured = True

    def _is_past(self, segment: Segment) -> bool | None:
        """True if all tombstones of the segment may go; ``None`` where each batch decides."""
        horizon = self._horizon_ms
        return None if horizon is None else segment.last_modified_ms() <= horizon

    def _clean_into(self, cleaned: Segment, segment: Segment) -> None:
        log, counts = self.log, self.counts
        end = segment.next_offset()
        self._transactions.add(aborted_between(log, segment.base_offset, end))
        rules = BatchFilter(
            self._map,
            self._transactions,
            log.producers.entries,
            self._bound,
            self._now_ms,
            log.config.delete_retention_ms,
            segment_is_past=self._is_past(segment),
            tombstones_below=self._tombstones_below,
        )
        for batch in checked_batches(log, segment):
            kept, tombstones = rules.keep(batch)
            counts.records_before += batch.record_count
            counts.bytes_before += batch.size_bytes
            counts.tombstones_removed += tombstones
            if kept is not None:
                self.kept += kept.offset_runs()
                counts.records_after += kept.record_count
                counts.bytes_after += kept.size_bytes
                cleaned.append(kept)


def legacy_horizon_ms(log: PartitionLog, first_dirty_offset: Offset) -> int:
    """Delete horizon of segments by their last write, as before 3.1.

    ``delete.retention.ms`` before the last clean segment's last write, independent of when a
    cleaner first saw a tombstone.

    Source: KAFKA-4545, KAFKA-8522; ``Cleaner.clean`` before KIP-534.
    """
    clean = segments_between(log, 0, first_dirty_offset)
    return clean[-1].last_modified_ms() - log.config.delete_retention_ms if clean else 0


def group_segments(
    segments: Sequence[Segment], config: LogConfig, bound: Offset
) -> list[list[Segment]]:
    """Consecutive segments that fit into one together: bytes, both indexes, range of offsets.

    Args:
        segments: What is to be cleaned, oldest first.
        config: Of the log.
        bound: First offset that is not cleaned.
    """
    groups: list[list[Segment]] = []
    log_size = index_size = time_index_size = 0
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else bound
        log_size += segment.size
        index_size += segment.index.file.size
        time_index_size += segment.time_index.file.size
        fits = (
            bool(groups)
            and log_size <= config.segment_bytes
            and max(index_size, time_index_size) <= config.segment_index_bytes
            and (
                not segment.size
                or following - 1 - groups[-1][0].base_offset <= _LARGEST_RELATIVE_OFFSET
            )
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            log_size = segment.size
            index_size = segment.index.file.size
            time_index_size = segment.time_index.file.size
    return groups
