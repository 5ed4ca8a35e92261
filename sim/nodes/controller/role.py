"""The controller's part of a process: its machine, its vote file, and the way to the quorum.

A process that is a controller only has it (``sim.nodes.controller.node``), and so has a broker that
is a controller as well (``sim.nodes.broker.combined``).

Source: ``kafka.server.{ControllerServer,SharedServer}``, ``kafka.raft.KafkaRaftManager`` (4.1).
"""

from dataclasses import dataclass, field

from sim.ids import NodeId
from sim.nodes.process.dispatcher import TRY_AGAIN, Performer
from sim.nodes.process.port import Port
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.metadata_log import QUORUM_STATE, MetadataLogConfig, write_quorum_state
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.raft_groups import RaftController
from sim.protocol.controller.types import (
    CONTROLLER_REQUESTS,
    CommittedFacts,
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
"""What members of the quorum ask each other, and an administrator them."""

SHUTDOWN_TIMEOUT_US: Micros = 5 * SECOND
"""How long a leader that stops waits for a successor; a constant in Kafka."""


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What a controller is configured with, in the terms of its machines."""

    voters: tuple[NodeId, ...]
    """``controller.quorum.voters``; of a dynamic quorum ``controller.quorum.bootstrap.servers``."""
    quorum: QuorumConfig = field(default_factory=QuorumConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)
    metadata_log: MetadataLogConfig = field(default_factory=MetadataLogConfig)
    initial_voters: tuple[Voter, ...] = ()
    """Of a dynamic quorum: whom a new cluster is formatted with; nobody: the quorum is static."""


class ControllerRole:
    """One process's controller; lasts as long as the process's place in the cluster.

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
            CommittedFacts: self._write_facts,
            VotersProposed: self.tell,
        }

    @property
    def is_active(self) -> bool:
        """Whether it is the active controller, as far as it knows."""
        return self._node.running and self.machine is not None and self.machine.is_active

    @property
    def image(self) -> MetadataImage:
        """The committed metadata it has replayed."""
        return MetadataImage() if self.machine is None else self.machine.committed

    def join(self, quorum: Port) -> Controller:
        """Make the machine, and listen to what the quorum and the controller answer."""
        node, config = self._node, self._settings.controller
        kind = RaftController if config.raft else Controller
        unit = node.streams.named(f"controller/{node.name}").unit
        controller = self.machine = kind(node.node_id, unit, config)
        port = node.add_machine("controller", controller)
        node.route(quorum, *QUORUM_REQUESTS)
        node.route(port, *CONTROLLER_REQUESTS)
        node.served_before += (*QUORUM_REQUESTS, *CONTROLLER_REQUESTS)
        return controller

    def tell(self, port: Port, effect: object) -> None:  # noqa: ARG002
        """What the quorum has to say reaches the controller at once."""
        self._node.deliver(self._node.ports["controller"], effect)

    def hear(self, message: Message) -> None:
        """Something is in a socket: a contact counts from there on, however busy the controller."""
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
        """Not now: the quorum may be in the middle of performing a decision."""
        node = self._node
        node.call_at(node.kernel.now(), node.deliver, node.ports["quorum"], effect)

    def _write_facts(self, port: Port, effect: CommittedFacts) -> None:
        """Write the rows, unless another controller learned of the commit first."""
        node = self._node
        members = (node.world.server(voter) for voter in self._settings.voters)
        written = max(m.facts_end for m in members if isinstance(m, ServerNode))
        if effect.offset >= written:
            node.facts_end = effect.offset + 1
            node.perform(port, effect.rows)
