"""Truncation of a log's segments, also where the header of a batch is damaged.

Source: ``LocalLog.truncateTo``, ``LogSegment.truncateTo``.
"""

from collections.abc import Callable
from typing import NamedTuple

from sim.ids import Offset
from sim.log.partition.segment import Segment, segment_files
from sim.log.store.files import FileStore
from sim.wire.primitives import MalformedBytes


class Cut(NamedTuple):
    """Outcome of a truncation."""

    end: Offset
    """The log end offset."""
    epochs_end: Offset
    """Offset from which leader epochs are dropped."""
    damage: str
    """Error in a header in front of the offset; empty if none was met."""


def cut_segments(
    store: FileStore,
    directory: str,
    segments: list[Segment],
    offset: Offset,
    end: Offset,
    *,
    overlap: bool,
) -> Cut:
    """Deletes the segments above an offset, and truncates the one that holds it.

    That one stays as it is if a header in front of the offset is damaged; its data from there on
    remains part of the log, as in Kafka.

    Args:
        store: Where the log is.
        directory: The partition's directory.
        segments: Of the log, oldest first; those that are deleted are taken out.
        offset: Where to cut, not below the first segment.
        end: The log end offset.
        overlap: Whether a batch may begin within the one before it, as before 0.11.

    Raises:
        DiskFailed: If the disk has failed.
    """
    while len(segments) > 1 and segments[-1].base_offset > offset:
        end = segments[-1].base_offset
        delete_segment(store, directory, segments.pop())
    try:
        return Cut(segments[-1].truncate_to(offset, overlap=overlap), offset, "")
    except MalformedBytes as error:
        return Cut(end, end, str(error))


def delete_segment(store: FileStore, directory: str, segment: Segment) -> None:
    """Deletes a segment's files.

    Raises:
        DiskFailed: If the disk has failed.
    """
    for name in segment_files(directory, segment.base_offset):
        store.delete(name)
    segment.transaction_index.delete()


def damage_met_by(*reads: Callable[[], None]) -> str:
    """Does all of the reads; returns the error in the first damaged header, or "".

    Raises:
        DiskFailed: If the disk has failed.
    """
    met = ""
    for read in reads:
        try:
            read()
        except MalformedBytes as error:
            met = met or str(error)
    return met
