"""A controller process: the quorum and the controller on one host, with real files below.

What one machine tells the other passes through here: the quorum's commits and leadership go to the
controller at once; the controller's records go to the quorum as an event of their own, so that the
quorum never decides in the middle of performing an earlier decision.

Left out: the time that a JVM needs to start, and what a record costs the controller's thread.

Source: ``kafka.server.ControllerServer``, ``kafka.raft.KafkaRaftManager`` (4.1).
"""

from dataclasses import dataclass, field

from sim.errors import StorageFailed
from sim.ids import (
    METADATA_PARTITION,
    NO_EPOCH,
    NO_LEADER,
    LeaderEpoch,
    NodeId,
    Offset,
    server_name,
)
from sim.log.manager import LoadedLog, LogManager
from sim.nodes.loading import loading_ends
from sim.nodes.metadata_log import (
    QUORUM_STATE,
    FileMetadataLog,
    MetadataLogConfig,
    format_directories,
    read_quorum_state,
    write_quorum_state,
)
from sim.nodes.metadata_snapshots import write_snapshot
from sim.nodes.node import TRY_AGAIN, TRY_AGAIN_US, World
from sim.nodes.port import Port
from sim.nodes.server import CpuSpec, ServerNode
from sim.nodes.storage import CLUSTER_ID, directory_id
from sim.protocol.controller import Controller
from sim.protocol.controller_raft import RaftController
from sim.protocol.controller_state import (
    CONTROLLER_REQUESTS,
    CommittedFacts,
    ControllerConfig,
    HeartbeatArrived,
)
from sim.protocol.effects import Flush
from sim.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    BeginQuorumEpochRequest,
    BrokerHeartbeatRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    QuorumFetchRequest,
    RemoveRaftVoterRequest,
    Request,
    VoteRequest,
)
from sim.protocol.metadata import MetadataImage
from sim.protocol.metadata_records import Voter
from sim.protocol.metadata_snapshot import SnapshotGenerator, WriteSnapshot
from sim.protocol.quorum import Quorum
from sim.protocol.quorum_state import (
    AppendMetadata,
    Committed,
    Halt,
    LeadershipChanged,
    PersistQuorumState,
    QuorumConfig,
    QuorumStarted,
    Resign,
    SnapshotLoaded,
    VotersProposed,
)
from sim.protocol.quorum_voters import DynamicMember
from sim.substrate.host import Host
from sim.substrate.network import Connection, Message
from sim.units import LONG_AGO, NEVER, SECOND, Micros, timestamp_ms

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


class ControllerNode(ServerNode):
    """One controller; its metadata log lies on its host's first disk."""

    def __init__(
        self, node_id: NodeId, host: Host, world: World, cpu: CpuSpec, settings: ControllerSettings
    ) -> None:
        super().__init__(node_id, server_name(node_id), host, world, cpu)
        self.settings = settings
        self.facts_end: Offset = 0
        """Committed records below it have trace rows, as far as this controller wrote them."""
        self._quorum: Quorum | None = None
        self._controller: Controller | None = None
        self._manager: LogManager | None = None
        self._log: FileMetadataLog | None = None
        self._stopping = False
        self._is_loading = False
        self.performers |= {
            PersistQuorumState: self._persist,
            Flush: self._flush,
            Committed: self._tell_controller,
            SnapshotLoaded: self._tell_controller,
            WriteSnapshot: self._write_snapshot,
            LeadershipChanged: self._leadership_changed,
            VotersProposed: self._propose_voters,
            AppendMetadata: self._append,
            CommittedFacts: self._write_facts,
            Halt: self._halt,
        }

    # -- what others may ask ----------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """Whether it is the active controller, as far as it knows."""
        return self.running and self._controller is not None and self._controller.is_active

    @property
    def quorum_epoch(self) -> LeaderEpoch:
        """The quorum epoch it is in; 0 before it has joined."""
        return 0 if self._quorum is None else self._quorum.epoch

    @property
    def image(self) -> MetadataImage:
        """The committed metadata it has replayed."""
        return MetadataImage() if self._controller is None else self._controller.committed

    @property
    def directory(self) -> str:
        """``directory.id`` of its metadata log's directory; another one on a replaced disk."""
        return directory_id(self.name, 0, self.host.disks[0].store.replacements)

    @property
    def voters(self) -> tuple[Voter, ...]:
        """Who votes in a dynamic quorum, as its log says; nobody before it has joined."""
        return () if self._quorum is None else self._quorum.voters_at(NEVER)

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Open the files, check the whole metadata log, and join the quorum."""
        self._stopping = False
        self._quorum = None
        self._controller = None
        self._is_loading = True
        disks = self.host.disks
        config = self.settings.metadata_log
        stores = tuple(disk.store for disk in disks)
        try:
            format_directories(stores, config, timestamp_ms(self.now()))
            manager = self._manager = LogManager(
                stores,
                self.node_id,
                CLUSTER_ID,
                tuple(
                    directory_id(self.name, number, disk.store.replacements)
                    for number, disk in enumerate(disks)
                ),
                lambda _: config.log,
            )
            loaded = manager.load()
            log = self._log = FileMetadataLog.open(manager, config, self._formatted_with())
            state = read_quorum_state(disks[0].store)
        except StorageFailed:
            self.call_at(self.kernel.now(), self.crash)
            return
        dynamic = bool(self.settings.initial_voters)
        quorum = Quorum(
            self.node_id,
            () if dynamic else self.settings.voters,
            log,
            self.streams.named(f"quorum/{self.name}").unit,
            config=self.settings.quorum,
            state=state,
            dynamic=(
                DynamicMember(self.directory, self.settings.voters, always_flushes=True)
                if dynamic
                else None
            ),
        )
        self._load(quorum, loaded)

    def _formatted_with(self) -> tuple[Voter, ...]:
        """``--initial-controllers``, for one of them; else ``--no-initial-controllers``."""
        initial = self.settings.initial_voters
        return initial if Voter(self.node_id, self.directory) in initial else ()

    def _load(self, quorum: Quorum, loaded: tuple[LoadedLog, ...]) -> None:
        """Let the time pass that reading the metadata log takes."""
        disks, now = self.host.disks, self.kernel.now()
        if any(disk.stalled for disk in disks):
            self.call_at(now + TRY_AGAIN_US, self._load, quorum, loaded)
            return
        ends = loading_ends(loaded, disks, 1, self.copy_us, now)
        self.call_at(max(ends, default=now), self._join, quorum)

    def may_decide_at(self, request: Request) -> Micros:  # noqa: ARG002 - any of them waits
        """What comes before the metadata log is loaded waits in the listener's backlog."""
        return NEVER if self._is_loading else LONG_AGO

    def _join(self, quorum: Quorum) -> None:
        self._is_loading = False
        unit = self.streams.named(f"controller/{self.name}").unit
        config = self.settings.controller
        kind = RaftController if config.raft else Controller
        controller = kind(self.node_id, unit, config)
        self._quorum, self._controller = quorum, controller
        quorum_port = self.add_machine("quorum", quorum, serial=True)
        controller_port = self.add_machine("controller", controller)
        snapshots = self.settings.metadata_log.snapshots
        self.add_machine(
            "snapshots", SnapshotGenerator(lambda: controller.committed, snapshots, self.now())
        )
        self.route(
            quorum_port,
            VoteRequest,
            BeginQuorumEpochRequest,
            EndQuorumEpochRequest,
            QuorumFetchRequest,
            FetchSnapshotRequest,
            AddRaftVoterRequest,
            RemoveRaftVoterRequest,
            ApiVersionsRequest,
        )
        self.route(controller_port, *CONTROLLER_REQUESTS)
        self.note_state("running")
        self.deliver(quorum_port, QuorumStarted())

    def shut_down(self) -> None:
        """Stop in good order: a leader first names its successors, and waits for one."""
        if not self.ports or self._stopping:
            return
        self._stopping = True
        if self.is_active:
            self.call_at(self.kernel.now() + SHUTDOWN_TIMEOUT_US, self._stop)
            self.deliver(self.ports["quorum"], Resign())
        else:
            self._stop()

    def _stop(self) -> None:
        assert self._manager is not None
        self._manager.shutdown(NO_EPOCH)
        super().shut_down()

    # -- events -----------------------------------------------------------------------------------

    def storage_failed(self, failure: StorageFailed) -> None:  # noqa: ARG002 - all are alike
        """A failed disk stops the process, as in Kafka: the metadata log is on it."""
        if self.running:
            self.crash()

    def _take_in(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        if isinstance(message, BrokerHeartbeatRequest) and "controller" in self.ports:
            # The contact counts from the socket on: a busy controller does not fence for it.
            arrived = HeartbeatArrived(message.broker, message.broker_epoch)
            self.deliver(self.ports["controller"], arrived)
        super()._take_in(link, message, correlation, sent_us)

    # -- effects ----------------------------------------------------------------------------------

    def _persist(self, port: Port, effect: PersistQuorumState) -> Micros:  # noqa: ARG002
        disk = self.host.disks[0]
        if disk.stalled:
            disk.refuse()
            return TRY_AGAIN
        done = disk.fsync(0, QUORUM_STATE)
        self.call_at(done, self._write_state, effect)
        return done

    def _write_state(self, effect: PersistQuorumState) -> None:
        voters = () if self.settings.initial_voters else self.settings.voters
        store = self.host.disks[0].store
        write_quorum_state(store, effect.state, voters, kraft_version=effect.kraft_version)

    def _flush(self, port: Port, effect: Flush) -> Micros:  # noqa: ARG002
        assert self._manager is not None
        disk = self.host.disks[0]
        if disk.stalled:
            disk.refuse()
            return TRY_AGAIN
        log = self._manager.logs[METADATA_PARTITION]
        done = disk.fsync(log.flush_bytes(), str(METADATA_PARTITION))
        self.call_at(done, log.flush)
        return done

    def _tell_controller(self, port: Port, effect: Committed | SnapshotLoaded) -> None:  # noqa: ARG002
        self.deliver(self.ports["controller"], effect)
        self.deliver(self.ports["snapshots"], effect)

    def _write_snapshot(self, port: Port, effect: WriteSnapshot) -> None:  # noqa: ARG002
        assert self._log is not None
        assert self._quorum is not None
        voters = self._quorum.voters_at(effect.snapshot.offset)
        write_snapshot(self, self._log, effect, voters)

    def _leadership_changed(self, port: Port, effect: LeadershipChanged) -> None:  # noqa: ARG002
        self.deliver(self.ports["controller"], effect)
        if self._stopping and effect.leader not in {NO_LEADER, self.node_id}:
            # Not now: the quorum is in the middle of performing a decision.
            self.call_at(self.kernel.now(), self._stop)

    def _propose_voters(self, port: Port, effect: VotersProposed) -> None:  # noqa: ARG002
        self.deliver(self.ports["controller"], effect)

    def _append(self, port: Port, effect: AppendMetadata) -> None:  # noqa: ARG002
        self.call_at(self.kernel.now(), self.deliver, self.ports["quorum"], effect)

    def _write_facts(self, port: Port, effect: CommittedFacts) -> None:
        """Write the rows, unless another controller learned of the commit first."""
        members = (self.world.server(voter) for voter in self.settings.voters)
        written = max(m.facts_end for m in members if isinstance(m, ControllerNode))
        if effect.offset >= written:
            self.facts_end = effect.offset + 1
            self.perform(port, effect.rows)

    def _halt(self, port: Port, effect: Halt) -> None:  # noqa: ARG002
        self.call_at(self.kernel.now(), self.crash)
