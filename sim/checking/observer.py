"""State of each partition from the trace so far, on which invariants are based.

One listener per table looks up the partition once, passes the row to every check, and only then
applies it to the model. So a check compares a new row with everything before it. Memory does not
grow with simulated time: of a log its end and its epochs are kept, never its batches.
"""

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, cast

from sim.checking.outcomes.compaction import RemovedRecord
from sim.checking.outcomes.policy import POLICIES
from sim.checking.partition import LOSSES, Partition, Replica, loss
from sim.trace.listed import brokers_in
from sim.trace.rows.clients import Reads, ReadsRow
from sim.trace.rows.cluster import (
    Leadership,
    LeadershipRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
)
from sim.trace.rows.log import (
    Acknowledgements,
    AcknowledgementsRow,
    Appends,
    AppendsRow,
    FollowerWatermarks,
    FollowerWatermarksRow,
    HighWatermarks,
    HighWatermarksRow,
    LogContents,
    LogContentsRow,
    LogHoles,
    LogHolesRow,
    LogStarts,
    LogStartsRow,
    RaftConfigurations,
    RaftConfigurationsRow,
    Recoveries,
    RecoveriesRow,
    Truncations,
    TruncationsRow,
)
from sim.trace.rows.share import ShareConsumers, ShareConsumersRow
from sim.trace.schema import BY_NAME
from sim.trace.writer import Listener, Row, Trace
from sim.units import show_instant

_BROKER: Final = "broker-"

AppendCheck: TypeAlias = Callable[[Partition, Replica, AppendsRow], None]
WatermarkCheck: TypeAlias = Callable[[Partition, Replica, HighWatermarksRow], None]
FollowerWatermarkCheck: TypeAlias = Callable[[Partition, Replica, FollowerWatermarksRow], None]
AcknowledgementCheck: TypeAlias = Callable[[Partition, Replica, AcknowledgementsRow], None]
TruncationCheck: TypeAlias = Callable[[Partition, Replica, TruncationsRow], None]
ConfigurationCheck: TypeAlias = Callable[[Partition, Replica, RaftConfigurationsRow], None]
LogStartCheck: TypeAlias = Callable[[Partition, Replica, LogStartsRow], None]
RemovalCheck: TypeAlias = Callable[[Partition, RemovedRecord], None]
LeadershipCheck: TypeAlias = Callable[[Partition, Replica, LeadershipRow], None]
ChangeCheck: TypeAlias = Callable[[Partition, PartitionChangesRow], None]
ReadCheck: TypeAlias = Callable[[Partition, ReadsRow], None]


class Observer:
    """Listens to a trace; checks are added to the lists of their tables."""

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
        self.share_groups: dict[str, None] = {}
        """Share groups."""
        self._trace = trace
        listeners: dict[str, Callable[..., None]] = {
            "appends": self._append, "high_watermarks": self._watermark,
            "follower_watermarks": self._follower_watermark,
            "acknowledgements": self._acknowledgement, "truncations": self._truncation,
            "recoveries": self._recovery, "log_holes": self._hole, "log_starts": self._log_start,
            "raft_configurations": self._configuration, "log_contents": self._contents,
            "leadership": self._leadership, "partition_changes": self._change, "reads": self._read,
            "share_consumers": self._share_consumer, "node_states": self._node_state,
        }  # fmt: skip
        for name, listener in listeners.items():
            self.listen(name, listener)

    def listen(self, table: str, check: Callable[..., None]) -> None:
        """Adds a check to a table that is not about one partition; it takes the table's rows."""
        # The schema gives each row its shape; the trace itself carries rows of any.
        self._trace.table(table).listeners.append(cast("Listener", check))

    def partition(self, topic: str, number: int) -> Partition:
        """The partition of that name."""
        partition = self.partitions.get((topic, number))
        if partition is None:
            partition = self.partitions[topic, number] = Partition(topic, number)
        return partition

    def _node_state(self, row: NodeStatesRow) -> None:
        """A process that starts may have no log to recover: its disk is new, or the log empty."""
        node = row[NodeStates.NODE]
        if row[NodeStates.STATE] != "started" or not node.startswith(_BROKER):
            return
        broker = int(node.removeprefix(_BROKER))
        for partition in self.partitions.values():
            replica = partition.replicas.get(broker)
            if replica is not None:
                replica.begin_process()

    def _append(self, row: AppendsRow) -> None:
        topic, number, broker = row[Appends.TOPIC], row[Appends.PARTITION], row[Appends.BROKER]
        partition = self.partitions.get((topic, number)) or self.partition(topic, number)
        replica = partition.replicas.get(broker) or partition.replica(broker)
        partition.recent.append(("appends", row))
        for check in self.appends:
            check(partition, replica, row)
        epoch = row[Appends.LEADER_EPOCH]
        if epoch != replica.epoch:
            replica.epochs.append((row[Appends.BASE_OFFSET], epoch))
            replica.epoch = epoch
        replica.log_end = row[Appends.LAST_OFFSET] + 1
        if row[Appends.AS_LEADER]:
            partition.leaders[epoch] = broker

    def _watermark(self, row: HighWatermarksRow) -> None:
        topic, number = row[HighWatermarks.TOPIC], row[HighWatermarks.PARTITION]
        partition = self.partitions.get((topic, number)) or self.partition(topic, number)
        broker, reached = row[HighWatermarks.BROKER], row[HighWatermarks.HIGH_WATERMARK]
        replica = partition.replicas.get(broker) or partition.replica(broker)
        partition.recent.append(("high_watermarks", row))
        if partition.lapsed:
            partition.count_lapsed(reached)
        for check in self.watermarks:
            check(partition, replica, row)
        replica.watermark = reached
        epoch = replica.watermark_epoch = row[HighWatermarks.LEADER_EPOCH]
        if reached > partition.reached.get(epoch, -1):
            partition.reached[epoch] = reached
            partition.commit(reached, replica)

    def _follower_watermark(self, row: FollowerWatermarksRow) -> None:
        topic, number = row[FollowerWatermarks.TOPIC], row[FollowerWatermarks.PARTITION]
        partition = self.partitions.get((topic, number)) or self.partition(topic, number)
        broker = row[FollowerWatermarks.BROKER]
        replica = partition.replicas.get(broker) or partition.replica(broker)
        partition.recent.append(("follower_watermarks", row))
        for check in self.follower_watermarks:
            check(partition, replica, row)

    def _acknowledgement(self, row: AcknowledgementsRow) -> None:
        topic, number = row[Acknowledgements.TOPIC], row[Acknowledgements.PARTITION]
        partition = self.partitions.get((topic, number)) or self.partition(topic, number)
        broker = row[Acknowledgements.BROKER]
        replica = partition.replicas.get(broker) or partition.replica(broker)
        partition.recent.append(("acknowledgements", row))
        for check in self.acknowledgements:
            check(partition, replica, row)

    def _truncation(self, row: TruncationsRow) -> None:
        partition = self.partition(row[Truncations.TOPIC], row[Truncations.PARTITION])
        replica = partition.replica(row[Truncations.BROKER])
        partition.recent.append(("truncations", row))
        for check in self.truncations:
            check(partition, replica, row)
        end = row[Truncations.TO_OFFSET]
        if row[Truncations.REASON] in LOSSES:
            partition.lost(replica, end, row[Truncations.T_US])
        replica.has_strange = row[Truncations.REASON] == "overwritten"
        replica.cut(end)

    def _recovery(self, row: RecoveriesRow) -> None:
        partition = self.partition(row[Recoveries.TOPIC], row[Recoveries.PARTITION])
        replica = partition.replica(row[Recoveries.BROKER])
        partition.recent.append(("recoveries", row))
        end = row[Recoveries.LOG_END_OFFSET]
        if end < replica.log_end:
            partition.lost(replica, end, row[Recoveries.T_US])
        # Data without earlier rows is of a former topic of the name, and will be deleted; or a
        # misdirected write has left it there.
        replica.cut(min(end, replica.log_end))
        if replica.has_strange:
            replica.log_end = end
        replica.begin_process()

    def _hole(self, row: LogHolesRow) -> None:
        partition = self.partition(row[LogHoles.TOPIC], row[LogHoles.PARTITION])
        partition.recent.append(("log_holes", row))
        partition.holes.add(row[LogHoles.FROM_OFFSET], row[LogHoles.TO_OFFSET])
        # The log end does not show the damage, nor whether it is committed by this.
        if partition.excuse is None:
            partition.excuse = loss(row[LogHoles.BROKER], row[LogHoles.T_US])

    def _configuration(self, row: RaftConfigurationsRow) -> None:
        partition = self.partition(row[RaftConfigurations.TOPIC], row[RaftConfigurations.PARTITION])
        replica = partition.replica(row[RaftConfigurations.BROKER])
        partition.recent.append(("raft_configurations", row))
        for check in self.configurations:
            check(partition, replica, row)
        partition.configurations[row[RaftConfigurations.LEADER_EPOCH]] = row

    def _log_start(self, row: LogStartsRow) -> None:
        partition = self.partition(row[LogStarts.TOPIC], row[LogStarts.PARTITION])
        replica = partition.replica(row[LogStarts.BROKER])
        partition.recent.append(("log_starts", row))
        for check in self.log_starts:
            check(partition, replica, row)
        replica.log_start = row[LogStarts.TO_OFFSET]
        if row[LogStarts.REASON] in POLICIES:
            partition.removed_below = max(partition.removed_below, row[LogStarts.TO_OFFSET])

    def _contents(self, row: LogContentsRow) -> None:
        partition = self.partition(row[LogContents.TOPIC], row[LogContents.PARTITION])
        partition.cleaned_below = max(partition.cleaned_below, row[LogContents.LAST_OFFSET] + 1)

    def taken(self, topic: str, number: int, removals: Iterable[RemovedRecord]) -> None:
        """Checks a record that a cleaner removed; the owner of the logs reports each."""
        partition = self.partition(topic, number)
        for removal in removals:
            for check in self.removals:
                check(partition, removal)

    def _leadership(self, row: LeadershipRow) -> None:
        broker, role = row[Leadership.BROKER], row[Leadership.ROLE]
        partition = self.partition(row[Leadership.TOPIC], row[Leadership.PARTITION])
        replica = partition.replica(broker)
        partition.recent.append(("leadership", row))
        for check in self.leadership:
            check(partition, replica, row)
        if role == "removed":
            partition.replicas[broker] = Replica(broker)
            return
        epoch = replica.leader_epoch = row[Leadership.LEADER_EPOCH]
        replica.partition_epoch = row[Leadership.PARTITION_EPOCH]
        if role == "leader":
            watermark = row[Leadership.HIGH_WATERMARK]
            partition.leaders[epoch] = broker
            if not partition.began or epoch > partition.began[-1][0]:
                partition.began.append((epoch, row[Leadership.LOG_END_OFFSET]))
            partition.reached[epoch] = max(watermark, partition.reached.get(epoch, -1))
            partition.commit(watermark, replica)

    def _change(self, row: PartitionChangesRow) -> None:
        topic, number = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        partition = self.partition(topic, number)
        if row[PartitionChanges.PARTITION_EPOCH] == 0 and partition.change is not None:
            # Another topic of the same name: the former one's state does not bind it.
            partition = self.partitions[topic, number] = Partition(topic, number)
        partition.recent.append(("partition_changes", row))
        for check in self.changes:
            check(partition, row)
        partition.change = row
        partition.assigned = brokers_in(row[PartitionChanges.REPLICAS])
        leader = row[PartitionChanges.LEADER]
        if leader >= 0:
            partition.leaders[row[PartitionChanges.LEADER_EPOCH]] = leader
        if row[PartitionChanges.UNCLEAN] and partition.excuse is None:
            at = show_instant(row[PartitionChanges.T_US])
            partition.excuse = f"unclean election of broker-{leader} at {at}"

    def _share_consumer(self, row: ShareConsumersRow) -> None:
        self.share_groups[row[ShareConsumers.GROUP]] = None

    def _read(self, row: ReadsRow) -> None:
        topic, number = row[Reads.TOPIC], row[Reads.PARTITION]
        partition = self.partitions.get((topic, number)) or self.partition(topic, number)
        partition.recent.append(("reads", row))
        for check in self.reads:
            check(partition, row)


def show_row(table: str, row: Row) -> str:
    """Printed form of a row: ``appends: t_us=3, broker=1, …``."""
    names = BY_NAME[table].column_names
    return f"{table}: " + ", ".join(f"{n}={v}" for n, v in zip(names, row, strict=True))
