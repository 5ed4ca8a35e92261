"""Invariants of committed records: high watermarks, acknowledgements, and elections.

The *true* high watermark of a partition is the highest that any of its leaders ever had. A zombie's
log and a returning replica's are judged against it, not against their own.
"""

from typing import Final

from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.ids import server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.cluster import Leadership, LeadershipRow, PartitionChanges, PartitionChangesRow
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    FollowerWatermarks,
    FollowerWatermarksRow,
    HighWatermarks,
    HighWatermarksRow,
)


class WatermarkWithinLog(Invariant):
    """Rule S5."""

    name = "high-watermark-within-log"
    sentence = "A replica's high watermark is not above its log end offset."
    source = "S5; UnifiedLog.updateHighWatermark"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)
        observer.follower_watermarks.append(self._follower)

    def _leader(self, partition: Partition, _replica: Replica, row: HighWatermarksRow) -> None:
        self.checked += 1
        watermark, log_end = row[HighWatermarks.HIGH_WATERMARK], row[HighWatermarks.LOG_END_OFFSET]
        if not 0 <= watermark <= log_end:
            found = f"leader's high watermark {watermark}, log end {log_end}"
            raise self.broken_by(row, found, partition)

    def _follower(
        self, partition: Partition, _replica: Replica, row: FollowerWatermarksRow
    ) -> None:
        self.checked += 1
        watermark = row[FollowerWatermarks.HIGH_WATERMARK]
        log_end = row[FollowerWatermarks.LOG_END_OFFSET]
        if not 0 <= watermark <= log_end:
            found = f"follower's high watermark {watermark}, log end {log_end}"
            raise self.broken_by(row, found, partition)


class WatermarkMonotonic(Invariant):
    """Rule S6."""

    name = "high-watermark-monotonic"
    sentence = "Within one leader epoch on one process the high watermark never moves back."
    source = "S6; Partition.maybeIncrementLeaderHW"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, replica: Replica, row: HighWatermarksRow) -> None:
        self.checked += 1
        epoch, watermark = row[HighWatermarks.LEADER_EPOCH], row[HighWatermarks.HIGH_WATERMARK]
        if epoch == replica.watermark_epoch and watermark < replica.watermark:
            found = f"{replica.watermark} → {watermark} in leader epoch {epoch}"
            raise self.broken_by(row, found, partition)


class FollowerBehindLeader(Invariant):
    """Rule S7."""

    name = "follower-watermark-behind-leader"
    sentence = "A follower's high watermark is not above what a leader of its epoch had reached."
    source = "S7; AbstractFetcherThread.processPartitionData"

    def _watch(self, observer: Observer) -> None:
        observer.follower_watermarks.append(self._follower)

    def _follower(
        self, partition: Partition, _replica: Replica, row: FollowerWatermarksRow
    ) -> None:
        self.checked += 1
        watermark = row[FollowerWatermarks.HIGH_WATERMARK]
        sent = row[FollowerWatermarks.SENT_BY_LEADER]
        if watermark > sent:
            found = f"high watermark {watermark}, the leader sent {sent}"
            raise self.broken_by(row, found, partition)
        epoch = row[FollowerWatermarks.LEADER_EPOCH]
        reached = partition.reached.get(epoch)
        if reached is None:
            self.suspend("the trace does not have what the leader of that epoch had reached")
        elif sent > reached:
            found = f"was sent {sent}; the leader of epoch {epoch} had reached {reached}"
            raise self.broken_by(row, found, partition)


class WatermarkNeedsMinInSync(Invariant):
    """Rule S8, first half."""

    name = "high-watermark-needs-min-in-sync"
    sentence = "The high watermark moves only while the ISR has min.insync.replicas members."
    source = "S8; KAFKA-15583, Partition.isUnderMinIsr"
    conditions = "always, since Kafka 3.7"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: HighWatermarksRow) -> None:
        self.checked += 1
        in_sync, needed = row[HighWatermarks.IN_SYNC_COUNT], row[HighWatermarks.MIN_IN_SYNC]
        if in_sync < needed:
            watermark = row[HighWatermarks.HIGH_WATERMARK]
            found = f"moves to {watermark} with {in_sync} in sync, {needed} are required"
            raise self.broken_by(row, found, partition)


class WatermarkNeedsInSyncEnds(Invariant):
    """Rule S8, second half."""

    name = "high-watermark-needs-in-sync-ends"
    sentence = "The high watermark moves only where every member of the maximal ISR has been."
    source = "S8, catalogue 0.6 (4); KIP-497, ReplicationQuorumSuperset"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: HighWatermarksRow) -> None:
        self.checked += 1
        lowest = row[HighWatermarks.LOWEST_IN_SYNC_END]
        watermark = row[HighWatermarks.HIGH_WATERMARK]
        if lowest < watermark:
            found = f"moves to {watermark}, the lowest end in the maximal ISR is {lowest}"
            raise self.broken_by(row, found, partition)


class AcknowledgedIsCommitted(Invariant):
    """Rule S10."""

    name = "acknowledged-is-committed"
    sentence = (
        "acks=all is answered with success only below the high watermark and with "
        "min.insync.replicas in the maximal ISR."
    )
    source = "S10; Partition.checkEnoughReplicasReachOffset"

    def _watch(self, observer: Observer) -> None:
        observer.acknowledgements.append(self._acknowledged)

    def _acknowledged(
        self, partition: Partition, _replica: Replica, row: AcknowledgementsRow
    ) -> None:
        if row[Acknowledgements.ACKS] != -1 or row[Acknowledgements.ERROR] != "NONE":
            return
        self.checked += 1
        watermark, last = row[Acknowledgements.HIGH_WATERMARK], row[Acknowledgements.LAST_OFFSET]
        in_sync = row[Acknowledgements.MAXIMAL_IN_SYNC_COUNT]
        needed = row[Acknowledgements.MIN_IN_SYNC]
        if watermark <= last or in_sync < needed:
            found = (
                f"acknowledges up to offset {last} with high watermark {watermark} and "
                f"{in_sync} in the maximal ISR, {needed} are required"
            )
            raise self.broken_by(row, found, partition)


class RefusedIsNotAppended(Invariant):
    """Rule S11."""

    name = "refused-is-not-appended"
    sentence = "NOT_ENOUGH_REPLICAS means that the attempt appended nothing."
    source = "S11; Partition.appendRecordsToLeader"

    def _watch(self, observer: Observer) -> None:
        observer.acknowledgements.append(self._acknowledged)

    def _acknowledged(
        self, partition: Partition, _replica: Replica, row: AcknowledgementsRow
    ) -> None:
        if row[Acknowledgements.ERROR] != "NOT_ENOUGH_REPLICAS":
            return
        self.checked += 1
        base, last = row[Acknowledgements.BASE_OFFSET], row[Acknowledgements.LAST_OFFSET]
        if base != -1 or last != -1:
            found = f"NOT_ENOUGH_REPLICAS, yet appended at offsets {base} to {last}"
            raise self.broken_by(row, found, partition)


class LeaderComplete(Invariant):
    """Rule S12; that its log is also the right one follows from ``logs-match``."""

    name = "leader-complete"
    sentence = "A new leader's log reaches all that leaders before it had committed."
    source = "S12, catalogue 0.6 (2); LeaderCompleteness of kip-966"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.leadership.append(self._leadership)

    def _leadership(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        epoch = row[Leadership.LEADER_EPOCH]
        if row[Leadership.ROLE] != "leader" or epoch == replica.leader_epoch:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        committed, log_end = partition.committed_before(epoch), row[Leadership.LOG_END_OFFSET]
        if log_end < committed:
            found = (
                f"leads in epoch {epoch} with log end {log_end}; offsets below {committed} "
                "are committed"
            )
            raise self.broken_by(row, found, partition)


class DeposedLeadersStayBehind(Invariant):
    """Rule S17."""

    name = "deposed-leaders-stay-behind"
    sentence = (
        "Whatever high watermark a leader reaches, also as a zombie after it was replaced, "
        "the leaders after it began with a log that goes that far."
    )
    source = "S17; KIP-966, Partition.maybeIncrementLeaderHW"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: HighWatermarksRow) -> None:
        began, own = partition.began, row[HighWatermarks.LEADER_EPOCH]
        if not began or began[-1][0] <= own:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        watermark = row[HighWatermarks.HIGH_WATERMARK]
        for epoch, end in began:
            if epoch > own and end < watermark:
                found = (
                    f"moves to {watermark} in epoch {own}; the leader of epoch {epoch} began with "
                    f"a log that ends at {end}"
                )
                raise self.broken_by(row, found, partition)


class InSyncComplete(Invariant):
    """Rule S13; of the ELR only present replicas, as only they can be elected."""

    name = "in-sync-complete"
    sentence = "Every replica in the controller's ISR or ELR has all that is committed."
    source = "S13, catalogue 0.6 (3); LeaderCandidateCompleteness of kip-966"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)

    def _change(self, partition: Partition, row: PartitionChangesRow) -> None:
        if partition.excuse is not None or row[PartitionChanges.UNCLEAN]:
            self.suspend(partition.excuse or "this very change is an unclean election")
            return
        self.checked += 1
        in_sync = brokers_in(row[PartitionChanges.IN_SYNC])
        replicas = brokers_in(row[PartitionChanges.REPLICAS])
        eligible = [b for b in brokers_in(row[PartitionChanges.ELIGIBLE]) if b in replicas]
        for broker in [*in_sync, *eligible]:
            replica = partition.replicas.get(broker)
            log_end = replica.log_end if replica is not None else 0
            if log_end < partition.watermark:
                found = (
                    f"{server_name(broker)} counts as in sync or eligible with log end {log_end}; "
                    f"offsets below {partition.watermark} are committed"
                )
                raise self.broken_by(row, found, partition)


WATERMARK_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    WatermarkWithinLog,
    WatermarkMonotonic,
    FollowerBehindLeader,
    WatermarkNeedsMinInSync,
    WatermarkNeedsInSyncEnds,
    AcknowledgedIsCommitted,
    RefusedIsNotAppended,
    LeaderComplete,
    DeposedLeadersStayBehind,
    InSyncComplete,
)
"""Invariants of high watermarks and what depends on them."""
