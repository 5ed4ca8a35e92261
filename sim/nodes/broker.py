"""A broker: its machines on one host, and what each asks for.

Five minds share the process: the replica manager (data), the quorum's observer (metadata), the
lifecycle (registration and heartbeats), the group coordinator and the client desk. This shell pays
for what they do, carries what one decides to the others, and keeps nothing across a crash but its
disks.

Source: ``kafka.server.BrokerServer``.
"""

from typing import Any

from sim.errors import StorageFailed
from sim.ids import (
    FIRST_CONTROLLER_ID,
    OFFSETS_TOPIC,
    TRANSACTIONS_TOPIC,
    NodeId,
    Offset,
    TopicPartition,
    server_name,
    uuid_text,
)
from sim.kernel import Task
from sim.log.manager import LoadedLog
from sim.log.validator import RecordRules
from sim.nodes.broker_logs import BrokerLogs
from sim.nodes.broker_settings import BrokerSettings
from sim.nodes.broker_transactions import BrokerTransactions
from sim.nodes.codec_costs import ProduceCosts
from sim.nodes.coordinators import CoordinatorShell
from sim.nodes.directory_moves import DirectoryMoves
from sim.nodes.group_coordinator import batch_for, records_in, transactional_batch_for
from sim.nodes.log_cleaner import LogCleaner
from sim.nodes.log_settings import record_rules
from sim.nodes.log_upkeep import LogUpkeep
from sim.nodes.metadata_log import FileMetadataLog
from sim.nodes.metadata_snapshots import write_snapshot
from sim.nodes.node import World
from sim.nodes.port import Port
from sim.nodes.replica_faults import damage_replica
from sim.nodes.replication import replica_manager_of, route_groups
from sim.nodes.server import CpuSpec, ServerNode
from sim.nodes.storage import METADATA_DIRECTORY, Storage
from sim.nodes.throttling import Throttling
from sim.protocol import broker_lifecycle as life
from sim.protocol import effects as fx
from sim.protocol.client_desk import ClientDesk, DeskState
from sim.protocol.client_quotas import ClientQuotas
from sim.protocol.coordinator_log import AppendRecords
from sim.protocol.events import ResponseReceived
from sim.protocol.group import GROUP_REQUESTS, GroupCoordinator
from sim.protocol.messages import (
    AlterReplicaLogDirsRequest,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    MetadataRequest,
    OffsetForLeaderEpochRequest,
    ProduceRequest,
    Request,
    WriteTxnMarkersRequest,
)
from sim.protocol.metadata import MetadataImage
from sim.protocol.metadata_snapshot import SnapshotGenerator, WriteSnapshot
from sim.protocol.produce_path import InternalAppended
from sim.protocol.quorum import Quorum
from sim.protocol.quorum_state import (
    Committed,
    Halt,
    LeadershipChanged,
    PersistQuorumState,
    QuorumStarted,
    QuorumState,
    SnapshotLoaded,
)
from sim.protocol.replica_events import (
    AppendInternal,
    ControllerChanged,
    DirectoryFailed,
    LeadershipApplied,
    LogStartMoved,
    MetadataApplied,
    RegisteredWithEpoch,
    Stopping,
)
from sim.protocol.replica_removal import ReplicaRemoved
from sim.substrate.disk import Disk
from sim.substrate.host import Host
from sim.substrate.tls import TlsSpec
from sim.units import LONG_AGO, Micros, timestamp_ms
from sim.wire.record_batch import RecordBatch


class BrokerNode(ServerNode):
    """One broker process on its own host, whose disks outlive it."""

    def __init__(
        self, node_id: NodeId, host: Host, world: World, cpu: CpuSpec, settings: BrokerSettings
    ) -> None:
        super().__init__(node_id, server_name(node_id), host, world, cpu)
        self.settings = settings
        if settings.codecs:
            self.codec_costs = ProduceCosts(self._record_rules)
        self._logs = BrokerLogs(self)
        self.moves = DirectoryMoves(self)
        self._upkeep = LogUpkeep(self)
        self._cleaner = LogCleaner(self, self._upkeep)
        self._coordinators: dict[str, CoordinatorShell] = {}
        self.image = MetadataImage()
        self._known = self.image
        self._ends: dict[TopicPartition, Offset] = {}
        self._starts: dict[TopicPartition, Offset] = {}
        self._stopping = False
        self.performers |= {
            fx.Flush: self._logs.flush,
            PersistQuorumState: self._no_vote,
            Committed: self._committed,
            SnapshotLoaded: self._snapshot_loaded,
            WriteSnapshot: self._write_snapshot,
            LeadershipChanged: self._controller_known,
            Halt: self._halt_for,
            LeadershipApplied: self._leadership_applied,
            AppendRecords: self._append_records,
            InternalAppended: self._internal_appended,
            ReplicaRemoved: self._logs.replica_removed,
            life.Registered: self._registered,
            life.CaughtUp: self._caught_up,
            life.Unfenced: self._unfenced,
            life.ShutDownGranted: self._stop,
            life.RegistrationFailed: self._halt_for,
            life.DirectoryFailureUntold: self._halt_for,
            **self.moves.performers,
        }

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Open the disks, build the machines, and begin to register while logs are recovered."""
        # Logs are loaded with the settings that the metadata had: they are known before it is read.
        self._known = self.image if self.image.offset else self._known
        self.image = MetadataImage()
        self._stopping = False
        self._changed: list[TopicPartition] = []
        self._reconfigured: list[str] = []
        self._published = False
        self._is_caught_up = False
        self._is_recovered = False
        self._metadata_free_at: Micros = LONG_AGO
        self._controller: NodeId = -1
        self._internal_appends: dict[int, tuple[CoordinatorShell, int]] = {}
        self._next_internal = 0
        try:
            self.storage = Storage(
                self.node_id,
                self.name,
                self.host.disks,
                self.trace,
                self._topic_configs,
                self._ends,
                self._starts,
                self.streams,
                self.settings.metadata_log,
                timestamp_ms(self.now()),
            )
            loaded = self.storage.load(self.kernel.time)
            self._metadata_log = FileMetadataLog.open(
                self.storage.manager, self.settings.metadata_log
            )
        except StorageFailed as failure:
            self.call_at(self.kernel.time, self._halt, str(failure))
            return
        self._build()
        self.spawn(self._life(loaded))

    def _build(self) -> None:
        settings, storage = self.settings, self.storage
        self.observer = self.add_machine(
            "quorum",
            Quorum(
                self.node_id,
                () if settings.dynamic_quorum else settings.voters,
                self._metadata_log,
                self.streams.named(f"quorum/{self.name}").unit,
                config=settings.quorum,
                state=self._vote(),
                dynamic=settings.observer(storage.manager.directory_ids[METADATA_DIRECTORY]),
            ),
            serial=True,
        )
        self._snapshots = self.add_machine(
            "snapshots",
            SnapshotGenerator(lambda: self.image, settings.metadata_log.snapshots, self.now()),
        )
        if settings.client_quotas is not None:
            self.throttling = Throttling(self, ClientQuotas(settings.client_quotas))
        self.replica_manager = replica_manager_of(self)
        self._replicas = self.add_machine("replicas", self.replica_manager)
        introduction = life.Introduction(
            self.node_id,
            uuid_text(f"{self.name}/incarnation/{self.incarnation}"),
            self.host.rack,
            storage.online_ids,
            storage.manager.previous_broker_epoch,
        )
        lifecycle = life.BrokerLifecycle(
            introduction, settings.voters, lambda: self.image.offset - 1, settings.lifecycle
        )
        self._lifecycle = self.add_machine("lifecycle", lifecycle)
        self._groups = self.add_machine(
            "groups",
            GroupCoordinator(self.node_id, self.incarnation, settings.group, lambda: self.image),
        )
        self._desk = self.add_machine(
            "desk", ClientDesk(self.node_id, settings.transaction.state_topic())
        )
        self.transactions = BrokerTransactions(self, self._desk, self._groups)
        self._coordinators = {
            OFFSETS_TOPIC: CoordinatorShell(
                self, self._groups, OFFSETS_TOPIC, batch_for, records_in, transactional_batch_for
            ),
            TRANSACTIONS_TOPIC: self.transactions.shell,
        }
        self.route(self._replicas, ProduceRequest, FetchRequest, ListOffsetsRequest)
        self.route(self._replicas, OffsetForLeaderEpochRequest)
        self.route(self._replicas, DeleteRecordsRequest, WriteTxnMarkersRequest)
        self.route(self._replicas, AlterReplicaLogDirsRequest)
        route_groups(self, self._replicas)
        self.route(self._groups, *GROUP_REQUESTS)
        self.route(self._desk, MetadataRequest, FindCoordinatorRequest, InitProducerIdRequest)

    def _life(self, loaded: tuple[LoadedLog, ...]) -> Task:
        """The process itself: start, recover the logs, then keep the checkpoints."""
        self.deliver(self.observer, QuorumStarted())
        self.perform(self._replicas, self.replica_manager.start(self.now()))
        self.deliver(self._lifecycle, life.LifecycleStarted())
        yield from self._logs.load(loaded)
        self.call_at(self.kernel.time, self._recovered)
        self._upkeep.begin()
        self._cleaner.begin()
        yield from self._logs.keep()

    def storage_failed(self, failure: StorageFailed) -> None:
        """A disk refused: its log directory goes offline; without a directory, the broker ends."""
        number = self.storage.failing(failure)
        if number is not None:
            self.call_at(self.kernel.time, self.directory_failed, number, str(failure))
        elif not self.storage.manager.offline:
            self._halt(str(failure))

    def directory_failed(self, number: int, reason: str) -> None:
        """Take a log directory offline; the controller is told, and moves what was led here.

        Source: ``ReplicaManager.handleLogDirFailure``, ``LogManager.handleLogDirFailure``.
        """
        storage = self.storage
        if number in storage.manager.offline:
            return
        gone = storage.take_offline(number, reason)
        if storage.is_lame():
            self._halt(reason)
            return
        self.deliver(self._replicas, DirectoryFailed(gone))
        self.deliver(self._lifecycle, life.DirectoriesFailed(storage.offline_ids))

    def _die(self, state: str) -> None:
        if self.ports:
            self.storage.note_ends()
        super()._die(state)

    def shut_down(self) -> None:
        """SIGTERM: hand leadership over, flush, and stop."""
        if self.ports:
            self.deliver(self._replicas, Stopping())
            self.deliver(self._lifecycle, life.ShutDownWanted())

    def _stop(self, _port: Port, _effect: object) -> None:
        """The controller has let this broker go: flush everything, write the markers, and end."""
        if self._stopping:
            return
        self._stopping = True
        storage = self.storage
        self.call_at(storage.fsync_everything(), self._stopped)
        self._logs.checkpoint_watermarks()

    def _stopped(self) -> None:
        broker_epoch = self._lifecycle_machine().broker_epoch
        self.storage.manager.shutdown(broker_epoch)
        self._die("stopped")
        for connection in self.open_connections():
            connection.reset(self)
        self._forget()

    def _halt(self, reason: str) -> None:
        """No log directory, or none for metadata: the process ends at once, as Kafka's does."""
        del reason
        if self.running:
            self.crash()

    def _halt_for(self, _port: Port, effect: Any) -> None:  # noqa: ANN401 - several effects
        self.call_at(self.kernel.time, self._halt, getattr(effect, "reason", ""))

    def _lifecycle_machine(self) -> life.BrokerLifecycle:
        machine = self._lifecycle.machine
        assert isinstance(machine, life.BrokerLifecycle)
        return machine

    # -- coming into service ----------------------------------------------------------------------

    def _registered(self, _port: Port, effect: life.Registered) -> None:
        self.deliver(self._replicas, RegisteredWithEpoch(effect.broker_epoch))
        self._tell_desk()

    def _caught_up(self, _port: Port, _effect: object) -> None:
        self._is_caught_up = True
        self._publish_first()

    def _recovered(self) -> None:
        self._is_recovered = True
        self._publish_first()

    def _publish_first(self) -> None:
        """Both the metadata and the logs are there: take up roles, then ask to be unfenced."""
        if self._published or not (self._is_caught_up and self._is_recovered):
            return
        self._published = True
        for partition in self._logs.put_strays_aside(self.image):
            self.replica_manager.forget_high_watermark(partition)
        self._publish()
        self.deliver(self._lifecycle, life.ReadyToUnfence())

    def _unfenced(self, _port: Port, _effect: object) -> None:
        self.note_state("running")

    # -- metadata ---------------------------------------------------------------------------------

    def _committed(self, _port: Port, effect: Committed) -> None:
        """Replay what is committed; applying it costs time, in order."""
        for logged in effect.records:
            self.image.replay(logged.offset, logged.epoch, logged.record)
        self._replayed(effect)

    def _snapshot_loaded(self, _port: Port, effect: SnapshotLoaded) -> None:
        """Become what a snapshot holds, at the same cost."""
        self.image.load(effect.snapshot.offset, effect.snapshot.epoch, effect.records)
        self._replayed(effect)

    def _replayed(self, effect: Committed | SnapshotLoaded) -> None:
        self.deliver(self._snapshots, effect)
        changed = self.image.take_changed()
        self._changed += changed
        reconfigured = self.image.take_reconfigured()
        self._reconfigured += reconfigured
        if not changed and not reconfigured and not self._published:
            return
        cost = self.settings.apply_partition_us * len(changed)
        self._metadata_free_at = max(self._metadata_free_at, self.kernel.time) + cost
        self.call_at(self._metadata_free_at, self._publish_later)

    def _write_snapshot(self, _port: Port, effect: WriteSnapshot) -> None:
        quorum = self.observer.machine
        assert isinstance(quorum, Quorum)
        voters = quorum.voters_at(effect.snapshot.offset)
        write_snapshot(self, self._metadata_log, effect, voters)

    def _publish_later(self) -> None:
        if self._published:
            self._publish()

    def _publish(self) -> None:
        changed = tuple(dict.fromkeys(self._changed))
        self._changed.clear()
        reconfigured = tuple(dict.fromkeys(self._reconfigured))
        self._reconfigured.clear()
        self.transactions.published()
        if self.throttling is not None:
            self.throttling.quotas.update(self.image.client_quotas)
        self.deliver(self._replicas, MetadataApplied(self.image, changed, reconfigured))
        self._tell_desk()

    def _controller_known(self, _port: Port, effect: LeadershipChanged) -> None:
        self._controller = effect.leader
        self.deliver(self._lifecycle, life.ControllerKnown(effect.leader))
        self.deliver(self._replicas, ControllerChanged(effect.leader))
        self._tell_desk()

    def _tell_desk(self) -> None:
        epoch = self._lifecycle_machine().broker_epoch
        self.deliver(self._desk, DeskState(self.image, self._controller, epoch))

    def _vote(self) -> QuorumState:
        """Observers have none; a broker that is a controller too has kept it."""
        return QuorumState()

    def _no_vote(self, _port: Port, _effect: PersistQuorumState) -> None:
        """Observers do not vote: what they forget of the quorum they learn anew."""

    def _record_rules(self, partition: TopicPartition) -> RecordRules | None:
        return record_rules(self._topic_configs(partition))

    def _topic_configs(self, partition: TopicPartition) -> dict[str, str]:
        image = self.image if self._published else self._known
        return image.configs_of(partition.topic)

    # -- coordinators -----------------------------------------------------------------------------

    def _leadership_applied(self, _port: Port, effect: LeadershipApplied) -> None:
        coordinator = self._coordinators.get(effect.partition.topic)
        if coordinator is not None:
            coordinator.leadership_applied(effect)

    def _append_records(self, port: Port, effect: AppendRecords) -> None:
        next(c for c in self._coordinators.values() if c.port is port).append(effect)

    def append_internal(
        self,
        asker: CoordinatorShell,
        token: int,
        partition: TopicPartition,
        batch: RecordBatch,
        timeout_us: Micros,
        transactional_id: str = "",
    ) -> None:
        """Append to a partition that this broker leads, acks=all; the asker hears the outcome."""
        self._next_internal += 1
        self._internal_appends[self._next_internal] = asker, token
        event = AppendInternal(self._next_internal, partition, batch, timeout_us, transactional_id)
        self.deliver(self._replicas, event)

    def _internal_appended(self, _port: Port, effect: InternalAppended) -> None:
        asker, token = self._internal_appends.pop(effect.token)
        asker.appended(token, effect.error)

    # -- disk -------------------------------------------------------------------------------------

    def tls_to(self, peer: NodeId) -> TlsSpec | None:
        """``security.inter.broker.protocol``; controllers have a listener of their own."""
        return self.tls if peer < FIRST_CONTROLLER_ID else None

    def disk_under(self, partition: TopicPartition) -> Disk | None:
        """The disk that holds an open log."""
        storage = self.storage
        return storage.disk_of(partition) if partition in storage.manager.logs else None

    def may_decide_at(self, request: Request) -> Micros:
        """A produce request waits while too much of the page cache is dirty."""
        if type(request) is not ProduceRequest:
            return LONG_AGO
        if len(self.host.disks) == 1:
            return self.host.disks[0].writer_may_go_on()
        return self.storage.writers_may_go_on([partition for partition, _ in request.batches])

    def receive(self, port: Port, event: ResponseReceived) -> None:
        """An answer to this broker: fetched records cost the fetcher their copying first."""
        response = event.response
        if type(response) is FetchResponse and response.results:
            delay = self.cpu.handler_request_us + self.copy_us(response.size_bytes)
            self.call_at(self.kernel.time + delay, self._fetched, port, event)
        else:
            self.deliver(port, event)

    def _fetched(self, port: Port, event: ResponseReceived) -> None:
        response = event.response
        assert type(response) is FetchResponse
        until = self.storage.writers_may_go_on([r.partition for r in response.results])
        now = self.kernel.time
        if until > now:
            self.call_at(min(until, now + 10_000), self._fetched, port, event)
        else:
            self.deliver(port, event)

    def log_start_moved(self, event: LogStartMoved) -> None:
        """The storage engine has let segments go: whoever serves the partition hears of it."""
        self.deliver(self._replicas, event)

    # -- what others may ask ----------------------------------------------------------------------

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """A replica's high watermark; -1 if it is not here."""
        if not self.ports:
            return -1
        replica = self.replica_manager.replicas.get(partition)
        return replica.high_watermark if replica is not None else -1

    def last_stable_offset(self, partition: TopicPartition) -> Offset:
        """A replica's last stable offset; -1 if it is not here."""
        if not self.ports:
            return -1
        replica = self.replica_manager.replicas.get(partition)
        if replica is None:
            return -1
        return replica.log.transactions.last_stable_offset(replica.high_watermark)

    def damage_replica(self, way: str, partition: TopicPartition) -> bool:
        """Do to one replica's files what a fault of that name does; whether there was any."""
        return damage_replica(self, way, partition)
