"""What a replica manager needs of the log directories below it to move replicas between them."""

from typing import NamedTuple, Protocol

from sim.ids import Offset, TopicPartition
from sim.protocol.ports import ReplicaLog


class FutureReplica(NamedTuple):
    """A replica's future log, in the directory that it is to move to."""

    log: ReplicaLog
    directory: str
    """Name of the log directory."""
    directory_id: str
    """``directory.id``."""


class Doomed(NamedTuple):
    """Effect: a partition's directory waits for its deletion."""

    directory: int
    """Number of the log directory."""
    name: str


class Promoted(NamedTuple):
    """A future log has become the replica's log."""

    log: ReplicaLog
    doomed: Doomed | None
    """What is left of the former one; ``None`` if its disk refused."""
    failure: str
    """Why it refused; empty if it did not."""
    source: int
    """Number of the log directory that held the former log."""


class LogDirs(Protocol):
    """The log directories of one broker."""

    def has_directory(self, directory: str) -> bool:
        """Whether there is a log directory of that name."""

    def is_directory_online(self, directory: str) -> bool:
        """Whether a log directory works."""

    def has_failed_directory(self) -> bool:
        """Whether any log directory has failed."""

    def directory_name_of(self, partition: TopicPartition) -> str:
        """Name of the directory that holds a partition's open log."""

    def directory_id_of(self, partition: TopicPartition) -> str:
        """``directory.id`` of the directory that holds a partition's open log."""

    def may_have_future(self, partition: TopicPartition) -> bool:
        """Whether a future log's name would fit a file system."""

    def prefer(self, partition: TopicPartition, directory: str) -> None:
        """A log that is not made yet is wanted in a directory."""

    def future_of(self, partition: TopicPartition) -> FutureReplica | None:
        """The partition's future log, if it has one."""

    def future_watermark(self, partition: TopicPartition) -> Offset:
        """Checkpointed high watermark of a future log that a start has found; else 0."""

    def create_future(self, partition: TopicPartition, directory: str) -> FutureReplica:
        """Make an empty future log.

        Raises:
            StorageFailed: If the directory has failed or is full.
        """

    def remove_future(self, partition: TopicPartition) -> Doomed:
        """Give a future log up.

        Raises:
            StorageFailed: If the disk has failed.
        """

    def replace_current(self, partition: TopicPartition) -> Promoted:
        """Let the future log take the place of the current one.

        Raises:
            StorageFailed: If the future log's directory has failed; then nothing has changed.
        """
