"""Invariants of the controllers' decisions, and of their election."""

from typing import Final, NamedTuple

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition
from sim.ids import NodeId, server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.cluster import (
    BrokerStatesRow,
    ControllersRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    QuorumRow,
)
from sim.units import Micros


class InSyncAreReplicas(Invariant):
    """Rules S19 and S20, as far as one row shows them.

    The ELR may name brokers that are no replicas any more: a reassignment that leaves fewer than
    ``min.insync.replicas`` does not empty it, and only replicas are ever elected.
    """

    name = "in-sync-are-replicas"
    sentence = "The ISR is a subset of the replicas and disjoint from the ELR; the leader is in it."
    source = "S19, S20; PartitionRegistration, PartitionChangeBuilder"

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)

    def _change(self, partition: Partition, row: PartitionChangesRow) -> None:
        self.checked += 1
        leader = row[PartitionChanges.LEADER]
        in_sync = brokers_in(row[PartitionChanges.IN_SYNC])
        eligible = brokers_in(row[PartitionChanges.ELIGIBLE])
        replicas = brokers_in(row[PartitionChanges.REPLICAS])
        led_from_outside = leader != -1 and leader not in in_sync
        outsiders = [b for b in in_sync if b not in replicas]
        both = [b for b in in_sync if b in eligible]
        if led_from_outside or outsiders or both:
            found = (
                f"leader {leader}, ISR [{row[PartitionChanges.IN_SYNC]}], "
                f"ELR [{row[PartitionChanges.ELIGIBLE]}], "
                f"replicas [{row[PartitionChanges.REPLICAS]}]"
            )
            raise self.broken_by(row, found, partition)


class PartitionEpochsStep(Invariant):
    """Rule S21.

    In ZooKeeper mode the partition epoch is the version of the state's node, and the replicas are
    in another node.
    """

    name = "partition-epochs-step"
    sentence = (
        "Each committed change adds one to the partition epoch, but one of the replicas alone in "
        "ZooKeeper mode; another leader adds one to the leader epoch, which otherwise grows by one "
        "or stays."
    )
    source = "S21; PartitionRegistration.merge, KIP-497"

    def __init__(self) -> None:
        super().__init__()
        self._replicas_are_apart = False

    def _watch(self, observer: Observer) -> None:
        observer.listen("controllers", self._controller)
        observer.changes.append(self._change)

    def _controller(self, _row: ControllersRow) -> None:
        self._replicas_are_apart = True

    def _change(self, partition: Partition, row: PartitionChangesRow) -> None:
        former = partition.change
        if former is None:
            return
        self.checked += 1
        was_led_by, leader = former[PartitionChanges.LEADER], row[PartitionChanges.LEADER]
        led_in, leads_in = former[PartitionChanges.LEADER_EPOCH], row[PartitionChanges.LEADER_EPOCH]
        was_at = former[PartitionChanges.PARTITION_EPOCH]
        is_at = row[PartitionChanges.PARTITION_EPOCH]
        if self._replicas_are_apart and is_at == was_at and _differ_in_replicas(former, row):
            return
        allowed = (1,) if leader != was_led_by else (0, 1)
        if is_at != was_at + 1 or leads_in - led_in not in allowed:
            found = (
                f"leader {was_led_by} → {leader}, leader epoch {led_in} → {leads_in}, "
                f"partition epoch {was_at} → {is_at}"
            )
            raise self.broken_by(row, found, partition)


def _differ_in_replicas(former: PartitionChangesRow, row: PartitionChangesRow) -> bool:
    """True if the two rows differ in their replicas and in nothing else, but for the instant."""
    at, replicas = PartitionChanges.T_US, PartitionChanges.REPLICAS
    same = all(
        was == now
        for column, (was, now) in enumerate(zip(former, row, strict=True))
        if column not in {at, PartitionChanges.CONTROLLER, replicas}
    )
    return same and former[replicas] != row[replicas]


class _Suspicion(NamedTuple):
    """A change that leaves a broker in the ISR that is fenced, or will be at this instant."""

    partition: Partition
    row: PartitionChangesRow
    broker: NodeId


class FencedAreNotInSync(Invariant):
    """Rule S19, its second half.

    A broker's fencing and the resulting changes are committed together, at one instant and in
    either order; so a suspicion waits until the instant has passed.
    """

    name = "fenced-are-not-in-sync"
    sentence = "No fenced or unregistered broker is in an ISR, but the last of a leaderless one."
    source = "S19, catalogue C8; KIP-841"

    def __init__(self) -> None:
        super().__init__()
        self._fenced: dict[NodeId, int] = {}
        self._suspected: list[_Suspicion] = []

    def _watch(self, observer: Observer) -> None:
        observer.listen("broker_states", self._state)
        observer.changes.append(self._change)

    def _state(self, row: BrokerStatesRow) -> None:
        at, _controller, broker, state, _epoch = row
        self._settle(at)
        if state in {"fenced", "unregistered"}:
            self._fenced[broker] = at
        elif state == "unfenced":
            self._fenced.pop(broker, None)
            self._suspected = [each for each in self._suspected if each.broker != broker]

    def _change(self, partition: Partition, row: PartitionChangesRow) -> None:
        at = row[PartitionChanges.T_US]
        self._settle(at)
        self.checked += 1
        in_sync = brokers_in(row[PartitionChanges.IN_SYNC])
        if row[PartitionChanges.LEADER] == -1 and len(in_sync) == 1:
            return
        for broker in in_sync:
            if self._fenced.get(broker, at) < at:
                self._suspected.append(_Suspicion(partition, row, broker))

    def _settle(self, now: Micros) -> None:
        if self._suspected:
            partition, row, broker = self._suspected[0]
            at, in_sync = row[PartitionChanges.T_US], row[PartitionChanges.IN_SYNC]
            if at < now:
                found = f"{server_name(broker)} is fenced and in the ISR [{in_sync}]"
                where = server_name(row[PartitionChanges.CONTROLLER])
                raise self.broken(at, where, found, partition)


class OneQuorumLeader(Invariant):
    """Rule S43, with the votes that make it true."""

    name = "one-quorum-leader"
    sentence = (
        "A quorum epoch has one leader, and each member gives one vote in it; a member's epoch "
        "never decreases (an observer's: within one process)."
    )
    source = "S43; KIP-595, ElectionSafety"

    def __init__(self) -> None:
        super().__init__()
        self._leaders: dict[int, NodeId] = {}
        self._votes: dict[tuple[NodeId, int], NodeId] = {}
        self._epochs: dict[str, int] = {}
        self._starting: dict[str, None] = {}
        """Processes that have started and have no role yet."""

    def _watch(self, observer: Observer) -> None:
        observer.listen("quorum", self._quorum)
        observer.listen("node_states", self._node_state)

    def _node_state(self, row: NodeStatesRow) -> None:
        if row[NodeStates.STATE] == "started":
            self._starting[row[NodeStates.NODE]] = None

    def _quorum(self, row: QuorumRow) -> None:
        self.checked += 1
        at, node, role, epoch, leader, voted_for, _log_end, _watermark = row
        name = server_name(node)
        # Observers may lose their epoch with their disk: brokers, and controllers whose new disk
        # has no vote. A voter of a static quorum must not.
        if name in self._starting:
            del self._starting[name]
            if role == "observer":
                self._epochs.pop(name, None)
        if epoch < self._epochs.get(name, -1):
            raise self.broken(at, name, f"epoch {self._epochs[name]} → {epoch}")
        self._epochs[name] = epoch
        leader = node if role == "leader" else leader
        if leader >= 0 and self._leaders.setdefault(epoch, leader) != leader:
            first = server_name(self._leaders[epoch])
            raise self.broken(
                at, name, f"epoch {epoch} is led by {server_name(leader)} and by {first}"
            )
        if voted_for >= 0 and self._votes.setdefault((node, epoch), voted_for) != voted_for:
            first = server_name(self._votes[node, epoch])
            found = f"votes for {server_name(voted_for)} in epoch {epoch}, after {first}"
            raise self.broken(at, name, found)


class BrokerEpochsGrow(Invariant):
    """Rule S47."""

    name = "broker-epochs-grow"
    sentence = (
        "A broker's registrations have epochs that never fall, and no state is of an older one."
    )
    source = "S47; KIP-631, KIP-903; ClusterControlManager.registerBroker"

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[NodeId, int] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("broker_states", self._state)

    def _state(self, row: BrokerStatesRow) -> None:
        self.checked += 1
        at, controller, broker, state, epoch = row
        former = self._epochs.get(broker)
        self._epochs[broker] = epoch
        if former is None:
            return
        # A process that missed the response to its registration repeats it, and keeps the epoch.
        if epoch < former if state == "registered" else epoch != former:
            found = f"{server_name(broker)} is {state} with epoch {epoch}, after {former}"
            raise self.broken(at, server_name(controller), found)


CONTROL_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    InSyncAreReplicas,
    PartitionEpochsStep,
    FencedAreNotInSync,
    OneQuorumLeader,
    BrokerEpochsGrow,
)
"""Invariants of the controllers."""
