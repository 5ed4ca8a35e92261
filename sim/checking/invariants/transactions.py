"""Invariants of transactions: their readers, fencing, and markers.

Rows of coordinators identify transactional producers: a run without any costs nothing. Appends and
last stable offsets of a zombie leader are skipped, as no client sees them.

Sources: S24, S32 and S34 of the semantics rules; KIP-98, KIP-890.
"""

from typing import Final

from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.ids import LeaderEpoch, Offset, ProducerId, server_name
from sim.trace.rows.clients import (
    Markers,
    MarkersRow,
    StableOffsets,
    StableOffsetsRow,
    Transactions,
    TransactionsRow,
)
from sim.trace.rows.cluster import Leadership, LeadershipRow, PartitionChanges
from sim.trace.rows.log import Appends, AppendsRow
from sim.trace.rows.run import Faults, FaultsRow

_PREPARED = {"PrepareCommit": True, "PrepareAbort": False}


class _Transactional(Invariant):
    """Watches appends as soon as there is a transactional producer, and not before."""

    def _watch(self, observer: Observer) -> None:
        self._observer = observer
        self._producers: dict[ProducerId, None] = {}
        observer.listen("transactions", self._transaction)
        observer.listen("markers", self._marker)

    def _transaction(self, row: TransactionsRow) -> None:
        if not self._producers:
            self._observer.appends.append(self._append)
            self._observer.leadership.append(self._leadership)
        self._producers[row[Transactions.PRODUCER_ID]] = None

    def _append(self, partition: Partition, replica: Replica, row: AppendsRow) -> None:
        raise NotImplementedError

    def _leadership(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        raise NotImplementedError

    def _marker(self, row: MarkersRow) -> None:
        raise NotImplementedError

    def _is_outdated(self, partition: Partition, epoch: LeaderEpoch) -> bool:
        """True if a later epoch exists."""
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
        """Starts a leader whose log ends at the offset."""
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
        observer.listen("stable_offsets", self._stable)

    def _append(self, partition: Partition, _replica: Replica, row: AppendsRow) -> None:
        producer = row[Appends.PRODUCER_ID]
        # Data only: a marker has no sequence.
        is_data = row[Appends.BASE_SEQUENCE] >= 0
        if (
            row[Appends.AS_LEADER]
            and producer in self._producers
            and is_data
            and not self._is_outdated(partition, row[Appends.LEADER_EPOCH])
        ):
            here = self._here.setdefault(partition.name, _OpenHere())
            here.open.setdefault(producer, row[Appends.BASE_OFFSET])

    def _marker(self, row: MarkersRow) -> None:
        producer = row[Markers.PRODUCER_ID]
        here = self._here.get(f"{row[Markers.TOPIC]}-{row[Markers.PARTITION]}")
        first = None if here is None else here.open.pop(producer, None)
        if here is not None and first is not None:
            here.ended.append((producer, first, row[Markers.OFFSET]))

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        here = self._here.get(partition.name)
        if (
            here is not None
            and row[Leadership.ROLE] == "leader"
            and not self._is_outdated(partition, row[Leadership.LEADER_EPOCH])
        ):
            here.cut(row[Leadership.LOG_END_OFFSET])

    def _stable(self, row: StableOffsetsRow) -> None:
        partition = self._observer.partition(row[StableOffsets.TOPIC], row[StableOffsets.PARTITION])
        if self._is_outdated(partition, row[StableOffsets.LEADER_EPOCH]):
            self.suspend("by a leader that had been replaced")
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        here = self._here.get(partition.name)
        if here is None:
            return
        stable, watermark = row[StableOffsets.LAST_STABLE_OFFSET], row[StableOffsets.HIGH_WATERMARK]
        unstable = here.first_unstable(watermark)
        lowest = partition.lowest_end()
        here.ended = [entry for entry in here.ended if entry[2] >= lowest]
        if stable > unstable:
            found = (
                f"last stable offset {stable} in {partition.name} at high watermark {watermark}; a "
                f"transaction from offset {unstable} on is not decided there"
            )
            raise self.broken_by(row, found, partition)


class FencedEpochsStayOut(_Transactional):
    """Rule S32."""

    name = "fenced-epoch-never-appends"
    sentence = "After a batch or marker of a producer's epoch none of an earlier epoch is appended."
    source = "S32; ProducerAppendInfo.checkProducerEpoch, KIP-360, KIP-890"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        super()._watch(observer)
        self._seen: dict[str, dict[ProducerId, tuple[int, Offset]]] = {}

    def _append(self, partition: Partition, _replica: Replica, row: AppendsRow) -> None:
        producer, epoch = row[Appends.PRODUCER_ID], row[Appends.PRODUCER_EPOCH]
        if (
            not row[Appends.AS_LEADER]
            or producer not in self._producers
            or self._is_outdated(partition, row[Appends.LEADER_EPOCH])
        ):
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        seen = self._seen.setdefault(partition.name, {})
        highest, at = seen.get(producer, (-1, -1))
        if epoch < highest:
            found = (
                f"producer {producer} appends at offset {row[Appends.BASE_OFFSET]} with epoch "
                f"{epoch}; epoch {highest} was there at {at}"
            )
            raise self.broken_by(row, found, partition)
        seen[producer] = epoch, row[Appends.LAST_OFFSET]

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        seen = self._seen.get(partition.name)
        if seen is not None and row[Leadership.ROLE] == "leader":
            # Truncated batches no longer count for their producer.
            log_end = row[Leadership.LOG_END_OFFSET]
            self._seen[partition.name] = {p: (e, at) for p, (e, at) in seen.items() if at < log_end}

    def _marker(self, row: MarkersRow) -> None:
        """Ignores markers, which have rows as appends."""


class MarkersFollowTheDecision(Invariant):
    """Rule S34, and the fencing of coordinators."""

    name = "markers-follow-the-decision"
    sentence = (
        "A marker is what the coordinator has durably decided for that epoch, and comes from no "
        "earlier coordinator than the one before it."
    )
    source = "S34; TransactionMarkerChannelManager, ProducerAppendInfo.checkCoordinatorEpoch"
    conditions = (
        "always, but for a former decision of the epoch where a message came twice; the order of "
        "coordinators where the leader is the controller's"
    )

    def _watch(self, observer: Observer) -> None:
        self._observer = observer
        self._decided: dict[ProducerId, tuple[int, bool, LeaderEpoch]] = {}
        self._former: dict[tuple[ProducerId, int, bool], None] = {}
        """Every decision; before KIP-890 several transactions have one epoch."""
        self._comes_twice = False
        self._coordinators: dict[tuple[str, int, ProducerId], LeaderEpoch] = {}
        observer.listen("transactions", self._transaction)
        observer.listen("markers", self._marker)
        observer.listen("faults", self._fault)

    def _fault(self, row: FaultsRow) -> None:
        self._comes_twice |= row[Faults.KIND] == "duplicate"

    def _transaction(self, row: TransactionsRow) -> None:
        committed = _PREPARED.get(row[Transactions.STATE])
        if committed is not None:
            producer, epoch = row[Transactions.PRODUCER_ID], row[Transactions.PRODUCER_EPOCH]
            self._decided[producer] = epoch, committed, row[Transactions.COORDINATOR_EPOCH]
            self._former[producer, epoch, committed] = None

    def _marker(self, row: MarkersRow) -> None:
        self.checked += 1
        at, broker, topic, number, offset, producer, epoch, is_commit, coordinator = row
        decided = self._decided.get(producer)
        place = (topic, number, producer)
        before = self._coordinators.get(place, -1)
        partition = self._observer.partition(topic, number)
        marker_text = (
            f"marker at offset {offset} of {partition.name}: producer {producer}, epoch {epoch}, "
            f"{'COMMIT' if is_commit else 'ABORT'}"
        )
        if decided is None or decided[:2] != (epoch, is_commit):
            if self._comes_twice and (producer, epoch, is_commit) in self._former:
                self.suspend("by a request that came twice")
                return
            found = f"{marker_text}; decided is {decided}"
            raise self.broken(at, server_name(broker), found, partition)
        change = partition.change
        if change is not None and change[PartitionChanges.LEADER] != broker:
            self.suspend("by a leader that had been replaced")
            return
        _, _, decided_by = decided
        known = max(before, decided_by)
        if coordinator < known:
            found = f"{marker_text}, by coordinator epoch {coordinator}; epoch {known} is known"
            raise self.broken(at, server_name(broker), found, partition)
        self._coordinators[place] = coordinator


TRANSACTION_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    StableOffsetBelowOpen,
    FencedEpochsStayOut,
    MarkersFollowTheDecision,
)
"""Invariants of transactions."""
