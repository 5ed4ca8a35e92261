"""What the controllers may decide, and who may be a controller."""

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer, Partition
from sim.checking.rows import BrokerStateRow, ChangeRow, NodeStateRow, QuorumRow, brokers_in
from sim.ids import NodeId, server_name


class InSyncAreReplicas(Invariant):
    """Rules S19 and S20, as far as one row tells.

    The ELR may name brokers that are no replicas any more: a reassignment that leaves fewer than
    ``min.insync.replicas`` does not empty it, and nobody outside the replicas is ever elected.
    """

    name = "in-sync-are-replicas"
    sentence = (
        "The ISR is part of the replicas and shares nobody with the ELR; the leader is in it."
    )
    source = "S19, S20; PartitionRegistration, PartitionChangeBuilder"

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)

    def _change(self, partition: Partition, row: ChangeRow) -> None:
        self.checked += 1
        in_sync, eligible, replicas = (brokers_in(listed) for listed in (row[7], row[8], row[9]))
        led_from_outside = row[4] != -1 and row[4] not in in_sync
        strangers = [b for b in in_sync if b not in replicas]
        both = [b for b in in_sync if b in eligible]
        if led_from_outside or strangers or both:
            found = f"leader {row[4]}, ISR [{row[7]}], ELR [{row[8]}], replicas [{row[9]}]"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class PartitionEpochsStep(Invariant):
    """Rule S21."""

    name = "partition-epochs-step"
    sentence = (
        "Each committed change adds one to the partition epoch; another leader adds one to the "
        "leader epoch, which otherwise grows by one or stays."
    )
    source = "S21; PartitionRegistration.merge, KIP-497"

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)

    def _change(self, partition: Partition, row: ChangeRow) -> None:
        former = partition.change
        if former is None:
            return
        self.checked += 1
        leader_step = row[5] - former[5]
        allowed = (1,) if row[4] != former[4] else (0, 1)
        if row[6] != former[6] + 1 or leader_step not in allowed:
            found = (
                f"leader {former[4]} → {row[4]}, leader epoch {former[5]} → {row[5]}, "
                f"partition epoch {former[6]} → {row[6]}"
            )
            raise self.broken(row[0], server_name(row[1]), found, partition)


class FencedAreNotInSync(Invariant):
    """Rule S19, its second half.

    A broker's fencing and the changes that follow from it are committed together, at one instant
    and in either order; so a suspicion is held back until the instant has passed.
    """

    name = "fenced-are-not-in-sync"
    sentence = "No fenced or unregistered broker is in an ISR, but the last of a leaderless one."
    source = "S19, catalogue C8; KIP-841"

    def __init__(self) -> None:
        super().__init__()
        self._fenced: dict[NodeId, int] = {}
        self._suspected: list[tuple[Partition, ChangeRow, NodeId]] = []

    def _watch(self, observer: Observer) -> None:
        observer.broker_states.append(self._state)
        observer.changes.append(self._change)

    def _state(self, row: BrokerStateRow) -> None:
        self._settle(row[0])
        if row[3] in {"fenced", "unregistered"}:
            self._fenced[row[2]] = row[0]
        elif row[3] == "unfenced":
            self._fenced.pop(row[2], None)
            self._suspected = [s for s in self._suspected if s[2] != row[2]]

    def _change(self, partition: Partition, row: ChangeRow) -> None:
        self._settle(row[0])
        self.checked += 1
        in_sync = brokers_in(row[7])
        if row[4] == -1 and len(in_sync) == 1:
            return
        for broker in in_sync:
            if self._fenced.get(broker, row[0]) < row[0]:
                self._suspected.append((partition, row, broker))

    def _settle(self, now: int) -> None:
        if self._suspected and self._suspected[0][1][0] < now:
            partition, row, broker = self._suspected[0]
            found = f"{server_name(broker)} is fenced and in the ISR [{row[7]}]"
            raise self.broken(row[0], server_name(row[1]), found, partition)


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
        """Processes that have started and not said yet what they are."""

    def _watch(self, observer: Observer) -> None:
        observer.quorum.append(self._quorum)
        observer.node_states.append(self._node_state)

    def _node_state(self, row: NodeStateRow) -> None:
        if row[2] == "started":
            self._starting[row[1]] = None

    def _quorum(self, row: QuorumRow) -> None:
        self.checked += 1
        at, node, role, epoch, leader, voted_for = row[:6]
        name = server_name(node)
        # Who only observes may lose its epoch with its disk and learn it again: brokers, and
        # controllers whose new disk has no vote. A voter of a static quorum must not.
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
        observer.broker_states.append(self._state)

    def _state(self, row: BrokerStateRow) -> None:
        self.checked += 1
        former = self._epochs.get(row[2])
        self._epochs[row[2]] = row[4]
        if former is None:
            return
        # A process that did not hear of its registration asks again, and keeps the epoch.
        if row[4] < former if row[3] == "registered" else row[4] != former:
            found = f"{server_name(row[2])} is {row[3]} with epoch {row[4]}, after {former}"
            raise self.broken(row[0], server_name(row[1]), found)
