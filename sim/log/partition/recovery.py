"""Opens a partition's directory: makes a new log, or loads one and repairs it.

After an unclean stop every batch from the segment that holds the recovery point on is checked; the
log is cut at the first bad one and later segments are dropped. A segment that begins beyond the end
of the one before it is kept, as in Kafka, and so is the hole between them: a power loss that took
the end of a segment after the next one was written back leaves one. Stricter than Kafka, as no
checksum covers offsets: within a segment a gap that no compaction has left is cut; segments that
overlap are dropped, and where two batches of a compacted log overlap both are dropped, as either
may be wrong. The metadata log is cut at every gap.

Logs from before 0.11 may overlap, see :class:`FirstOffsets`.

Source: ``LogLoader``, ``LogSegment.recover``.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from sim.errors import CorruptRecord, StorageFailed
from sim.ids import METADATA_PARTITION, Offset, TopicPartition
from sim.log.config import NO_LIMIT, LogConfig
from sim.log.partition.epoch_cache import EpochCache
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment, all_segment_files, segment_files
from sim.log.partition.swap import finish_interrupted_swaps
from sim.log.producers.historic import producers_for
from sim.log.producers.snapshot import snapshot_file, snapshot_offsets
from sim.log.producers.state import ProducerStates
from sim.log.store.files import FileStore
from sim.log.store.page_cache import ColdRead, together
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import COMPRESSION, RecordBatch

_SEGMENT_FILE = re.compile(r"(\d{20})\.(log|index|timeindex|txnindex)")
_LARGEST_RELATIVE_OFFSET = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class Recovery:
    """Statistics of loading a log."""

    clean: bool
    """True if the last shutdown was clean, so that nothing had to be checked."""
    recovery_point: Offset
    """First offset whose batch was checked; the log end after a clean shutdown."""
    log_end_offset: Offset
    """Of the log as loaded."""
    scanned_bytes: Bytes
    """Bytes of the batches whose checksum was computed."""
    truncated_bytes: Bytes
    """Bytes of batches that were cut off or dropped."""
    holes: tuple[tuple[Offset, Offset], ...] = ()
    """Offsets [from, to) lost between segments, not by compaction."""
    cold: ColdRead | None = None
    """Reads that missed the page cache: segments that were checked, the end of the last one."""


class InvalidOffset(StorageFailed):
    """A batch's index entry would not grow. ``args``: Kafka's sentence.

    Kafka's ``InvalidOffsetException``: the broker that meets it while it starts ends, each time.
    """


class FirstOffsets:
    """Index offsets of recovery before 0.11: a compressed batch by its first offset.

    They have to grow. Appends used the last offset; so a batch that begins within the one before it
    is accepted until its segment is recovered, and then rejected only if it is to be indexed. Plain
    messages had no batch, and never overlapped. Only the check is modelled: entries are today's, by
    last offsets, which today's tools can read.

    Source: ``LogSegment.recover``, ``OffsetIndex.append`` (0.9); KAFKA-3919.
    """

    __slots__ = ("_last", "_segment")

    def __init__(self, segment: Segment) -> None:
        self._segment = segment
        self._last: Offset = -1

    def check(self, batch: RecordBatch) -> None:
        """Checks a batch if it is to be indexed.

        Raises:
            InvalidOffset: If its entry is not above the one before it.
        """
        if not self._segment.is_index_due:
            return
        offset = batch.base_offset if batch.attributes & COMPRESSION else batch.last_offset
        if offset <= self._last:
            raise InvalidOffset(
                f"attempt to append an offset ({offset}) no larger than the last offset appended "
                f"({self._last}) to {self._segment.index.file.name}"
            )
        self._last = offset


def create_log(
    store: FileStore,
    directory: str,
    partition: TopicPartition,
    config: LogConfig,
    start_offset: Offset = 0,
) -> PartitionLog:
    """A new empty log in a new directory.

    Raises:
        DiskFailed: If the disk has failed or is full.
    """
    store.make_directory(directory)
    segment = Segment.create(store, directory, start_offset, config)
    return PartitionLog(
        partition,
        store,
        directory,
        config,
        segments=[segment],
        epochs=EpochCache(store, directory),
        producers=producers_for(config),
        log_end_offset=start_offset,
        log_start_offset=start_offset,
        recovery_point=start_offset,
    )


def load_log(
    store: FileStore,
    directory: str,
    partition: TopicPartition,
    config: LogConfig,
    *,
    clean: bool,
    recovery_point: Offset,
    log_start_offset: Offset = 0,
) -> tuple[PartitionLog, Recovery]:
    """Opens the log of a directory that exists, repairing it after an unclean stop.

    Args:
        store: The log directory.
        directory: The partition's directory in it.
        partition: Which partition it is.
        config: Its settings.
        clean: Whether the clean shutdown marker was there.
        recovery_point: From its checkpoint; 0 without an entry.
        log_start_offset: From its checkpoint; 0 without an entry.

    Raises:
        DiskFailed: If the disk has failed, is full, or a checkpoint cannot be read.
        InvalidOffset: If a batch from before 0.11 overlaps the one before it, which stops the
            broker.
        CorruptRecord: If a header is damaged where nothing is checked, which stops the broker.

    Source: ``LogManager.loadLogs``, which catches only errors of the disk.
    """
    try:
        return _load(store, directory, partition, config, clean, recovery_point, log_start_offset)
    except MalformedBytes as error:
        raise CorruptRecord(f"{store.root / directory}: {error}") from error


def _load(
    store: FileStore,
    directory: str,
    partition: TopicPartition,
    config: LogConfig,
    clean: bool,  # noqa: FBT001 - as its caller has it
    recovery_point: Offset,
    log_start_offset: Offset,
) -> tuple[PartitionLog, Recovery]:
    finish_interrupted_swaps(store, directory)
    _tidy(store, directory)
    epochs = EpochCache(store, directory)
    lost_indexes = _without_index(store, directory)
    segments = [
        Segment.open(store, directory, base, config) for base in _bases(store, directory, ".log")
    ]
    suspect_from = NO_LIMIT if clean else recovery_point
    cold = _read_to_load(segments, lost_indexes, suspect_from)
    holes: list[tuple[Offset, Offset]] | None = None if partition == METADATA_PARTITION else []
    checked = _recover_segments(segments, epochs, lost_indexes, suspect_from, config, holes)
    scanned, truncated, dropped = checked
    _drop(store, directory, dropped)
    end = segments[-1].next_offset() if segments else 0
    if segments and end < log_start_offset:
        truncated += sum(segment.size for segment in segments)
        _drop(store, directory, segments)
        segments.clear()
    if not segments:
        end = log_start_offset
        segments.append(Segment.create(store, directory, end, config))
    # A remote log begins where its checkpoint says (KAFKA-15351).
    start = log_start_offset if config.remote else max(log_start_offset, segments[0].base_offset)
    epochs.truncate_from_end(end)
    epochs.truncate_from_start(start)
    segments[-1].read_largest_timestamp()
    _drop_stray_snapshots(store, directory, [segment.base_offset for segment in segments], start)
    _index_aborted(store, directory, segments)
    log = PartitionLog(
        partition,
        store,
        directory,
        config,
        segments=segments,
        epochs=epochs,
        producers=producers_for(config),
        log_end_offset=end,
        log_start_offset=start,
        recovery_point=end if clean else min(recovery_point, end),
    )
    log.rebuild_producers()
    if not clean:
        log.producers.take_snapshot(store, directory, end)
    lost = tuple(hole for hole in holes or () if start < hole[1] <= end)
    return log, Recovery(clean, log.recovery_point, end, scanned, truncated, lost, cold)


def recover_segment(
    segment: Segment,
    epochs: EpochCache,
    *,
    gaps: bool = False,
    below: Offset = NO_LIMIT,
    by_last_offset: bool = False,
) -> tuple[Offset, Bytes]:
    """Checks every batch of a segment, rebuilds its indexes, cuts it at the first bad one.

    Args:
        segment: Which.
        epochs: Gets the epochs of its batches.
        gaps: Whether offsets may be missing, as they may where a log is compacted.
        below: Where the segment after it begins.
        by_last_offset: Whether a batch may begin within the one before it, as before 0.11.

    Returns:
        The offset after the last good batch, and bytes cut off.

    Raises:
        DiskFailed: If the disk has failed or is full.
        InvalidOffset: If one did, and is to be indexed; batches are as they were.
    """
    segment.reset()
    entries = FirstOffsets(segment) if by_last_offset else None
    good = before = 0
    end = segment.base_offset
    try:
        for position, batch in segment.batches(0):
            base, last = batch.base_offset, batch.last_offset
            if by_last_offset and base < end <= last:
                base = end
            if gaps and good and base < end:
                cut = segment.size - before
                segment.log.truncate(before)
                end, more = recover_segment(
                    segment, epochs, gaps=True, below=below, by_last_offset=by_last_offset
                )
                return end, cut + more
            before = good
            in_range = last - segment.base_offset <= _LARGEST_RELATIVE_OFFSET and last < below
            follows = base >= end if gaps else base == end
            if not in_range or not follows or not batch.valid():
                break
            if entries is not None:
                entries.check(batch)
            segment.index_batch(position, batch)
            segment.lost_aborted |= batch.is_control and batch.is_transactional
            if batch.leader_epoch > epochs.latest:
                epochs.assign(batch.leader_epoch, batch.base_offset)
            end = last + 1
            good = position + batch.size_bytes
    except MalformedBytes:
        # The header itself is bad: cut in front of it, as for a wrong checksum.
        pass
    cut = segment.size - good
    segment.log.truncate(good)
    segment.close_out()
    return end, cut


def _read_to_load(
    segments: list[Segment], lost_indexes: list[Offset], suspect_from: Offset
) -> ColdRead | None:
    """Touches what is read of the segments: those to be checked, and what the last index omits.

    Source: ``LogLoader.recoverLog``, ``LogSegment.readNextOffset``.
    """
    cold: ColdRead | None = None
    for i, segment in enumerate(segments):
        start = segment.size
        if i + 1 == len(segments):
            last = segment.index.last()
            start = last.position if last else 0
        following = NO_LIMIT if i + 1 == len(segments) else segments[i + 1].base_offset
        if suspect_from < following or segment.base_offset in lost_indexes:
            start = 0
        missed = segment.log.use(start, segment.size)
        if missed is not None:
            cold = missed if cold is None else together(cold, missed)
    return cold


def _recover_segments(
    segments: list[Segment],
    epochs: EpochCache,
    lost_indexes: list[Offset],
    suspect_from: Offset,
    config: LogConfig,
    holes: list[tuple[Offset, Offset]] | None,
) -> tuple[Bytes, Bytes, list[Segment]]:
    """Recovers segments, and ensures that none begins before the end of the one before it.

    Args:
        segments: All segments; those to be dropped are taken out.
        epochs: Gets the epochs of recovered batches.
        lost_indexes: Base offsets of segments whose offset index is missing.
        suspect_from: Segments with records at or above it may be damaged; so may the last one be,
            unless it is ``NO_LIMIT``.
        config: Determines whether offsets may be missing, and whether batches may overlap.
        holes: Gets the offsets that are missing between segments; ``None``: nothing is kept behind
            the first hole.

    Returns:
        Bytes scanned, bytes cut or dropped, and the segments to be dropped: all behind the first
        cut.
    """
    scanned = truncated = 0
    gaps = config.compact
    recover = partial(
        recover_segment, epochs=epochs, gaps=gaps, by_last_offset=config.by_last_offset
    )
    end = segments[0].base_offset if segments else 0
    for i, segment in enumerate(segments):
        is_last = i + 1 == len(segments)
        suspect = suspect_from < (NO_LIMIT if is_last else segments[i + 1].base_offset)
        cut = 0
        # A cleaner leaves gaps between segments, and first checkpoints that all below is durable;
        # above that, a gap is a lost end.
        is_gap = segment.base_offset > end and not (gaps and segment.base_offset <= suspect_from)
        if is_gap and holes is not None:
            holes.append((end, segment.base_offset))
            is_gap = False
        if segment.base_offset < end or is_gap:
            dropped = segments[i:]
        elif suspect or segment.base_offset in lost_indexes or not segment.is_whole():
            below = NO_LIMIT if is_last else segments[i + 1].base_offset
            try:
                end, cut = recover(segment, below=below)
            except InvalidOffset:
                _indexed_at_opening(segments[i:], lost_indexes, recover)
                end, cut = segment.base_offset, segment.size
                scanned += cut
                segment.reset()
                segment.log.truncate(0)
            scanned += segment.size if suspect else 0
            truncated += cut
            dropped = segments[i + 1 :] if cut else []
        else:
            end = segment.next_offset()
            continue
        if cut or dropped:
            del segments[len(segments) - len(dropped) :]
            return scanned, truncated + sum(segment.size for segment in dropped), dropped
    return scanned, truncated, []


def _indexed_at_opening(
    segments: list[Segment], lost_indexes: list[Offset], recover: Callable[[Segment], object]
) -> None:
    """Rebuilds the indexes that before 0.11 were rebuilt as soon as their segments were opened.

    These are the missing ones, and that of the last segment after an unclean stop, which is
    preallocated and ends in zeros, so that it looks damaged. Any error there ends the broker;
    elsewhere a segment whose entries do not grow is emptied, and the log ends there.

    Raises:
        InvalidOffset: If the entries of one of these do not grow.

    Source: ``Log.loadSegments``, ``OffsetIndex.sanityCheck``, ``Log.recoverLog`` (0.9).
    """
    for segment in segments:
        if segment is segments[-1] or segment.base_offset in lost_indexes:
            recover(segment)


def _index_aborted(store: FileStore, directory: str, segments: list[Segment]) -> None:
    """Rebuilds the indexes of aborted transactions of recovered segments.

    Source: ``LogSegment.recover``, which replays producers from the snapshot before the segment.
    """
    lost = {segment.base_offset: segment for segment in segments if segment.lost_aborted}
    if not lost:
        return
    replayed = ProducerStates().replay_aborted(
        store, directory, min(lost), partial(_batches_from, segments)
    )
    bases = [segment.base_offset for segment in segments]
    for entry in replayed:
        segment = lost.get(bases[bisect_right(bases, entry.last_offset) - 1])
        if segment is not None:
            segment.transaction_index.append(entry)


def _batches_from(segments: list[Segment], start: Offset) -> Iterator[RecordBatch]:
    """Every batch that does not end below the offset."""
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        if following is None or following.base_offset > start:
            for _, batch in segment.batches(0):
                if batch.last_offset >= start:
                    yield batch


def _tidy(store: FileStore, directory: str) -> None:
    """Removes what a deletion left behind, and indexes without their log."""
    logs = [f"{base:020d}.log" for base in _bases(store, directory, ".log")]
    for name in store.names(directory):
        found = _SEGMENT_FILE.fullmatch(name)
        orphan = found is not None and f"{found[1]}.log" not in logs
        if orphan or name.endswith((".deleted", ".tmp")):
            store.delete(f"{directory}/{name}")


def _bases(store: FileStore, directory: str, suffix: str) -> list[Offset]:
    names = store.names(directory)
    return [int(name[:20]) for name in names if name.endswith(suffix) and len(name) > 20]


def _without_index(store: FileStore, directory: str) -> list[Offset]:
    return [
        base
        for base in _bases(store, directory, ".log")
        if not store.exists(segment_files(directory, base)[1])
    ]


def _drop(store: FileStore, directory: str, segments: list[Segment]) -> None:
    for segment in segments:
        for name in all_segment_files(directory, segment.base_offset):
            store.delete(name)


def _drop_stray_snapshots(
    store: FileStore, directory: str, bases: list[Offset], log_start: Offset
) -> None:
    """Keeps snapshots at segment bases, and the newest if it lies beyond the last base.

    Source: ``ProducerStateManager.removeStraySnapshots``.
    """
    offsets = snapshot_offsets(store, directory)
    for offset in offsets:
        newest = offset == offsets[-1] and offset > bases[-1]
        if offset <= log_start or (offset not in bases and not newest):
            store.delete(snapshot_file(directory, offset))
