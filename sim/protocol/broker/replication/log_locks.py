"""Locks of a broker's logs, as far as they are held for longer than an instant.

An append that ``flush.messages`` flushes keeps its log's lock until the fsync is done. Others that
need the lock meanwhile wait, in order of arrival: the next append, a follower's fetch that advances
the high watermark or the ISR, the check for lagging followers. Reads need no lock.

Source: ``UnifiedLog.append``, which flushes inside ``lock.synchronized``, as
``maybeIncrementHighWatermark`` does its work; ``Partition.leaderIsrUpdateLock``, which an append
holds for reading, and a change of the ISR needs for writing.
"""

from collections import deque
from typing import NamedTuple

from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.effects import Effects, ReplicaEffect
from sim.protocol.preemption import Rest


class Released(NamedTuple):
    """A lock whose flush is done."""

    partition: TopicPartition
    rest: Rest[ReplicaEffect]
    """Continuation of its holder."""
    waiting: deque[Rest[ReplicaEffect]]
    """Steps that waited for it, oldest first."""


class LogLocks:
    """Locks of logs that are being flushed, and steps that wait for them."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, deque[Rest[ReplicaEffect]]] = {}
        self._flushing: dict[int, tuple[TopicPartition, Rest[ReplicaEffect]]] = {}
        self._tokens = 0

    def is_held(self, partition: TopicPartition) -> bool:
        """True if a flush holds the log's lock now."""
        # Almost always no log is flushed: an empty dict needs no hash of the partition.
        return bool(self._waiting) and partition in self._waiting

    def wait(self, partition: TopicPartition, rest: Rest[ReplicaEffect]) -> None:
        """Does the rest of a step once the lock is free; another must hold it now."""
        self._waiting[partition].append(rest)

    def flush(
        self,
        partition: TopicPartition,
        rest: Rest[ReplicaEffect],
        out: Effects,
        *,
        by_handler: bool,
    ) -> None:
        """Flushes a log and holds its lock until that is done; then does the rest of the step.

        Args:
            partition: The log, whose lock must be free.
            rest: Continuation of the holder.
            out: Receives effects.
            by_handler: True if it blocks a request handler.
        """
        assert partition not in self._waiting, f"{partition} is flushed already"
        self._tokens += 1
        self._waiting[partition] = deque()
        self._flushing[self._tokens] = partition, rest
        out.append(fx.Flush(partition, self._tokens, by_handler))

    def release(self, token: int) -> Released:
        """Frees the lock of a completed flush: its holder first, then those that waited.

        Before each of those that waited, :meth:`pass_on` returns true if the lock is still free.
        """
        partition, rest = self._flushing.pop(token)
        return Released(partition, rest, self._waiting.pop(partition))

    def pass_on(self, released: Released) -> bool:
        """True if a flush has taken the lock since: all others wait for its end."""
        taken = self._waiting.get(released.partition)
        if taken is None:
            return False
        taken.extend(released.waiting)
        return True
