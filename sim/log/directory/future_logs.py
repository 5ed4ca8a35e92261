"""Logs on their way into another log directory: future logs, and how one takes the current's place.

A future log lies in ``<topic>-<partition>.<32 hex>-future`` and is filled like a follower's. When
it has caught up, its directory gets the partition's plain name, and only then does the former
log's get a name that waits for deletion. A crash between the two leaves two logs of one partition,
on which a broker does not start, as in Kafka; at every other moment there is exactly one.

Nothing is flushed for the change: what the former log had on the platter may be in the page cache
alone afterwards, as in Kafka.

Source: ``LogManager.replaceCurrentWithFutureLog``, ``LogCleanerManager.alterCheckpointDir``;
KIP-113.
"""

from typing import TYPE_CHECKING, NamedTuple

from sim.ids import Offset, TopicPartition
from sim.log.directory.cleaner_checkpoint import write_cleaned
from sim.log.directory.names import LONGEST_NAME, Mark, marked_name
from sim.log.partition.log import PartitionLog
from sim.log.store import checkpoints
from sim.log.store.files import DiskFailed

if TYPE_CHECKING:
    from sim.log.directory.manager import LogManager


class Replaced(NamedTuple):
    """A future log has become the current one."""

    directory: int
    """Where the former log lies; -1 if there was none."""
    doomed: str
    """Its directory, which waits for deletion; empty if there is none, or the disk refused."""
    failure: DiskFailed | None
    """Why the former log's directory could not be renamed, or its checkpoints not be written."""


class FutureLogs:
    """The future logs of one process.

    Args:
        manager: Whose current logs they are to replace.
    """

    def __init__(self, manager: "LogManager") -> None:
        self._manager = manager
        self.logs: dict[TopicPartition, PartitionLog] = {}
        """Every open future log, in the order of opening. Not to be changed."""
        self._directory_of: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, str] = {}

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """The partition's future log, if it has one."""
        return self.logs.get(partition)

    def directory_of(self, partition: TopicPartition) -> int:
        """Which log directory holds an open future log."""
        return self._directory_of[partition]

    def topic_id_of(self, partition: TopicPartition) -> str:
        """The topic id in an open future log's ``partition.metadata``; empty without that file."""
        return self._topic_ids[partition]

    def logs_in(self, directory: int) -> list[PartitionLog]:
        """The future logs of one log directory."""
        return [log for tp, log in self.logs.items() if self._directory_of[tp] == directory]

    def fits(self, partition: TopicPartition) -> bool:
        """Whether a future log's name would not be too long for a file system."""
        return len(marked_name(partition, 0, "", "future")) <= LONGEST_NAME

    def create(self, partition: TopicPartition, directory: int) -> PartitionLog:
        """Make an empty future log for an open log, in another directory.

        Raises:
            DiskFailed: If the directory has failed or is full.
        """
        manager = self._manager
        assert partition not in self.logs, f"{partition} has a future log already"
        assert manager.directory_of(partition) != directory, f"{partition} lies there already"
        topic_id = manager.topic_id_of(partition)
        name = marked_name(partition, directory, topic_id, "future")
        log = manager.make_log(partition, topic_id, directory, name)
        self.take_in(log, directory, topic_id)
        manager.begin_jitter(log)
        return log

    def take_in(self, log: PartitionLog, directory: int, topic_id: str) -> None:
        """A future log is open."""
        self.logs[log.partition] = log
        self._directory_of[log.partition] = directory
        self._topic_ids[log.partition] = topic_id

    def replace_current(self, partition: TopicPartition) -> Replaced:
        """Let a future log take the place of the current one, if there is one.

        Raises:
            DiskFailed: If the future log's directory has failed; then nothing has changed.
        """
        manager = self._manager
        log, directory = self.logs[partition], self._directory_of[partition]
        log.rename_directory(str(partition))
        topic_id = self._release(partition)
        former = manager.get(partition)
        if former is None:
            manager.take_in(log, directory, topic_id)
            return Replaced(-1, "", None)
        source, known = manager.release(partition)
        manager.take_in(log, directory, topic_id)
        try:
            _move_cleaned(former, log, manager)
            doomed = manager.rename_aside(former, source, known, "delete")
            manager.checkpoint_directory(source)
        except DiskFailed as failure:
            return Replaced(source, "", failure)
        return Replaced(source, doomed, None)

    def delete(self, partition: TopicPartition) -> tuple[int, str]:
        """Close a future log for good: its directory is renamed and waits for deletion.

        Returns:
            The log directory, and the new name in it.

        Raises:
            DiskFailed: If the disk has failed.
        """
        return self._close_as(partition, "delete")

    def put_aside(self, partition: TopicPartition) -> None:
        """Close a future log that this broker should not have: its directory is renamed, and stays.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self._close_as(partition, "stray")

    def take_offline(self, directory: int) -> None:
        """A log directory failed: its future logs are closed as they stand."""
        for partition in [tp for tp, number in self._directory_of.items() if number == directory]:
            self._release(partition)

    def _close_as(self, partition: TopicPartition, mark: Mark) -> tuple[int, str]:
        log, directory = self.logs[partition], self._directory_of[partition]
        topic_id = self._release(partition)
        return directory, self._manager.rename_aside(log, directory, topic_id, mark)

    def _release(self, partition: TopicPartition) -> str:
        """Know a future log no more; returns its topic id."""
        del self.logs[partition]
        del self._directory_of[partition]
        return self._topic_ids.pop(partition)


def _move_cleaned(former: PartitionLog, log: PartitionLog, manager: "LogManager") -> None:
    """How far the former log was cleaned holds for the one that is like it."""
    known = checkpoints.read_offsets(former.store, checkpoints.CLEANER_OFFSETS)
    cleaned: Offset | None = known.pop(former.partition, None)
    if cleaned is not None:
        checkpoints.write_offsets(former.store, checkpoints.CLEANER_OFFSETS, known)
        write_cleaned(log, min(cleaned, log.cut_to), manager.logs)
