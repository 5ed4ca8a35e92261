"""Deletion of segments: their files are renamed, and unlinked after a delay.

Between the two a reader that began may still finish; a restart unlinks what it finds renamed.

Source: ``LocalLog.removeAndDeleteSegments``, ``LogSegment.changeFileSuffixes``,
``ProducerStateManager.removeAndMarkSnapshotForDeletion``.
"""

from collections.abc import Sequence

from sim.log.partition.segment import Segment, all_segment_files
from sim.log.producers.snapshot import snapshot_file
from sim.log.store.files import FileStore

DELETED = ".deleted"
"""Suffix of a file that waits to be unlinked."""


def doom_segments(store: FileStore, directory: str, segments: Sequence[Segment]) -> list[str]:
    """Renames the files of removed segments, oldest first, then their snapshots.

    Returns:
        The new names, to be given to :func:`unlink` after ``file.delete.delay.ms``.

    Raises:
        DiskFailed: If the disk has failed.
    """
    doomed = []
    for segment in segments:
        doomed += doom_files(store, all_segment_files(directory, segment.base_offset))
    snapshots = [snapshot_file(directory, segment.base_offset) for segment in segments]
    return doomed + doom_files(store, snapshots)


def doom_files(store: FileStore, names: Sequence[str]) -> list[str]:
    """Renames those files that are there; returns their new names."""
    doomed = []
    for name in names:
        if store.exists(name):
            store.rename(name, name + DELETED)
            doomed.append(name + DELETED)
    return doomed


def unlink(store: FileStore, names: Sequence[str]) -> None:
    """Unlinks files; skips those that were already removed with their directory.

    Raises:
        DiskFailed: If the disk has failed.
    """
    for name in names:
        store.delete(name)
