"""Changes of who leads, and of how many are in sync, in a window of a run.

The state with which a window begins is no change of its own, but it counts for the fewest in sync.
"""

from typing import Final

from sim.ids import NO_LEADER, NodeId, server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.cluster import (
    Controllers,
    ControllersRow,
    PartitionChanges,
    PartitionChangesRow,
    Quorum,
    QuorumRow,
    TopicDeletions,
    TopicDeletionsRow,
)
from sim.units import Micros, show_instant

_Place = tuple[str, int]

FIRST: Final = "first"
"""Key of the report under which each number has its first finding: an instant, and words."""


class Changes:
    """Counts from committed decisions.

    Args:
        from_us: Begin of the window.
        to_us: Its end, exclusive.
    """

    def __init__(self, from_us: Micros, to_us: Micros) -> None:
        self._from, self._to = from_us, to_us
        self._quorum_epoch = -1
        self._active: NodeId = NO_LEADER
        self._epochs: dict[_Place, int] = {}
        self._in_sync: dict[_Place, int] = {}
        self._leader_epochs: dict[_Place, int] = {}
        self._counts: dict[str, int] = {}
        self._fewest: int | None = None
        self._first: dict[str, tuple[Micros, str]] = {}

    def quorum(self, row: QuorumRow) -> None:
        """Follows the epoch of the metadata quorum, and its leader."""
        at, epoch = row[Quorum.T_US], row[Quorum.EPOCH]
        if at >= self._to:
            return
        self._counts.setdefault("quorum_epochs", 0)
        if epoch > self._quorum_epoch:
            begun = 1 if self._quorum_epoch < 0 else epoch - self._quorum_epoch
            self._quorum_epoch = epoch
            if at >= self._from:
                self._count("quorum_epochs", begun, at, f"epoch {epoch} of the metadata quorum")
        if row[Quorum.ROLE] == "leader":
            self._elected(row[Quorum.NODE], at)

    def controller(self, row: ControllersRow) -> None:
        """Follows the controller of ZooKeeper mode."""
        if row[Controllers.STATE] == "elected" and row[Controllers.T_US] < self._to:
            self._elected(row[Controllers.BROKER], row[Controllers.T_US])

    def change(self, row: PartitionChangesRow) -> None:
        """Follows a partition's leader epoch and its ISR."""
        at = row[PartitionChanges.T_US]
        if at >= self._to:
            return
        place = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        epoch, members = row[PartitionChanges.LEADER_EPOCH], row[PartitionChanges.IN_SYNC]
        before = self._epochs.get(place, epoch)
        self._epochs[place] = epoch
        self._leader_epochs.setdefault(place, 0)
        if at >= self._from and epoch > before:
            self._leader_epochs[place] += epoch - before
            words = f"leader epoch {epoch} of {place[0]}-{place[1]}"
            self._first.setdefault("leader.epochs", (at, f"{words} at {show_instant(at)}"))
        self._shrink(place, len(brokers_in(members)), at)

    def deletion(self, row: TopicDeletionsRow) -> None:
        """Drops a deleted topic: another one of its name begins with epochs of its own."""
        for place in [place for place in self._epochs if place[0] == row[TopicDeletions.TOPIC]]:
            del self._epochs[place]
            self._in_sync.pop(place, None)

    def report(self) -> dict[str, object]:
        """The numbers that were measured, and under :data:`FIRST` the first finding of each."""
        fewest = self._fewest
        if fewest is None and self._in_sync:
            fewest = min(self._in_sync.values())  # nothing has changed in the window
        found: dict[str, object] = {**self._counts, FIRST: self._first}
        if fewest is not None:
            found["isr_min"] = fewest
        if self._leader_epochs:
            found["leader_epochs"] = max(self._leader_epochs.values())
        return found

    def _elected(self, node: NodeId, at: Micros) -> None:
        self._counts.setdefault("controller_changes", 0)
        if self._active not in (node, NO_LEADER) and at >= self._from:
            self._count("controller_changes", 1, at, f"{server_name(node)} became the controller")
        self._active = node

    def _shrink(self, place: _Place, size: int, at: Micros) -> None:
        if at < self._from:
            self._in_sync[place] = size
            return
        if self._fewest is None:
            # What the window begins with, and this one.
            self._fewest = min(self._in_sync.values(), default=size)
        self._in_sync[place] = size
        if size < self._fewest or "isr.min" not in self._first:
            words = f"{place[0]}-{place[1]} had {size} in sync at {show_instant(at)}"
            self._first["isr.min"] = (at, words)
        self._fewest = min(self._fewest, size)

    def _count(self, name: str, by: int, at: Micros, words: str) -> None:
        self._counts[name] += by
        self._first.setdefault(name.replace("_", "."), (at, f"{words} at {show_instant(at)}"))
