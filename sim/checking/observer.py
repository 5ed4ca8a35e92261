"""What the trace has told so far about each partition: the ground on which invariants stand.

One listener per table looks up the partition once, shows the row to every check, and only then lets
the row change the model. So a check compares a new fact with everything before it. Memory does not
grow with simulated time: of a log its end and its epochs are kept, never its batches.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, cast

from sim.checking.chains import Chains
from sim.checking.interval_set import IntervalSet
from sim.checking.outcomes.compaction import Removal
from sim.checking.outcomes.policy import POLICIES
from sim.checking.rows import (
    AcknowledgementRow,
    AppendRow,
    AssignmentRow,
    BrokerStateRow,
    ChangeRow,
    CommitRow,
    ConfigurationRow,
    ContentsRow,
    ControllerRow,
    DeletionRow,
    FaultRow,
    FollowerWatermarkRow,
    GroupRow,
    HoleRow,
    LeadershipRow,
    LogStartRow,
    MarkerRow,
    MemberRow,
    NodeStateRow,
    QuorumRow,
    ReadRow,
    RecoveryRow,
    ShareConsumerRow,
    SharePartitionRow,
    ShareStateRow,
    StableRow,
    TransactionRow,
    TruncationRow,
    WatermarkRow,
    brokers_in,
)
from sim.ids import LeaderEpoch, NodeId, Offset, server_name
from sim.trace.schema import BY_NAME
from sim.trace.writer import Listener, Row, Trace
from sim.units import Micros, show_instant

LOSSES: Final = frozenset({"recovery", "unrecovered", "wiped", "overwritten"})
"""Reasons of truncations that nobody decided on."""

RECENT_ROWS: Final = 6
"""Rows of a partition that a broken invariant shows."""


class Replica:
    """One replica's log as far as appends, truncations and recoveries tell."""

    __slots__ = (
        "broker", "epoch", "epochs", "has_strange", "leader_epoch", "log_end", "log_start",
        "partition_epoch", "producers", "watermark", "watermark_epoch",
    )  # fmt: skip

    def __init__(self, broker: NodeId) -> None:
        self.broker = broker
        self.log_start: Offset = 0
        self.log_end: Offset = 0
        self.epoch: LeaderEpoch = -1
        """Of the last batch; -1 for an empty log."""
        self.epochs: list[tuple[Offset, LeaderEpoch]] = []
        """Where each epoch starts, in order of offset."""
        self.producers: dict[int, list[tuple[Offset, int, int]]] = {}
        """Last batches of each producer id: base offset, producer epoch, next sequence number."""
        self.watermark: Offset = -1
        """Last high watermark reached as leader; -1 if none in this process."""
        self.watermark_epoch: LeaderEpoch = -1
        self.leader_epoch: LeaderEpoch = -1
        """Last leader epoch applied by this process; -1 if none."""
        self.partition_epoch = -1
        self.has_strange = False
        """Whether bytes of another log were put into this one, and recovery may have kept them."""

    def spans(self, start: Offset) -> list[tuple[Offset, Offset, LeaderEpoch]]:
        """The log from the offset on, as (first offset, end offset, epoch)."""
        found = []
        end = self.log_end
        for begin, epoch in reversed(self.epochs):
            if max(begin, start) < end:
                found.append((max(begin, start), end, epoch))
            end = begin
        return found

    def cut(self, end: Offset) -> None:
        """The log now ends at the offset."""
        self.log_end = end
        self.log_start = min(self.log_start, end)
        while self.epochs and self.epochs[-1][0] >= end:
            self.epochs.pop()
        self.epoch = self.epochs[-1][1] if self.epochs else -1
        for batches in self.producers.values():
            while batches and batches[-1][0] >= end:
                batches.pop()


class Partition:
    """One partition: its replicas, its leaders by epoch, and the last facts about it."""

    __slots__ = (
        "assigned",
        "began",
        "chains",
        "change",
        "cleaned_below",
        "committer",
        "configurations",
        "excuse",
        "holes",
        "lapsed",
        "leaders",
        "name",
        "positions",
        "reached",
        "recent",
        "removed_below",
        "replicas",
        "watermark",
    )  # fmt: skip

    def __init__(self, topic: str, partition: int) -> None:
        self.name = f"{topic}-{partition}"
        self.replicas: dict[NodeId, Replica] = {}
        self.assigned: tuple[NodeId, ...] = ()
        """Replicas as the controller last committed them."""
        self.configurations: dict[LeaderEpoch, ConfigurationRow] = {}
        """The last that the log of each term's leader said of the members of its Raft group."""
        self.change: ChangeRow | None = None
        """Last state committed by a controller."""
        self.leaders: dict[LeaderEpoch, NodeId] = {}
        self.began: list[tuple[LeaderEpoch, Offset]] = []
        """Where the log of each epoch's leader ended when it began, in order of epoch."""
        self.reached: dict[LeaderEpoch, Offset] = {}
        """Highest high watermark that the leader of each epoch had."""
        self.watermark: Offset = 0
        """The true high watermark: the highest that any leader ever had."""
        self.committer: Replica | None = None
        """The leader that had it: its log below the watermark is what is committed."""
        self.excuse: str | None = None
        """Why committed records may be missing lawfully from now on; ``None`` if they may not."""
        self.lapsed: list[tuple[Replica, Offset, str]] = []
        """Replicas that lost records which were not committed then, the end their leader may still
        count them for, and why."""
        self.chains = Chains()
        self.cleaned_below: Offset = 0
        """A cleaner has been up to here on some replica: below, copies of batches may have gaps."""
        self.holes = IntervalSet()
        """What some replica's recovery has not found between two segments: a copy may lack it."""
        self.removed_below: Offset = 0
        """Policy has removed what lies below on some replica: any other may let go of it, too."""
        self.positions: dict[str, Offset] = {}
        """Next offset of each consumer within its present assignment."""
        self.recent: deque[tuple[str, Row]] = deque(maxlen=RECENT_ROWS)

    def replica(self, broker: NodeId) -> Replica:
        """The replica on a broker; an empty one if the trace has not told of it yet."""
        replica = self.replicas.get(broker)
        if replica is None:
            replica = self.replicas[broker] = Replica(broker)
        return replica

    def lost(self, replica: Replica, end: Offset, at: Micros) -> None:
        """A replica came back with less: an excuse if that was committed, or should it be yet."""
        why = _lost(replica.broker, at)
        if self.excuse is None and end < self.watermark:
            self.excuse = why
        elif end < replica.log_end:
            self.lapsed.append((replica, replica.log_end, why))

    def count_lapsed(self, reached: Offset) -> None:
        """The leader commits up to the offset: perhaps by what replicas had before they lost it."""
        for replica, promised, why in self.lapsed:
            if self.excuse is None and replica.log_end < reached <= promised:
                self.excuse = why

    def committed_before(self, epoch: LeaderEpoch) -> Offset:
        """What leaders of earlier epochs had reached; a leader may hear late of its own epoch."""
        if max(self.reached, default=-1) < epoch:
            return self.watermark
        return max((end for known, end in self.reached.items() if known < epoch), default=0)

    def commit(self, watermark: Offset, leader: Replica) -> None:
        """A leader has the high watermark; the true one never goes back."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.committer = leader

    def is_committed(self, start: Offset, end: Offset, epoch: LeaderEpoch) -> bool:
        """Whether any offset in [start, end) is committed with that epoch."""
        if self.committer is None:
            return False
        end = min(end, self.watermark)
        stop = end
        for begin, own in reversed(self.committer.epochs):
            if own == epoch and max(begin, start) < min(stop, end):
                return True
            stop = min(stop, begin)
        return False

    def lowest_end(self) -> Offset:
        """Smallest log end of the assigned replicas, those without any append included."""
        known = self.replicas
        brokers = self.assigned or tuple(known)
        return min((known[b].log_end if b in known else 0 for b in brokers), default=0)


AppendCheck: TypeAlias = Callable[[Partition, Replica, AppendRow], None]
WatermarkCheck: TypeAlias = Callable[[Partition, Replica, WatermarkRow], None]
FollowerWatermarkCheck: TypeAlias = Callable[[Partition, Replica, FollowerWatermarkRow], None]
AcknowledgementCheck: TypeAlias = Callable[[Partition, Replica, AcknowledgementRow], None]
TruncationCheck: TypeAlias = Callable[[Partition, Replica, TruncationRow], None]
ConfigurationCheck: TypeAlias = Callable[[Partition, Replica, ConfigurationRow], None]
LogStartCheck: TypeAlias = Callable[[Partition, Replica, LogStartRow], None]
RemovalCheck: TypeAlias = Callable[[Partition, Removal], None]
LeadershipCheck: TypeAlias = Callable[[Partition, Replica, LeadershipRow], None]
ChangeCheck: TypeAlias = Callable[[Partition, ChangeRow], None]
ReadCheck: TypeAlias = Callable[[Partition, ReadRow], None]


class Observer:
    """Listens to a trace; checks are added to the list of the table they are about."""

    def __init__(self, trace: Trace) -> None:
        self.partitions: dict[tuple[str, int], Partition] = {}
        self.appends: list[AppendCheck] = []
        self.watermarks: list[WatermarkCheck] = []
        self.follower_watermarks: list[FollowerWatermarkCheck] = []
        self.acknowledgements: list[AcknowledgementCheck] = []
        self.truncations: list[TruncationCheck] = []
        self.configurations: list[ConfigurationCheck] = []
        self.log_starts: list[LogStartCheck] = []
        self.removals: list[RemovalCheck] = []
        self.leadership: list[LeadershipCheck] = []
        self.changes: list[ChangeCheck] = []
        self.reads: list[ReadCheck] = []
        self.commits: list[Callable[[CommitRow], None]] = []
        self.groups: list[Callable[[GroupRow], None]] = []
        self.assignments: list[Callable[[AssignmentRow], None]] = []
        self.group_members: list[Callable[[MemberRow], None]] = []
        self.quorum: list[Callable[[QuorumRow], None]] = []
        self.controllers: list[Callable[[ControllerRow], None]] = []
        self.broker_states: list[Callable[[BrokerStateRow], None]] = []
        self.topic_deletions: list[Callable[[DeletionRow], None]] = []
        self.node_states: list[Callable[[NodeStateRow], None]] = []
        self.faults: list[Callable[[FaultRow], None]] = []
        self.transactions: list[Callable[[TransactionRow], None]] = []
        self.markers: list[Callable[[MarkerRow], None]] = []
        self.stable_offsets: list[Callable[[StableRow], None]] = []
        self.share_partitions: list[Callable[[SharePartitionRow], None]] = []
        self.share_states: list[Callable[[ShareStateRow], None]] = []
        self.share_groups: dict[str, None] = {}
        """Groups whose members share partitions."""
        listeners: dict[str, object] = {
            "appends": self._append, "high_watermarks": self._watermark,
            "follower_watermarks": self._follower_watermark,
            "acknowledgements": self._acknowledgement, "truncations": self._truncation,
            "recoveries": self._recovery, "log_holes": self._hole, "log_starts": self._log_start,
            "raft_configurations": self._configuration, "log_contents": self._contents,
            "leadership": self._leadership, "partition_changes": self._change, "reads": self._read,
            "share_consumers": self._share_consumer,
        }  # fmt: skip
        for name, listener in listeners.items():
            # The schema gives each row its shape; the trace itself carries rows of any.
            trace.table(name).listeners.append(cast("Listener", listener))
        self._trace = trace

    def connect(self) -> None:
        """Listen to the tables that are not about one partition, for the checks added so far."""
        for name in (
            "commits",
            "groups",
            "assignments",
            "group_members",
            "quorum",
            "controllers",
            "broker_states",
            "topic_deletions",
            "node_states",
            "faults",
        ):
            self._trace.table(name).listeners.extend(getattr(self, name))
        for name in (
            "transactions", "markers", "stable_offsets", "share_partitions", "share_states"
        ):  # fmt: skip
            self._trace.table(name).listeners.extend(getattr(self, name))

    def partition(self, topic: str, number: int) -> Partition:
        """The partition of that name."""
        partition = self.partitions.get((topic, number))
        if partition is None:
            partition = self.partitions[topic, number] = Partition(topic, number)
        return partition

    def _append(self, row: AppendRow) -> None:
        partition = self.partitions.get((row[2], row[3])) or self.partition(row[2], row[3])
        replica = partition.replicas.get(row[1]) or partition.replica(row[1])
        partition.recent.append(("appends", row))
        for check in self.appends:
            check(partition, replica, row)
        epoch = row[6]
        if epoch != replica.epoch:
            replica.epochs.append((row[4], epoch))
            replica.epoch = epoch
        replica.log_end = row[5] + 1
        if row[7]:
            partition.leaders[epoch] = row[1]

    def _watermark(self, row: WatermarkRow) -> None:
        partition = self.partitions.get((row[2], row[3])) or self.partition(row[2], row[3])
        replica = partition.replicas.get(row[1]) or partition.replica(row[1])
        partition.recent.append(("high_watermarks", row))
        if partition.lapsed:
            partition.count_lapsed(row[5])
        for check in self.watermarks:
            check(partition, replica, row)
        reached = replica.watermark = row[5]
        epoch = replica.watermark_epoch = row[4]
        if reached > partition.reached.get(epoch, -1):
            partition.reached[epoch] = reached
            partition.commit(reached, replica)

    def _follower_watermark(self, row: FollowerWatermarkRow) -> None:
        partition = self.partitions.get((row[2], row[3])) or self.partition(row[2], row[3])
        replica = partition.replicas.get(row[1]) or partition.replica(row[1])
        partition.recent.append(("follower_watermarks", row))
        for check in self.follower_watermarks:
            check(partition, replica, row)

    def _acknowledgement(self, row: AcknowledgementRow) -> None:
        partition = self.partitions.get((row[2], row[3])) or self.partition(row[2], row[3])
        replica = partition.replicas.get(row[1]) or partition.replica(row[1])
        partition.recent.append(("acknowledgements", row))
        for check in self.acknowledgements:
            check(partition, replica, row)

    def _truncation(self, row: TruncationRow) -> None:
        partition = self.partition(row[2], row[3])
        replica = partition.replica(row[1])
        partition.recent.append(("truncations", row))
        for check in self.truncations:
            check(partition, replica, row)
        end = row[5]
        if row[8] in LOSSES:
            partition.lost(replica, end, row[0])
        replica.has_strange = row[8] == "overwritten"
        replica.cut(end)

    def _recovery(self, row: RecoveryRow) -> None:
        partition = self.partition(row[2], row[3])
        replica = partition.replica(row[1])
        partition.recent.append(("recoveries", row))
        end = row[6]
        if end < replica.log_end:
            partition.lost(replica, end, row[0])
        # What nobody told of belongs to a former topic of the name, and is to be put aside; or a
        # misdirected write has left it there.
        replica.cut(min(end, replica.log_end))
        if replica.has_strange:
            replica.log_end = end
        # A new process begins: what the old one had reached or applied binds it no more.
        replica.watermark = replica.watermark_epoch = -1
        replica.leader_epoch = replica.partition_epoch = -1

    def _hole(self, row: HoleRow) -> None:
        partition = self.partition(row[2], row[3])
        partition.recent.append(("log_holes", row))
        partition.holes.add(row[4], row[5])
        # The log's end does not show it: nobody can tell any more whether it is committed by this.
        if partition.excuse is None:
            partition.excuse = _lost(row[1], row[0])

    def _configuration(self, row: ConfigurationRow) -> None:
        partition = self.partition(row[2], row[3])
        replica = partition.replica(row[1])
        partition.recent.append(("raft_configurations", row))
        for check in self.configurations:
            check(partition, replica, row)
        partition.configurations[row[4]] = row

    def _log_start(self, row: LogStartRow) -> None:
        partition = self.partition(row[2], row[3])
        replica = partition.replica(row[1])
        partition.recent.append(("log_starts", row))
        for check in self.log_starts:
            check(partition, replica, row)
        replica.log_start = row[5]
        if row[6] in POLICIES:
            partition.removed_below = max(partition.removed_below, row[5])

    def _contents(self, row: ContentsRow) -> None:
        partition = self.partition(row[2], row[3])
        partition.cleaned_below = max(partition.cleaned_below, row[5] + 1)

    def taken(self, topic: str, number: int, removals: Iterable[Removal]) -> None:
        """A cleaner took records: whoever keeps the logs says so, record by record."""
        partition = self.partition(topic, number)
        for removal in removals:
            for check in self.removals:
                check(partition, removal)

    def _leadership(self, row: LeadershipRow) -> None:
        partition = self.partition(row[2], row[3])
        replica = partition.replica(row[1])
        partition.recent.append(("leadership", row))
        for check in self.leadership:
            check(partition, replica, row)
        if row[4] == "removed":
            partition.replicas[row[1]] = Replica(row[1])
            return
        replica.leader_epoch = row[6]
        replica.partition_epoch = row[7]
        if row[4] == "leader":
            partition.leaders[row[6]] = row[1]
            if not partition.began or row[6] > partition.began[-1][0]:
                partition.began.append((row[6], row[9]))
            partition.reached[row[6]] = max(row[10], partition.reached.get(row[6], -1))
            partition.commit(row[10], replica)

    def _change(self, row: ChangeRow) -> None:
        partition = self.partition(row[2], row[3])
        if row[6] == 0 and partition.change is not None:
            # Another topic of the same name: nothing said of the former one binds it.
            partition = self.partitions[row[2], row[3]] = Partition(row[2], row[3])
        partition.recent.append(("partition_changes", row))
        for check in self.changes:
            check(partition, row)
        partition.change = row
        partition.assigned = brokers_in(row[9])
        if row[4] >= 0:
            partition.leaders[row[5]] = row[4]
        if row[10] and partition.excuse is None:
            partition.excuse = f"unclean election of broker-{row[4]} at {show_instant(row[0])}"

    def _share_consumer(self, row: ShareConsumerRow) -> None:
        self.share_groups[row[2]] = None

    def _read(self, row: ReadRow) -> None:
        partition = self.partitions.get((row[3], row[4])) or self.partition(row[3], row[4])
        partition.recent.append(("reads", row))
        for check in self.reads:
            check(partition, row)


def show_row(table: str, row: Row) -> str:
    """A row as people read it: ``appends: t_us=3, broker=1, …``."""
    names = BY_NAME[table].column_names
    return f"{table}: " + ", ".join(f"{n}={v}" for n, v in zip(names, row, strict=True))


def _lost(broker: NodeId, at: Micros) -> str:
    name = server_name(broker)
    return f"{name} lost bytes below the high watermark, seen at {show_instant(at)}"
