"""The locks of a broker's logs, as far as they are held for longer than an instant.

An append that ``flush.messages`` asks to flush keeps its log's lock until the fsync is done. All
others that want the lock meanwhile wait, in the order of coming: the next append, a follower's
fetch that moves the high watermark or the ISR, the look for lagging followers. Reads need no lock.

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
    """What its holder does afterwards."""
    waiting: deque[Rest[ReplicaEffect]]
    """Steps of those that waited for it, oldest first."""


class LogLocks:
    """Who holds the lock of a log while it is flushed, and who waits for it."""

    def __init__(self) -> None:
        self._waiting: dict[TopicPartition, deque[Rest[ReplicaEffect]]] = {}
        self._flushing: dict[int, tuple[TopicPartition, Rest[ReplicaEffect]]] = {}
        self._tokens = 0

    def is_held(self, partition: TopicPartition) -> bool:
        """Whether a flush holds the log's lock now."""
        # Almost always no log is flushed: an empty dict needs no hash of the partition.
        return bool(self._waiting) and partition in self._waiting

    def wait(self, partition: TopicPartition, rest: Rest[ReplicaEffect]) -> None:
        """Do the rest of a step once it is its turn; the lock must be held by another."""
        self._waiting[partition].append(rest)

    def flush(
        self,
        partition: TopicPartition,
        rest: Rest[ReplicaEffect],
        out: Effects,
        *,
        by_handler: bool,
    ) -> None:
        """Flush a log and hold its lock until that is done; then do the rest of the step.

        Args:
            partition: Which log; nobody may hold its lock.
            rest: What its holder does afterwards.
            out: Where effects go.
            by_handler: Whether a request handler is kept occupied by it.
        """
        assert partition not in self._waiting, f"{partition} is flushed already"
        self._tokens += 1
        self._waiting[partition] = deque()
        self._flushing[self._tokens] = partition, rest
        out.append(fx.Flush(partition, self._tokens, by_handler))

    def release(self, token: int) -> Released:
        """Free the lock of a flush that is done: its holder's turn first, then those that waited.

        Before each of those that waited, :meth:`pass_on` says whether it is their turn.
        """
        partition, rest = self._flushing.pop(token)
        return Released(partition, rest, self._waiting.pop(partition))

    def pass_on(self, released: Released) -> bool:
        """Whether a flush has taken the lock since: all that still wait, wait for its end."""
        taken = self._waiting.get(released.partition)
        if taken is None:
            return False
        taken.extend(released.waiting)
        return True
