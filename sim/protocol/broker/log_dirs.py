"""Port to the log directories below a replica manager, for moves of replicas between them."""

from typing import NamedTuple, Protocol

from sim.ids import Offset, TopicPartition
from sim.protocol.ports import ReplicaLog


class FutureReplica(NamedTuple):
    """A replica's future log, in its new directory."""

    log: ReplicaLog
    directory: str
    """Name of the log directory."""
    directory_id: str
    """``directory.id``."""


class Doomed(NamedTuple):
    """Effect: a partition's directory is renamed and waits for its deletion."""

    directory: int
    """Number of the log directory."""
    name: str


class Promoted(NamedTuple):
    """A future log has become the replica's log."""

    log: ReplicaLog
    doomed: Doomed | None
    """The former log; ``None`` if its disk failed."""
    failure: str
    """Its disk's error; empty without one."""
    source: int
    """Number of the log directory that held the former log."""


class LogDirs(Protocol):
    """The log directories of one broker."""

    def has_directory(self, directory: str) -> bool:
        """True if a log directory of that name exists."""

    def is_directory_online(self, directory: str) -> bool:
        """True if a log directory works."""

    def is_cordoned(self, directory: str) -> bool:
        """True if a log directory gets no new replicas (KIP-1066)."""

    def has_failed_directory(self) -> bool:
        """True if any log directory has failed."""

    def directory_name_of(self, partition: TopicPartition) -> str:
        """Name of the directory that holds a partition's open log."""

    def directory_id_of(self, partition: TopicPartition) -> str:
        """``directory.id`` of the directory that holds a partition's open log."""

    def may_have_future(self, partition: TopicPartition) -> bool:
        """True if the future log's name would fit a file system."""

    def prefer(self, partition: TopicPartition, directory: str) -> None:
        """Sets the directory in which a log is to be made later."""

    def future_of(self, partition: TopicPartition) -> FutureReplica | None:
        """The partition's future log, if it has one."""

    def future_watermark(self, partition: TopicPartition) -> Offset:
        """Checkpointed high watermark of a future log found at the start; else 0."""

    def create_future(self, partition: TopicPartition, directory: str) -> FutureReplica:
        """Creates an empty future log.

        Raises:
            StorageFailed: If the directory has failed or is full.
        """

    def remove_future(self, partition: TopicPartition) -> Doomed:
        """Removes a future log.

        Raises:
            StorageFailed: If the disk has failed.
        """

    def replace_current(self, partition: TopicPartition) -> Promoted:
        """Replaces the current log by the future log.

        Raises:
            StorageFailed: If the future log's directory has failed; nothing has changed then.
        """
