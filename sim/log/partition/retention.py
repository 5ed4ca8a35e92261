"""Deletes the oldest segments of a log: below its start, by size, by age.

Three passes, each from the oldest segment on and only as far as segments qualify; none reaches
beyond the high watermark. A segment without timestamps holds no records, so it has no age: it is
removed as an old one, where Kafka uses the file's modification time.

Source: ``UnifiedLog.deleteOldSegments``, ``deletableSegments``.
"""

from collections.abc import Callable
from typing import NamedTuple

from sim.ids import Offset
from sim.log.partition.deletion import doom_segments
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment

BY_AGE = "retention.ms"
"""Reason of a log start move: segments were too old."""

BY_SIZE = "retention.bytes"
"""Reason of a log start move: the log was too large."""

Predicate = Callable[[Segment, Offset | None], bool]
"""Predicate of a deletable segment, given the base offset of the next, if there is one."""


class LogStartMove(NamedTuple):
    """A move of the log start by one of the passes; of a tiered log, of its local start."""

    before: Offset
    after: Offset
    reason: str


class Removal(NamedTuple):
    """Outcome of a retention run."""

    moves: tuple[LogStartMove, ...]
    doomed: tuple[str, ...]
    """Files to be unlinked after ``file.delete.delay.ms``."""


def delete_old_segments(
    log: PartitionLog, high_watermark: Offset, now_ms: int, *, is_bounded: bool = True
) -> Removal:
    """Removes segments by the log's settings; the files are renamed, not yet unlinked.

    Without ``delete`` in ``cleanup.policy`` only segments below the log start are removed.

    Args:
        log: Whose segments.
        high_watermark: Of this replica; a segment that reaches beyond it stays.
        now_ms: Wall clock, which the records' timestamps are held against.
        is_bounded: Whether the high watermark counts; before 1.0 it did not (KAFKA-5634).

    Raises:
        DiskFailed: If the disk has failed or is full.
        MalformedBytes: If a damaged header hides a segment's timestamps.
    """
    config = log.config
    kept_ms, kept_bytes = config.kept_here
    bound = high_watermark if is_bounded else log.log_end_offset
    moves: list[LogStartMove] = []
    doomed: list[str] = []

    def run(may_go: Predicate, reason: str) -> None:
        before = log.local_log_start_offset
        doomed.extend(_delete(log, bound, may_go))
        if log.local_log_start_offset != before:
            moves.append(LogStartMove(before, log.local_log_start_offset, reason))

    run(lambda _, following: following is not None and following <= log.log_start_offset, "")
    if config.remote:
        # Whatever is newer must be copied first.
        bound = min(bound, log.highest_remote + 1)
    if config.delete and kept_bytes >= 0:
        left = [log.size_bytes - kept_bytes]

        def fits(segment: Segment, _: Offset | None) -> bool:
            if left[0] < segment.size:
                return False
            left[0] -= segment.size
            return True

        if left[0] >= 0:
            run(fits, BY_SIZE)
    if config.delete and kept_ms >= 0:
        oldest = now_ms - kept_ms
        run(lambda segment, _: segment.largest_timestamp_ms() < oldest, BY_AGE)
    return Removal(tuple(moves), tuple(doomed))


def _delete(log: PartitionLog, bound: Offset, may_go: Predicate) -> list[str]:
    segments = log.segments
    count = 0
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else None
        end = log.log_end_offset if following is None else following
        if bound < end or not may_go(segment, following):
            break
        if following is None and not segment.size:
            break
        count += 1
    if not count:
        return []
    if count == len(segments):
        log.roll()
    log.put_segments(0, count, ())
    doomed = doom_segments(log.store, log.directory, segments[:count])
    if not log.is_tiered:
        log.raise_log_start(log.segments[0].base_offset)
    return doomed
