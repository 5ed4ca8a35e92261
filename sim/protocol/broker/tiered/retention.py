"""Total retention of a tiered partition: which remote segments are deleted, and the log start.

Source: ``RemoteLogManager.RLMExpirationTask``, ``RemoteLogRetentionHandler``,
``buildRetentionSizeData`` (KAFKA-14888, KAFKA-15352, KAFKA-17062).
"""

from collections.abc import Mapping
from typing import NamedTuple

from sim.ids import Offset
from sim.protocol.broker.tiered.cache import RemoteLogMetadataCache
from sim.protocol.broker.tiered.ports import TieredLog
from sim.protocol.broker.tiered.segments import (
    Epochs,
    RemoteSegment,
    SegmentState,
    is_within,
    with_records,
)
from sim.units import Bytes


class Expired(NamedTuple):
    """Segments to delete, in order, and what moves the log start."""

    segments: tuple[RemoteSegment, ...]
    log_start: Offset
    """-1: it stays."""
    reason: str
    """``retention.ms`` or ``retention.bytes``, of the last segment by which it moves."""


def highest_copied(cache: RemoteLogMetadataCache, epochs: Epochs, log_end: Offset) -> Offset:
    """Last offset of the log's lineage that was copied; -1 for none.

    Source: ``RemoteLogManager.findHighestRemoteOffset``.
    """
    ends = [start for _, start in epochs[1:]] + [log_end]
    for (epoch, _), end in reversed(list(zip(epochs, ends, strict=False))):
        highest = cache.highest_offset(epoch)
        if highest is not None:
            return min(highest, end - 1)
    return -1


def first_remote_offset(cache: RemoteLogMetadataCache, log: TieredLog) -> Offset:
    """Log start of a leader by the remote log; its local one without any remote segment.

    Source: ``RemoteLogManager.findLogStartOffset`` (KAFKA-15351).
    """
    for epoch, _ in log.epochs:
        found = cache.of_epoch(epoch)
        if found:
            return found[0].start
    return log.local_log_start_offset


def remote_bytes(
    cache: RemoteLogMetadataCache, epochs: Epochs, log_end: Offset, *, counts_failed: bool
) -> Bytes:
    """Bytes of the remote segments of the log's lineage.

    Args:
        cache: The partition's remote segments.
        epochs: Of the leader's log, without those that have no records.
        log_end: Its end.
        counts_failed: True if copies that were never finished count, as before KAFKA-17062.
    """
    counted = {
        segment.segment_id: segment.size
        for epoch, _ in epochs
        for segment in cache.of_epoch(epoch)
        if (counts_failed or segment.state is SegmentState.COPY_SEGMENT_FINISHED)
        and is_within(segment, log_end, epochs)
    }
    return sum(counted.values())


class _Retention:
    """One run's decisions, segment by segment."""

    def __init__(self, log: TieredLog, too_many: Bytes, now_ms: int) -> None:
        self._log = log
        self._left = max(too_many, 0)
        retention_ms = log.retention[0]
        self._oldest_ms = now_ms - retention_ms if retention_ms >= 0 else -1
        self.log_start: Offset = -1
        self.reason = ""

    def ends(self, segment: RemoteSegment) -> bool:
        """True if a segment is too old, or the log too large with it."""
        by_age = self._oldest_ms >= 0 and segment.max_timestamp_ms <= self._oldest_ms
        by_size = not by_age and self._left > 0 and segment.size <= self._left
        if not by_age and not by_size:
            return False
        self._left = max(self._left - segment.size, 0)
        if self.log_start < segment.end + 1:
            self.log_start = segment.end + 1
            self.reason = "retention.ms" if by_age else "retention.bytes"
        return True


def expired(
    cache: RemoteLogMetadataCache,
    log: TieredLog,
    now_ms: int,
    being_copied: Mapping[str, object],
    *,
    counts_failed: bool,
) -> Expired:
    """Remote segments that one run deletes, by the settings of a leader's log.

    Args:
        cache: The partition's remote segments.
        log: The leader's log.
        now_ms: Wall clock, which the segments' timestamps are held against.
        being_copied: Ids of the segments that this broker is copying.
        counts_failed: See :func:`remote_bytes`.
    """
    epochs = with_records(log.epochs)
    if not cache.segments() or not epochs:
        return Expired((), -1, "")
    retention_bytes = log.retention[1]
    too_many = 0
    if retention_bytes >= 0:
        remote = remote_bytes(cache, epochs, log.log_end_offset, counts_failed=counts_failed)
        too_many = log.only_local_bytes() + remote - retention_bytes
    run = _Retention(log, too_many, now_ms)
    doomed: dict[str, RemoteSegment] = {}
    for epoch, _ in epochs:
        if not _of_epoch(cache, epoch, log, run, epochs, being_copied, doomed):
            break
    first = log.epochs[0][0]
    for segment in cache.segments():
        if all(epoch < first for epoch, _ in segment.epochs):
            doomed[segment.segment_id] = segment  # no leader knows its epochs any longer
    return Expired(tuple(doomed.values()), run.log_start, run.reason)


def _of_epoch(
    cache: RemoteLogMetadataCache,
    epoch: int,
    log: TieredLog,
    run: _Retention,
    epochs: Epochs,
    being_copied: Mapping[str, object],
    doomed: dict[str, RemoteSegment],
) -> bool:
    """Looks through an epoch's segments; false if a segment stays, and all behind it."""
    for segment in cache.of_epoch(epoch):
        if segment.segment_id in being_copied:
            return False
        if segment.state is SegmentState.DELETE_SEGMENT_STARTED:
            doomed[segment.segment_id] = segment
        elif segment.segment_id not in doomed:
            below = segment.end < log.log_start_offset and all(
                own <= epochs[0][0] for own, _ in segment.epochs
            )
            valid = not below and is_within(segment, log.log_end_offset, epochs)
            if below or (valid and run.ends(segment)):
                doomed[segment.segment_id] = segment
            elif valid:
                return False
    return True
