"""Logs that cleaners leave alone, because one of them could not read what is there.

Source: ``LogCleanerManager.markPartitionUncleanable`` (KIP-346); before 2.1
``CleanerThread.doWork`` let the error end the thread, and nobody started it again.
"""

from sim.ids import TopicPartition


class Uncleanable:
    """What became of the errors of one broker's cleaners since its process began."""

    def __init__(self, *, ends_cleaner: bool) -> None:
        self._ends_cleaner = ends_cleaner
        self._reasons: dict[TopicPartition, str] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._reasons

    def note(self, partition: TopicPartition, error: Exception) -> bool:
        """A log could not be read; returns whether the cleaner that tried goes on without it.

        Before 2.1 it ended, and marked nothing: the next cleaner to take the log ended, too.
        """
        if self._ends_cleaner:
            return False
        self._reasons[partition] = str(error)
        return True
