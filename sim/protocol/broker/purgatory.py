"""Purgatory of produce requests: they wait for the high watermark, or for their deadline.

Source: ``kafka.server.DelayedProduce``, ``DelayedOperationPurgatory``.
"""

from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from sim.ids import Offset, TopicPartition
from sim.protocol.messages.data import ProduceResult
from sim.units import NEVER, Micros

PURGE_MIN = 1_000
"""Completed entries are purged when there are more than this, and more than half of all."""


@dataclass(slots=True, eq=False)
class DelayedProduce:
    """A produce request with acks=all; ``waiting``: required, base and last offset."""

    token: int
    deadline: Micros
    waiting: dict[TopicPartition, tuple[Offset, Offset, Offset]]
    results: list[ProduceResult] = field(default_factory=list)
    follows_watermark: bool = False
    """True if it waits beyond its deadline, and whatever is in sync."""

    @property
    def is_done(self) -> bool:
        """True if every partition is decided."""
        return not self.waiting


class ProducePurgatory:
    """Delayed produce requests, by partition and by deadline."""

    def __init__(self) -> None:
        self._by_partition: dict[TopicPartition, list[DelayedProduce]] = {}
        self._deadlines: list[tuple[Micros, int, DelayedProduce]] = []
        self._sequence = 0
        self._done = 0

    def park(self, operation: DelayedProduce) -> None:
        """Waits for every partition of the request."""
        self._sequence += 1
        heappush(self._deadlines, (operation.deadline, self._sequence, operation))
        for partition in operation.waiting:
            self._by_partition.setdefault(partition, []).append(operation)

    def watching(self, partition: TopicPartition) -> list[DelayedProduce]:
        """Requests that wait for the partition, oldest first."""
        return self._by_partition.get(partition, [])

    def decided(self, operation: DelayedProduce, result: ProduceResult) -> None:
        """Decides one partition of a request."""
        partition = result.partition
        del operation.waiting[partition]
        operation.results.append(result)
        watchers = self._by_partition[partition]
        if watchers[0] is operation:
            del watchers[0]
        else:
            watchers.remove(operation)
        if operation.is_done:
            self._done += 1
            self._purge()

    def next_deadline(self) -> Micros:
        """Deadline of the next request; NEVER if none waits."""
        while self._deadlines and self._deadlines[0][2].is_done:
            heappop(self._deadlines)
            self._done -= 1
        return self._deadlines[0][0] if self._deadlines else NEVER

    def expired(self, now: Micros) -> list[DelayedProduce]:
        """Removes and returns requests whose deadline has passed."""
        out = []
        while self.next_deadline() <= now:
            out.append(heappop(self._deadlines)[2])
        self._done -= len(out)  # they leave the heap now, and will be counted when decided
        return out

    def _purge(self) -> None:
        if self._done > PURGE_MIN and self._done * 2 > len(self._deadlines):
            self._deadlines = [entry for entry in self._deadlines if not entry[2].is_done]
            heapify(self._deadlines)
            self._done = 0
