"""Log directories of one broker process, as seen by moves of replicas between them.

Source: ``kafka.log.LogManager``; KIP-113.
"""

from collections.abc import Callable
from typing import cast

from sim.ids import Offset, TopicPartition
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.log_dirs import Doomed, FutureReplica, Promoted
from sim.protocol.ports import ReplicaLog


class FutureStorage:
    """Satisfies ``sim.protocol.broker.log_dirs.LogDirs``.

    Args:
        storage: The directories and their logs.
        replaced: Called with each future log that became current, and its directory's number.
    """

    def __init__(self, storage: Storage, replaced: Callable[[TopicPartition, int], None]) -> None:
        self._storage = storage
        self._manager = storage.manager
        self._replaced = replaced
        self._watermarks = storage.manager.read_future_watermarks()
        self._names = [disk.store.root.name for disk in storage.disks]

    def has_directory(self, directory: str) -> bool:
        """True if a log directory of that name exists."""
        return directory in self._names

    def is_directory_online(self, directory: str) -> bool:
        """True if a log directory works."""
        return self._names.index(directory) not in self._manager.offline

    def is_cordoned(self, directory: str) -> bool:
        """True if a log directory gets no new replicas (KIP-1066)."""
        return self._names.index(directory) in self._manager.cordoned

    def has_failed_directory(self) -> bool:
        """True if any log directory has failed."""
        return bool(self._manager.offline)

    def directory_name_of(self, partition: TopicPartition) -> str:
        """Name of the directory that holds a partition's open log."""
        return self._names[self._manager.directory_of(partition)]

    def directory_id_of(self, partition: TopicPartition) -> str:
        """``directory.id`` of the directory that holds a partition's open log."""
        return self._storage.directory_id_of(partition)

    def may_have_future(self, partition: TopicPartition) -> bool:
        """True if the future log's name would fit a file system."""
        return self._manager.futures.fits(partition)

    def prefer(self, partition: TopicPartition, directory: str) -> None:
        """Sets the directory in which a log is to be made later."""
        self._manager.preferred[partition] = self._names.index(directory)

    def future_of(self, partition: TopicPartition) -> FutureReplica | None:
        """The partition's future log, if it has one."""
        futures = self._manager.futures
        log = futures.get(partition)
        if log is None:
            return None
        number = futures.directory_of(partition)
        # The log's answers have the port's shape; their classes live on a lower floor.
        known = cast("ReplicaLog", log)
        return FutureReplica(known, self._names[number], self._manager.directory_ids[number])

    def future_watermark(self, partition: TopicPartition) -> Offset:
        """Checkpointed high watermark of a future log found at the start; else 0."""
        return self._watermarks.get(partition, 0)

    def create_future(self, partition: TopicPartition, directory: str) -> FutureReplica:
        """Creates an empty future log.

        Raises:
            DiskFailed: If the directory has failed or is full.
        """
        self._manager.futures.create(partition, self._names.index(directory))
        self._watermarks.pop(partition, None)
        made = self.future_of(partition)
        assert made is not None, "it was made"
        return made

    def remove_future(self, partition: TopicPartition) -> Doomed:
        """Removes a future log.

        Raises:
            DiskFailed: If the disk has failed.
        """
        self._watermarks.pop(partition, None)
        return Doomed(*self._manager.futures.delete(partition))

    def replace_current(self, partition: TopicPartition) -> Promoted:
        """Replaces the current log by the future log.

        Raises:
            DiskFailed: If the future log's directory has failed; nothing has changed then.
        """
        manager = self._manager
        replaced = manager.replace_current(partition)
        # The new log has flushed other offsets than the former one.
        self._storage.flushed_us[partition] = self._storage.disks[0].kernel.time
        self._replaced(partition, manager.directory_of(partition))
        failure = replaced.failure
        doomed = Doomed(replaced.directory, replaced.doomed) if replaced.doomed else None
        known = cast("ReplicaLog", manager.logs[partition])
        return Promoted(known, doomed, "" if failure is None else str(failure), replaced.directory)
