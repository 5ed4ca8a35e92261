"""Uncleanable logs, which cleaners skip after one of them failed to read them.

Source: ``LogCleanerManager.markPartitionUncleanable`` (KIP-346); before 2.1
``CleanerThread.doWork`` let the error end the thread for good.
"""

from sim.ids import TopicPartition


class Uncleanable:
    """Errors of one broker's cleaners since its process began."""

    def __init__(self, *, ends_cleaner: bool) -> None:
        self._ends_cleaner = ends_cleaner
        self._reasons: dict[TopicPartition, str] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        return partition in self._reasons

    def mark(self, partition: TopicPartition, error: Exception) -> bool:
        """Marks a log that could not be read; returns True if the cleaner survives.

        Before 2.1 it ended, and marked nothing: the next cleaner to take the log ended, too.
        """
        if self._ends_cleaner:
            return False
        self._reasons[partition] = str(error)
        return True
