"""State of a real cluster, and its history, from the metadata logs that its controllers wrote.

The files can be read at any time: what a process has written, another one sees. What is settled is
in the logs of a majority of the voters. The records' instants are those of the active controller's
clock, in whole milliseconds.

Left out: snapshots. A rehearsal ends before a controller makes one (an hour, or 20 MB).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sim.errors import SimulationError
from sim.ids import METADATA_PARTITION, NO_LEADER, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.log.partition.reading import file_batches, segments
from sim.protocol.metadata import records as mr
from sim.records.metadata import decode_record
from sim.trace.emit import Emit
from sim.trace.rows.cluster import BrokerStates, PartitionChanges, Quorum, TopicDeletions
from sim.units import MS, Micros
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch
from sim.wire.schemas import decode_control

WARM_UP: Final = "logquake-warm-up"
"""Topic of the load before the scenario's zero, of which there are no rows."""

_LEADER_CHANGE: Final = "LeaderChangeMessage"


class Log(NamedTuple):
    """A controller's metadata log as it is on the disk."""

    epoch: LeaderEpoch
    end: Offset
    batches: tuple[RecordBatch, ...]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """A partition as the controllers have it."""

    replicas: tuple[NodeId, ...]
    in_sync: tuple[NodeId, ...]
    leader: NodeId
    leader_epoch: LeaderEpoch
    partition_epoch: int = 0
    eligible: tuple[NodeId, ...] = ()

    def changed(self, record: mr.PartitionChangeRecord) -> "PartitionState":
        """The state behind a record."""
        leads = record.leader is not None
        return PartitionState(
            self.replicas if record.replicas is None else record.replicas,
            self.in_sync if record.in_sync is None else record.in_sync,
            self.leader if record.leader is None else record.leader,
            self.leader_epoch + leads,
            self.partition_epoch + 1,
            self.eligible if record.eligible is None else record.eligible,
        )


@dataclass(slots=True)
class Cluster:
    """The settled state, and the rows of everything that led to it."""

    controller: NodeId = NO_LEADER
    """The active controller."""
    partitions: dict[TopicPartition, PartitionState] = field(default_factory=dict)
    serving: dict[NodeId, bool] = field(default_factory=dict)
    """Brokers that are registered; true if they are not fenced."""
    leaders: dict[tuple[TopicPartition, LeaderEpoch], NodeId] = field(default_factory=dict)
    """Leader of a partition in an epoch."""
    rows: list[tuple[Micros, Emit]] = field(default_factory=list)
    """In the order of the log; instants since the scenario's zero."""
    _topics: dict[str, str] = field(default_factory=dict)

    def apply(self, record: mr.MetadataRecord, at: Micros) -> None:
        """Replays a record."""
        match record:
            case mr.TopicRecord():
                self._topics[record.topic_id] = record.name
            case mr.RemoveTopicRecord():
                self._remove(record, at)
            case mr.PartitionRecord():
                state = PartitionState(
                    record.replicas, record.in_sync, record.leader, record.leader_epoch,
                    record.partition_epoch, record.eligible,
                )  # fmt: skip
                self._place(record, state, at, unclean=False)
            case mr.PartitionChangeRecord():
                place = TopicPartition(self._topics[record.topic_id], record.partition)
                before = self.partitions[place]
                known = (*before.in_sync, *before.eligible)
                unclean = record.leader not in {None, NO_LEADER, *known}
                self._place(record, before.changed(record), at, unclean=unclean)
            case mr.RegisterBrokerRecord():
                self.serving[record.broker] = not record.fenced
                self._registered(record.broker, "registered", record.broker_epoch, at)
            case mr.BrokerRegistrationChangeRecord():
                self._change(record, at)
            case mr.UnregisterBrokerRecord():
                self.serving.pop(record.broker, None)
                self._registered(record.broker, "unregistered", record.broker_epoch, at)
            case _:
                pass

    def lead(self, leader: NodeId, epoch: LeaderEpoch, offset: Offset, at: Micros) -> None:
        """A controller was elected."""
        self.controller = leader
        row = Quorum.row(
            leader, role="leader", epoch=epoch, leader=leader, voted_for=-1,
            log_end_offset=offset, high_watermark=-1,
        )  # fmt: skip
        self.rows.append((at, row))

    def _remove(self, record: mr.RemoveTopicRecord, at: Micros) -> None:
        name = self._topics.pop(record.topic_id)
        self.partitions = {tp: state for tp, state in self.partitions.items() if tp.topic != name}
        if name == WARM_UP:
            return
        self.rows.append((at, TopicDeletions.row(self.controller, name, topic_id=record.topic_id)))

    def _place(
        self,
        record: mr.PartitionRecord | mr.PartitionChangeRecord,
        state: PartitionState,
        at: Micros,
        *,
        unclean: bool,
    ) -> None:
        place = TopicPartition(self._topics[record.topic_id], record.partition)
        self.partitions[place] = state
        self.leaders[place, state.leader_epoch] = state.leader
        if place.topic == WARM_UP:
            return
        row = PartitionChanges.row(
            self.controller,
            *place,
            leader=state.leader,
            leader_epoch=state.leader_epoch,
            partition_epoch=state.partition_epoch,
            in_sync=_joined(sorted(state.in_sync)),
            eligible=_joined(sorted(state.eligible)),
            replicas=_joined(state.replicas),
            unclean=unclean,
        )
        self.rows.append((at, row))

    def _change(self, record: mr.BrokerRegistrationChangeRecord, at: Micros) -> None:
        if record.fenced == mr.FENCE:
            self.serving[record.broker] = False
            self._registered(record.broker, "fenced", record.broker_epoch, at)
        elif record.fenced == mr.UNFENCE:
            self.serving[record.broker] = True
            self._registered(record.broker, "unfenced", record.broker_epoch, at)
        if record.in_controlled_shutdown == 1:
            self._registered(record.broker, "controlled_shutdown", record.broker_epoch, at)

    def _registered(self, broker: NodeId, state: str, epoch: int, at: Micros) -> None:
        row = BrokerStates.row(self.controller, broker, state=state, broker_epoch=epoch)
        self.rows.append((at, row))


def read(directories: Sequence[Path], zero_us: Micros) -> Cluster:
    """The settled state of a cluster.

    Args:
        directories: Log directories of the controllers that hold the metadata.
        zero_us: The scenario's zero, in microseconds since 1970.

    Raises:
        SimulationError: If a log cannot be read.
    """
    logs = [_log(directory / str(METADATA_PARTITION)) for directory in directories]
    cluster = Cluster()
    if not logs:
        return cluster
    best = max(logs, key=lambda log: (log.epoch, log.end))
    settled = sorted((log.end for log in logs), reverse=True)[len(logs) // 2]
    try:
        for batch in best.batches:
            if batch.last_offset < settled:
                _replay(cluster, batch, zero_us)
    except (MalformedBytes, KeyError) as error:
        raise SimulationError(f"a metadata log of the cluster cannot be read: {error}") from error
    return cluster


def _log(directory: Path) -> Log:
    batches: list[RecordBatch] = []
    for path in segments(directory)[0] if directory.is_dir() else ():
        try:
            found = [batch for _, batch in file_batches(path)]
        except MalformedBytes:
            continue  # its last batch is being written
        batches += [batch for batch in found if batch.valid()]
    if not batches:
        return Log(-1, 0, ())
    return Log(batches[-1].leader_epoch, batches[-1].last_offset + 1, tuple(batches))


def _replay(cluster: Cluster, batch: RecordBatch, zero_us: Micros) -> None:
    for record in batch.records():
        at = record.timestamp_ms * MS - zero_us
        if batch.is_control:
            name, _, values = decode_control(record.key or b"", record.value or b"")
            if name == _LEADER_CHANGE:
                leader = int(str(values["leaderId"]))
                cluster.lead(leader, batch.leader_epoch, batch.base_offset, at)
        else:
            for decoded in _decoded(record.value or b""):
                cluster.apply(decoded, at)


def _decoded(value: bytes) -> Iterator[mr.MetadataRecord]:
    """The record, unless it is of a kind that the simulation does not know."""
    try:
        yield decode_record(value)
    except KeyError:
        return


def _joined(nodes: Sequence[NodeId]) -> str:
    return ",".join(map(str, nodes))
