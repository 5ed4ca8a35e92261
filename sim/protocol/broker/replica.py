"""One replica of one partition at its broker (``kafka.cluster.Partition``).

It becomes leader or follower by committed metadata, with a leader epoch that only grows. A leader
appends, learns each follower's log end from its fetches, and advances the high watermark to the
smallest log end of the maximal ISR. A follower appends at the leader's offsets and truncates where
the two logs diverge. Methods are named after the actions of the TLA+ models.

Left out: reassignment throttles.

Source: ``kafka.cluster.Partition``; KIP-101, KIP-279, KIP-497, KIP-841, KIP-903, KIP-966.
"""

from dataclasses import dataclass

from sim.ids import NO_EPOCH, NO_LEADER, BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.messages.cluster import AlterPartitionItem, AlterPartitionResult, IsrMember
from sim.protocol.messages.data import FetchPartition
from sim.protocol.messages.transaction import WriteTxnMarkersRequest
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.ports import NO_EPOCH_END, NO_GUARD, Appended, Batch, EpochEnd, ReplicaLog
from sim.units import LONG_AGO, SECOND, Micros


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Kafka's settings of a replica."""

    min_insync_replicas: int = 1
    lag_time_max_us: Micros = 30 * SECOND
    """``replica.lag.time.max.ms``."""
    gates_high_watermark: bool = True
    """True if it does not advance below min ISR (KAFKA-15583)."""
    joins_at_epoch_start: bool = True
    """True if a follower must reach the start of the leader's epoch to join (KAFKA-7128)."""
    checks_eligibility: bool = True
    """True if fenced brokers are kept out of the ISR (KIP-841)."""
    in_sync_at_same_end: bool = True
    """True if the leader's log end is enough to be in sync, however old the fetch (KAFKA-7152)."""
    checks_broker_epochs: bool = True
    """True if former processes are kept out of the ISR (KIP-903)."""
    waits_for_eligible: bool = True
    """True if the high watermark waits for replicas outside the ISR only if they may join
    (KAFKA-15021)."""
    keeps_pending: bool = False
    """True if a follower is in sync while its fetch from the log end that it knew is being read
    (KIP-501, in no release)."""


class FetchClock:
    """The last fetch of a follower's session; shared by all its partitions."""

    __slots__ = ("is_read", "last_fetch_us")

    def __init__(self) -> None:
        self.last_fetch_us: Micros = LONG_AGO
        self.is_read = False
        """True while its response waits for the disk; noted only for KIP-501."""


class RemoteReplica:
    """The leader's state of one follower.

    An idle partition is not listed in an incremental fetch, so its times are updated from the
    session's clock when the leader's log end moves; see ``_before_append``.
    """

    __slots__ = (
        "at_known_end",
        "broker_epoch",
        "clock",
        "last_caught_up_us",
        "last_fetch_leader_end",
        "last_fetch_us",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self) -> None:
        self.log_end_offset: Offset = -1
        self.log_start_offset: Offset = -1
        self.last_fetch_leader_end: Offset = -1
        self.last_fetch_us: Micros = LONG_AGO
        self.last_caught_up_us: Micros = LONG_AGO
        self.broker_epoch: BrokerEpoch = -1
        self.clock: FetchClock | None = None
        self.at_known_end = False
        """True if its last fetch began at, or after, the leader's log end of the fetch before."""

    def reset(self, now: Micros, *, in_sync: bool, keep: bool, epoch_start: Offset) -> None:
        """A new leader epoch begins: state of a former epoch does not count (KIP-497)."""
        self.last_caught_up_us = now if in_sync else LONG_AGO
        if keep:
            self.last_fetch_leader_end = epoch_start
            self.last_fetch_us = now if in_sync else LONG_AGO
            if not in_sync:
                self.clock = None  # fetches of the former epoch do not count
            return
        self.log_end_offset = self.log_start_offset = -1
        self.last_fetch_leader_end = -1
        self.last_fetch_us = LONG_AGO
        self.broker_epoch = -1
        self.clock = None

    def fetched(self, offset: Offset, leader_end: Offset, now: Micros, epoch: BrokerEpoch) -> bool:
        """Updates it from a fetch; returns true if the follower's log end changed.

        Source: ``org.apache.kafka.server.replica.Replica.updateFetchStateOrThrow``.
        """
        self.at_known_end = offset >= self.last_fetch_leader_end
        if offset >= leader_end:
            self.last_caught_up_us = max(self.last_caught_up_us, now)
        elif self.at_known_end:
            self.last_caught_up_us = max(self.last_caught_up_us, self.last_fetch_us)
        moved = offset != self.log_end_offset
        self.log_end_offset = offset
        self.last_fetch_leader_end = max(leader_end, self.last_fetch_leader_end)
        self.last_fetch_us = now
        self.broker_epoch = epoch
        return moved


class Replica:
    """One replica of one partition. Changed only by its own methods."""

    __slots__ = (
        "assigned",
        "broker",
        "config",
        "epoch_start_offset",
        "high_watermark",
        "in_sync",
        "is_leader",
        "last_stable",
        "leader",
        "leader_epoch",
        "log",
        "maximal_in_sync",
        "min_in_sync",
        "partition",
        "partition_epoch",
        "pending",
        "remotes",
        "topic_id",
        "transactional",
    )

    def __init__(
        self,
        partition: TopicPartition,
        broker: NodeId,
        log: ReplicaLog,
        config: ReplicaConfig,
        checkpointed_high_watermark: Offset,
    ) -> None:
        self.partition = partition
        self.broker = broker
        self.log = log
        self.config = config
        self.topic_id = ""
        self.transactional = False
        """True if a transaction was open when this leader began, or has touched it since: its last
        stable offset is computed only then."""
        self.last_stable: Offset = -1
        """Last stable offset in this leader's last trace row."""
        self.leader: NodeId = NO_LEADER
        self.leader_epoch: LeaderEpoch = NO_EPOCH
        self.partition_epoch = -1
        self.epoch_start_offset: Offset = -1
        self.is_leader = False
        self.assigned: tuple[NodeId, ...] = ()
        self.min_in_sync = 0
        """Effective ``min.insync.replicas``: never more than there are replicas."""
        self.in_sync: tuple[NodeId, ...] = ()
        """Committed ISR: confirmed by the controller."""
        self.maximal_in_sync: tuple[NodeId, ...] = ()
        """Committed ISR and the replica that is being added, if one is."""
        self.pending: AlterPartitionItem | None = None
        """The ISR change in flight."""
        self.remotes: dict[NodeId, RemoteReplica] = {}
        start, end = log.log_start_offset, log.log_end_offset
        self.high_watermark: Offset = min(max(checkpointed_high_watermark, start), end)

    def reconfigure(self, config: ReplicaConfig) -> None:
        """Applies the topic's new settings."""
        self.config = config
        self.min_in_sync = min(config.min_insync_replicas, len(self.assigned))

    # -- leadership -------------------------------------------------------------------------------

    def become_leader(self, state: PartitionRegistration, now: Micros) -> bool:
        """Applies a leadership; true if the leader epoch is new. Stale state is ignored."""
        if state.partition_epoch < self.partition_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        was_leader = self.is_leader
        self._adopt(state)
        self.is_leader = True
        for broker in state.replicas:
            if broker != self.broker and broker not in self.remotes:
                self.remotes[broker] = RemoteReplica()
        self.remotes = {b: r for b, r in self.remotes.items() if b in state.replicas}
        if new_epoch:
            self.epoch_start_offset = self.log.log_end_offset
            self.transactional = self.log.transactions.has_unstable
            self.last_stable = -1
            self.log.begin_epoch(state.leader_epoch)
            for broker, remote in self.remotes.items():
                remote.reset(
                    now,
                    in_sync=broker in state.in_sync,
                    keep=was_leader,
                    epoch_start=self.epoch_start_offset,
                )
        return new_epoch

    def become_follower(self, state: PartitionRegistration) -> bool:
        """Applies a followership; true if the leader epoch is new. Stale state is ignored."""
        if state.partition_epoch < self.partition_epoch:
            return False
        new_epoch = state.leader_epoch > self.leader_epoch
        self._adopt(state)
        self.is_leader = False
        self.in_sync = self.maximal_in_sync = ()
        self.remotes = {}
        return new_epoch

    def _adopt(self, state: PartitionRegistration) -> None:
        self.topic_id = state.topic_id
        self.leader = state.leader
        self.leader_epoch = max(self.leader_epoch, state.leader_epoch)
        self.partition_epoch = state.partition_epoch
        self.assigned = state.replicas
        self.min_in_sync = min(self.config.min_insync_replicas, len(state.replicas))
        self.in_sync = self.maximal_in_sync = state.in_sync
        self.pending = None

    # -- leader -----------------------------------------------------------------------------------

    def leader_write(
        self, batch: Batch, now: Micros, now_ms: int, guard: int = NO_GUARD
    ) -> Appended:
        """Appends with this leader's epoch. The caller has checked leadership and ISR size."""
        self._before_append()
        del now
        return self.log.append_as_leader(batch, self.leader_epoch, now_ms, guard)

    def leader_mark(self, request: WriteTxnMarkersRequest, now_ms: int, version: int) -> Appended:
        """Appends a transaction's marker; checked by the caller as a write is."""
        self._before_append()
        return self.log.append_marker(
            request.producer_id,
            request.producer_epoch,
            request.coordinator_epoch,
            self.leader_epoch,
            now_ms,
            committed=request.committed,
            version=version,
        )

    def _before_append(self) -> None:
        """The log end is about to move: followers at the old end were caught up until now."""
        end = self.log.log_end_offset
        for remote in self.remotes.values():
            # The follower had everything: its last fetch, listed or not, found it caught up.
            if remote.log_end_offset == end and remote.clock is not None:
                fetched = remote.clock.last_fetch_us
                remote.last_caught_up_us = max(remote.last_caught_up_us, fetched)
                remote.last_fetch_leader_end = max(remote.last_fetch_leader_end, end)
                remote.last_fetch_us = max(remote.last_fetch_us, fetched)

    def divergence(self, fetch: FetchPartition) -> EpochEnd | None:
        """Point at which the fetcher's log diverges from this one; ``None`` if it does not.

        Raises:
            LookupError: If the fetcher's last epoch is unknown here (OFFSET_OUT_OF_RANGE).
        """
        epoch = fetch.last_fetched_epoch
        if epoch in (NO_EPOCH, self.log.latest_epoch):
            return None
        end = self.log.end_offset_for_epoch(epoch)
        if end == NO_EPOCH_END:
            raise LookupError(epoch)
        if end.epoch < epoch or end.offset < fetch.fetch_offset:
            return end
        return None

    def advance_high_watermark(self, image: MetadataImage, now: Micros) -> bool:
        """Advances the high watermark as far as the maximal ISR allows; true if it moved.

        Source: ``Partition.maybeIncrementLeaderHW``; the gate below min ISR is KAFKA-15583 (3.7).
        """
        if len(self.in_sync) < self.min_in_sync and self.config.gates_high_watermark:
            return False
        new = self.log.log_end_offset
        maximal = self.maximal_in_sync
        for broker, remote in self.remotes.items():
            if remote.log_end_offset < new and (
                broker in maximal
                or (self.is_caught_up(remote, now) and self._awaits(broker, remote, image))
            ):
                new = remote.log_end_offset
        if new <= self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def lowest_end_in_sync(self) -> Offset:
        """Smallest log end among the maximal ISR, with the leader's own, as far as it knows."""
        lowest = self.log.log_end_offset
        for broker in self.maximal_in_sync:
            if broker != self.broker and broker in self.assigned:
                remote = self.remotes.get(broker)
                lowest = min(lowest, remote.log_end_offset if remote is not None else -1)
        return lowest

    def is_caught_up(self, remote: RemoteReplica, now: Micros) -> bool:
        """True if at the log end, or there within ``replica.lag.time.max.ms``."""
        caught_up = remote.last_caught_up_us
        if remote.log_end_offset == self.log.log_end_offset:
            if self.config.in_sync_at_same_end:
                return True
            if remote.clock is not None:
                caught_up = max(caught_up, remote.clock.last_fetch_us)
        return now - caught_up <= self.config.lag_time_max_us

    def _awaits(self, broker: NodeId, remote: RemoteReplica, image: MetadataImage) -> bool:
        """True if the high watermark waits for a follower that has caught up."""
        return not self.config.waits_for_eligible or self.is_eligible(broker, remote, image)

    def is_eligible(self, broker: NodeId, remote: RemoteReplica, image: MetadataImage) -> bool:
        """True if active in the metadata, and fetching with its broker epoch (KIP-841, KIP-903)."""
        if self.config.checks_eligibility and not image.is_active(broker):
            return False
        if not self.config.checks_broker_epochs or broker not in image.brokers:
            return True
        epoch = image.brokers[broker].epoch
        # Images of ZooKeeper mode have live brokers, and no epochs.
        return epoch == -1 or remote.broker_epoch in (-1, epoch)

    # -- ISR --------------------------------------------------------------------------------------

    def expand_isr(self, broker: NodeId, image: MetadataImage) -> AlterPartitionItem | None:
        """Change that adds a follower which has caught up; ``None`` if it may not be added."""
        if self.pending is not None or broker in self.in_sync:
            return None
        remote = self.remotes[broker]
        if remote.log_end_offset < self.high_watermark:
            return None
        if remote.log_end_offset < self.epoch_start_offset and self.config.joins_at_epoch_start:
            return None
        if not self.is_eligible(broker, remote, image):
            return None
        members = tuple(b for b in self.assigned if b in self.in_sync or b == broker)
        self.maximal_in_sync = members
        return self._propose(members, image)

    def lags(self, now: Micros) -> bool:
        """True if a member of the ISR lags and may be removed now."""
        if not self.is_leader or self.pending is not None:
            return False
        return not all(b == self.broker or self._keeps_up(b, now) for b in self.in_sync)

    def shrink_isr(self, image: MetadataImage, now: Micros) -> AlterPartitionItem | None:
        """Change that removes lagging followers; ``None`` without any."""
        if not self.is_leader or self.pending is not None:
            return None
        members = tuple(b for b in self.in_sync if b == self.broker or self._keeps_up(b, now))
        if len(members) == len(self.in_sync):
            return None
        return self._propose(members, image)

    def _keeps_up(self, broker: NodeId, now: Micros) -> bool:
        remote = self.remotes.get(broker)
        if remote is None:
            return False
        return self.is_caught_up(remote, now) or (self.config.keeps_pending and _is_pending(remote))

    def _propose(self, in_sync: tuple[NodeId, ...], image: MetadataImage) -> AlterPartitionItem:
        members = tuple(IsrMember(b, self._epoch_of(b, image)) for b in in_sync)
        self.pending = AlterPartitionItem(
            self.partition, self.leader_epoch, self.partition_epoch, members
        )
        return self.pending

    def _epoch_of(self, broker: NodeId, image: MetadataImage) -> BrokerEpoch:
        if not self.config.checks_broker_epochs:
            return -1
        if broker == self.broker:
            registration = image.brokers.get(broker)
            return registration.epoch if registration is not None else -1
        return self.remotes[broker].broker_epoch

    def isr_changed(self, item: AlterPartitionItem, result: AlterPartitionResult) -> bool:
        """Applies the controller's new state. Returns true if a change was pending."""
        if self.pending is not item or result.leader_epoch != self.leader_epoch:
            return False
        if result.partition_epoch < self.partition_epoch:
            return False
        self.pending = None
        self.partition_epoch = result.partition_epoch
        self.in_sync = self.maximal_in_sync = result.in_sync
        return True

    def isr_change_refused(self, item: AlterPartitionItem) -> None:
        """The controller refused for good: back to the committed ISR."""
        if self.pending is item:
            self.pending = None
            self.maximal_in_sync = self.in_sync

    # -- follower ---------------------------------------------------------------------------------

    def follower_advance(self, sent: Offset) -> bool:
        """Adopts the leader's high watermark, within this log; true if it changed."""
        new = min(max(sent, self.log.log_start_offset), self.log.log_end_offset)
        if new == self.high_watermark:
            return False
        self.high_watermark = new
        return True

    def truncate_for(self, leader_end: EpochEnd, fetch_offset: Offset) -> tuple[Offset, bool]:
        """Truncation offset by the leader's epoch end, and true if no further lookup is needed.

        Source: ``AbstractFetcherThread.getOffsetTruncationState`` (KIP-279).
        """
        return truncation_for(self.log, leader_end, fetch_offset)

    def truncate_to(self, offset: Offset) -> None:
        """Truncates the log; the high watermark stays within it.

        Raises:
            CorruptRecord: If a header on the way is damaged; the log may have been truncated.
            StorageFailed: If the disk has failed.
        """
        try:
            self.log.truncate_to(offset)
        finally:
            self.high_watermark = min(self.high_watermark, self.log.log_end_offset)


def _is_pending(remote: RemoteReplica) -> bool:
    """True if the follower waits for a fetch that began at the log end that it could know.

    Source: KIP-501, option 1: pending fetches count if their offset is not below the leader's log
    end at the fetch before.
    """
    return remote.at_known_end and remote.clock is not None and remote.clock.is_read


def truncation_for(
    log: ReplicaLog, leader_end: EpochEnd, fetch_offset: Offset
) -> tuple[Offset, bool]:
    """Truncation offset of a log that follows another, and true if no further lookup is needed.

    Args:
        log: The follower's log.
        leader_end: End of this log's last epoch, or of one before it, in the other log.
        fetch_offset: Truncation offset if the other log does not know the epoch.

    Source: ``AbstractFetcherThread.getOffsetTruncationState`` (KIP-279).
    """
    if leader_end.offset == NO_EPOCH_END.offset:
        return fetch_offset, True
    end = log.log_end_offset
    own = log.end_offset_for_epoch(leader_end.epoch)
    if own == NO_EPOCH_END:
        return min(leader_end.offset, end), True
    if own.epoch != leader_end.epoch:
        return min(own.offset, end), False
    return min(own.offset, leader_end.offset, end), True
