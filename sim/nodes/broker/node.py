"""A broker: its machines on one host, and what each asks for.

Several minds share the process: the replica manager (data), the coordinators, the client desk, and
those of the control plane, which has a shell of its own. This shell pays for what they do, carries
what one decides to the others, and keeps nothing across a crash but its disks.

Source: ``kafka.server.BrokerServer``.
"""

from pathlib import Path

from sim.errors import CorruptRecord, StorageFailed
from sim.ids import (
    FIRST_CONTROLLER_ID,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    NodeId,
    Offset,
    TopicPartition,
    server_name,
)
from sim.kernel import Task
from sim.log.config import RecordRules
from sim.log.directory.manager import LoadedLog
from sim.nodes.broker.cleaners import LogCleaner
from sim.nodes.broker.control_plane import Control, control_of
from sim.nodes.broker.coordinators import CoordinatorShell
from sim.nodes.broker.directory_moves import DirectoryMoves
from sim.nodes.broker.heap import HeapWatch
from sim.nodes.broker.logs import BrokerLogs
from sim.nodes.broker.replica_faults import damage_replica
from sim.nodes.broker.replication import replica_manager_of, route_groups
from sim.nodes.broker.settings import BrokerSettings
from sim.nodes.broker.shares import BrokerShares
from sim.nodes.broker.transactions import BrokerTransactions
from sim.nodes.broker.upkeep import LogUpkeep
from sim.nodes.process.acceptor import Acceptor
from sim.nodes.process.base import World
from sim.nodes.process.codec_costs import ProduceCosts
from sim.nodes.process.port import Port
from sim.nodes.process.server import CpuSpec, ServerNode
from sim.nodes.process.throttling import Throttling
from sim.nodes.storage.log_dirs import Storage
from sim.nodes.storage.log_settings import record_rules
from sim.protocol import effects as fx
from sim.protocol.broker.metadata_api import ClientDesk, DeskState
from sim.protocol.broker.replication.events import (
    AppendInternal,
    DirectoryFailed,
    LeadershipApplied,
    LogStartMoved,
    Stopping,
    VerifyInternal,
)
from sim.protocol.broker.replication.produce import InternalAppended
from sim.protocol.broker.replication.removal import ReplicaRemoved
from sim.protocol.broker.replication.transactions import InternalVerified
from sim.protocol.broker.truncation.out_of_range import TruncationForbidden
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS
from sim.protocol.coordinator.log import AppendRecords, VerifyTransaction
from sim.protocol.events import ResponseReceived
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
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.preemption import Preempt, Resumed
from sim.protocol.quotas.client import ClientQuotas
from sim.records.consumer_offsets import batch_for, records_in, transactional_batch_for
from sim.substrate.disk import Disk
from sim.substrate.distributions import Delays
from sim.substrate.host import Host
from sim.substrate.network import Connection
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
        self.logs = BrokerLogs(self)
        self.moves = DirectoryMoves(self)
        self._upkeep = LogUpkeep(self)
        self._cleaner = LogCleaner(self, self._upkeep)
        self._coordinators: dict[str, CoordinatorShell] = {}
        self.image = MetadataImage()
        self._known = self.image
        self._ends: dict[TopicPartition, Offset] = {}
        self._starts: dict[TopicPartition, Offset] = {}
        self._stopping = False
        unit = self.streams.named(f"threads/{self.name}").unit
        self._preemptions = Delays(cpu.preempted, unit)
        self.performers |= {
            fx.Flush: self.logs.flush,
            fx.KeptWaiting: self.logs.kept_waiting,
            LeadershipApplied: self._leadership_applied,
            AppendRecords: self._append_records,
            InternalAppended: self._internal_appended,
            VerifyTransaction: self._verify_transaction,
            InternalVerified: self._internal_verified,
            ReplicaRemoved: self.logs.replica_removed,
            TruncationForbidden: self._truncation_forbidden,
            Preempt: self._preempt,
            **self.moves.performers,
        }
        self.control = self.make_control()
        self.performers |= self.control.performers

    def make_control(self) -> Control:
        """Its part of the control plane, for all its processes."""
        return control_of(self)

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Open the disks, build the machines, and begin to register while logs are recovered."""
        # Logs are loaded with the settings that the metadata had: they are known before it is read.
        self._known = self.image if self.image.offset else self._known
        self.image = MetadataImage()
        self.control.published = False
        self._stopping = False
        self.listening = False
        self._internal_askers: dict[int, tuple[CoordinatorShell, int]] = {}
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
                self.settings.producers,
                by_last_offset=self.settings.replica.truncation.by_last_offset,
            )
            loaded = self.storage.load(self.kernel.time)
            self.control.open()
        except StorageFailed as failure:
            self.call_at(self.kernel.time, self.halt, str(failure))
            return
        self._build()
        self.spawn(self._life(loaded))

    def _build(self) -> None:
        settings = self.settings
        if settings.connections is not None:
            self.acceptor = Acceptor(self, settings.connections)
        if settings.client_quotas is not None:
            self.throttling = Throttling(self, ClientQuotas(settings.client_quotas))
        self.replica_manager = replica_manager_of(self)
        self.replicas = self.add_machine("replicas", self.replica_manager)
        self.control.build()
        self._groups = self.add_machine(
            "groups",
            GroupCoordinator(self.node_id, self.incarnation, settings.group, lambda: self.image),
        )
        self.desk = self.add_machine(
            "desk", ClientDesk(self.node_id, settings.transaction.state_topic())
        )
        self.transactions = BrokerTransactions(self, self.desk, self._groups)
        self.shares = BrokerShares(self)
        self._coordinators = {
            OFFSETS_TOPIC: CoordinatorShell(
                self, self._groups, OFFSETS_TOPIC, batch_for, records_in, transactional_batch_for
            ),
            TRANSACTIONS_TOPIC: self.transactions.shell,
            SHARE_STATE_TOPIC: self.shares.shell,
        }
        self.route(self.replicas, ProduceRequest, FetchRequest, ListOffsetsRequest)
        self.route(self.replicas, OffsetForLeaderEpochRequest)
        self.route(self.replicas, DeleteRecordsRequest, WriteTxnMarkersRequest)
        self.route(self.replicas, AlterReplicaLogDirsRequest)
        route_groups(self, self.replicas)
        self.route(self._groups, *GROUP_REQUESTS)
        self.route(self.desk, MetadataRequest, FindCoordinatorRequest, InitProducerIdRequest)

    def _life(self, loaded: tuple[LoadedLog, ...]) -> Task:
        """The process itself: start, recover the logs, then keep the checkpoints."""
        self.control.observe()
        self.perform(self.replicas, self.replica_manager.start(self.now()))
        self.control.begin()
        yield from self.logs.load(loaded)
        self.call_at(self.kernel.time, self.control.recovered)
        self._upkeep.begin()
        self._cleaner.begin()
        if self.settings.heap is not None:
            HeapWatch(self, self.settings.heap).begin()
        yield from self.logs.keep()

    def storage_failed(self, failure: StorageFailed) -> None:
        """A disk refused: its log directory goes offline; without a directory, the broker ends.

        So it does where a damaged record of the metadata log is met (``FaultHandler``).
        """
        number = self.storage.failing(failure)
        if number is not None:
            self.call_at(self.kernel.time, self.directory_failed, number, str(failure))
        elif isinstance(failure, CorruptRecord) or not self.storage.manager.offline:
            self.halt(str(failure))

    def directory_failed(self, number: int, reason: str) -> None:
        """Take a log directory offline; the controller is told, and moves what was led here.

        Source: ``ReplicaManager.handleLogDirFailure``, ``LogManager.handleLogDirFailure``.
        """
        storage = self.storage
        if number in storage.manager.offline:
            return
        gone = storage.take_offline(number, reason)
        if storage.is_lame():
            self.halt(reason)
            return
        self.deliver(self.replicas, DirectoryFailed(gone))
        self.control.directories_failed()

    def tell_unrecovered(self, scratch: Path) -> None:
        """The run is over and the process down: tell what is missing on its disks.

        Args:
            scratch: An empty directory.
        """
        if self._ends:
            self.storage.note_unrecovered(scratch)

    def _die(self, state: str) -> None:
        if self.ports:
            self.storage.note_ends()
        super()._die(state)

    def shut_down(self) -> None:
        """SIGTERM: hand leadership over, flush, and stop; a JVM that collects hears of it later."""
        if self.collecting:
            self._held.append((self.shut_down, ()))
        elif self.ports:
            self.deliver(self.replicas, Stopping())
            self.control.shut_down()

    def stop(self, _port: Port, _effect: object) -> None:
        """The controller has let this broker go: flush everything, write the markers, and end."""
        if self._stopping:
            return
        self._stopping = True
        storage = self.storage
        self.call_at(storage.fsync_everything(), self._stopped)
        self.logs.checkpoint_watermarks()

    def _stopped(self) -> None:
        self.storage.manager.shutdown(self.control.broker_epoch)
        self._die("stopped")
        for connection in self.open_connections():
            connection.reset(self)
        self._forget()

    def _truncation_forbidden(self, _port: Port, effect: TruncationForbidden) -> None:
        self.call_at(self.kernel.time, self.halt, effect.reason)

    def _preempt(self, port: Port, effect: Preempt) -> None:
        """A thread is interrupted; its machine goes on with the rest of the step after others."""
        resumed = Resumed(effect.token)
        self.call_at(self.kernel.time + self._preemptions.draw(), self.deliver, port, resumed)

    def open_port(self) -> None:
        """The broker is in service: connections are taken, and requests answered, from now on.

        Source: ``SocketServer.enableRequestProcessing``, ``Acceptor.start`` (3.5), which open the
        port when ``BrokerServer`` has seen the broker unfenced.
        """
        self.listening = True
        self.note_state("running")

    # -- metadata ---------------------------------------------------------------------------------

    def tell_desk(self, controller: NodeId) -> None:
        """The image has moved on, or who is the controller, or this broker's epoch."""
        self.deliver(self.desk, DeskState(self.image, controller, self.control.broker_epoch))

    def _record_rules(self, partition: TopicPartition) -> RecordRules | None:
        return record_rules(self._topic_configs(partition))

    def _topic_configs(self, partition: TopicPartition) -> dict[str, str]:
        image = self.image if self.control.published else self._known
        return image.configs_of(partition.topic)

    # -- coordinators -----------------------------------------------------------------------------

    def _leadership_applied(self, _port: Port, effect: LeadershipApplied) -> None:
        coordinator = self._coordinators.get(effect.partition.topic)
        if coordinator is not None:
            coordinator.leadership_applied(effect)
        self.shares.leadership_applied(effect)

    def _coordinator_of(self, port: Port) -> CoordinatorShell:
        return next(c for c in self._coordinators.values() if c.port is port)

    def _append_records(self, port: Port, effect: AppendRecords) -> None:
        self._coordinator_of(port).append(effect)

    def append_internal(
        self,
        asker: CoordinatorShell,
        effect: AppendRecords,
        partition: TopicPartition,
        batch: RecordBatch,
    ) -> None:
        """Append to a partition that this broker leads; the asker hears the outcome."""
        token = self._internal_token(asker, effect.token)
        event = AppendInternal(
            token, partition, batch, effect.timeout_us, effect.guard, effect.follows_watermark
        )
        self.deliver(self.replicas, event)

    def _internal_appended(self, _port: Port, effect: InternalAppended) -> None:
        asker, token = self._internal_askers[effect.token]
        if effect.final:
            del self._internal_askers[effect.token]
        asker.appended(token, effect.error)

    def _verify_transaction(self, port: Port, effect: VerifyTransaction) -> None:
        self._coordinator_of(port).verify(effect)

    def verify_internal(
        self, asker: CoordinatorShell, effect: VerifyTransaction, partition: TopicPartition
    ) -> None:
        """Ask for a transaction before records of it are appended; the asker hears the outcome."""
        token = self._internal_token(asker, effect.token)
        self.deliver(self.replicas, VerifyInternal(token, partition, effect.transaction))

    def _internal_verified(self, _port: Port, effect: InternalVerified) -> None:
        asker, token = self._internal_askers.pop(effect.token)
        asker.verified(token, effect.error, effect.guard)

    def _internal_token(self, asker: CoordinatorShell, token: int) -> int:
        self._next_internal += 1
        self._internal_askers[self._next_internal] = asker, token
        return self._next_internal

    def on_closed(self, link: Connection) -> None:
        """A client is gone; a member of a share group gives back what it has."""
        super().on_closed(link)
        if self.ports:
            self.shares.closed(link)

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
        elif not self.control.receive(port, event):
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
        self.deliver(self.replicas, event)

    # -- what others may ask ----------------------------------------------------------------------

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """A replica's high watermark; -1 if it is not here."""
        if not self.ports:
            return -1
        replica = self.replica_manager.replicas.get(partition)
        return replica.high_watermark if replica is not None else -1

    def committed_range(self, partition: TopicPartition) -> tuple[Offset, Offset] | None:
        """First offset and high watermark of a partition that it leads; ``None`` if it does not."""
        if not self.ports:
            return None
        replica = self.replica_manager.replicas.get(partition)
        if replica is None or not replica.is_leader:
            return None
        return replica.log.log_start_offset, replica.high_watermark

    def share_start(self, group: str, partition: TopicPartition) -> Offset:
        """Where a group's share partition begins; -1 if it is not here."""
        return self.shares.start_offset(group, partition) if self.ports else -1

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
