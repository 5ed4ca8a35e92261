"""Names of servers' log directories, and of partitions' directories in them.

A partition's directory is that of a current log, or of a deleted, stray or future one.

Source: ``UnifiedLog.logDirName``, ``logDeleteDirName``, ``logFutureDirName``, ``logStrayDirName``,
``parseTopicPartitionName``.
"""

import hashlib
import re
from typing import Literal, TypeAlias

from sim.ids import TopicPartition

Mark: TypeAlias = Literal["delete", "future", "stray"]
"""Suffix of a directory's name: a deleted, future or stray log."""

LONGEST_NAME = 255
"""Greatest length of a file name, in bytes."""

_FUTURE = re.compile(r"(.+)-(\d+)\.[0-9a-f]{32}-future")


def directory_name(number: int) -> str:
    """Name of a server's log directory; ours, Kafka's are named by ``log.dirs``."""
    return f"data-{number}"


def partition_of(directory: str) -> TopicPartition | None:
    """The partition whose directory has that name; ``None`` if it is none's."""
    topic, _, number = directory.rpartition("-")
    if not topic or not number.isdecimal():
        return None
    return TopicPartition(topic, int(number))


def future_partition_of(directory: str) -> TopicPartition | None:
    """The partition whose future log a directory of that name holds; ``None`` if it is none's."""
    found = _FUTURE.fullmatch(directory)
    return None if found is None else TopicPartition(found[1], int(found[2]))


def marked_name(partition: TopicPartition, directory: int, topic_id: str, mark: Mark) -> str:
    """Name of a directory that does not hold a current log.

    Args:
        partition: Whose log it is.
        directory: Number of the log directory.
        topic_id: Of the partition's topic.
        mark: Its suffix. A future log's name is not shortened, so it may be too long.
    """
    # Kafka draws a random UUID; here the same log always gets the same name.
    unique = hashlib.sha256(f"{directory} {partition} {topic_id}".encode()).hexdigest()[:32]
    suffix = f"-{partition.partition}.{unique}-{mark}"
    topic = partition.topic
    return (topic if mark == "future" else topic[: LONGEST_NAME - len(suffix)]) + suffix
