"""Invariants of the controllers of ZooKeeper mode."""

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.ids import NodeId, server_name
from sim.trace.rows.cluster import ControllersRow


class OneControllerPerEpoch(Invariant):
    """Controller epochs, which are incremented before their owners act."""

    name = "one-controller-per-epoch"
    sentence = "A controller epoch belongs to one broker, and each new controller has a higher one."
    source = "KafkaController.elect, KafkaZkClient.registerControllerAndIncrementControllerEpoch"

    def __init__(self) -> None:
        super().__init__()
        self._last: tuple[int, NodeId] = (0, -1)

    def _watch(self, observer: Observer) -> None:
        observer.listen("controllers", self._controller)

    def _controller(self, row: ControllersRow) -> None:
        at, broker, state, epoch, _partitions = row
        if state != "elected":
            return
        self.checked += 1
        former, owner = self._last
        if epoch <= former:
            found = f"controller epoch {epoch} after {former} of {server_name(owner)}"
            raise self.broken(at, server_name(broker), found)
        self._last = (epoch, broker)


ZOOKEEPER_INVARIANTS: tuple[type[Invariant], ...] = (OneControllerPerEpoch,)
"""Further invariants of a cluster with ZooKeeper."""
