"""A broker: its machines on one host, and the routing between them.

Several machines share the process: the replica manager, the coordinators, the metadata API, and the
control plane's. The node pays for their work, performs their effects, and keeps only its disks.

Source: ``kafka.server.BrokerServer``.
"""

from collections.abc import Mapping
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
from sim.log.store.stored_file import Rot
from sim.nodes.broker.cleaners import LogCleaner, coordinate_tombstones
from sim.nodes.broker.control_plane import Control, LogDirFailureHandler, MetadataPublisher
from sim.nodes.broker.coordinators import (
    SHARE_STATES_CODEC,
    TRANSACTIONS_CODEC,
    CoordinatorStorage,
    InternalAppends,
    offsets_codec,
)
from sim.nodes.broker.directory_moves import DirectoryMoves
from sim.nodes.broker.dynamic_configs import DynamicBrokerConfig, SettingChange, upkeep_with
from sim.nodes.broker.future_storage import FutureStorage
from sim.nodes.broker.heap import HeapWatch
from sim.nodes.broker.kraft import KRaftControl
from sim.nodes.broker.logs import BrokerLogs
from sim.nodes.broker.replica_faults import cut_file, damage_replica, let_rot
from sim.nodes.broker.replicas import FollowerReads, Replicas
from sim.nodes.broker.replication import RaftDisks, raft_manager_of, replica_manager_of
from sim.nodes.broker.settings import BrokerSettings, UpkeepSettings
from sim.nodes.broker.shares import BrokerShares
from sim.nodes.broker.tiered.tier import BrokerTier
from sim.nodes.broker.transactions import BrokerTransactions
from sim.nodes.broker.upkeep import LogUpkeep
from sim.nodes.broker.zookeeper import ZkControl
from sim.nodes.process.acceptor import Acceptor
from sim.nodes.process.authentication import Authentication
from sim.nodes.process.codec_costs import ProduceCosts
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.request_guard import AppliedAcls, RequestGuard
from sim.nodes.process.server import ServerNode
from sim.nodes.process.throttling import Throttling
from sim.nodes.storage.log_dirs import Storage
from sim.nodes.storage.log_settings import record_rules
from sim.protocol import effects as fx
from sim.protocol.broker import lifecycle as life
from sim.protocol.broker.metadata_api import MetadataApi
from sim.protocol.broker.replication.events import LeadershipApplied, ShutdownBegun
from sim.protocol.broker.replication.replica_manager import REPLICA_REQUESTS, ReplicaManager
from sim.protocol.broker.share.effects import ShareSessionOpened
from sim.protocol.broker.share.manager import SHARE_REQUESTS
from sim.protocol.broker.truncation.out_of_range import TruncationForbidden
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.requests import GROUP_REQUESTS
from sim.protocol.coordinator.log import AppendRecords, VerifyTransaction
from sim.protocol.coordinator.share.coordinator import SHARE_COORDINATOR_REQUESTS
from sim.protocol.coordinator.transaction.coordinator import (
    TRANSACTION_REQUESTS,
    TransactionCoordinator,
)
from sim.protocol.events import NotificationReceived, ResponseReceived
from sim.protocol.kraft.types import Halt
from sim.protocol.messages.base import Request
from sim.protocol.messages.data import FetchResponse, ProduceRequest
from sim.protocol.messages.group import FindCoordinatorRequest
from sim.protocol.messages.metadata import InitProducerIdRequest, MetadataRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.preemption import Preempt, Resumed
from sim.protocol.quotas.client import ClientQuotas
from sim.protocol.raft_groups.manager import RAFT_REQUESTS
from sim.protocol.zk_mode.broker_types import ShutDownGranted
from sim.substrate.disk import Disk
from sim.substrate.distributions import Delays
from sim.substrate.host import Host
from sim.substrate.network import Connection
from sim.substrate.tls import TlsSpec
from sim.units import LONG_AGO, Micros, timestamp_ms


class BrokerNode(ServerNode):
    """One broker process on its own host, whose disks outlive it."""

    def __init__(
        self, node_id: NodeId, host: Host, world: World, cpu: CpuSpec, settings: BrokerSettings
    ) -> None:
        super().__init__(node_id, server_name(node_id), host, world, cpu)
        self.settings = settings
        self.release = ""
        self.releases: Mapping[str, BrokerSettings] = {}
        """Settings of later releases, by their names."""
        if settings.codecs:
            self.codec_costs = ProduceCosts(self._record_rules)
        self._arrivals: list[tuple[TopicPartition, int]] = []
        """Completed moves between log directories, of all incarnations: replica, directory."""
        self._applied_acls: AppliedAcls | None = None
        if settings.authorizer is not None:
            self._applied_acls = AppliedAcls(node_id, settings.authorizer, world.trace)
        self.setting_changes: list[SettingChange] = []
        """Settings that changed while it ran, of all incarnations."""
        self._coordinators: dict[str, CoordinatorStorage] = {}
        self.image = MetadataImage(file=settings.file.of(node_id))
        self._known = self.image
        self._ends: dict[TopicPartition, Offset] = {}
        self._starts: dict[TopicPartition, Offset] = {}
        self._stopping = False
        unit = self.streams.named(f"threads/{self.name}").unit
        self._preemptions = Delays(cpu.preempted, unit)
        self.performers |= {
            fx.Flush: self._flush,
            LeadershipApplied: self._leadership_applied,
            AppendRecords: self._append_records,
            VerifyTransaction: self._verify_transaction,
            ShareSessionOpened: self._share_session_opened,
            TruncationForbidden: self._halt_for,
            Halt: self._halt_for,
            life.RegistrationFailed: self._halt_for,
            life.DirectoryFailureUnacknowledged: self._halt_for,
            life.ShutDownGranted: self.stop,
            ShutDownGranted: self.stop,
            Preempt: self._preempt,
        }
        self.control = self.make_control()
        self.performers |= self.control.performers

    def make_control(self) -> Control:
        """Control plane of all processes of this broker."""
        zookeeper = self.settings.zookeeper
        if zookeeper is not None:
            return ZkControl(self, self.node_id, self.cpu, zookeeper)
        return KRaftControl(self, self.node_id, self.cpu, self.settings)

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Opens the disks, creates the machines, and begins to register during log recovery."""
        # Logs are loaded with the topic configs that the metadata had, before it is read again.
        self._known = self.image if self.image.offset else self._known
        self.image = MetadataImage(file=self._known.file)
        self.control.published = False
        self._stopping = False
        self._cleaner: LogCleaner | None = None
        self.listening = False
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
                has_metadata_log=self.settings.zookeeper is None,
            )
            loaded = self.storage.load(self.kernel.time)
            self.control.open(self.storage, self.image)
        except StorageFailed as failure:
            self.call_at(self.kernel.time, self.halt, str(failure))
            return
        self._build()
        self.spawn(self._life(loaded))

    def _build(self) -> None:
        settings = self.settings
        self._limit_clients()
        self.replicas = self._make_replicas()
        for port, requests in self.control.build().items():
            self.route(port, *requests)
        unit = self.streams.named(f"groups/{self.name}").unit
        groups = GroupCoordinator(self.node_id, self.incarnation, settings.group, self._image, unit)
        self._groups = self.add_machine("groups", groups)
        self.metadata_api = self.add_machine(
            "metadata_api", MetadataApi(self.node_id, settings.transaction.state_topic())
        )
        coordinator = TransactionCoordinator(self.node_id, self.now(), settings.transaction)
        self.transactions = BrokerTransactions(self, coordinator, self.metadata_api, self._groups)
        self.shares = BrokerShares(
            self, self.node_id, settings.shares, settings.share_coordinator, self.replicas,
            self._image, None if self.guard is None else self.guard.api,
        )  # fmt: skip
        self.performers |= self.transactions.performers | self.shares.performers
        if settings.tiered is not None:
            tier = BrokerTier(self, self.storage, self.replicas, settings.tiered, self._image)
            self.performers |= tier.performers
        self._make_coordinators()
        self._route_requests()

    def _limit_clients(self) -> None:
        settings = self.settings
        listener, sockets = settings.security, self.sockets
        if settings.connections is not None:
            self.acceptor = Acceptor(self, self.node_id, sockets, settings.connections)
        if listener is not None:
            self.authentication = Authentication(self, self.node_id, sockets, self.cpu, listener)
        if settings.client_quotas is not None:
            quotas = ClientQuotas(settings.client_quotas)
            self.throttling = Throttling(self.node_id, self.cpu, quotas, self.trace)
        if settings.authorizer is not None and self._applied_acls is not None:
            applied = self._applied_acls
            self.guard = RequestGuard(self.node_id, settings.authorizer, applied, self.trace)

    def _make_replicas(self) -> Replicas:
        """The replica manager, and the parts that serve its logs."""
        settings, storage, cpu = self.settings, self.storage, self.cpu
        watermarks = storage.manager.read_high_watermarks()
        futures = FutureStorage(storage, self._arrived)
        manager: ReplicaManager
        if settings.raft is None:
            quotas = self.throttling.quotas if self.throttling is not None else None
            guard = None if self.guard is None else self.guard.api
            manager = replica_manager_of(
                storage, settings.replica, watermarks, futures, quotas, guard,
                has_placement=settings.assigns_directories,
            )  # fmt: skip
        else:
            disks = RaftDisks(self, storage)
            self.performers |= disks.performers
            unit = self.streams.named(f"raft/{self.name}").unit
            manager = raft_manager_of(
                storage, settings.replica, settings.raft, watermarks, disks.recall, unit
            )
        replicas = Replicas(self, manager)
        self._cold.observer = FollowerReads(replicas) if settings.replica.keeps_pending else None
        self._failures = LogDirFailureHandler(self, storage, replicas, self.control)
        self.logs = BrokerLogs(self, storage, replicas, cpu, settings, self._failures)
        delay = settings.file_delete_delay_us
        self.moves = DirectoryMoves(self, storage, futures, cpu, delay, self._failures)
        self.performers |= self.logs.performers | self.moves.performers
        return replicas

    def _make_coordinators(self) -> None:
        appends = InternalAppends(self.replicas)
        self.performers |= appends.performers
        self._coordinators = {
            topic: CoordinatorStorage(self, self.storage, self.cpu, appends, port, topic, codec)
            for topic, port, codec in (
                (OFFSETS_TOPIC, self._groups, offsets_codec(self.settings.offsets_form)),
                (TRANSACTIONS_TOPIC, self.transactions.port, TRANSACTIONS_CODEC),
                (SHARE_STATE_TOPIC, self.shares.coordinator, SHARE_STATES_CODEC),
            )
        }

    def _route_requests(self) -> None:
        replicas = self.replicas.port
        self.route(replicas, *REPLICA_REQUESTS)
        if self.settings.raft is not None:
            # They arrive on a port of their own, which opens before that of clients: Redpanda v25.1
            # ``redpanda/application.cc`` starts ``rpc_server`` first and Kafka's API last.
            self.route(replicas, *RAFT_REQUESTS)
            self.served_before += RAFT_REQUESTS
        self.route(self._groups, *GROUP_REQUESTS)
        self.route(self.transactions.port, *TRANSACTION_REQUESTS)
        self.route(self.shares.port, *SHARE_REQUESTS)
        self.route(self.shares.coordinator, *SHARE_COORDINATOR_REQUESTS)
        self.route(
            self.metadata_api, MetadataRequest, FindCoordinatorRequest, InitProducerIdRequest
        )

    def _life(self, loaded: tuple[LoadedLog, ...]) -> Task:
        """The process's main task: start, recover the logs, then keep the checkpoints."""
        settings, storage, replicas = self.settings, self.storage, self.replicas
        publisher = self._publisher()
        self.control.observe(publisher)
        self.perform(replicas.port, replicas.manager.start(self.now()))
        self.control.begin()
        yield from self.logs.load(loaded)
        self.call_at(self.kernel.time, self.control.recovered)
        expiry_check_us = settings.producers.check_us
        upkeep = LogUpkeep(self, storage, replicas, settings.upkeep, expiry_check_us)
        upkeep.begin()
        cleaning = upkeep_with(settings.upkeep, self.image.server_configs())
        tombstones = coordinate_tombstones(self, storage, replicas, cleaning)
        self._cleaner = LogCleaner(self, storage, replicas, upkeep, cleaning, tombstones)
        self._cleaner.begin()
        if settings.heap is not None:
            HeapWatch(self, storage, settings.heap).begin()
        yield from self.logs.keep()

    def _publisher(self) -> MetadataPublisher:
        replicas = self.replicas
        dynamic = DynamicBrokerConfig(
            self.image.file, self.host, replicas, self.settings.upkeep, self._clean_with,
            self.setting_changes, self.control.cordon,
        )  # fmt: skip
        return MetadataPublisher(
            self, self.image, replicas, self.logs, self.moves, self.transactions,
            self.metadata_api, dynamic,
        )  # fmt: skip

    def _clean_with(self, settings: UpkeepSettings) -> None:
        if self._cleaner is not None:
            self._cleaner = self._cleaner.replaced(settings)

    def storage_failed(self, failure: StorageFailed) -> None:
        """Takes a failed log directory offline; without a directory left, the broker ends.

        It also ends on a damaged record of the metadata log (``FaultHandler``).
        """
        number = self.storage.failing(failure)
        if number is not None:
            self.call_at(self.kernel.time, self._failures.directory_failed, number, str(failure))
        elif isinstance(failure, CorruptRecord) or not self.storage.manager.offline:
            self.halt(str(failure))

    def note_unrecovered(self, scratch: Path) -> None:
        """Writes losses on the disks to the trace, at the end of the run, with the process down.

        Args:
            scratch: An empty directory.
        """
        if self._ends:
            self.storage.note_unrecovered(scratch)

    def _die(self, state: str) -> None:
        if self.ports:
            self.storage.note_ends()
        super()._die(state)

    def install(self, release: str) -> None:
        """Installs a later release: its next process has the settings of that one."""
        assert not self.running, f"{self.name} is running"
        self.release, self.settings = release, self.releases[release]
        self.image.file = self._known.file = self.settings.file.of(self.node_id)
        self.control.install(self.settings)

    def shut_down(self) -> None:
        """SIGTERM: hands leadership over, flushes, stops; delayed while the JVM collects."""
        if self.collecting:
            self._held.append((self.shut_down, ()))
        elif self.ports:
            self.replicas.deliver(ShutdownBegun())
            self.control.shut_down()

    def stop(self, _port: Port, _effect: object) -> None:
        """Controlled shutdown is granted: flushes all, writes the clean-shutdown markers, ends."""
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

    def _halt_for(self, _port: Port, effect: TruncationForbidden | Halt | life.Fatal) -> None:
        self.call_at(self.kernel.time, self.halt, effect.reason)

    def _preempt(self, port: Port, effect: Preempt) -> None:
        """Preempts a thread; its machine resumes the rest of the step after other events."""
        resumed = Resumed(effect.token)
        self.call_at(self.kernel.time + self._preemptions.draw(), self.deliver, port, resumed)

    # -- metadata ---------------------------------------------------------------------------------

    def _image(self) -> MetadataImage:
        return self.image

    def _record_rules(self, partition: TopicPartition) -> RecordRules | None:
        return record_rules(self._topic_configs(partition))

    def _topic_configs(self, partition: TopicPartition) -> dict[str, str]:
        image = self.image if self.control.published else self._known
        return image.configs_of(partition.topic)

    # -- coordinators -----------------------------------------------------------------------------

    def _leadership_applied(self, _port: Port, effect: LeadershipApplied) -> None:
        if (coordinator := self._coordinators.get(effect.partition.topic)) is not None:
            coordinator.leadership_applied(effect)
        self.shares.leadership_applied(effect)

    def _coordinator_of(self, port: Port) -> CoordinatorStorage:
        return next(c for c in self._coordinators.values() if c.port is port)

    def _append_records(self, port: Port, effect: AppendRecords) -> None:
        self._coordinator_of(port).append(effect)

    def _verify_transaction(self, port: Port, effect: VerifyTransaction) -> None:
        self._coordinator_of(port).verify(effect)

    def _share_session_opened(self, _port: Port, effect: ShareSessionOpened) -> None:
        if (link := self.connection_of(effect.token)) is not None:
            self.shares.opened(link, effect)

    def on_closed(self, link: Connection) -> None:
        """A client disconnected; a member of a share group releases its acquired records."""
        super().on_closed(link)
        if self.ports:
            self.shares.closed(link)

    # -- disk -------------------------------------------------------------------------------------

    def tls_to(self, peer: NodeId) -> TlsSpec | None:
        """``security.inter.broker.protocol``; controllers have a listener of their own."""
        return self.tls if peer < FIRST_CONTROLLER_ID else None

    def disk_under(self, partition: TopicPartition) -> Disk | None:
        """The disk that holds an open log."""
        return self.storage.disk_under(partition)

    def _flush(self, port: Port, effect: fx.Flush) -> Micros | None:
        """Fsyncs a log; observers of the quorum do not fsync metadata."""
        self.logs.flush(port, effect)
        return None

    def _arrived(self, partition: TopicPartition, directory: int) -> None:
        self._arrivals.append((partition, directory))

    def may_decide_at(self, request: Request) -> Micros:
        """A produce request waits while too much of the page cache is dirty."""
        if type(request) is not ProduceRequest:
            return LONG_AGO
        if len(self.host.disks) == 1:
            return self.host.disks[0].writers_wait_until()
        return self.storage.writers_wait_until([partition for partition, _ in request.batches])

    def receive(self, port: Port, event: ResponseReceived) -> None:
        """A response to this broker: fetched records cost the fetcher their copying first."""
        response = event.response
        if type(response) is FetchResponse and response.results:
            delay = self.cpu.handler_request_us + self.cpu.copy_us(response.size_bytes)
            self.call_at(self.kernel.time + delay, self._fetched, port, event)
        elif not self.control.receive(port, event):
            self.deliver(port, event)

    def notified(self, port: Port, event: NotificationReceived) -> None:
        """A notification to this broker: only its control plane listens to a server."""
        self.control.notified(port, event)

    def _fetched(self, port: Port, event: ResponseReceived) -> None:
        response = event.response
        assert type(response) is FetchResponse
        until = self.storage.writers_wait_until([r.partition for r in response.results])
        if until > (now := self.kernel.time):
            self.call_at(min(until, now + 10_000), self._fetched, port, event)
        else:
            self.deliver(port, event)

    # -- views -------------------------------------------------------------------------------------

    def high_watermark(self, partition: TopicPartition) -> Offset:
        """A replica's high watermark; -1 if it is not on this broker."""
        return self.replicas.high_watermark(partition) if self.ports else -1

    def committed_range(self, partition: TopicPartition) -> tuple[Offset, Offset] | None:
        """First offset and high watermark of a partition that it leads; ``None`` if it does not."""
        return self.replicas.committed_range(partition) if self.ports else None

    def last_stable_offset(self, partition: TopicPartition) -> Offset:
        """A replica's last stable offset; -1 if it is not on this broker."""
        return self.replicas.last_stable_offset(partition) if self.ports else -1

    def arrivals(self, partition: TopicPartition, directory: int) -> int:
        """Number of times a replica was moved into a log directory, over all incarnations."""
        return self._arrivals.count((partition, directory))

    def share_start(self, group: str, partition: TopicPartition) -> Offset:
        """Start offset of a group's share partition; -1 if it is not on this broker."""
        return self.shares.start_offset(group, partition) if self.ports else -1

    def damage_replica(self, way: str, partition: TopicPartition, stream: str) -> bool:
        """Do something to one replica's files by chance of that name; whether there was any."""
        return damage_replica(self, way, partition, stream)

    def cut_file(self, partition: TopicPartition, file: str, size: int) -> str:
        """Cuts the end of one of a replica's files, with the process down; what was cut."""
        return cut_file(self, partition, file, size)

    def let_rot(
        self, partition: TopicPartition, which: str, bits: int, stream: str
    ) -> tuple[str, Rot] | None:
        """Flips bits of a replica on the platter; the file and the bytes."""
        return let_rot(self, partition, which, bits, stream)
