"""Open logs of one kind, current or future, with their log directories and topic ids.

Source: ``LogManager.currentLogs``, ``LogManager.futureLogs``.
"""

from collections.abc import Callable, Mapping

from sim.ids import TopicPartition
from sim.log.config import LogConfig
from sim.log.directory.names import Mark, marked_name
from sim.log.partition.log import PartitionLog
from sim.log.partition.recovery import create_log
from sim.log.store import checkpoints
from sim.log.store.files import DiskFailed, FileStore


class OpenLogs:
    """Open logs by partition."""

    def __init__(self) -> None:
        self.logs: dict[TopicPartition, PartitionLog] = {}
        """Every open log, in the order of opening. Not to be changed."""
        self._directory_of: dict[TopicPartition, int] = {}
        self._topic_ids: dict[TopicPartition, str] = {}

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """The partition's log, if it is open."""
        return self.logs.get(partition)

    def directory_of(self, partition: TopicPartition) -> int:
        """Index of the log directory of an open log."""
        return self._directory_of[partition]

    def topic_id_of(self, partition: TopicPartition) -> str:
        """The topic id in an open log's ``partition.metadata``; empty without that file."""
        return self._topic_ids[partition]

    def logs_in(self, directory: int) -> list[PartitionLog]:
        """The logs of one log directory."""
        return [log for tp, log in self.logs.items() if self._directory_of[tp] == directory]

    def take_in(self, log: PartitionLog, directory: int, topic_id: str) -> None:
        """Adds an open log."""
        partition = log.partition
        self.logs[partition] = log
        self._directory_of[partition] = directory
        self._topic_ids[partition] = topic_id
        log.store.has_rolled = True  # perhaps, before it was open here

    def release(self, partition: TopicPartition) -> tuple[int, str]:
        """Removes an open log; returns its directory and its topic id."""
        del self.logs[partition]
        return self._directory_of.pop(partition), self._topic_ids.pop(partition)

    def take_offline(self, directory: int) -> tuple[TopicPartition, ...]:
        """Closes the logs of a failed log directory as they are; returns their partitions."""
        closed = tuple(tp for tp, number in self._directory_of.items() if number == directory)
        for partition in closed:
            self.release(partition)
        return closed

    def close_as(self, partition: TopicPartition, mark: Mark) -> tuple[int, str]:
        """Closes a log for good; its directory's new name has the reason.

        Returns:
            The log directory, and the new name in it.

        Raises:
            DiskFailed: If the disk has failed.
        """
        log = self.logs[partition]
        directory, topic_id = self.release(partition)
        return directory, rename_aside(log, directory, topic_id, mark)


class LogMaker:
    """Makes new logs in log directories.

    Args:
        directories: The log directories.
        offline: Those that have failed, with the reason; kept up to date by the log manager.
        config_of: Settings of a partition's log.
        jitter_of: Draws, for a partition, how much earlier a new segment rolls by time.
    """

    def __init__(
        self,
        directories: tuple[FileStore, ...],
        offline: Mapping[int, str],
        config_of: Callable[[TopicPartition], LogConfig],
        jitter_of: Callable[[TopicPartition], Callable[[LogConfig], int]] | None,
    ) -> None:
        self._directories = directories
        self._offline = offline
        self._config_of = config_of
        self._jitter_of = jitter_of

    def make(
        self, partition: TopicPartition, topic_id: str, directory: int, name: str
    ) -> PartitionLog:
        """An empty log in a directory of that name, which is not open yet.

        Raises:
            DiskFailed: If the directory has failed or is full.
        """
        if directory in self._offline:
            raise DiskFailed(f"log directory {directory} is offline: {self._offline[directory]}")
        store = self._directories[directory]
        log = create_log(store, name, partition, self._config_of(partition))
        metadata = checkpoints.encode_partition_metadata(topic_id)
        store.replace(f"{name}/{checkpoints.PARTITION_METADATA}", metadata)
        return log

    def begin_jitter(self, log: PartitionLog) -> None:
        """Draws the roll jitter of the log's segments, the active one included."""
        if self._jitter_of is not None:
            log.draw_jitter_ms = self._jitter_of(log.partition)
            log.segments[-1].jitter_ms = log.draw_jitter_ms(log.config)


def rename_aside(log: PartitionLog, directory: int, topic_id: str, mark: Mark) -> str:
    """Renames the directory of a closed log by the reason; returns the name.

    Raises:
        DiskFailed: If the disk has failed.
    """
    name = marked_name(log.partition, directory, topic_id, mark)
    store = log.store
    if name in store.directories():
        store.delete_directory(name)
    store.rename_directory(log.directory, name)
    return name
