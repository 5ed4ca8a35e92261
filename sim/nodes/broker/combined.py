"""A broker that is a controller as well: ``process.roles=broker,controller``.

One process has one metadata log, one member of the quorum and one connection to each peer; the
broker's observer is the controller's voter. Host, disks, page cache and threads are shared, and an
error that ends one role ends both.

Source: ``kafka.server.{KafkaRaftServer,SharedServer}`` (4.1).
"""

from collections.abc import Mapping

from sim.errors import StorageFailed
from sim.ids import METADATA_PARTITION, NO_LEADER, LeaderEpoch, NodeId
from sim.nodes.broker.control_plane import Control
from sim.nodes.broker.kraft import KRaftControl
from sim.nodes.broker.node import BrokerNode
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.controller.role import SHUTDOWN_TIMEOUT_US, ControllerRole, ControllerSettings
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.storage.metadata_log import read_quorum_state
from sim.protocol import effects as fx
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    Committed,
    LeadershipChanged,
    QuorumState,
    Resign,
    SnapshotLoaded,
)
from sim.protocol.messages.base import Request
from sim.protocol.metadata.records import Voter
from sim.substrate.host import Host
from sim.substrate.network import Connection, Message
from sim.units import Micros


class CombinedControl(KRaftControl):
    """The control plane of a broker whose observer is a controller's voter."""

    def __init__(self, node: "CombinedNode") -> None:
        super().__init__(node, node.node_id, node.cpu, node.settings)
        self._node = node

    def build(self) -> dict[Port, tuple[type[Request], ...]]:
        """Creates the machines of this process; the controller uses the broker's quorum member."""
        requests = super().build()
        self._node.role.join(self.observer)
        return requests

    def _vote(self) -> QuorumState:
        return read_quorum_state(self._node.host.disks[0].store)

    def _committed(self, port: Port, effect: Committed) -> None:
        self._node.role.pass_on(port, effect)
        super()._committed(port, effect)

    def _snapshot_loaded(self, port: Port, effect: SnapshotLoaded) -> None:
        self._node.role.pass_on(port, effect)
        super()._snapshot_loaded(port, effect)

    def _controller_known(self, port: Port, effect: LeadershipChanged) -> None:
        self._node.role.pass_on(port, effect)
        super()._controller_known(port, effect)
        self._node.controller_known(port, effect)


class CombinedNode(BrokerNode):
    """One process with both roles."""

    def __init__(
        self,
        node_id: NodeId,
        host: Host,
        world: World,
        cpu: CpuSpec,
        settings: BrokerSettings,
        controller: ControllerSettings,
    ) -> None:
        super().__init__(node_id, host, world, cpu, settings)
        self.role = ControllerRole(self, controller)
        self.controller_releases: Mapping[str, ControllerSettings] = {}
        """Settings of its controller in later releases, by their names."""
        self._leaving = False
        self.performers |= self.role.performers

    def make_control(self) -> Control:
        """Broker control plane whose quorum member is the controller's."""
        self._combined = CombinedControl(self)
        return self._combined

    # -- views -------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if it is the active controller, as far as it knows."""
        return self.role.is_active

    @property
    def quorum_epoch(self) -> LeaderEpoch:
        """Quorum epoch of this process; 0 before it has joined."""
        machine = self.ports["quorum"].machine if self.ports else None
        return machine.epoch if isinstance(machine, Quorum) else 0

    @property
    def directory(self) -> str:
        """``directory.id`` of its metadata log's directory."""
        return self.storage.manager.directory_ids[0]

    @property
    def voters(self) -> tuple[Voter, ...]:
        """None: its quorum is static."""
        return ()

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Starts both roles."""
        self.role.machine = None
        self._leaving = False
        super().boot()

    def install(self, release: str) -> None:
        """Installs a later release, for both roles."""
        super().install(release)
        self.role.install(self.controller_releases[release])

    def stop(self, port: Port, effect: object) -> None:
        """The broker has shut down; an active controller names its successors, and waits."""
        if not self.is_active:
            super().stop(port, effect)
        elif not self._leaving:
            self._leaving = True
            limit = self.kernel.now() + SHUTDOWN_TIMEOUT_US
            self.call_at(limit, self._leave, port, effect)
            self.deliver(self._combined.observer, Resign())

    def _leave(self, port: Port, effect: object) -> None:
        super().stop(port, effect)

    # -- events and effects -----------------------------------------------------------------------

    def _receive_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        self.role.note_received(message)
        super()._receive_message(link, message, correlation, sent_us)

    def _flush(self, port: Port, effect: fx.Flush) -> Micros | None:
        """A voter syncs its metadata log, unlike a broker that only observes."""
        if port is not self._combined.observer:
            return super()._flush(port, effect)
        log = self.storage.manager.get(METADATA_PARTITION)
        if log is None:
            raise StorageFailed(f"{self.name} has no metadata log any more")
        done = self.storage.begin_fsync(METADATA_PARTITION)
        if done is None:
            return TRY_AGAIN
        self.call_at(done, log.flush)
        return done

    def controller_known(self, port: Port, effect: LeadershipChanged) -> None:
        """Another controller is active: a process that waited for its successor may end."""
        if self._leaving and effect.leader not in {NO_LEADER, self.node_id}:
            # Not now: the quorum is in the middle of performing a decision.
            self.call_at(self.kernel.now(), self._leave, port, effect)
