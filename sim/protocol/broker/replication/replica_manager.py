"""A broker's data plane: all its replicas, and every request that touches them.

One machine, split by subject over the modules it imports; this file routes.

Source: ``kafka.server.ReplicaManager``.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.errors import StorageFailed
from sim.ids import BrokerEpoch, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.log_dirs import LogDirs
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.replication.alter_log_dirs import AlterLogDirs
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.directory_assignments import TIMER as ASSIGNMENTS_TIMER
from sim.protocol.broker.replication.directory_assignments import Placement
from sim.protocol.broker.replication.epoch_lookups import end_of_epoch
from sim.protocol.broker.replication.events import (
    AlterLogDirsTurn,
    AppendInternal,
    ControllerChanged,
    DirectoryFailed,
    FetchingStopped,
    HighWatermarkMoved,
    LeadershipApplied,
    LogStartMoved,
    MetadataApplied,
    RegisteredWithEpoch,
    ReplicaManagerEvent,
    Stopping,
    VerifyInternal,
)
from sim.protocol.broker.replication.fetch import FetchPath
from sim.protocol.broker.replication.follower import FollowerPath
from sim.protocol.broker.replication.isr_changes import IsrChanges
from sim.protocol.broker.replication.list_offsets import list_offsets
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication.log_starts import TIMER as DELETIONS_TIMER
from sim.protocol.broker.replication.log_starts import LogStarts
from sim.protocol.broker.replication.lost_leadership import LostLeaderships
from sim.protocol.broker.replication.produce import ProducePath, StorageBroke
from sim.protocol.broker.replication.removal import remove_unassigned
from sim.protocol.broker.replication.replica_directories import ReplicaDirectories
from sim.protocol.broker.replication.transactions import TIMER as VERIFICATION_TIMER
from sim.protocol.broker.replication.transactions import TransactionPath, note_stable
from sim.protocol.broker.replication_quotas import quotas_of
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.messages import (
    AddPartitionsToTxnResponse,
    AlterPartitionResponse,
    AlterReplicaLogDirsRequest,
    AssignReplicasToDirsResponse,
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    LeaderHint,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    ProduceRequest,
    WriteTxnMarkersRequest,
)
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.ports import ReplicaLog
from sim.protocol.preemption import Resumed, Threads
from sim.protocol.quotas.client import ClientQuotas
from sim.units import Micros


class ReplicaManager:
    """Every replica of one broker. ``open_log`` creates or opens a partition's log.

    Args:
        broker: This broker's id.
        config: Settings.
        open_log: Opens the log of a partition with its topic id and topic settings.
        high_watermarks: Checkpointed high watermarks, as read at the start.
        placement: The log directories; ``None``: a single one, which nobody asks about.
        log_dirs: The same, to move replicas between them; ``None``: they stay where they are.
        client_quotas: What consumers may fetch; ``None``: no quota is ever asked.
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
    ) -> None:
        self.broker = broker
        self.config = config
        self.image = MetadataImage()
        self.replicas: dict[TopicPartition, Replica] = {}
        self.broker_epoch: BrokerEpoch = -1
        self.stopping = False
        self._open_log = open_log
        self._high_watermarks = high_watermarks
        self._correlations = 0
        self._watched: dict[TopicPartition, None] = {}
        self.leader_quota, self.follower_quota = quotas_of(broker, config.quota)
        """Throttles of replication; ``None`` without a rate."""
        self.client_quotas = client_quotas
        self.threads = Threads()
        self.locks = LogLocks(self)
        self.losses = LostLeaderships(self)
        self.directories = ReplicaDirectories(self, placement)
        self.isr = IsrChanges(self)
        self.produce = ProducePath(self)
        self.fetch = FetchPath(self)
        self.follower = FollowerPath(self)
        self.log_starts = LogStarts(self)
        self.transactions = TransactionPath(self)
        self.moves = AlterLogDirs(self, log_dirs, config.alter_log_dirs_threads)

    def handle(self, event: ReplicaManagerEvent, now: Micros) -> list[object]:
        """Decide."""
        out: list[object] = []
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
                self.locks.flushed(event.token, now, out)
            case VerifyInternal():
                self.transactions.verify_internal(event, now, out)
            case AppendInternal():
                self.produce.append_internal(event, now, out)
            case MetadataApplied() if self.stopping and not self.config.hears_while_stopping:
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

    def _note(
        self,
        event: ControllerChanged
        | RegisteredWithEpoch
        | Stopping
        | DirectoryFailed
        | LogStartMoved
        | FetchingStopped,
        now: Micros,
        out: list[object],
    ) -> None:
        """News of the broker itself, which come seldom."""
        match event:
            case ControllerChanged():
                self.isr.controller = event.controller
                self.isr.send(now, out)
                self.directories.tell(now, out)
            case RegisteredWithEpoch():
                self.broker_epoch = event.broker_epoch
            case Stopping():
                self.stopping = True
            case LogStartMoved():
                self.log_starts.moved(event, out)
            case FetchingStopped():
                for partition in event.partitions:
                    self.follower.stop(partition)
            case DirectoryFailed():
                for partition in event.partitions:
                    self.directories.take_offline(partition, now, out)
                self.moves.directory_failed(event.partitions, out)
                self.directories.tell(now, out)
                self.follower.send_all(now, out)

    def start(self, now: Micros) -> list[object]:
        """What to do at the start: the first look for lagging followers."""
        return [fx.SetTimer("isr-shrink", now + self.config.lag_time_max_us // 2)]

    def next_correlation(self) -> int:
        """A number for the next request of this machine."""
        self._correlations += 1
        return self._correlations

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """What the high-watermark checkpoint should say."""
        return {p: r.high_watermark for p, r in self.replicas.items()}

    def led(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica, if this broker leads the partition; else the error for a client."""
        replica = self.replicas.get(partition)
        if replica is not None and replica.is_leader:
            return replica
        if partition in self.directories.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if replica is not None or partition in self.image.partitions:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def is_current(self, broker: NodeId, epoch: BrokerEpoch) -> bool:
        """Whether a follower's broker epoch is not older than the image's (KIP-903)."""
        registration = self.image.brokers.get(broker)
        return registration is None or epoch == -1 or epoch >= registration.epoch

    def hint(self, partition: TopicPartition, error: ErrorCode) -> LeaderHint | None:
        """The leader as this broker's image has it, for errors that send clients away (KIP-951)."""
        if error not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
            return None
        state = self.image.partitions.get(partition)
        if state is None or state.leader < 0 or not self.config.gives_leader_hints:
            return None
        return LeaderHint(state.leader, state.leader_epoch)

    def advance(self, replica: Replica, now: Micros, out: list[object]) -> bool:
        """Move a led replica's high watermark, and everything that waited for it.

        Not while a flush holds the log's lock: its end tries again.
        """
        held = self.locks.is_held(replica.partition)
        if held or not replica.advance_high_watermark(self.image, now):
            return False
        partition = replica.partition
        out.append(
            fx.Emit(
                "high_watermarks",
                (
                    self.broker,
                    partition.topic,
                    partition.partition,
                    replica.leader_epoch,
                    replica.high_watermark,
                    replica.log.log_end_offset,
                    len(replica.in_sync),
                    replica.min_in_sync,
                    replica.lowest_end_in_sync(),
                ),
            )
        )
        if replica.transactional:
            note_stable(self, replica, out)
        self.produce.high_watermark_moved(replica, now, out)
        self.fetch.high_watermark_moved(partition)
        if partition in self._watched:
            out.append(HighWatermarkMoved(partition))
        return True

    def watch(self, partition: TopicPartition) -> None:
        """Tell of it from now on when the partition's high watermark moves."""
        self._watched[partition] = None

    # -- requests and answers ---------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros, out: list[object]) -> None:
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
                out.append(fx.Reply(event.token, list_offsets(self, request)))
            case DeleteRecordsRequest():
                self.log_starts.request(event.token, request, now, out)
            case OffsetForLeaderEpochRequest():
                out.append(fx.Reply(event.token, end_of_epoch(self, request)))
            case AlterReplicaLogDirsRequest():
                self.moves.request(event.token, request, now, out)
            case WriteTxnMarkersRequest():
                self.transactions.write_markers(event.token, request, now, out)
            case _:
                raise AssertionError(f"not a data-plane request: {type(request).__name__}")

    def _response(self, event: ResponseReceived, now: Micros, out: list[object]) -> None:
        response = event.response
        if isinstance(response, AlterPartitionResponse):
            self.isr.answered(event.correlation, response, now, out)
        elif isinstance(response, AssignReplicasToDirsResponse):
            self.directories.answered(event.correlation, response, now, out)
        elif isinstance(response, FetchResponse):
            self.follower.answered(event.sender, event.correlation, response, now, out)
        elif isinstance(response, ListOffsetsResponse):
            self.follower.offsets_listed(event.correlation, response, now, out)
        elif isinstance(response, OffsetForLeaderEpochResponse):
            self.follower.epochs.answered(event.correlation, response, now, out)
        elif isinstance(response, AddPartitionsToTxnResponse):
            self.transactions.answered(event.correlation, response, now, out)

    def _failure(self, event: RequestFailed, now: Micros, out: list[object]) -> None:
        if self.isr.failed(event.correlation, event.error, now, out):
            return
        if self.directories.failed(event.correlation, now, out):
            return
        if self.transactions.failed(event.correlation, now, out):
            return
        self.follower.failed(event, now, out)

    def _timer(self, name: str, now: Micros, out: list[object]) -> None:
        if name == "produce":
            self.produce.expire(now, out)
        elif name == "fetch":
            self.fetch.expire(now, out)
        elif name == "isr-shrink":
            self.isr.shrink(now, out)
            out.append(fx.SetTimer("isr-shrink", now + self.config.lag_time_max_us // 2))
        elif name == "isr-retry":
            self.isr.send(now, out)
        elif name == ASSIGNMENTS_TIMER:
            self.directories.tell(now, out)
        elif name == DELETIONS_TIMER:
            self.log_starts.expire(now, out)
        elif name == VERIFICATION_TIMER:
            self.transactions.wake(now, out)
        else:
            self.follower.wake(name, now, out)

    # -- metadata ---------------------------------------------------------------------------------

    def _apply(self, event: MetadataApplied, now: Micros, out: list[object]) -> None:
        """Removals, then leaders, then followers, as ``ReplicaManager.applyDelta`` does."""
        self.image = event.image
        remove_unassigned(self, event.image, event.changed, now, out)
        mine = [
            (p, s)
            for p in event.changed
            if (s := event.image.partitions.get(p)) is not None
            and self.broker in s.replicas
            and self.directories.is_online(p, s)
        ]
        for partition, state in mine:
            if state.leader == self.broker:
                self._take_up(self._lead, partition, state, now, out)
        for partition, state in mine:
            if state.leader != self.broker:
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
        self.directories.tell(now, out)
        if event.breaks_off:
            out[:] = [effect for effect in out if not isinstance(effect, LeadershipApplied)]

    def _reconfigure(self, topic: str, now: Micros, out: list[object]) -> None:
        """New settings of a topic reach its replicas and their logs.

        Source: ``TopicConfigHandler.updateLogConfig``; ``Partition`` reads the minimum ISR anew.
        """
        for partition, replica in self.replicas.items():
            if partition.topic == topic:
                configs = self.image.configs_of(topic)
                self._open_log(partition, replica.topic_id, configs)
                replica.reconfigure(self._replica_config(configs))
                self._throttle(partition, configs)
                if replica.is_leader:
                    self.advance(replica, now, out)

    def _throttle(self, partition: TopicPartition, configs: dict[str, str]) -> None:
        for quota in (self.leader_quota, self.follower_quota):
            if quota is not None:
                quota.configure(partition, configs)

    def _replica_config(self, configs: dict[str, str]) -> ReplicaConfig:
        minimum = int(configs.get("min.insync.replicas", "1"))
        config = self.config
        return ReplicaConfig(
            minimum,
            config.lag_time_max_us,
            config.gates_high_watermark,
            config.joins_at_epoch_start,
            config.checks_eligibility,
            config.in_sync_at_same_end,
        )

    def forget_high_watermark(self, partition: TopicPartition) -> None:
        """What the checkpoint said of the partition at the start does not count any more."""
        self._high_watermarks.pop(partition, None)

    def note_high_watermark(self, partition: TopicPartition, offset: Offset) -> None:
        """What the checkpoint says of the log that the partition has now."""
        self._high_watermarks[partition] = offset

    def _take_up(
        self,
        role: Callable[[TopicPartition, PartitionRegistration, Micros, list[object]], None],
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: list[object],
    ) -> None:
        """Take up a role; a disk that refuses meanwhile concerns this partition alone."""
        try:
            role(partition, state, now, out)
        except StorageFailed as failure:
            out.append(StorageBroke(partition, str(failure)))
            self.directories.take_offline(partition, now, out)
        else:
            self.directories.compare(partition, state)

    def _lead(
        self,
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: list[object],
    ) -> None:
        self.follower.stop(partition)
        self.losses.finish(partition, now, out)
        replica = self._replica(partition, state)
        led = replica.is_leader
        if replica.become_leader(state, now):
            self.fetch.leadership_changed(partition)
            out.append(
                LeadershipApplied(
                    partition, is_leader=True, leader_epoch=state.leader_epoch, takes_over=not led
                )
            )
        self.fetch.in_sync_changed(replica)
        replica.transactional = replica.log.transactions.has_unstable
        self.note_leadership(replica, "leader", out)
        self.advance(replica, now, out)

    def _follow(
        self,
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: list[object],
    ) -> None:
        replica = self._replica(partition, state)
        led = replica.is_leader
        new_epoch = replica.become_follower(state)
        if led:
            self.losses.lost(partition, state.leader_epoch, now, out)
        if new_epoch or led:
            self.fetch.leadership_changed(partition)
            self.follower.stop(partition)
        self.note_leadership(replica, "follower" if state.leader >= 0 else "offline", out)
        leaderless = state.leader < 0 or state.leader not in self.image.brokers
        if leaderless or (self.stopping and self.broker not in state.in_sync):
            self.follower.stop(partition)
        elif not self.follower.is_fetching(partition):
            self.follower.follow(replica, out)

    def _replica(self, partition: TopicPartition, state: PartitionRegistration) -> Replica:
        replica = self.replicas.get(partition)
        if replica is None:
            configs = self.image.configs_of(partition.topic)
            log = self._open_log(partition, state.topic_id, configs)
            config = self._replica_config(configs)
            replica = Replica(
                partition, self.broker, log, config, self._high_watermarks.get(partition, 0)
            )
            self.replicas[partition] = replica
            self._throttle(partition, configs)
        return replica

    def note_leadership(self, replica: Replica, role: str, out: list[object]) -> None:
        """Write to the trace what this broker now is for a partition."""
        partition = replica.partition
        out.append(
            fx.Emit(
                "leadership",
                (
                    self.broker,
                    partition.topic,
                    partition.partition,
                    role,
                    replica.leader,
                    replica.leader_epoch,
                    replica.partition_epoch,
                    ",".join(str(b) for b in sorted(replica.in_sync)),
                    replica.log.log_end_offset,
                    replica.high_watermark,
                ),
            )
        )
