"""Tiered partitions of a broker, and the threads that run their tasks.

Source: ``RemoteLogManager.RLMTask``, ``RLMScheduledThreadPool``.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

from sim.ids import Offset, TopicPartition
from sim.protocol.broker.tiered.cache import RemoteLogMetadataCache
from sim.protocol.broker.tiered.ports import Effects
from sim.units import Micros

Step: TypeAlias = Callable[[bool, Micros, Effects], None]
"""Continues a task with the outcome of its last step."""


class Tiered:
    """A tiered partition of this broker."""

    __slots__ = (
        "being_copied",
        "cache",
        "copied",
        "has_log_start",
        "is_deleted",
        "is_leader",
        "is_read",
        "metadata_partition",
        "partition",
        "read_offset",
        "term",
        "topic_id",
    )

    def __init__(self, partition: TopicPartition, topic_id: str, metadata_partition: int) -> None:
        self.partition = partition
        self.topic_id = topic_id
        self.metadata_partition = metadata_partition
        self.cache = RemoteLogMetadataCache()
        self.is_leader = False
        self.is_deleted = False
        self.term = 0
        """Number of the role: tasks of an earlier one end."""
        self.is_read = False
        """True if the events that there were at its assignment are read."""
        self.read_offset: Offset = -1
        """Offset of the last event that was applied."""
        self.copied: Offset | None = None
        """Last offset in the remote log; ``None`` before it is known to this leader."""
        self.has_log_start = False
        self.being_copied: dict[str, None] = {}


class Pool:
    """Threads that run tasks, the longest waiting first."""

    def __init__(self, size: int) -> None:
        self._free = size
        self._waiting: deque[Callable[[Micros, Effects], None]] = deque()

    def run(self, task: Callable[[Micros, Effects], None], now: Micros, out: Effects) -> None:
        """Runs a task now, or when a thread is free."""
        if self._free:
            self._free -= 1
            task(now, out)
        else:
            self._waiting.append(task)

    def done(self, now: Micros, out: Effects) -> None:
        """A task has ended."""
        if self._waiting:
            self._waiting.popleft()(now, out)
        else:
            self._free += 1
