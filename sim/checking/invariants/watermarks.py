"""What is committed stays so: high watermarks, acknowledgements, and who may lead.

The *true* high watermark of a partition is the highest that any of its leaders ever had. A zombie's
log and a returning replica's are judged against it, not against what they believe themselves.
"""

from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.rows import (
    AcknowledgementRow,
    ChangeRow,
    FollowerWatermarkRow,
    LeadershipRow,
    WatermarkRow,
    brokers_in,
)
from sim.ids import server_name


class WatermarkWithinLog(Invariant):
    """Rule S5."""

    name = "high-watermark-within-log"
    sentence = "A replica's high watermark is not above its log end offset."
    source = "S5; UnifiedLog.updateHighWatermark"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)
        observer.follower_watermarks.append(self._follower)

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        self.checked += 1
        if not 0 <= row[5] <= row[6]:
            found = f"leader's high watermark {row[5]}, log end {row[6]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)

    def _follower(self, partition: Partition, _replica: Replica, row: FollowerWatermarkRow) -> None:
        self.checked += 1
        if not 0 <= row[5] <= row[6]:
            found = f"follower's high watermark {row[5]}, log end {row[6]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class WatermarkMonotonic(Invariant):
    """Rule S6."""

    name = "high-watermark-monotonic"
    sentence = "Within one leader epoch on one process the high watermark never moves back."
    source = "S6; Partition.maybeIncrementLeaderHW"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, replica: Replica, row: WatermarkRow) -> None:
        self.checked += 1
        if row[4] == replica.watermark_epoch and row[5] < replica.watermark:
            found = f"{replica.watermark} → {row[5]} in leader epoch {row[4]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class FollowerBehindLeader(Invariant):
    """Rule S7."""

    name = "follower-watermark-behind-leader"
    sentence = "A follower's high watermark is not above what a leader of its epoch had reached."
    source = "S7; AbstractFetcherThread.processPartitionData"

    def _watch(self, observer: Observer) -> None:
        observer.follower_watermarks.append(self._follower)

    def _follower(self, partition: Partition, _replica: Replica, row: FollowerWatermarkRow) -> None:
        self.checked += 1
        if row[5] > row[7]:
            found = f"high watermark {row[5]}, the leader sent {row[7]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)
        reached = partition.reached.get(row[4])
        if reached is None:
            self.suspend("the trace does not tell what the leader of that epoch had reached")
        elif row[7] > reached:
            found = f"was sent {row[7]}; the leader of epoch {row[4]} had reached {reached}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class WatermarkNeedsMinInSync(Invariant):
    """Rule S8, first half."""

    name = "high-watermark-needs-min-in-sync"
    sentence = "The high watermark moves only while the ISR has min.insync.replicas members."
    source = "S8; KAFKA-15583, Partition.isUnderMinIsr"
    conditions = "always, since Kafka 3.7"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        self.checked += 1
        if row[7] < row[8]:
            found = f"moves to {row[5]} with {row[7]} in sync, {row[8]} are asked"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class WatermarkNeedsInSyncEnds(Invariant):
    """Rule S8, second half."""

    name = "high-watermark-needs-in-sync-ends"
    sentence = "The high watermark moves only where every member of the maximal ISR has been."
    source = "S8, catalogue 0.6 (4); KIP-497, ReplicationQuorumSuperset"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        self.checked += 1
        if row[9] < row[5]:
            found = f"moves to {row[5]}, the lowest end in the maximal ISR is {row[9]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


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
        self, partition: Partition, _replica: Replica, row: AcknowledgementRow
    ) -> None:
        if row[5] != -1 or row[6] != "NONE":
            return
        self.checked += 1
        if row[9] <= row[8] or row[10] < row[11]:
            found = (
                f"acknowledges up to offset {row[8]} with high watermark {row[9]} and "
                f"{row[10]} in the maximal ISR, {row[11]} are asked"
            )
            raise self.broken(row[0], server_name(row[1]), found, partition)


class RefusedIsNotAppended(Invariant):
    """Rule S11."""

    name = "refused-is-not-appended"
    sentence = "NOT_ENOUGH_REPLICAS means that the attempt appended nothing."
    source = "S11; Partition.appendRecordsToLeader"

    def _watch(self, observer: Observer) -> None:
        observer.acknowledgements.append(self._acknowledged)

    def _acknowledged(
        self, partition: Partition, _replica: Replica, row: AcknowledgementRow
    ) -> None:
        if row[6] != "NOT_ENOUGH_REPLICAS":
            return
        self.checked += 1
        if row[7] != -1 or row[8] != -1:
            found = f"NOT_ENOUGH_REPLICAS, yet appended at offsets {row[7]} to {row[8]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


class LeaderComplete(Invariant):
    """Rule S12; that its log is also the right one follows from ``logs-match``."""

    name = "leader-complete"
    sentence = "A new leader's log reaches all that leaders before it had committed."
    source = "S12, catalogue 0.6 (2); LeaderCompleteness of kip-966"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.leadership.append(self._leadership)

    def _leadership(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        if row[4] != "leader" or row[6] == replica.leader_epoch:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        committed = partition.committed_before(row[6])
        if row[9] < committed:
            found = (
                f"leads in epoch {row[6]} with log end {row[9]}; offsets below {committed} "
                "are committed"
            )
            raise self.broken(row[0], server_name(row[1]), found, partition)


class DeposedLeadersStayBehind(Invariant):
    """Rule S17."""

    name = "deposed-leaders-stay-behind"
    sentence = (
        "Whatever high watermark a leader reaches, also after it was replaced without knowing it, "
        "the leaders after it began with a log that goes that far."
    )
    source = "S17; KIP-966, Partition.maybeIncrementLeaderHW"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        began = partition.began
        if not began or began[-1][0] <= row[4]:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        for epoch, end in began:
            if epoch > row[4] and end < row[5]:
                found = (
                    f"moves to {row[5]} in epoch {row[4]}; the leader of epoch {epoch} began with "
                    f"a log that ends at {end}"
                )
                raise self.broken(row[0], server_name(row[1]), found, partition)


class InSyncComplete(Invariant):
    """Rule S13; of the ELR those who are replicas still, as only they can be elected."""

    name = "in-sync-complete"
    sentence = "Every replica in the controller's ISR or ELR has all that is committed."
    source = "S13, catalogue 0.6 (3); LeaderCandidateCompleteness of kip-966"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)

    def _change(self, partition: Partition, row: ChangeRow) -> None:
        if partition.excuse is not None or row[10]:
            self.suspend(partition.excuse or "this very change is an unclean election")
            return
        self.checked += 1
        replicas = brokers_in(row[9])
        eligible = [broker for broker in brokers_in(row[8]) if broker in replicas]
        for broker in [*brokers_in(row[7]), *eligible]:
            replica = partition.replicas.get(broker)
            log_end = replica.log_end if replica is not None else 0
            if log_end < partition.watermark:
                found = (
                    f"{server_name(broker)} counts as in sync or eligible with log end {log_end}; "
                    f"offsets below {partition.watermark} are committed"
                )
                raise self.broken(row[0], server_name(row[1]), found, partition)
