"""What must hold of transactions at every fact: readers, fencing, and who may end them.

Producers are known to be transactional by the rows of their coordinators: a run without any costs
nothing. Appends and last stable offsets of a leader that has been replaced without knowing it are
passed over: nobody is told of them.

Sources: S24, S32 and S34 of the semantics rules; KIP-98, KIP-890.
"""

from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.rows import (
    AppendRow,
    LeadershipRow,
    MarkerRow,
    StableRow,
    TransactionRow,
)
from sim.ids import LeaderEpoch, Offset, ProducerId, server_name

_PREPARED = {"PrepareCommit": True, "PrepareAbort": False}


class _Transactional(Invariant):
    """Watches appends as soon as there is a transactional producer, and not before."""

    def _watch(self, observer: Observer) -> None:
        self._observer = observer
        self._producers: dict[ProducerId, None] = {}
        observer.transactions.append(self._transaction)
        observer.markers.append(self._marker)

    def _transaction(self, row: TransactionRow) -> None:
        if not self._producers:
            self._observer.appends.append(self._append)
            self._observer.leadership.append(self._leadership)
        self._producers[row[3]] = None

    def _append(self, partition: Partition, replica: Replica, row: AppendRow) -> None:
        raise NotImplementedError

    def _leadership(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        raise NotImplementedError

    def _marker(self, row: MarkerRow) -> None:
        raise NotImplementedError

    def _is_outdated(self, partition: Partition, epoch: LeaderEpoch) -> bool:
        """Whether the epoch has been followed by another one."""
        return epoch < max(partition.leaders, default=epoch)


class _OpenHere:
    """Transactions of one partition: open ones, and ended ones with the offsets of their ends."""

    __slots__ = ("ended", "open")

    def __init__(self) -> None:
        self.open: dict[ProducerId, Offset] = {}
        self.ended: list[tuple[ProducerId, Offset, Offset]] = []

    def first_unstable(self, high_watermark: Offset) -> Offset:
        """First offset of the earliest that is open or whose marker is not committed."""
        waiting = [first for _, first, marker in self.ended if marker >= high_watermark]
        return min([*self.open.values(), *waiting, high_watermark])

    def cut(self, end: Offset) -> None:
        """A leader begins with a log that ends at the offset."""
        reopened = {p: first for p, first, marker in self.ended if marker >= end > first}
        self.ended = [entry for entry in self.ended if entry[2] < end]
        self.open = {p: first for p, first in (reopened | self.open).items() if first < end}


class StableOffsetBelowOpen(_Transactional):
    """Rule S24, the leader's side."""

    name = "stable-offset-below-open"
    sentence = "The last stable offset never passes a transaction whose end is not committed."
    source = "S24; ProducerStateManager.firstUnstableOffset, KIP-98"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        super()._watch(observer)
        self._here: dict[str, _OpenHere] = {}
        observer.stable_offsets.append(self._stable)

    def _append(self, partition: Partition, _replica: Replica, row: AppendRow) -> None:
        # Data only: a marker has no sequence.
        is_data = row[7] and row[13] in self._producers and row[15] >= 0
        if is_data and not self._is_outdated(partition, row[6]):
            here = self._here.setdefault(partition.name, _OpenHere())
            here.open.setdefault(row[13], row[4])

    def _marker(self, row: MarkerRow) -> None:
        here = self._here.get(f"{row[2]}-{row[3]}")
        first = None if here is None else here.open.pop(row[5], None)
        if here is not None and first is not None:
            here.ended.append((row[5], first, row[4]))

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        here = self._here.get(partition.name)
        if here is not None and row[4] == "leader" and not self._is_outdated(partition, row[6]):
            here.cut(row[9])

    def _stable(self, row: StableRow) -> None:
        partition = self._observer.partition(row[2], row[3])
        if self._is_outdated(partition, row[4]):
            self.suspend("by a leader that had been replaced")
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        here = self._here.get(partition.name)
        if here is None:
            return
        unstable = here.first_unstable(row[6])
        lowest = partition.lowest_end()
        here.ended = [entry for entry in here.ended if entry[2] >= lowest]
        if row[5] > unstable:
            raise self.broken(
                row[0], server_name(row[1]),
                f"last stable offset {row[5]} in {partition.name} at high watermark {row[6]}; a "
                f"transaction from offset {unstable} on is not decided there",
                partition,
            )  # fmt: skip


class FencedEpochsStayOut(_Transactional):
    """Rule S32."""

    name = "fenced-epoch-never-appends"
    sentence = "After a batch or marker of a producer's epoch none of an earlier epoch is appended."
    source = "S32; ProducerAppendInfo.checkProducerEpoch, KIP-360, KIP-890"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        super()._watch(observer)
        self._seen: dict[str, dict[ProducerId, tuple[int, Offset]]] = {}

    def _append(self, partition: Partition, _replica: Replica, row: AppendRow) -> None:
        if not row[7] or row[13] not in self._producers or self._is_outdated(partition, row[6]):
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        seen = self._seen.setdefault(partition.name, {})
        highest, at = seen.get(row[13], (-1, -1))
        if row[14] < highest:
            raise self.broken(
                row[0], server_name(row[1]),
                f"producer {row[13]} appends at offset {row[4]} with epoch {row[14]}; epoch "
                f"{highest} was there at {at}",
                partition,
            )  # fmt: skip
        seen[row[13]] = row[14], row[5]

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        seen = self._seen.get(partition.name)
        if seen is not None and row[4] == "leader":
            # What the new leader does not have is no longer known of its producer.
            kept = {p: (e, at) for p, (e, at) in seen.items() if at < row[9]}
            self._seen[partition.name] = kept

    def _marker(self, row: MarkerRow) -> None:
        """A marker is an append, too, and told as one."""


class MarkersFollowTheDecision(Invariant):
    """Rule S34, and the fencing of coordinators."""

    name = "markers-follow-the-decision"
    sentence = (
        "A marker says what the coordinator has durably decided for that epoch, and comes from no "
        "earlier coordinator than the one before it."
    )
    source = "S34; TransactionMarkerChannelManager, ProducerAppendInfo.checkCoordinatorEpoch"
    conditions = "always; the order of coordinators where the leader is the controller's"

    def _watch(self, observer: Observer) -> None:
        self._observer = observer
        self._decided: dict[ProducerId, tuple[int, bool, LeaderEpoch]] = {}
        self._coordinators: dict[tuple[str, int, ProducerId], LeaderEpoch] = {}
        observer.transactions.append(self._transaction)
        observer.markers.append(self._marker)

    def _transaction(self, row: TransactionRow) -> None:
        committed = _PREPARED.get(row[5])
        if committed is not None:
            self._decided[row[3]] = row[4], committed, row[7]

    def _marker(self, row: MarkerRow) -> None:
        self.checked += 1
        decided = self._decided.get(row[5])
        place = (row[2], row[3], row[5])
        before = self._coordinators.get(place, -1)
        partition = self._observer.partition(row[2], row[3])
        said = f"producer {row[5]}, epoch {row[6]}, {'COMMIT' if row[7] else 'ABORT'}"
        if decided is None or decided[:2] != (row[6], row[7]):
            raise self.broken(
                row[0], server_name(row[1]),
                f"marker at offset {row[4]} of {partition.name}: {said}; decided is {decided}",
                partition,
            )  # fmt: skip
        if partition.change is not None and partition.change[4] != row[1]:
            self.suspend("by a leader that had been replaced")
            return
        if row[8] < max(before, decided[2]):
            raise self.broken(
                row[0], server_name(row[1]),
                f"marker at offset {row[4]} of {partition.name}: {said}, by coordinator epoch "
                f"{row[8]}; epoch {max(before, decided[2])} is known",
                partition,
            )  # fmt: skip
        self._coordinators[place] = row[8]
