"""Replaces segments by a cleaned one, crash-safe at any moment.

A cleaned segment is written beside the log under ``.cleaned`` and flushed. Renamed to ``.swap`` it
is complete; then the old files are deleted, and last the suffix. At a start, ``.cleaned`` files are
deleted, and ``.swap`` files take their place.

Source: ``LocalLog.replaceSegments``, ``LogLoader.removeTempFilesAndCollectSwapFiles``,
``LogLoader.load``.
"""

import re
from collections.abc import Sequence

from sim.ids import Offset
from sim.log.partition.deletion import doom_files
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import Segment, all_segment_files
from sim.log.producers.snapshot import snapshot_file
from sim.log.store.files import FileStore
from sim.wire.record_batch import parse_batches

CLEANED = ".cleaned"
"""Suffix of the files of a cleaned segment that is being written."""

SWAP = ".swap"
"""Suffix of the files of a cleaned segment that is complete."""

_SEGMENT_FILE = re.compile(r"(\d{20})\.(?:log|index|timeindex|txnindex)")


def replace_segments(log: PartitionLog, cleaned: Segment, old: Sequence[Segment]) -> list[str]:
    """Replaces consecutive segments by a cleaned and flushed one.

    Returns:
        Files to be unlinked after ``file.delete.delay.ms``.

    Raises:
        DiskFailed: If the disk has failed.
    """
    store, directory = log.store, log.directory
    names = all_segment_files(directory, cleaned.base_offset)
    _rename(store, names, CLEANED, SWAP)
    log.put_segments(log.segments.index(old[0]), len(old), (cleaned,))
    doomed: list[str] = []
    for segment in old:
        doomed += doom_files(store, all_segment_files(directory, segment.base_offset))
    _rename(store, names, SWAP, "")
    snapshots = [snapshot_file(directory, segment.base_offset) for segment in old[1:]]
    return doomed + doom_files(store, snapshots)


def discard_cleaned(store: FileStore, directory: str, base: Offset) -> None:
    """Deletes the cleaned segment of a cancelled cleaning.

    Raises:
        DiskFailed: If the disk has failed.
    """
    for name in all_segment_files(directory, base):
        store.delete(name + CLEANED)


def finish_interrupted_swaps(store: FileStore, directory: str) -> None:
    """Deletes incomplete swaps and finishes complete ones, at a start.

    Raises:
        DiskFailed: If the disk has failed.
        MalformedBytes: If a complete segment has a damaged header.
    """
    names = store.names(directory)
    unfinished = [name for name in names if name.endswith(CLEANED)]
    incomplete_from = min([int(name[:20]) for name in unfinished], default=None)
    swaps: list[str] = []
    for name in names:
        if name.endswith(SWAP):
            if incomplete_from is not None and int(name[:20]) >= incomplete_from:
                unfinished.append(name)
            else:
                swaps.append(name)
    for name in unfinished:
        store.delete(f"{directory}/{name}")
    if not swaps:
        return
    covered = _covered(store, directory, swaps)
    for name in names:
        found = _SEGMENT_FILE.fullmatch(name)
        if found is not None and covered is not None and covered[0] <= int(found[1]) < covered[1]:
            store.delete(f"{directory}/{name}")
    for name in swaps:
        store.rename(f"{directory}/{name}", f"{directory}/{name.removesuffix(SWAP)}")


def _covered(
    store: FileStore, directory: str, swaps: Sequence[str]
) -> tuple[Offset, Offset] | None:
    """Offsets that the complete segments cover; ``None`` if no log is among them."""
    starts, ends = [], []
    for name in swaps:
        if name.endswith(f".log{SWAP}"):
            base = int(name[:20])
            end = base
            for batch in parse_batches(store.read_whole(f"{directory}/{name}") or b""):
                end = batch.last_offset + 1
            starts.append(base)
            ends.append(end)
    return (min(starts), max(ends)) if starts else None


def _rename(store: FileStore, names: Sequence[str], old: str, new: str) -> None:
    for name in names:
        if store.exists(name + old):
            store.rename(name + old, name + new)
