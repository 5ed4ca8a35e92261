"""A broker's replica manager: all its replicas, and every request that concerns them.

One machine. It creates its parts, each from those below it; they do not know this class, which
passes every event to its part.

Source: ``kafka.server.ReplicaManager``.
"""

from collections.abc import Callable
from typing import Final

from sim.error_codes import ErrorCode
from sim.errors import StorageFailed
from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.authorization import ApiAuthorizer
from sim.protocol.broker.log_dirs import LogDirs
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.directories.alter_log_dirs import AlterLogDirs
from sim.protocol.broker.replication.directories.assignments import TIMER as ASSIGNMENTS_TIMER
from sim.protocol.broker.replication.directories.assignments import Placement
from sim.protocol.broker.replication.directories.replica_directories import ReplicaDirectories
from sim.protocol.broker.replication.effects import Effects, ReplicaEffect
from sim.protocol.broker.replication.events import (
    AlterLogDirsTurn,
    AppendInternal,
    BrokerNews,
    ControllerChanged,
    DirectoryFailed,
    FetchingStopped,
    FollowerRead,
    LeadershipApplied,
    LogStartMoved,
    MetadataApplied,
    RegisteredWithEpoch,
    ReplicaManagerEvent,
    ShutdownBegun,
    StorageBroke,
    VerifyInternal,
)
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.follower.adopted import AdoptedOffsets
from sim.protocol.broker.replication.follower.cuts import LogCuts
from sim.protocol.broker.replication.follower.path import FollowerPath
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.epoch_ends import end_of_epoch
from sim.protocol.broker.replication.leader.fetch import FetchPath
from sim.protocol.broker.replication.leader.follower_fetches import FollowerFetches
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.leader.isr_changes import IsrChanges
from sim.protocol.broker.replication.leader.list_offsets import list_offsets
from sim.protocol.broker.replication.leader.log_starts import TIMER as DELETIONS_TIMER
from sim.protocol.broker.replication.leader.log_starts import LogStarts
from sim.protocol.broker.replication.leader.lost_leadership import LostLeaderships
from sim.protocol.broker.replication.leader.markers import MarkerRequests
from sim.protocol.broker.replication.leader.produce import ProducePath
from sim.protocol.broker.replication.leader.remote_fetches import TIMER as REMOTE_FETCH_TIMER
from sim.protocol.broker.replication.leader.transactions import TIMER as VERIFICATION_TIMER
from sim.protocol.broker.replication.leader.transactions import TransactionPath
from sim.protocol.broker.replication.log_ends import ends_of_logs
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication.removal import ReplicaRemoval
from sim.protocol.broker.replication.trace_rows import note_leadership, note_stable
from sim.protocol.broker.replication_quotas import quotas_of
from sim.protocol.broker.tiered.ports import AuxStateDone, RemoteReadDone, RoleApplied
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.cluster import AlterPartitionResponse, AssignReplicasToDirsResponse
from sim.protocol.messages.data import (
    FetchRequest,
    FetchResponse,
    LeaderHint,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
)
from sim.protocol.messages.delete_records import DeleteRecordsRequest
from sim.protocol.messages.leader_epochs import (
    GetReplicaLogInfoRequest,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsRequest
from sim.protocol.messages.transaction import AddPartitionsToTxnResponse, WriteTxnMarkersRequest
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.ports import ReplicaLog
from sim.protocol.preemption import Resumed, Threads
from sim.protocol.quotas.client import ClientQuotas
from sim.units import Micros

REPLICA_REQUESTS: Final[tuple[type[Request], ...]] = (
    ProduceRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetForLeaderEpochRequest,
    GetReplicaLogInfoRequest,
    DeleteRecordsRequest,
    WriteTxnMarkersRequest,
    AlterReplicaLogDirsRequest,
)
"""Requests that a replica manager answers."""


class ReplicaManager:
    """Every replica of one broker. ``open_log`` creates or opens a partition's log.

    Args:
        broker: This broker's id.
        config: Settings.
        open_log: Opens the log of a partition with its topic id and topic settings.
        high_watermarks: Checkpointed high watermarks, as read at the start.
        placement: The log directories; ``None``: a single one.
        log_dirs: The same, to move replicas between them; ``None``: they stay where they are.
        client_quotas: Consumers' quotas; ``None``: none.
        authorizer: Consumers' rights; ``None``: nobody is refused.
        hosted: Its partitions; ``None``: none yet.
    """

    def __init__(
        self,
        broker: NodeId,
        config: ReplicaManagerConfig,
        open_log: Callable[[TopicPartition, str, dict[str, str]], ReplicaLog],
        high_watermarks: dict[TopicPartition, Offset],
        placement: Placement | None = None,
        log_dirs: LogDirs | None = None,
        client_quotas: ClientQuotas | None = None,
        hosted: HostedPartitions | None = None,
        authorizer: ApiAuthorizer | None = None,
    ) -> None:
        self.config = config
        self.hosted = hosted = HostedPartitions(broker, config) if hosted is None else hosted
        self.replicas = hosted.replicas
        self._open_log = open_log
        self.leader_quota, self.follower_quota = quotas_of(broker, config.quota)
        """Throttles of replication; ``None`` without a rate."""
        self.threads = threads = Threads[ReplicaEffect]()
        self.locks = locks = LogLocks()
        self.markers = MarkerRequests()
        self.delayed_fetches = fetches = DelayedFetches(config.fetch_sessions)
        self.delayed_produces = produces = DelayedProduces(hosted, self.markers)
        self.watermarks = watermarks = HighWatermarks(
            hosted, locks, fetches, produces, high_watermarks
        )
        self.log_starts = log_starts = LogStarts(hosted, fetches)
        self.isr = IsrChanges(hosted, locks, watermarks, fetches)
        self.produce = ProducePath(hosted, locks, watermarks, produces, fetches)
        followers = FollowerFetches(hosted, locks, log_starts, self.isr, watermarks)
        self.fetch = FetchPath(
            hosted, locks, threads, fetches, followers, self.leader_quota, client_quotas, authorizer
        )
        self.transactions = TransactionPath(hosted, self.produce, self.markers)
        at_once = config.unloads_at_once
        self.losses = LostLeaderships(threads, produces, log_starts, at_once=at_once)
        self.fetchers = fetchers = Fetchers(hosted)
        self.directories = ReplicaDirectories(hosted, placement)
        self.moves = moves = AlterLogDirs(hosted, log_dirs, self.directories, fetchers)
        self.adopted = AdoptedOffsets(hosted, self.losses, fetches, log_starts)
        self.cuts = LogCuts(hosted, fetchers, moves)
        self.follower = FollowerPath(
            hosted, locks, threads, fetchers, self.adopted, self.cuts, self.follower_quota
        )
        self.removal = ReplicaRemoval(
            hosted, fetchers, fetches, produces, watermarks, self.directories, moves
        )

    @property
    def broker(self) -> NodeId:
        """This broker's id."""
        return self.hosted.broker

    @property
    def image(self) -> MetadataImage:
        """The metadata that it has applied."""
        return self.hosted.image

    # -- views -------------------------------------------------------------------------------------

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """High watermarks for the checkpoint."""
        return self.watermarks.to_checkpoint()

    def note_high_watermark(self, partition: TopicPartition, offset: Offset) -> None:
        """Sets the checkpointed value of the log that the partition has now."""
        self.watermarks.note(partition, offset)

    def forget_high_watermark(self, partition: TopicPartition) -> None:
        """Drops the value that the checkpoint had at the start."""
        self.watermarks.forget(partition)

    def led(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica, if this broker leads the partition; else the error for a client."""
        return self.hosted.led(partition)

    def hint(self, partition: TopicPartition, error: ErrorCode) -> LeaderHint | None:
        """The partition's leader, for errors that redirect clients."""
        return self.hosted.hint(partition, error)

    def watch(self, partition: TopicPartition) -> None:
        """Reports from now on when the partition's high watermark advances."""
        self.watermarks.watch(partition)

    # -- events ------------------------------------------------------------------------------------

    def handle(self, event: ReplicaManagerEvent, now: Micros) -> Effects:
        """Handles an event; returns effects in order."""
        out: Effects = []
        match event:
            case RequestReceived():
                self._request(event, now, out)
            case ResponseReceived():
                self._response(event, now, out)
            case RequestFailed():
                self._failure(event, now, out)
            case TimerFired():
                self._timer(event.name, now, out)
            case Flushed():
                self.watermarks.flushed(event.token, now, out)
            case VerifyInternal():
                self.transactions.verify_internal(event, now, out)
            case AppendInternal():
                self.produce.append_internal(event, now, out)
            case MetadataApplied() if (
                self.hosted.stopping and not self.config.applies_metadata_during_shutdown
            ):
                pass  # it leads and follows as it did, until its process ends
            case MetadataApplied():
                self._apply(event, now, out)
            case AlterLogDirsTurn():
                self.moves.turn(event, now, out)
            case Resumed(token):
                self.threads.resumed(token, now, out)
            case _:
                self._note(event, now, out)
        self.fetch.answer_woken(now, out)
        return out

    def _note(self, event: BrokerNews, now: Micros, out: Effects) -> None:
        """Notes seldom changes of the broker, and answers of its remote log manager."""
        match event:
            case ControllerChanged():
                self.hosted.controller = event.controller
                self.isr.send(now, out)
                self.directories.send(now, out)
            case RegisteredWithEpoch():
                self.hosted.broker_epoch = event.broker_epoch
            case ShutdownBegun():
                self.hosted.stopping = True
            case LogStartMoved():
                self.log_starts.moved(event, out)
            case RemoteReadDone():
                self.fetch.remote_read(event, now, out)
            case AuxStateDone():
                self.follower.state_read(event, now, out)
            case FollowerRead():
                self.delayed_fetches.reading(event)
            case FetchingStopped():
                self._stop_fetching(event, now, out)
            case DirectoryFailed():
                for partition in event.partitions:
                    self.removal.take_offline(partition, now, out)
                self.moves.directory_failed(event.partitions, out)
                self.directories.send(now, out)
                self.follower.send_all(now, out)

    def _stop_fetching(self, event: FetchingStopped, now: Micros, out: Effects) -> None:
        for partition in event.partitions:
            self.fetchers.stop(partition)
        for partition in event.deleted:
            self.removal.delete(partition, now, out)

    def start(self, now: Micros) -> Effects:
        """Effects of the start: the first check for lagging followers."""
        return [fx.SetTimer("isr-shrink", now + self.config.lag_time_max_us // 2)]

    # -- requests and responses --------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros, out: Effects) -> None:
        request = event.request
        match request:
            case ProduceRequest():
                if request.transactional_id:
                    self.transactions.produce(event.token, request, now, out)
                else:
                    self.produce.request(event.token, request, now, out)
            case FetchRequest():
                self.fetch.request(event.token, event.client, request, now, out)
            case ListOffsetsRequest():
                out.append(fx.Reply(event.token, list_offsets(self.hosted, request)))
            case DeleteRecordsRequest():
                self.log_starts.request(event.token, request, now, out)
            case GetReplicaLogInfoRequest():
                out.append(fx.Reply(event.token, ends_of_logs(self.hosted, request)))
            case OffsetForLeaderEpochRequest():
                out.append(fx.Reply(event.token, end_of_epoch(self.hosted, request)))
            case AlterReplicaLogDirsRequest():
                self.moves.request(event.token, request, now, out)
            case WriteTxnMarkersRequest():
                self.transactions.write_markers(event.token, request, now, out)
            case _:
                raise AssertionError(f"not a data-plane request: {type(request).__name__}")

    def _response(self, event: ResponseReceived, now: Micros, out: Effects) -> None:
        response = event.response
        if isinstance(response, AlterPartitionResponse):
            self.isr.answered(event.correlation, response, now, out)
        elif isinstance(response, AssignReplicasToDirsResponse):
            for noted in self.directories.answered(event.correlation, response, now):
                self.moves.accepted(noted.partition, noted.directory)
            self.directories.send(now, out)
        elif isinstance(response, FetchResponse):
            self.follower.answered(event.sender, event.correlation, response, now, out)
        elif isinstance(response, ListOffsetsResponse):
            self.follower.offsets_listed(event.correlation, response, now, out)
        elif isinstance(response, OffsetForLeaderEpochResponse):
            self.follower.epoch_answered(event.correlation, response, now, out)
        elif isinstance(response, AddPartitionsToTxnResponse):
            self.transactions.answered(event.correlation, response, now, out)

    def _failure(self, event: RequestFailed, now: Micros, out: Effects) -> None:
        if self.isr.failed(event.correlation, event.error, now, out):
            return
        if self.directories.failed(event.correlation, now, out):
            return
        if self.transactions.failed(event.correlation, now, out):
            return
        self.follower.failed(event, now, out)

    def _timer(self, name: str, now: Micros, out: Effects) -> None:
        if name == "produce":
            self.delayed_produces.expire(now, out)
        elif name == "fetch":
            self.fetch.expire(now, out)
        elif name == "isr-shrink":
            self.isr.shrink(now, out)
            out.append(fx.SetTimer("isr-shrink", now + self.config.lag_time_max_us // 2))
        elif name == "isr-retry":
            self.isr.send(now, out)
        elif name == ASSIGNMENTS_TIMER:
            self.directories.send(now, out)
        elif name == DELETIONS_TIMER:
            self.log_starts.expire(now, out)
        elif name == REMOTE_FETCH_TIMER:
            self.fetch.expire_remote(now, out)
        elif name == VERIFICATION_TIMER:
            self.transactions.wake(now, out)
        else:
            self.follower.wake(name, now, out)

    # -- metadata ---------------------------------------------------------------------------------

    def _apply(self, event: MetadataApplied, now: Micros, out: Effects) -> None:
        """Removals, then leaders, then followers, as ``ReplicaManager.applyDelta`` does."""
        broker = self.hosted.broker
        self.hosted.image = event.image
        self.removal.remove_unassigned(event.image, event.changed, now, out)
        mine = [
            (p, s)
            for p in event.changed
            if (s := event.image.partitions.get(p)) is not None
            and broker in s.replicas
            and self.directories.is_online(p, s)
        ]
        for partition, state in mine:
            if state.leader == broker:
                self._take_up(self._lead, partition, state, now, out)
        for partition, state in mine:
            if state.leader != broker:
                self._take_up(self._follow, partition, state, now, out)
        for partition, _ in mine:
            replica = self.replicas.get(partition)
            if replica is not None:
                self.moves.applied(replica, now, out)
        for topic in event.reconfigured:
            self._reconfigure(topic, now, out)
        self.follower.shut_down_idle(out)
        self.follower.send_all(now, out)
        self.isr.send(now, out)
        self.directories.send(now, out)
        if event.breaks_off:
            out[:] = [effect for effect in out if not isinstance(effect, LeadershipApplied)]

    def _reconfigure(self, topic: str, now: Micros, out: Effects) -> None:
        """Applies a topic's new settings to its replicas and their logs.

        Source: ``TopicConfigHandler.updateLogConfig``; ``Partition`` reads the minimum ISR again.
        """
        for partition, replica in self.replicas.items():
            if partition.topic == topic:
                configs = self.hosted.image.configs_of(topic)
                self._open_log(partition, replica.topic_id, configs)
                replica.reconfigure(self.config.of_topic(configs))
                self._throttle(partition, configs)
                if replica.is_leader:
                    self.watermarks.advance(replica, now, out)

    def _throttle(self, partition: TopicPartition, configs: dict[str, str]) -> None:
        for quota in (self.leader_quota, self.follower_quota):
            if quota is not None:
                quota.configure(partition, configs)

    def _take_up(
        self,
        role: Callable[[TopicPartition, PartitionRegistration, Micros, Effects], None],
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: Effects,
    ) -> None:
        """Takes a role; a disk failure meanwhile concerns this partition alone."""
        try:
            role(partition, state, now, out)
        except StorageFailed as failure:
            out.append(StorageBroke(partition, str(failure)))
            self.removal.take_offline(partition, now, out)
        else:
            self.directories.compare(partition, state)

    def _lead(
        self,
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: Effects,
    ) -> None:
        self.fetchers.stop(partition)
        self.losses.finish(partition, now, out)
        replica = self._replica(partition, state)
        led = replica.is_leader
        if replica.become_leader(state, now):
            self.delayed_fetches.leadership_changed(partition)
            out.append(
                LeadershipApplied(
                    partition, is_leader=True, leader_epoch=state.leader_epoch, takes_over=not led
                )
            )
        self.delayed_fetches.in_sync_changed(replica)
        note_leadership(self.hosted.broker, replica, "leader", out)
        self._apply_tier(replica, out)
        self.watermarks.advance(replica, now, out)
        note_stable(self.hosted.broker, replica, out)

    def _follow(
        self,
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: Effects,
    ) -> None:
        hosted = self.hosted
        replica = self._replica(partition, state)
        led, former = replica.is_leader, (replica.leader, replica.leader_epoch)
        new_epoch = replica.become_follower(state)
        if new_epoch and former[0] == state.leader:
            new_epoch = not self.config.new_epoch.fetches_on(former[1], state.leader_epoch)
        if led:
            self.losses.lost(partition, state.leader_epoch, now, out)
        if new_epoch or led:
            self.delayed_fetches.leadership_changed(partition)
            self.fetchers.stop(partition)
        role = "follower" if state.leader >= 0 else "offline"
        note_leadership(hosted.broker, replica, role, out)
        self._apply_tier(replica, out)
        leaderless = state.leader < 0 or state.leader not in hosted.image.brokers
        if leaderless or (hosted.stopping and hosted.broker not in state.in_sync):
            self.fetchers.stop(partition)
        elif not self.fetchers.has(partition):
            self.follower.follow(replica, out)
        else:
            self.fetchers.in_epoch(partition, replica.leader_epoch)

    def _apply_tier(self, replica: Replica, out: Effects) -> None:
        """The remote log manager learns of a role in a new leader epoch."""
        if replica.log.is_tiered:
            of = replica.partition, replica.topic_id
            out.append(RoleApplied(*of, replica.is_leader, replica.leader_epoch))

    def _replica(self, partition: TopicPartition, state: PartitionRegistration) -> Replica:
        replica = self.replicas.get(partition)
        if replica is None:
            configs = self.hosted.image.configs_of(partition.topic)
            log = self._open_log(partition, state.topic_id, configs)
            config = self.config.of_topic(configs)
            watermark = self.watermarks.checkpointed(partition)
            replica = Replica(partition, self.hosted.broker, log, config, watermark)
            self.replicas[partition] = replica
            self._throttle(partition, configs)
        return replica
