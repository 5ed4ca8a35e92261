"""The controller role of a process: its machine, its vote file, and its link to the quorum.

Part of a controller-only process (``sim.nodes.controller.node``), and of a combined one
(``sim.nodes.broker.combined``).

Source: ``kafka.server.{ControllerServer,SharedServer}``, ``kafka.raft.KafkaRaftManager`` (4.1).
"""

from dataclasses import dataclass, field

from sim.ids import NodeId, uuid_text
from sim.nodes.process.dispatcher import TRY_AGAIN, Performer
from sim.nodes.process.port import Port
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.metadata_log import QUORUM_STATE, MetadataLogConfig, write_quorum_state
from sim.protocol.controller.controller import CONTROLLER_REQUESTS, Controller
from sim.protocol.controller.raft_groups import RaftController
from sim.protocol.controller.registration import ControllerRegistrar
from sim.protocol.controller.types import (
    CommittedRows,
    ControllerConfig,
    HeartbeatArrived,
)
from sim.protocol.kraft.types import (
    AppendMetadata,
    PersistQuorumState,
    QuorumConfig,
    VotersProposed,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import BrokerHeartbeatRequest
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    VoteRequest,
)
from sim.protocol.messages.voters import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    RemoveRaftVoterRequest,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import Voter
from sim.substrate.network import Message
from sim.units import SECOND, Micros

QUORUM_REQUESTS: tuple[type[Request], ...] = (
    VoteRequest,
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    FetchSnapshotRequest,
    AddRaftVoterRequest,
    RemoveRaftVoterRequest,
    ApiVersionsRequest,
)
"""Requests between members of the quorum, and an administrator's to them."""

_REGISTRAR = "registration"

SHUTDOWN_TIMEOUT_US: Micros = 5 * SECOND
"""Time that a stopping leader waits for a successor; a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """Settings of a controller and of its machines."""

    voters: tuple[NodeId, ...]
    """``controller.quorum.voters``; of a dynamic quorum ``controller.quorum.bootstrap.servers``."""
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    metadata_log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    initial_voters: tuple[Voter, ...] = ()
    """Voters that a new dynamic quorum is formatted with; none: the quorum is static."""


class ControllerRole:
    """One process's controller; exists as long as the process's place in the cluster.

    Args:
        node: The process.
        settings: Of the controller.
    """

    def __init__(self, node: ServerNode, settings: ControllerSettings) -> None:
        self._node = node
        self._settings = settings
        self.machine: Controller | None = None
        """``None`` before the process has joined the quorum."""
        self.performers: dict[type, Performer] = {
            PersistQuorumState: self._persist,
            AppendMetadata: self._append,
            CommittedRows: self._write_rows,
            VotersProposed: self.pass_on,
        }

    def install(self, settings: ControllerSettings) -> None:
        """Takes the settings of another release, for the next process."""
        self._settings = settings

    @property
    def is_active(self) -> bool:
        """True if it is the active controller, as far as it knows."""
        return self._node.running and self.machine is not None and self.machine.is_active

    @property
    def image(self) -> MetadataImage:
        """Committed metadata that it has replayed."""
        return MetadataImage() if self.machine is None else self.machine.committed

    def join(self, quorum: Port) -> Controller:
        """Creates the machine, and subscribes to events of the quorum and the controller."""
        node, config = self._node, self._settings.controller
        kind = RaftController if config.raft else Controller
        unit = node.streams.named(f"controller/{node.name}").unit
        controller = self.machine = kind(node.node_id, unit, config)
        port = node.add_machine("controller", controller)
        if config.registers:
            self._add_registrar(controller)
        node.route(quorum, *QUORUM_REQUESTS)
        node.route(port, *CONTROLLER_REQUESTS)
        node.served_before += (*QUORUM_REQUESTS, *CONTROLLER_REQUESTS)
        return controller

    def _add_registrar(self, controller: Controller) -> None:
        node = self._node
        registrar = ControllerRegistrar(
            node.node_id,
            uuid_text(f"{node.name}/controller/{node.incarnation}"),
            self._settings.controller.supported,
            lambda: controller.committed,
            node.streams.named(f"registration/{node.name}").unit,
        )
        node.add_machine(_REGISTRAR, registrar)

    def pass_on(self, port: Port, effect: object) -> None:  # noqa: ARG002
        """Passes the quorum's events to the controller at once, then to its registration."""
        node = self._node
        node.deliver(node.ports["controller"], effect)
        if _REGISTRAR in node.ports and not isinstance(effect, VotersProposed):
            node.deliver(node.ports[_REGISTRAR], effect)

    def note_received(self, message: Message) -> None:
        """Notes a message in a socket: a contact counts from then on, even if the node is busy."""
        if isinstance(message, BrokerHeartbeatRequest) and "controller" in self._node.ports:
            arrived = HeartbeatArrived(message.broker, message.broker_epoch)
            self._node.deliver(self._node.ports["controller"], arrived)

    def _persist(self, port: Port, effect: PersistQuorumState) -> Micros:  # noqa: ARG002
        disk = self._node.host.disks[0]
        if disk.stalled:
            disk.refuse()
            return TRY_AGAIN
        done = disk.fsync(0, QUORUM_STATE)
        self._node.call_at(done, self._write_state, effect)
        return done

    def _write_state(self, effect: PersistQuorumState) -> None:
        voters = () if self._settings.initial_voters else self._settings.voters
        store = self._node.host.disks[0].store
        write_quorum_state(store, effect.state, voters, kraft_version=effect.kraft_version)

    def _append(self, port: Port, effect: AppendMetadata) -> None:  # noqa: ARG002
        """Appends later: the quorum may be in the middle of performing a decision."""
        node = self._node
        node.call_at(node.kernel.now(), node.deliver, node.ports["quorum"], effect)

    def _write_rows(self, port: Port, effect: CommittedRows) -> None:
        """Writes rows of committed records, unless another controller has done so."""
        node = self._node
        members = (node.world.server(voter) for voter in self._settings.voters)
        written = max(m.rows_end for m in members if isinstance(m, ServerNode))
        if effect.offset >= written:
            node.rows_end = effect.offset + 1
            node.perform(port, effect.rows)
