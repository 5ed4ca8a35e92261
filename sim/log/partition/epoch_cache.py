"""Start offset of each leader epoch in a log.

Simplified: removals are written as promptly as additions; Kafka writes them a little later, which
makes no difference, as a restart repeats the removal.

Source: ``LeaderEpochFileCache``; KIP-101, KIP-279.
"""

from bisect import bisect_right

from sim.ids import NO_EPOCH, LeaderEpoch, Offset
from sim.log.store.checkpoints import LEADER_EPOCHS, decode_epochs, encode_epochs
from sim.log.store.files import FileStore


class EpochCache:
    """Entries (epoch, start offset), strictly growing in both, kept in their checkpoint file."""

    __slots__ = ("_epochs", "_name", "_starts", "_store", "latest")

    def __init__(self, store: FileStore, directory: str) -> None:
        """Reads the checkpoint of a partition's directory; an empty one is made if it is missing.

        Raises:
            MalformedCheckpoint: If it cannot be read.
            DiskFailed: If the disk has failed.
        """
        self._store = store
        self._name = f"{directory}/{LEADER_EPOCHS}"
        data = store.read_whole(self._name)
        entries = decode_epochs(data or b"", self._name)
        self._epochs: list[LeaderEpoch] = [epoch for epoch, _ in entries]
        self._starts: list[Offset] = [start for _, start in entries]
        self.latest: LeaderEpoch = self._epochs[-1] if entries else NO_EPOCH
        """Epoch of the last entry; -1 if there is none."""
        if data is None:
            store.replace(self._name, b"")

    @property
    def entries(self) -> tuple[tuple[LeaderEpoch, Offset], ...]:
        """All entries, oldest first."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    def assign(self, epoch: LeaderEpoch, start: Offset) -> None:
        """Assigns the epoch its start offset. Later epochs and starts lose their entries."""
        if epoch < 0 or (self._epochs and epoch == self.latest and start >= self._starts[-1]):
            return
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._starts[keep - 1] >= start):
            keep -= 1
        self._replace([*self._epochs[:keep], epoch], [*self._starts[:keep], start])

    def end_offset_for(self, epoch: LeaderEpoch, log_end: Offset) -> tuple[LeaderEpoch, Offset]:
        """Largest epoch not above the given one and its end offset; (-1, -1) if undefined.

        Source: KIP-279; ``LeaderEpochFileCache.endOffsetFor``.
        """
        if epoch < 0 or not self._epochs or epoch > self.latest:
            return NO_EPOCH, -1
        if epoch == self.latest:
            return epoch, log_end
        above = bisect_right(self._epochs, epoch)
        found = self._epochs[above - 1] if above else epoch
        return found, self._starts[above]

    def truncate_from_end(self, offset: Offset) -> None:
        """Drops entries that start at or above the offset."""
        keep = len(self._starts)
        while keep and self._starts[keep - 1] >= offset:
            keep -= 1
        if keep < len(self._starts):
            self._replace(self._epochs[:keep], self._starts[:keep])

    def truncate_from_start(self, offset: Offset) -> None:
        """Moves the log start to the offset: older entries collapse onto it."""
        drop = bisect_right(self._starts, offset)
        if drop and self._starts[0] < offset:
            self._replace(self._epochs[drop - 1 :], [offset, *self._starts[drop:]])

    def clear(self) -> None:
        """Drops everything."""
        if self._epochs:
            self._replace([], [])

    def move_to(self, directory: str) -> None:
        """Follows a renaming of the partition's directory."""
        self._name = f"{directory}/{LEADER_EPOCHS}"

    def _replace(self, epochs: list[LeaderEpoch], starts: list[Offset]) -> None:
        self._store.replace(self._name, encode_epochs(list(zip(epochs, starts, strict=True))))
        self._epochs, self._starts = epochs, starts
        self.latest = epochs[-1] if epochs else NO_EPOCH
