"""Nearness of a run to a loss: the fewest copies of what was acknowledged, and steps towards it.

A run that loses nothing may have come close to it: for a moment one running broker alone had a
record that its producer believes to be safe. Distances are small whole numbers, the least of the
run each; their sum is the run's distance. They are computed where a row may have changed them: when
a server starts or ends, when the controller commits a change, when a log is cut or recovered. They
cost a few comparisons for each partition then, and nothing for each append.

Source: fitness by branch distance in search-based testing (P. McMinn, "Search-based Software Test
Data Generation: A Survey"); Kafka's durability rule, that a committed record lives as long as one
member of the ISR (documentation, "Replication").
"""

from typing import Final

from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.hunting.search.points import Points
from sim.ids import NodeId, server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.cluster import (
    Leadership,
    LeadershipRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
)
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    Recoveries,
    RecoveriesRow,
    Truncations,
    TruncationsRow,
)
from sim.units import Micros

FAR: Final = 3
"""Distance of what was never looked at, and the largest that counts."""

NEAR: Final = ("last-copy", "last-in-sync")
"""Points at which one server alone had what was acknowledged, or was in the ISR."""

_DOWN: Final = ("crashed", "powered_off", "stopped")
_UP: Final = ("started", "running")


class Nearness:
    """Listens to a trace, and keeps how near it came to a loss.

    Args:
        observer: Of the trace; its state of partitions is read, not kept again.
        points: Of the run; the moments at which few copies were left are noted there.
    """

    def __init__(self, observer: Observer, points: Points) -> None:
        self._observer = observer
        self._points = points
        self._down: dict[str, None] = {}
        self._acknowledged: dict[str, int] = {}
        self.least: dict[str, int] = {}
        """By name: ``copies`` (running brokers that have all that was acknowledged), ``in-sync``
        (members of the committed ISR), ``live-in-sync`` (both), ``eligible`` (ISR and ELR) and
        ``behind`` (0: a new leader's log ended below what was acknowledged)."""
        observer.acknowledgements.append(self._acknowledge)
        observer.changes.append(self._changed)
        observer.leadership.append(self._led)
        observer.truncations.append(self._truncated)
        observer.listen("recoveries", self._recovered)
        observer.listen("node_states", self._node)

    @property
    def distance(self) -> int:
        """Sum of the least distances; smaller is nearer."""
        names = ("copies", "in-sync", "live-in-sync", "eligible", "behind")
        return sum(min(self.least.get(name, FAR), FAR) for name in names)

    def _acknowledge(self, partition: Partition, _: Replica, row: AcknowledgementsRow) -> None:
        if row[Acknowledgements.ERROR] == "NONE":
            end = row[Acknowledgements.LAST_OFFSET] + 1
            if end > self._acknowledged.get(partition.name, 0):
                self._acknowledged[partition.name] = end

    def _changed(self, partition: Partition, row: PartitionChangesRow) -> None:
        in_sync = brokers_in(row[PartitionChanges.IN_SYNC])
        eligible = brokers_in(row[PartitionChanges.ELIGIBLE])
        at = row[PartitionChanges.T_US]
        if at > 0 and len(row[PartitionChanges.REPLICAS]) > 1:
            self._least("in-sync", len(in_sync))
            self._least("eligible", len(in_sync) + len(eligible))
            self._look(partition, at, in_sync)

    def _led(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        if row[Leadership.ROLE] == "leader" and row[Leadership.T_US] > 0:
            acknowledged = self._acknowledged.get(partition.name, 0)
            self._least("behind", 0 if replica.log_end < acknowledged else FAR)

    def _truncated(self, partition: Partition, replica: Replica, row: TruncationsRow) -> None:
        if row[Truncations.TO_OFFSET] < self._acknowledged.get(partition.name, 0):
            self._look(partition, row[Truncations.T_US], self._in_sync(partition), replica.broker)

    def _recovered(self, row: RecoveriesRow) -> None:
        partition = self._observer.partition(row[Recoveries.TOPIC], row[Recoveries.PARTITION])
        self._look(partition, row[Recoveries.T_US], self._in_sync(partition))

    def _node(self, row: NodeStatesRow) -> None:
        node, state = row[NodeStates.NODE], row[NodeStates.STATE]
        if state in _DOWN:
            self._down[node] = None
        elif state in _UP:
            self._down.pop(node, None)
        else:
            return
        for partition in self._observer.partitions.values():
            self._look(partition, row[NodeStates.T_US], self._in_sync(partition))

    @staticmethod
    def _in_sync(partition: Partition) -> tuple[NodeId, ...]:
        change = partition.change
        return brokers_in(change[PartitionChanges.IN_SYNC]) if change is not None else ()

    def _look(
        self, partition: Partition, at: Micros, in_sync: tuple[NodeId, ...], without: NodeId = -1
    ) -> None:
        acknowledged = self._acknowledged.get(partition.name, 0)
        if not acknowledged or len(partition.assigned) < 2:
            return
        holders = [
            replica.broker
            for replica in partition.replicas.values()
            if replica.log_end >= acknowledged
            and replica.broker != without
            and server_name(replica.broker) not in self._down
        ]
        self._least("copies", len(holders))
        self._least("live-in-sync", sum(broker in in_sync for broker in holders))
        if len(holders) == 1:
            self._points.note("last-copy", at, server_name(holders[0]))
        if len(in_sync) == 1:
            self._points.note("last-in-sync", at, server_name(in_sync[0]))

    def _least(self, name: str, value: int) -> None:
        self.least[name] = min(value, self.least.get(name, value))
