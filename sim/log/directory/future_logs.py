"""Future logs: logs that move into another log directory and then replace the current one.

A future log lies in ``<topic>-<partition>.<32 hex>-future`` and is filled like a follower's. When
it has caught up, its directory gets the partition's plain name, and only then does the former
log's get a name that waits for deletion. A crash between the two leaves two logs of one partition,
on which a broker does not start, as in Kafka; at every other moment there is exactly one.

Nothing is flushed for the change: what the former log had on the platter may be in the page cache
alone afterwards, as in Kafka.

Source: ``LogManager.replaceCurrentWithFutureLog``, ``LogCleanerManager.alterCheckpointDir``;
KIP-113.
"""

from typing import NamedTuple

from sim.ids import TopicPartition
from sim.log.directory.names import LONGEST_NAME, marked_name
from sim.log.directory.open_logs import LogMaker, OpenLogs
from sim.log.partition.log import PartitionLog
from sim.log.store.files import DiskFailed


class Replaced(NamedTuple):
    """Outcome of replacing the current log by a future one."""

    directory: int
    """Log directory of the former log; -1 if there was none."""
    doomed: str
    """Its directory, which waits for deletion; empty if there is none, or renaming failed."""
    failure: DiskFailed | None
    """Error while renaming the former log's directory, or writing its checkpoints."""


class FutureLogs(OpenLogs):
    """The future logs of one process.

    Args:
        current: The current logs, which they are to replace.
        maker: Makes new logs.
    """

    def __init__(self, current: OpenLogs, maker: LogMaker) -> None:
        super().__init__()
        self._current = current
        self._maker = maker

    def fits(self, partition: TopicPartition) -> bool:
        """True if a future log's name is short enough for a file system."""
        return len(marked_name(partition, 0, "", "future")) <= LONGEST_NAME

    def create(self, partition: TopicPartition, directory: int) -> PartitionLog:
        """Makes an empty future log for an open log, in another directory.

        Raises:
            DiskFailed: If the directory has failed or is full.
        """
        current = self._current
        assert partition not in self.logs, f"{partition} has a future log already"
        assert current.directory_of(partition) != directory, f"{partition} lies there already"
        topic_id = current.topic_id_of(partition)
        name = marked_name(partition, directory, topic_id, "future")
        log = self._maker.make(partition, topic_id, directory, name)
        self.take_in(log, directory, topic_id)
        self._maker.begin_jitter(log)
        return log

    def delete(self, partition: TopicPartition) -> tuple[int, str]:
        """Closes a future log for good: its directory is renamed and waits for deletion.

        Returns:
            The log directory, and the new name in it.

        Raises:
            DiskFailed: If the disk has failed.
        """
        return self.close_as(partition, "delete")

    def put_aside(self, partition: TopicPartition) -> None:
        """Closes a future log that this broker should not have, and renames its directory.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self.close_as(partition, "stray")
