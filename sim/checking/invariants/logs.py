"""What every replica's log must be like, whatever fails: gapless, ordered by epoch, matching.

A gap is a gap, but where a cleaner has been, or a recovery has kept a hole between segments.
Batches are compared by checksum; the leader epoch is outside a batch's checksum in Kafka's format,
so it is compared beside it.
"""

from sim.checking.chains import Mismatch
from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import LOSSES, Observer, Partition, Replica
from sim.checking.rows import AppendRow, ChangeRow, LeadershipRow, TruncationRow
from sim.ids import LeaderEpoch, NodeId, server_name
from sim.units import Micros


class OffsetsContiguous(Invariant):
    """Rule S1."""

    name = "offsets-contiguous"
    sentence = (
        "A batch is appended exactly at the end of the replica's log; only a copy may leave out "
        "what a cleaner took, or what another replica's recovery has not found."
    )
    source = "S1; UnifiedLog.append, the follower's check that fetchOffset = logEndOffset"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendRow) -> None:
        self.checked += 1
        if row[4] == replica.log_end and row[5] >= row[4]:
            return
        leaps = replica.log_end < row[4] and not row[7]
        if leaps and row[4] > partition.cleaned_below:
            begin = max(replica.log_end, partition.cleaned_below)
            leaps = not list(partition.holes.missing(begin, row[4]))
        if not leaps or row[5] < row[4]:
            raise self.broken(
                row[0], server_name(row[1]),
                f"offsets {row[4]} to {row[5]} appended to a log that ends at {replica.log_end}",
                partition,
            )  # fmt: skip


class EpochsOrdered(Invariant):
    """Rule S2."""

    name = "batch-epochs-ordered"
    sentence = "Leader epochs of batches never decrease with the offset."
    source = "S2; KIP-101, LeaderEpochFileCache"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendRow) -> None:
        self.checked += 1
        if row[6] < replica.epoch:
            raise self.broken(
                row[0], server_name(row[1]),
                f"a batch of epoch {row[6]} at offset {row[4]} behind epoch {replica.epoch}",
                partition,
            )  # fmt: skip


class OneLeaderPerEpoch(Invariant):
    """Rule S3."""

    name = "one-leader-per-epoch"
    sentence = "A leader epoch of a partition belongs to one broker."
    source = "S3; KIP-101, controller's PartitionChangeRecord"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)
        observer.leadership.append(self._leadership)
        observer.changes.append(self._change)

    def _append(self, partition: Partition, _replica: Replica, row: AppendRow) -> None:
        if row[7]:
            self.checked += 1
            if partition.leaders.get(row[6], row[1]) != row[1]:
                raise self._second(partition, row[0], row[1], row[6])

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        if row[4] == "leader":
            self.checked += 1
            if partition.leaders.get(row[6], row[1]) != row[1]:
                raise self._second(partition, row[0], row[1], row[6])

    def _change(self, partition: Partition, row: ChangeRow) -> None:
        if row[4] >= 0:
            self.checked += 1
            if partition.leaders.get(row[5], row[4]) != row[4]:
                raise self._second(partition, row[0], row[4], row[5])

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

    def _append(self, partition: Partition, _replica: Replica, row: AppendRow) -> None:
        met = partition.chains.meet(row[1], row[4], row[6], row[9])
        if met is True:
            self.checked += 1
        elif row[4] < partition.cleaned_below and not row[7]:
            self.suspend("a cleaner may have rewritten the batch before it was copied")
        elif isinstance(met, Mismatch):
            raise self.broken(
                row[0], server_name(row[1]),
                f"epoch {row[6]}, offset {row[4]}, checksum {row[9]:#010x}; known of this epoch is "
                f"the batch at {met.base_offset}, checksum {met.crc:#010x}",
                partition,
            )  # fmt: skip
        else:
            self.suspend("every replica had passed these offsets before")
        if partition.chains.is_prune_due(row[6]):
            partition.chains.prune(partition.lowest_end())


class NothingCommittedTruncated(Invariant):
    """Rule S16."""

    name = "nothing-committed-truncated"
    sentence = "A follower never truncates a committed record that policy has not removed."
    source = "S16; KIP-101, KIP-279"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        observer.truncations.append(self._truncation)

    def _truncation(self, partition: Partition, replica: Replica, row: TruncationRow) -> None:
        if row[8] in LOSSES:
            return
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        # Offsets below the watermark may go when what lies there is not what was committed there:
        # the tail of a deposed leader; or what policy removed elsewhere, if a log start was lost.
        lowest = max(row[5], partition.removed_below)
        if any(partition.is_committed(*span) for span in replica.spans(lowest)):
            raise self.broken(
                row[0], server_name(row[1]),
                f"truncates from {row[4]} to {row[5]} ({row[8]}); offsets below "
                f"{partition.watermark} are committed",
                partition,
            )  # fmt: skip


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
        if row[6] < replica.leader_epoch or row[7] < replica.partition_epoch:
            raise self.broken(
                row[0], server_name(row[1]),
                f"applies leader epoch {row[6]} and partition epoch {row[7]} after "
                f"{replica.leader_epoch} and {replica.partition_epoch}",
                partition,
            )  # fmt: skip
