"""``cleaner-offset-checkpoint``: the first dirty offset of each compacted log of a log directory.

Source: ``LogCleanerManager.updateCheckpoints``, ``maybeTruncateCheckpoint``.
"""

from collections.abc import Container

from sim.ids import Offset, TopicPartition
from sim.log.config import NO_LIMIT
from sim.log.partition.log import PartitionLog
from sim.log.store.checkpoints import CLEANER_OFFSETS, read_offsets, write_offsets


def read_cleaned(log: PartitionLog, present: Container[TopicPartition]) -> Offset | None:
    """First dirty offset of a log; ``None`` if it was never cleaned.

    A log that has been truncated below it since has new records there: the checkpoint follows.

    Raises:
        MalformedCheckpoint: If the file cannot be read.
        DiskFailed: If the disk has failed or is full.
    """
    cleaned = read_offsets(log.store, CLEANER_OFFSETS).get(log.partition)
    if cleaned is not None and log.cut_to < cleaned:
        cleaned = log.cut_to
        write_cleaned(log, cleaned, present)
    return cleaned


def write_cleaned(log: PartitionLog, offset: Offset, present: Container[TopicPartition]) -> None:
    """Stores a log's first dirty offset; partitions that are not present lose their entries.

    Raises:
        MalformedCheckpoint: If the file cannot be read.
        DiskFailed: If the disk has failed or is full.
    """
    log.cut_to = NO_LIMIT
    known = read_offsets(log.store, CLEANER_OFFSETS)
    kept = {other: cleaned for other, cleaned in known.items() if other in present}
    kept[log.partition] = offset
    write_offsets(log.store, CLEANER_OFFSETS, kept)
