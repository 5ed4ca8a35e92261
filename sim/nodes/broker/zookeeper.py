"""How a broker is governed in ZooKeeper mode: a session, and requests of the controller.

The broker's machine decides; here its images are fed at their cost, and what it says goes to the
other minds of the process. The controller lives in one of these machines.

Approximate: the session begins when the logs are loaded; it ends when the controlled shutdown is
granted, before the logs are flushed.

Source: ``kafka.server.KafkaServer`` (3.9).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from sim.ids import FIRST_ZOOKEEPER_ID, NO_LEADER, BrokerEpoch, NodeId
from sim.nodes.process.base import Performer
from sim.nodes.process.port import Port
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    FetchingStopped,
    IsrWritesWanted,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.effects import Emit
from sim.protocol.events import ResponseReceived
from sim.protocol.zk_mode.broker import ZkBroker
from sim.protocol.zk_mode.broker_types import (
    ZK_BROKER_REQUESTS,
    IsrWritesDone,
    LeaderAndIsrApplied,
    MetadataTold,
    Registered,
    ReplicasStopped,
    ShutDownGranted,
    ShutDownWish,
)
from sim.protocol.zk_mode.controller_types import (
    ControllerElected,
    ControllerLoaded,
    ControllerResigned,
)
from sim.protocol.zk_mode.images import ZkImages
from sim.units import LONG_AGO, Micros

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode

Told = TypeVar("Told")


class ZkControl:
    """The control plane of one broker in ZooKeeper mode."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node
        self._broker: ZkBroker | None = None
        self._forget()
        self.performers: dict[type, Performer] = {
            Registered: self._registered,
            LeaderAndIsrApplied: self._lead_or_follow,
            MetadataTold: self._update_metadata,
            ReplicasStopped: self._stop_replicas,
            IsrWritesWanted: self._write_isr,
            IsrWritesDone: self._isr_written,
            ShutDownGranted: node.stop,
            ControllerElected: self._elected,
            ControllerLoaded: self._loaded,
            ControllerResigned: self._resigned,
        }

    def _forget(self) -> None:
        self.published = False
        self._controller: NodeId = NO_LEADER
        self._free_at: Micros = LONG_AGO
        self._thread_free_at: Micros = LONG_AGO

    # -- what others may ask ----------------------------------------------------------------------

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Of the present registration; -1 without one."""
        return -1 if self._broker is None else self._broker.broker_epoch

    @property
    def controller_epoch(self) -> int:
        """The epoch in which this broker acts as the controller; 0 if it does not."""
        broker = self._broker
        return broker.controller.epoch if broker is not None and broker.is_controller else 0

    # -- life -------------------------------------------------------------------------------------

    def open(self) -> None:
        """There is nothing on the disks beside the logs."""
        self._forget()

    def build(self) -> None:
        """Make the machine of this process."""
        node = self._node
        settings = node.settings.zookeeper
        assert settings is not None, "this control plane was asked for"
        broker = self._broker = ZkBroker(
            node.node_id,
            settings.servers,
            settings.broker,
            node.streams.named(f"controller/{node.name}").unit,
        )
        self._port = node.add_machine("zookeeper", broker)
        self._images = ZkImages(node.image)
        node.route(self._port, *ZK_BROKER_REQUESTS)

    def observe(self) -> None:
        """Nothing is known before the controller tells."""

    def begin(self) -> None:
        """The session begins when the logs are loaded."""

    def recovered(self) -> None:
        """Begin a session, register, stand for controller."""
        broker = self._broker
        assert broker is not None, "it was built"
        self._node.perform(self._port, broker.begin(self._node.now()))

    def directories_failed(self) -> None:
        """Scenarios of ZooKeeper mode have one log directory: a process without it ends."""
        raise AssertionError("the last log directory has failed, and the broker goes on")

    def shut_down(self) -> None:
        """Ask the controller to take the partitions away."""
        self._node.deliver(self._port, ShutDownWish())

    def receive(self, port: Port, event: ResponseReceived) -> bool:
        """Take an answer of ZooKeeper in, in order, when the controller's thread comes to it.

        Returns false for every other answer, which is not this control plane's to pay for.
        """
        if port is not self._port or event.sender < FIRST_ZOOKEEPER_ID:
            return False
        node = self._node
        settings = node.settings.zookeeper
        assert settings is not None, "this control plane was asked for"
        self._thread_free_at = max(self._thread_free_at, node.kernel.time) + settings.answer_us
        node.call_at(self._thread_free_at, node.deliver, port, event)
        return True

    # -- coming into service ----------------------------------------------------------------------

    def _registered(self, _port: Port, effect: Registered) -> None:
        node = self._node
        node.deliver(node.replicas, RegisteredWithEpoch(effect.broker_epoch))
        node.tell_desk(self._controller)
        node.open_port()

    # -- what the controller says -----------------------------------------------------------------

    def _lead_or_follow(self, _port: Port, effect: LeaderAndIsrApplied) -> Micros:
        """Roles change one after the other; the answer waits for them."""
        each = self._node.cpu.metadata_partition_us
        return self._after(each * len(effect.entries), self._apply, effect)

    def _after(self, cost: Micros, then: Callable[[Told], None], effect: Told) -> Micros:
        node = self._node
        self._free_at = max(self._free_at, node.kernel.time) + cost
        node.call_at(self._free_at, then, effect)
        return self._free_at

    def _apply(self, effect: LeaderAndIsrApplied) -> None:
        node = self._node
        self.published = True
        changed = self._images.lead_or_follow(effect.entries)
        applied = MetadataApplied(self._images.replicas, changed, breaks_off=effect.breaks_off)
        node.deliver(node.replicas, applied)

    def _update_metadata(self, _port: Port, effect: MetadataTold) -> Micros:
        settings = self._node.settings.zookeeper
        assert settings is not None, "this control plane was asked for"
        cost = settings.metadata_us * len(effect.request.partitions)
        return self._after(cost, self._update, effect)

    def _update(self, effect: MetadataTold) -> None:
        node, request = self._node, effect.request
        self.published = True
        self._images.update(request.partitions, request.brokers)
        node.transactions.published()
        node.deliver(node.replicas, MetadataApplied(self._images.replicas, ()))
        if request.controller != self._controller:
            self._controller = request.controller
            node.deliver(node.replicas, ControllerChanged(request.controller))
        node.tell_desk(self._controller)

    def _stop_replicas(self, _port: Port, effect: ReplicasStopped) -> None:
        self._node.deliver(self._node.replicas, FetchingStopped(effect.partitions))

    # -- ISR changes, before 2.7 ------------------------------------------------------------------

    def _write_isr(self, _port: Port, effect: IsrWritesWanted) -> None:
        self._node.deliver(self._port, effect)

    def _isr_written(self, _port: Port, effect: IsrWritesDone) -> None:
        node = self._node
        answer = ResponseReceived(node.node_id, effect.correlation, effect.response)
        node.deliver(node.replicas, answer)

    # -- the controller in this broker ------------------------------------------------------------

    def _elected(self, port: Port, effect: ControllerElected) -> None:
        self._note(port, "elected", effect.epoch, 0)

    def _loaded(self, port: Port, effect: ControllerLoaded) -> None:
        self._note(port, "loaded", self.controller_epoch, effect.partitions)

    def _resigned(self, port: Port, effect: ControllerResigned) -> None:
        self._note(port, "resigned", effect.epoch, 0)

    def _note(self, port: Port, what: str, epoch: int, partitions: int) -> None:
        node = self._node
        node.perform(port, [Emit("controllers", (node.node_id, what, epoch, partitions))])
