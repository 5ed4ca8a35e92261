"""A controller's process: quorum and controller on one host, with real files below.

The node passes events between its machines: the quorum's commits and leadership reach the
controller at once; the controller's records reach the quorum as an event of their own, so that the
quorum never decides in the middle of performing an earlier decision.

Left out: the start of a JVM, and the cost of a record to the controller's thread.

Source: ``kafka.server.ControllerServer``, ``kafka.raft.KafkaRaftManager`` (4.1).
"""

from collections.abc import Mapping

from sim.errors import StorageFailed
from sim.ids import (
    METADATA_PARTITION,
    NO_EPOCH,
    NO_LEADER,
    LeaderEpoch,
    NodeId,
    server_name,
)
from sim.log.directory.manager import LoadedLog, LogManager
from sim.nodes.controller.role import SHUTDOWN_TIMEOUT_US, ControllerRole, ControllerSettings
from sim.nodes.controller.snapshots import write_snapshot
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN, TRY_AGAIN_US
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.server import ServerNode
from sim.nodes.storage.loading import loading_ends
from sim.nodes.storage.log_dirs import CLUSTER_ID, directory_id
from sim.nodes.storage.metadata_log import (
    FileMetadataLog,
    format_directories,
    read_quorum_state,
)
from sim.protocol.effects import Flush
from sim.protocol.kraft.metadata_snapshot import SnapshotGenerator, WriteSnapshot
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    Committed,
    Halt,
    LeadershipChanged,
    QuorumStarted,
    Resign,
    SnapshotLoaded,
)
from sim.protocol.kraft.voter_set import DynamicMember
from sim.protocol.messages.base import Request
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import Voter
from sim.substrate.host import Host
from sim.substrate.network import Connection, Message
from sim.units import LONG_AGO, NEVER, Micros, timestamp_ms


class ControllerNode(ServerNode):
    """One controller; its metadata log is on its host's first disk."""

    def __init__(
        self, node_id: NodeId, host: Host, world: World, cpu: CpuSpec, settings: ControllerSettings
    ) -> None:
        super().__init__(node_id, server_name(node_id), host, world, cpu)
        self.settings = settings
        self.release = ""
        self.releases: Mapping[str, ControllerSettings] = {}
        """Settings of later releases, by their names."""
        self._role = ControllerRole(self, settings)
        self._quorum: Quorum | None = None
        self._manager: LogManager | None = None
        self._log: FileMetadataLog | None = None
        self._stopping = False
        self._is_loading = False
        self.performers |= {
            **self._role.performers,
            Flush: self._flush,
            Committed: self._pass_to_controller,
            SnapshotLoaded: self._pass_to_controller,
            WriteSnapshot: self._write_snapshot,
            LeadershipChanged: self._leadership_changed,
            Halt: self._halt,
        }

    # -- views -------------------------------------------------------------------------------------

    @property
    def is_active(self) -> bool:
        """True if it is the active controller, as far as it knows."""
        return self._role.is_active

    @property
    def quorum_epoch(self) -> LeaderEpoch:
        """Quorum epoch of this process; 0 before it has joined."""
        return 0 if self._quorum is None else self._quorum.epoch

    @property
    def image(self) -> MetadataImage:
        """Committed metadata that it has replayed."""
        return self._role.image

    @property
    def directory(self) -> str:
        """``directory.id`` of its metadata log's directory; a replaced disk has another."""
        return directory_id(self.name, 0, self.host.disks[0].store.replacements)

    @property
    def voters(self) -> tuple[Voter, ...]:
        """Voters of a dynamic quorum in its log; none before it has joined."""
        return () if self._quorum is None else self._quorum.voters_at(NEVER)

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Opens the files, checks the whole metadata log, and joins the quorum."""
        self._stopping = False
        self._quorum = None
        self._role.machine = None
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
        except StorageFailed as failure:
            self.call_at(self.kernel.now(), self.halt, str(failure))
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
        """Voters of ``--initial-controllers``, for these; else ``--no-initial-controllers``."""
        initial = self.settings.initial_voters
        return initial if Voter(self.node_id, self.directory) in initial else ()

    def _load(self, quorum: Quorum, loaded: tuple[LoadedLog, ...]) -> None:
        """Takes the time of reading the metadata log."""
        disks, now = self.host.disks, self.kernel.now()
        if any(disk.stalled for disk in disks):
            self.call_at(now + TRY_AGAIN_US, self._load, quorum, loaded)
            return
        ends = loading_ends(loaded, disks, 1, self.cpu.copy_us, now)
        self.call_at(max(ends, default=now), self._join, quorum)

    def may_decide_at(self, request: Request) -> Micros:  # noqa: ARG002 - any of them waits
        """Requests that arrive before the metadata log is loaded wait in the listener's backlog."""
        return NEVER if self._is_loading else LONG_AGO

    def _join(self, quorum: Quorum) -> None:
        self._is_loading = False
        self._quorum = quorum
        quorum_port = self.add_machine("quorum", quorum, serial=True)
        controller = self._role.join(quorum_port)
        snapshots = self.settings.metadata_log.snapshots
        self.add_machine(
            "snapshots", SnapshotGenerator(lambda: controller.committed, snapshots, self.now())
        )
        self.note_state("running")
        self.deliver(quorum_port, QuorumStarted())

    def install(self, release: str) -> None:
        """Installs a later release: its next process has the settings of that one."""
        assert not self.running, f"{self.name} is running"
        self.release, self.settings = release, self.releases[release]
        self._role.install(self.settings)

    def shut_down(self) -> None:
        """Stops in good order: a leader first names its successors, and waits for one."""
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

    def storage_failed(self, failure: StorageFailed) -> None:
        """A failed disk stops the process, as in Kafka: the metadata log is on it."""
        self.halt(str(failure))

    def _receive_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        self._role.note_received(message)
        super()._receive_message(link, message, correlation, sent_us)

    # -- effects ----------------------------------------------------------------------------------

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

    def _pass_to_controller(self, port: Port, effect: Committed | SnapshotLoaded) -> None:
        self._role.pass_on(port, effect)
        self.deliver(self.ports["snapshots"], effect)

    def _write_snapshot(self, port: Port, effect: WriteSnapshot) -> None:  # noqa: ARG002
        assert self._log is not None
        assert self._quorum is not None
        voters = self._quorum.voters_at(effect.snapshot.offset)
        write_snapshot(self, self._log, effect, voters)

    def _leadership_changed(self, port: Port, effect: LeadershipChanged) -> None:
        self._role.pass_on(port, effect)
        if self._stopping and effect.leader not in {NO_LEADER, self.node_id}:
            # Not now: the quorum is in the middle of performing a decision.
            self.call_at(self.kernel.now(), self._stop)

    def _halt(self, port: Port, effect: Halt) -> None:  # noqa: ARG002
        self.call_at(self.kernel.now(), self.halt, effect.reason)
