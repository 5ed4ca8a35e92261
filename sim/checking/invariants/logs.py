"""Invariants of every replica's log, whatever fails: gapless, ordered by epoch, matching.

Gaps are allowed where a cleaner has removed records, or a recovery has kept a hole between
segments. Batches are compared by checksum; the leader epoch is outside a batch's checksum in
Kafka's format, so it is compared, too.
"""

from typing import Final

from sim.checking.chains import Mismatch
from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer
from sim.checking.partition import LOSSES, Partition, Replica
from sim.ids import LeaderEpoch, NodeId, server_name
from sim.trace.rows.cluster import Leadership, LeadershipRow, PartitionChanges, PartitionChangesRow
from sim.trace.rows.log import Appends, AppendsRow, Truncations, TruncationsRow
from sim.units import Micros


class OffsetsContiguous(Invariant):
    """Rule S1."""

    name = "offsets-contiguous"
    sentence = (
        "A batch is appended exactly at the end of the replica's log; only a copy may omit "
        "what a cleaner removed, or what another replica's recovery has not found."
    )
    source = "S1; UnifiedLog.append, the follower's check that fetchOffset = logEndOffset"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendsRow) -> None:
        self.checked += 1
        base, last, log_end = row[Appends.BASE_OFFSET], row[Appends.LAST_OFFSET], replica.log_end
        if base == log_end and last >= base:
            return
        leaps = log_end < base and not row[Appends.AS_LEADER]
        if leaps and base > partition.cleaned_below:
            begin = max(log_end, partition.cleaned_below)
            leaps = not list(partition.holes.missing(begin, base))
        if not leaps or last < base:
            found = f"offsets {base} to {last} appended to a log that ends at {log_end}"
            raise self.broken_by(row, found, partition)


class EpochsOrdered(Invariant):
    """Rule S2."""

    name = "batch-epochs-ordered"
    sentence = "Leader epochs of batches never decrease with the offset."
    source = "S2; KIP-101, LeaderEpochFileCache"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendsRow) -> None:
        self.checked += 1
        epoch = row[Appends.LEADER_EPOCH]
        if epoch < replica.epoch:
            base = row[Appends.BASE_OFFSET]
            found = f"a batch of epoch {epoch} at offset {base} behind epoch {replica.epoch}"
            raise self.broken_by(row, found, partition)


class OneLeaderPerEpoch(Invariant):
    """Rule S3."""

    name = "one-leader-per-epoch"
    sentence = "A leader epoch of a partition belongs to one broker."
    source = "S3; KIP-101, controller's PartitionChangeRecord"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)
        observer.leadership.append(self._leadership)
        observer.changes.append(self._change)

    def _append(self, partition: Partition, _replica: Replica, row: AppendsRow) -> None:
        if row[Appends.AS_LEADER]:
            self.checked += 1
            epoch, broker = row[Appends.LEADER_EPOCH], row[Appends.BROKER]
            if partition.leaders.get(epoch, broker) != broker:
                raise self._second(partition, row[Appends.T_US], broker, epoch)

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        if row[Leadership.ROLE] == "leader":
            self.checked += 1
            epoch, broker = row[Leadership.LEADER_EPOCH], row[Leadership.BROKER]
            if partition.leaders.get(epoch, broker) != broker:
                raise self._second(partition, row[Leadership.T_US], broker, epoch)

    def _change(self, partition: Partition, row: PartitionChangesRow) -> None:
        epoch, leader = row[PartitionChanges.LEADER_EPOCH], row[PartitionChanges.LEADER]
        if leader >= 0:
            self.checked += 1
            if partition.leaders.get(epoch, leader) != leader:
                raise self._second(partition, row[PartitionChanges.T_US], leader, epoch)

    def _second(
        self, partition: Partition, at: Micros, broker: NodeId, epoch: LeaderEpoch
    ) -> Exception:
        first = server_name(partition.leaders[epoch])
        return self.broken(
            at, server_name(broker), f"leads in epoch {epoch}, which {first} led", partition
        )


class LogsMatch(Invariant):
    """Rule S4, by induction: each batch, when it is appended, equals the one of its epoch."""

    name = "logs-match"
    sentence = "Batches of equal offset and leader epoch are equal on all replicas."
    source = "S4, catalogue 0.6 (1); LogMatching of Kip101.tla"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, _replica: Replica, row: AppendsRow) -> None:
        broker, base = row[Appends.BROKER], row[Appends.BASE_OFFSET]
        epoch, crc = row[Appends.LEADER_EPOCH], row[Appends.CRC]
        met = partition.chains.meet(broker, base, epoch, crc)
        if met is True:
            self.checked += 1
        elif base < partition.cleaned_below and not row[Appends.AS_LEADER]:
            self.suspend("a cleaner may have rewritten the batch before it was copied")
        elif isinstance(met, Mismatch):
            found = (
                f"epoch {epoch}, offset {base}, checksum {crc:#010x}; known of this epoch is "
                f"the batch at {met.base_offset}, checksum {met.crc:#010x}"
            )
            raise self.broken(row[Appends.T_US], server_name(broker), found, partition)
        else:
            self.suspend("every replica had passed these offsets before")
        if partition.chains.is_prune_due(epoch):
            partition.chains.prune(partition.lowest_end())


class NothingCommittedTruncated(Invariant):
    """Rule S16."""

    name = "nothing-committed-truncated"
    sentence = "A follower never truncates a committed record that policy has not removed."
    source = "S16; KIP-101, KIP-279"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.truncations.append(self._truncation)

    def _truncation(self, partition: Partition, replica: Replica, row: TruncationsRow) -> None:
        reason = row[Truncations.REASON]
        if reason in LOSSES:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        start, end = row[Truncations.FROM_OFFSET], row[Truncations.TO_OFFSET]
        # Offsets below the watermark may be truncated if their records are not the committed ones:
        # the tail of a deposed leader; or what policy removed elsewhere, if a log start was lost.
        lowest = max(end, partition.removed_below)
        if any(partition.is_committed(*span) for span in replica.spans(lowest)):
            found = (
                f"truncates from {start} to {end} ({reason}); offsets below "
                f"{partition.watermark} are committed"
            )
            raise self.broken_by(row, found, partition)


class AppliedEpochsGrow(Invariant):
    """Epochs of a replica within one process."""

    name = "applied-epochs-grow"
    sentence = "Leader epoch and partition epoch that a broker applies never decrease."
    source = "S3, S21; Partition.makeLeader and makeFollower"
    conditions = "always, within one process"

    def _watch(self, observer: Observer) -> None:
        observer.leadership.append(self._leadership)

    def _leadership(self, partition: Partition, replica: Replica, row: LeadershipRow) -> None:
        self.checked += 1
        led_in, changed_in = row[Leadership.LEADER_EPOCH], row[Leadership.PARTITION_EPOCH]
        if led_in < replica.leader_epoch or changed_in < replica.partition_epoch:
            found = (
                f"applies leader epoch {led_in} and partition epoch {changed_in} after "
                f"{replica.leader_epoch} and {replica.partition_epoch}"
            )
            raise self.broken_by(row, found, partition)


LOG_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    OffsetsContiguous,
    EpochsOrdered,
    OneLeaderPerEpoch,
    LogsMatch,
    NothingCommittedTruncated,
    AppliedEpochsGrow,
)
"""Invariants of replicas' logs."""
