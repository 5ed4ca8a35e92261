"""Invariants of cleaners, checked as records are removed.

:meth:`Observer.taken` reports each removed record.
"""

from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.outcomes.compaction import RemovedRecord
from sim.checking.partition import Partition
from sim.ids import server_name
from sim.trace.rows.run import Faults, FaultsRow
from sim.units import show_instant


class LastValuesStay(Invariant):
    """The guarantee of a compacted topic."""

    name = "cleaner-keeps-last-values"
    sentence = "A cleaner takes a record with a value only if a later one of its key is committed."
    source = "Cleaner.shouldRetainRecord; documentation of log compaction"

    def _watch(self, observer: Observer) -> None:
        observer.removals.append(self._taken)

    def _taken(self, partition: Partition, removal: RemovedRecord) -> None:
        if removal.is_aborted:
            return
        if removal.key < 0:
            self.suspend("the key of the record is not in the trace")
            return
        self.checked += 1
        if not removal.is_superseded and not removal.is_tombstone:
            found = f"takes the last record of key {removal.key}, at offset {removal.offset}"
            raise self.broken(removal.at, server_name(removal.broker), found, partition)


class TombstonesStay(Invariant):
    """A reader that is no further behind than delete.retention.ms sees every deletion."""

    name = "tombstones-stay-their-time"
    sentence = (
        "A cleaner takes the last tombstone of a key no earlier than delete.retention.ms after the "
        "first cleaning that reached it."
    )
    source = "KAFKA-8522, KIP-534; MemoryRecords.filterTo"
    conditions = "while no clock is moved"

    def __init__(self) -> None:
        super().__init__()
        self._excuse: str | None = None

    def _watch(self, observer: Observer) -> None:
        observer.removals.append(self._taken)
        observer.listen("faults", self._fault)

    def _fault(self, row: FaultsRow) -> None:
        if "clock" in row[Faults.KIND] and self._excuse is None:
            self._excuse = f"a clock was moved at {show_instant(row[Faults.T_US])}"

    def _taken(self, partition: Partition, removal: RemovedRecord) -> None:
        if removal.is_superseded or removal.is_aborted or not removal.is_tombstone:
            return
        if self._excuse is not None:
            self.suspend(self._excuse)
            return
        self.checked += 1
        if not removal.is_lawful:
            found = (
                f"takes the tombstone of key {removal.key} at offset {removal.offset}, whose time "
                f"ends {show_instant(removal.horizon_us)}"
            )
            raise self.broken(removal.at, server_name(removal.broker), found, partition)


COMPACTION_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    LastValuesStay,
    TombstonesStay,
)
"""Invariants of cleaned logs."""
