"""Partitions of a coordinator's topic: loaded, loading, or resigned.

Source: ``CoordinatorRuntime.CoordinatorState``.
"""

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch
from sim.protocol.coordinator.log import PartitionElected


class CoordinatorPartitions:
    """The partitions of one coordinator, with the epochs of their leaderships."""

    def __init__(self) -> None:
        self._loading: dict[int, LeaderEpoch] = {}
        self._active: dict[int, LeaderEpoch] = {}
        self._given_up: dict[int, LeaderEpoch] = {}
        """Epoch of the last leadership that ended: loads of it are ignored."""

    def active(self) -> tuple[int, ...]:
        """Partitions that are loaded, sorted."""
        return tuple(sorted(self._active))

    def error(self, partition: int) -> ErrorCode:
        """Error for a request about the partition; NONE if it is served."""
        if partition in self._loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NONE if partition in self._active else ErrorCode.NOT_COORDINATOR

    def epoch(self, partition: int) -> LeaderEpoch:
        """The leader epoch under which the partition is served; -1 if it is not."""
        return self._active.get(partition, -1)

    def load(self, partition: int, epoch: LeaderEpoch, *, anyway: bool = False) -> None:
        """The broker leads the partition, and reads it; ``anyway``: also if it serves it."""
        known = self._active if partition in self._active and not anyway else self._loading
        known[partition] = max(epoch, known.get(partition, epoch))

    def elect(self, event: PartitionElected) -> bool:
        """The partition is loaded; true if it is to be served with the loaded records."""
        partition, epoch = event.partition, event.epoch
        if epoch < self._loading.get(partition, epoch):
            return False  # read for an earlier leadership; the later one reads again
        if epoch <= self._given_up.get(partition, -1):
            return False
        if partition in self._active:
            if partition not in self._loading:
                self._active[partition] = max(epoch, self._active[partition])
            return False  # memory is ahead of the loaded records
        self._loading.pop(partition, None)
        self._active[partition] = epoch
        return True

    def fail(self, event: PartitionElected) -> None:
        """The partition cannot be loaded: it is not served before this broker leads it again.

        Source: ``CoordinatorRuntime.CoordinatorState.FAILED``.
        """
        partition = event.partition
        if event.epoch >= self._loading.get(partition, event.epoch + 1):
            self.resign(partition)

    def resign(self, partition: int) -> bool:
        """The partition has another leader; true if it was served here."""
        loading, active = self._loading.pop(partition, -1), self._active.pop(partition, -1)
        self._given_up[partition] = max(loading, active, self._given_up.get(partition, -1))
        return active >= 0
