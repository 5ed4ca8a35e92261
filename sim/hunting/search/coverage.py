"""Coverage of a run: rare states of the cluster, hashed, as its rows are emitted.

A cell is the state of a partition, a quorum, a group or a transaction after one of its rows: roles,
epoch, size of ISR and ELR, and where each log ends against the leader's; beside it are the step
before, and the faults that are active. Numbers that grow with time are left out or capped, so that
a run has few hundred cells. Landmarks are states with a name, which a reader of a page knows.

Source: coverage-guided fuzzing (AFL's hashed edges with few buckets of counts), applied to states
of a protocol as its formal models have them (Kip101, Kip320, kip-966).
"""

import zlib
from typing import Final

from sim.checking.observer import Observer
from sim.checking.partition import Partition
from sim.hunting.search.nearness import Nearness
from sim.hunting.search.points import Points
from sim.ids import server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.clients import (
    Groups,
    GroupsRow,
    Markers,
    MarkersRow,
    Transactions,
    TransactionsRow,
)
from sim.trace.rows.cluster import (
    BrokerStates,
    BrokerStatesRow,
    Leadership,
    LeadershipRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    Quorum,
    QuorumRow,
)
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    Appends,
    AppendsRow,
    Recoveries,
    RecoveriesRow,
    Truncations,
    TruncationsRow,
)
from sim.trace.rows.run import Faults, FaultsRow

_MOST: Final = 4
"""Larger epochs and counts are one state."""

LANDMARKS: Final = {
    "leader-elected": "another leader was elected",
    "leader-elected-uncleanly": "a leader from outside ISR and ELR was elected",
    "no-leader": "a partition had no leader",
    "isr-of-one": "an ISR shrank to one replica",
    "isr-empty": "an ISR was empty",
    "elr": "a partition had eligible leader replicas",
    "copies-0": "no running broker had everything that is committed in a partition",
    "copies-1": "one running broker alone had everything that is committed in a partition",
    "two-leaders": "two running brokers were leaders of a partition, in two epochs",
    "logs-part": "two logs of a partition had different last epochs and ends",
    "truncation-diverging_epoch": "a follower truncated to where its leader's log parts from its",
    "truncation-out_of_range": "a follower truncated to a shorter log of its leader",
    "truncation-recovery": "recovery cut a log",
    "unclean-start": "a broker started without a clean shutdown",
    "fenced": "a broker was fenced",
    "quorum-candidate": "a controller was a candidate",
    "quorum-leader": "another controller led the quorum",
    "quorum-resigned": "a leader of the quorum resigned",
    "group-PreparingRebalance": "a group prepared a rebalance",
    "group-CompletingRebalance": "a group waited for its members' assignment",
    "group-Reconciling": "a group reconciled (KIP-848)",
    "transaction-PrepareCommit": "a transaction was about to be committed",
    "transaction-PrepareAbort": "a transaction was about to be aborted",
    "transaction-timed-out": "a coordinator aborted a transaction that was too old",
    "powered-off": "a host lost power",
    "paused": "a process was paused",
    "overlap": "a fault began while another one was active",
}
"""Landmarks that a page names, reached or not."""


class Coverage:
    """Listens to a trace, and collects what it reaches.

    Args:
        observer: Of the trace; its state of partitions is read, not kept again.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.cells: dict[int, None] = {}
        self.landmarks: dict[str, None] = {}
        self.points = Points()
        self.near = Nearness(observer, self.points)
        self._before = ""
        self._active: dict[int, str] = {}
        self._down: dict[str, None] = {}
        self._leads: dict[tuple[str, int, int], int] = {}
        observer.changes.append(self._changed)
        observer.leadership.append(lambda partition, _, row: self._led(partition, row))
        observer.truncations.append(lambda partition, _, row: self._truncated(partition, row))
        observer.appends.append(lambda _, __, row: self._appended(row))
        observer.acknowledgements.append(lambda _, __, row: self._acknowledged(row))
        observer.listen("recoveries", self._recovered)
        observer.listen("quorum", self._quorum)
        observer.listen("broker_states", self._broker)
        observer.listen("node_states", self._node)
        observer.listen("groups", self._group)
        observer.listen("transactions", self._transaction)
        observer.listen("markers", self._marker)
        observer.listen("faults", self._fault)

    # -- partitions --------------------------------------------------------------------------------

    def _changed(self, partition: Partition, row: PartitionChangesRow) -> None:
        before = partition.change
        leader, at = row[PartitionChanges.LEADER], row[PartitionChanges.T_US]
        in_sync = len(brokers_in(row[PartitionChanges.IN_SYNC]))
        eligible = len(brokers_in(row[PartitionChanges.ELIGIBLE]))
        unclean = row[PartitionChanges.UNCLEAN]
        is_other = before is not None and before[PartitionChanges.LEADER] not in (leader, -1)
        self._reach("elr", eligible > 0)
        self._reach("isr-of-one", in_sync == 1 < len(partition.assigned))
        self._reach("isr-empty", in_sync == 0)
        self._reach("no-leader", leader < 0)
        self._reach("leader-elected", is_other and leader >= 0)
        self._reach("leader-elected-uncleanly", unclean and leader >= 0)
        words = f"change {in_sync} {eligible} {leader >= 0} {unclean} {is_other}"
        self._step(words, self._state(partition, leader))
        node = server_name(leader) if leader >= 0 else server_name(row[PartitionChanges.CONTROLLER])
        self.points.note("partition-change", at, node)

    def _led(self, partition: Partition, row: LeadershipRow) -> None:
        role, broker = row[Leadership.ROLE], row[Leadership.BROKER]
        topic, number = row[Leadership.TOPIC], row[Leadership.PARTITION]
        key = (topic, number, broker)
        if role == "leader":
            self._leads[key] = row[Leadership.LEADER_EPOCH]
        else:
            self._leads.pop(key, None)
        leaders = [
            known[2]
            for known in self._leads
            if known[:2] == (topic, number) and server_name(known[2]) not in self._down
        ]
        self._reach("two-leaders", len(leaders) > 1)
        epoch = min(row[Leadership.LEADER_EPOCH], _MOST)
        self._step(f"applied {role} {epoch} {len(leaders)}", self._state(partition, broker))
        self.points.note(f"applied-{role}", row[Leadership.T_US], server_name(broker))

    def _truncated(self, partition: Partition, row: TruncationsRow) -> None:
        reason, broker = row[Truncations.REASON], row[Truncations.BROKER]
        lost = row[Truncations.TO_OFFSET] < partition.watermark
        self._reach(f"truncation-{reason}", f"truncation-{reason}" in LANDMARKS)
        self._step(f"truncated {reason} {lost}", self._state(partition, broker))
        self.points.note(f"truncation-{reason}", row[Truncations.T_US], server_name(broker))

    def _recovered(self, row: RecoveriesRow) -> None:
        clean = row[Recoveries.CLEAN]
        self._reach("unclean-start", not clean)
        partition = self._observer.partition(row[Recoveries.TOPIC], row[Recoveries.PARTITION])
        broker = row[Recoveries.BROKER]
        self._step(f"recovered {clean}", self._state(partition, broker))
        self.points.note("recovery", row[Recoveries.T_US], server_name(broker))

    def _appended(self, row: AppendsRow) -> None:
        name = "append" if row[Appends.AS_LEADER] else "copy"
        self.points.note(name, row[Appends.T_US], server_name(row[Appends.BROKER]))

    def _acknowledged(self, row: AcknowledgementsRow) -> None:
        node = server_name(row[Acknowledgements.BROKER])
        error = row[Acknowledgements.ERROR]
        self.points.note("acknowledgement", row[Acknowledgements.T_US], node)
        if error != "NONE":
            self._step(f"refused {error}", "")

    def _state(self, partition: Partition, broker: int) -> str:
        """A partition's replicas, whatever their numbers: ends against the broker's, and copies."""
        own = partition.replicas.get(broker)
        end, epoch = (own.log_end, own.epoch) if own is not None else (0, -1)
        others = []
        for replica in partition.replicas.values():
            if replica.broker != broker:
                is_down = server_name(replica.broker) in self._down
                order = (replica.log_end > end) - (replica.log_end < end)
                others.append((order, replica.epoch == epoch, is_down))
                parted = order != 0 and replica.epoch != epoch and min(replica.epoch, epoch) >= 0
                self._reach("logs-part", parted)
        copies = sum(
            replica.log_end >= partition.watermark
            for replica in partition.replicas.values()
            if server_name(replica.broker) not in self._down
        )
        if partition.watermark > 0 and len(partition.assigned) > 1:
            self._reach(f"copies-{copies}", copies < 2)
        ahead = (end > partition.watermark) - (end < partition.watermark)
        return f"{sorted(others)} {copies} {ahead} {min(max(epoch, -1), _MOST)}"

    # -- everything else ---------------------------------------------------------------------------

    def _quorum(self, row: QuorumRow) -> None:
        role, node = row[Quorum.ROLE], row[Quorum.NODE]
        name = f"quorum-{role}"
        self._reach(name, name in LANDMARKS and row[Quorum.T_US] > 0)
        voted = row[Quorum.VOTED_FOR] >= 0
        if role != "observer":
            self._step(f"quorum {role} {min(row[Quorum.EPOCH], _MOST)} {voted}", "")
        self.points.note(name, row[Quorum.T_US], server_name(node))

    def _broker(self, row: BrokerStatesRow) -> None:
        state, node = row[BrokerStates.STATE], server_name(row[BrokerStates.BROKER])
        self._reach("fenced", state == "fenced" and row[BrokerStates.T_US] > 0)
        self._step(f"broker {state}", str(len(self._down)))
        self.points.note(f"broker-{state}", row[BrokerStates.T_US], node)

    def _node(self, row: NodeStatesRow) -> None:
        node, state, at = row[NodeStates.NODE], row[NodeStates.STATE], row[NodeStates.T_US]
        if state in ("crashed", "powered_off", "stopped"):
            self._down[node] = None
        elif state in ("started", "running"):
            self._down.pop(node, None)
        self._reach("powered-off", state == "powered_off")
        self._reach("paused", state == "paused")
        kind = node.rstrip("0123456789")
        self._step(f"node {kind} {state}", str(min(len(self._down), _MOST)))
        self.points.note(f"node-{state}", at, node)

    def _group(self, row: GroupsRow) -> None:
        state = row[Groups.STATE]
        self._reach(f"group-{state}", f"group-{state}" in LANDMARKS)
        self._step(f"group {state} {min(row[Groups.MEMBERS], _MOST)}", "")
        self.points.note(f"group-{state}", row[Groups.T_US], server_name(row[Groups.BROKER]))

    def _transaction(self, row: TransactionsRow) -> None:
        state, at = row[Transactions.STATE], row[Transactions.T_US]
        node = server_name(row[Transactions.BROKER])
        self._reach(f"transaction-{state}", f"transaction-{state}" in LANDMARKS)
        self._reach("transaction-timed-out", "time" in row[Transactions.REASON])
        epoch = min(row[Transactions.COORDINATOR_EPOCH], _MOST)
        count = min(row[Transactions.PARTITIONS], _MOST)
        self._step(f"transaction {state} {count} {epoch} {row[Transactions.REASON]}", "")
        self.points.note(f"transaction-{state}", at, node)

    def _marker(self, row: MarkersRow) -> None:
        self._step(f"marker {row[Markers.COMMITTED]}", "")
        self.points.note("marker", row[Markers.T_US], server_name(row[Markers.BROKER]))

    def _fault(self, row: FaultsRow) -> None:
        number, kind, phase = row[Faults.FAULT], row[Faults.KIND], row[Faults.PHASE]
        if phase == "began":
            self._reach("overlap", bool(self._active))
            self._active[number] = kind
        elif phase == "healed":
            self._active.pop(number, None)
        self._step(f"fault {kind} {phase} {row[Faults.TOOK_EFFECT]}", "")

    def _reach(self, name: str, is_so: bool = True) -> None:  # noqa: FBT001, FBT002 - a condition
        if is_so:
            self.landmarks[name] = None

    def _step(self, words: str, state: str) -> None:
        """Takes a step down: with its state, with the step before, with the active faults."""
        self.cells[_cell(f"{words}|{state}")] = None
        self.cells[_cell(f"{self._before}>{words}")] = None
        if self._active:
            self.cells[_cell(f"{sorted(self._active.values())}&{words}")] = None
        self._before = words


def _cell(text: str) -> int:
    return zlib.crc32(text.encode())
