"""Control plane of a broker in ZooKeeper mode: a session, and requests of the controller.

The broker's machine decides; this part applies metadata at its cost, and passes effects to the
other machines of the process. The controller runs in one of the brokers.

Approximate: the session begins when the logs are loaded; it ends when the controlled shutdown is
granted, before the logs are flushed.

Source: ``kafka.server.KafkaServer`` (3.9).
"""

from collections.abc import Callable
from typing import TypeVar

from sim.ids import FIRST_ZOOKEEPER_ID, NO_LEADER, BrokerEpoch, NodeId, TopicPartition
from sim.nodes.broker.control_plane import Control, MetadataPublisher
from sim.nodes.broker.settings import ZkBrokerSettings
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import Dispatcher
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.replication.events import (
    ControllerChanged,
    DirectoryFailed,
    FetchingStopped,
    IsrWritesRequested,
    MetadataApplied,
    RegisteredWithEpoch,
)
from sim.protocol.events import NotificationReceived, ResponseReceived
from sim.protocol.messages.base import Request
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.zk_mode.broker import ZkBroker
from sim.protocol.zk_mode.broker_types import (
    ZK_BROKER_REQUESTS,
    ConfigsRead,
    IsrWritesDone,
    LeaderAndIsrApplied,
    LogDirFailed,
    MetadataUpdated,
    Registered,
    ReplicasOffline,
    ReplicasStopped,
    ShutdownRequested,
)
from sim.protocol.zk_mode.controller_types import (
    ControllerElected,
    ControllerLoaded,
    ControllerResigned,
    StatesLogged,
)
from sim.protocol.zk_mode.images import ZkImages
from sim.trace.rows.cluster import Controllers
from sim.units import LONG_AGO, Micros

RequestEffect = TypeVar("RequestEffect")


class ZkControl(Control):
    """The control plane of one broker in ZooKeeper mode.

    Args:
        process: The broker.
        node_id: Its id.
        cpu: Costs of metadata.
        settings: Of ZooKeeper mode.
    """

    def __init__(
        self,
        process: Dispatcher,
        node_id: NodeId,
        cpu: CpuSpec,
        settings: ZkBrokerSettings,
    ) -> None:
        super().__init__()
        self._process = process
        self._node_id = node_id
        self._cpu = cpu
        self._settings = settings
        self._machine: ZkBroker | None = None
        self._forget()
        self.performers = {
            Registered: self._registered,
            LeaderAndIsrApplied: self._lead_or_follow,
            MetadataUpdated: self._update_metadata,
            ReplicasStopped: self._stop_replicas,
            ConfigsRead: self._configure,
            ReplicasOffline: self._take_offline,
            IsrWritesRequested: self._write_isr,
            IsrWritesDone: self._isr_written,
            ControllerElected: self._elected,
            ControllerLoaded: self._loaded,
            ControllerResigned: self._resigned,
            StatesLogged: self._log_states,
        }

    def _forget(self) -> None:
        self.published = False
        self._controller: NodeId = NO_LEADER
        self._free_at: Micros = LONG_AGO
        self._thread_free_at: Micros = LONG_AGO

    # -- views -------------------------------------------------------------------------------------

    @property
    def broker_epoch(self) -> BrokerEpoch:
        """Of the present registration; -1 without one."""
        return -1 if self._machine is None else self._machine.broker_epoch

    @property
    def controller_epoch(self) -> int:
        """The epoch in which this broker acts as the controller; 0 if it does not."""
        machine = self._machine
        if machine is None or not machine.is_controller:
            return 0
        return machine.controller.epoch

    # -- life -------------------------------------------------------------------------------------

    def open(self, storage: Storage, image: MetadataImage) -> None:
        """Nothing to open: only logs are on the disks."""
        self._forget()
        self._storage = storage
        self._image = image

    def build(self) -> dict[Port, tuple[type[Request], ...]]:
        """Creates the machine of this process; returns the requests that it answers."""
        process, settings = self._process, self._settings
        unit = process.streams.named(f"controller/{process.name}").unit
        machine = self._machine = ZkBroker(self._node_id, settings.servers, settings.broker, unit)
        self._port = process.add_machine("zookeeper", machine)
        self._images = ZkImages(self._image)
        return {self._port: ZK_BROKER_REQUESTS}

    def observe(self, publisher: MetadataPublisher) -> None:
        """Nothing to follow: metadata comes with the controller's requests."""
        self._publisher = publisher

    def begin(self) -> None:
        """Nothing to do: the session begins when the logs are loaded."""

    def recovered(self) -> None:
        """Begins a session, registers, and tries to become controller."""
        machine = self._machine
        assert machine is not None, "it was built"
        manager = self._storage.manager
        found = tuple(manager.logs) if manager.offline else None
        self._process.perform(self._port, machine.begin(self._process.now(), found))

    def directories_failed(self, offline: tuple[TopicPartition, ...]) -> None:
        """Announces a failed log directory to the controller."""
        self._process.deliver(self._port, LogDirFailed(offline))

    def shut_down(self) -> None:
        """Asks the controller for a controlled shutdown."""
        self._process.deliver(self._port, ShutdownRequested())

    def receive(self, port: Port, event: ResponseReceived) -> bool:
        """Handles a response of ZooKeeper, in order, when the controller's thread comes to it.

        Returns false for every other response, which is not this control plane's to pay for.
        """
        if port is not self._port or event.sender < FIRST_ZOOKEEPER_ID:
            return False
        self._queue(event)
        return True

    def notified(self, port: Port, event: NotificationReceived) -> None:
        """Handles a watch event as it does a response, and in order with them."""
        assert port is self._port, "only this control plane listens to a server"
        self._queue(event)

    def _queue(self, event: ResponseReceived | NotificationReceived) -> None:
        process = self._process
        free_at = max(self._thread_free_at, process.kernel.time) + self._settings.answer_us
        self._thread_free_at = free_at
        process.call_at(free_at, process.deliver, self._port, event)

    # -- coming into service ----------------------------------------------------------------------

    def _registered(self, _port: Port, effect: Registered) -> None:
        publisher = self._publisher
        publisher.replicas.deliver(RegisteredWithEpoch(effect.broker_epoch))
        publisher.controller_known(self._controller, self.broker_epoch)
        publisher.open_port()

    # -- requests of the controller ----------------------------------------------------------------

    def _lead_or_follow(self, _port: Port, effect: LeaderAndIsrApplied) -> Micros:
        """Roles change one after the other; the response waits for them."""
        each = self._cpu.metadata_partition_us
        return self._after(each * len(effect.entries), self._apply, effect)

    def _after(
        self, cost: Micros, then: Callable[[RequestEffect], None], effect: RequestEffect
    ) -> Micros:
        process = self._process
        self._free_at = max(self._free_at, process.kernel.time) + cost
        process.call_at(self._free_at, then, effect)
        return self._free_at

    def _apply(self, effect: LeaderAndIsrApplied) -> None:
        self.published = True
        changed = self._images.lead_or_follow(effect.entries)
        applied = MetadataApplied(self._images.replicas, changed, breaks_off=effect.breaks_off)
        self._publisher.replicas.deliver(applied)

    def _update_metadata(self, _port: Port, effect: MetadataUpdated) -> Micros:
        cost = self._settings.metadata_us * len(effect.request.partitions)
        return self._after(cost, self._update, effect)

    def _update(self, effect: MetadataUpdated) -> None:
        publisher, request = self._publisher, effect.request
        self.published = True
        self._images.update(request.partitions, request.brokers)
        publisher.publish(MetadataApplied(self._images.replicas, ()))
        if request.controller != self._controller:
            self._controller = request.controller
            publisher.replicas.deliver(ControllerChanged(request.controller))
        publisher.controller_known(self._controller, self.broker_epoch)

    def _stop_replicas(self, _port: Port, effect: ReplicasStopped) -> None:
        self._images.delete(effect.deleted)
        self._publisher.replicas.deliver(FetchingStopped(effect.partitions, effect.deleted))

    def _take_offline(self, _port: Port, effect: ReplicasOffline) -> None:
        self._publisher.replicas.deliver(DirectoryFailed(effect.partitions))

    def _configure(self, _port: Port, effect: ConfigsRead) -> None:
        topics = self._images.configure(effect)
        self._publisher.publish(MetadataApplied(self._images.replicas, (), topics))

    # -- ISR changes, before 2.7 ------------------------------------------------------------------

    def _write_isr(self, _port: Port, effect: IsrWritesRequested) -> None:
        self._process.deliver(self._port, effect)

    def _isr_written(self, _port: Port, effect: IsrWritesDone) -> None:
        answer = ResponseReceived(self._node_id, effect.correlation, effect.response)
        self._publisher.replicas.deliver(answer)

    # -- the controller in this broker ------------------------------------------------------------

    def _elected(self, port: Port, effect: ControllerElected) -> None:
        self._note(port, "elected", effect.epoch, 0)

    def _loaded(self, port: Port, effect: ControllerLoaded) -> None:
        self._note(port, "loaded", self.controller_epoch, effect.partitions)

    def _resigned(self, port: Port, effect: ControllerResigned) -> None:
        self._note(port, "resigned", effect.epoch, 0)

    def _log_states(self, _port: Port, effect: StatesLogged) -> None:
        """Keep the controller's thread, and with it the answers that are still to come."""
        busy = self._settings.logged_state_ns * effect.partitions // 1_000
        self._thread_free_at = max(self._thread_free_at, self._process.kernel.time) + busy

    def _note(self, port: Port, what: str, epoch: int, partitions: int) -> None:
        row = Controllers.row(self._node_id, state=what, epoch=epoch, partitions=partitions)
        self._process.perform(port, [row])
