"""Compares the inputs that both judges take from the trace with the bytes on the simulated disks.

The checker and Spark share three inputs: the last leader of each partition, its high watermarks,
and log starts. An error in these rows would mislead both alike, so they are compared with what a
Kafka operator would read:

* the last leader and leader epoch: with the last ``PartitionRecord`` or ``PartitionChangeRecord``
  in the segments of ``__cluster_metadata-0`` (:mod:`analysis.verify.metadata_log`); and no
  ``leader-epoch-checkpoint`` has a later epoch. Servers of ZooKeeper keep no bytes, so there the
  epochs alone are compared, and reported so.
* high watermarks: no replica's ``replication-offset-checkpoint`` is above the highest one of the
  trace, nor is the last leader's last one above the log end of the bytes of a replica in sync.
* log starts: a replica's first segment and ``log-start-offset-checkpoint`` are not above its log
  start in the trace; where retention moved it last they are not below it either. The checkpoint is
  written every minute only, so after DeleteRecords a file may be behind the trace.

Brokers whose process or disk was disturbed after a row may be below it: a crash loses data that was
not flushed. Tables and files are read by this process, without Spark, a column at a time.

Source: ``PartitionRegistration``, ``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``,
``LogLoader`` (a log begins at the checkpoint's offset or its first segment, whichever is higher).
"""

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.verify import metadata_log
from analysis.verify.survivors import ReplicaFiles, replicas
from sim.ids import TopicPartition
from sim.log.store import checkpoints
from sim.log.store.checkpoints import MalformedCheckpoint
from sim.wire.primitives import MalformedBytes

LEADERS: Final = "last leader"
HIGH_WATERMARKS: Final = "high watermark"
LOG_STARTS: Final = "log start"

_RETENTION: Final = ("retention.ms", "retention.bytes")
_DISK_FAULTS: Final = ("wiped-disk", "corrupt-replica", "misdirected-write")
_HEADER: Final = struct.Struct(">qiib4xhi")
"""Base offset, length, leader epoch, magic, attributes, last offset delta."""
_LOG_OVERHEAD: Final = 12

_LONG_AGO: Final = -(1 << 62)
_FOREVER: Final = 1 << 62
_COLUMNS: Final = {
    "partition_changes": (
        "topic", "partition", "leader", "leader_epoch", "partition_epoch", "in_sync",
    ),
    "topic_deletions": ("topic",),
    "high_watermarks": (
        "t_us", "broker", "topic", "partition", "leader_epoch", "high_watermark",
    ),
    "leadership": ("broker", "topic", "partition", "role"),
    "local_log_starts": ("t_us", "broker", "topic", "partition"),
    "log_starts": ("t_us", "broker", "topic", "partition", "to_offset", "reason"),
    "node_states": ("t_us", "node"),
    "faults": ("kind", "resolved"),
}  # fmt: skip
"""Columns used of each table."""

_Decoded = TypeVar("_Decoded")
_Key = TypeVar("_Key")
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Difference:
    """An input of the judges that the disks contradict."""

    kind: str
    topic: str
    partition: int
    trace: str
    disk: str
    file: str
    """Relative to the run's directory."""

    @property
    def sentence(self) -> str:
        """The difference in a sentence."""
        return (
            f"{self.kind} of {self.topic}-{self.partition}: the trace says {self.trace}, "
            f"{self.file} says {self.disk}"
        )


@dataclass(slots=True)
class Inputs:
    """Outcome of the comparison."""

    compared: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys((LEADERS, HIGH_WATERMARKS, LOG_STARTS), 0)
    )
    """Values that were compared, by kind."""
    differences: list[Difference] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    """Inputs that could not be compared, with reasons."""


def check(run: Path) -> Inputs:
    """Compares the shared inputs of a run, and of every other cluster of it, with their disks."""
    found = Inputs()
    for directory in (run, *sorted((run / "clusters").glob("*/"))):
        if (directory / "trace").is_dir():
            _Cluster(run, directory, found).check()
    return found


class _Cluster:
    """One cluster's trace and disks."""

    def __init__(self, run: Path, directory: Path, found: Inputs) -> None:
        self._run = run
        self._directory = directory
        self._found = found
        self._changes = _last(self._rows("partition_changes"), _partition)
        led = (row for row in self._rows("partition_changes") if _int(row, "leader") >= 0)
        self._led = _last(led, _partition)
        self._disturbed = self._disturbances()
        self._replicas = self._alone(replicas(directory))

    def check(self) -> None:
        """Makes all comparisons."""
        self._leaders()
        self._epochs()
        self._high_watermarks()
        self._log_starts()

    # -- leaders ----------------------------------------------------------------------------------

    def _leaders(self) -> None:
        try:
            logs = metadata_log.read_all(self._directory / "disks")
        except MalformedBytes as error:
            self._found.unchecked.append(f"{LEADERS}: a metadata log cannot be read: {error}")
            return
        if not logs:
            self._found.unchecked.append(
                f"{LEADERS}: no disk holds a metadata log (servers of ZooKeeper keep no bytes); "
                "leader epochs alone are compared, with leader-epoch-checkpoint"
            )
            return
        best, settled = logs[0], metadata_log.settled_end(logs)
        deleted = _last(self._rows("topic_deletions"), lambda row: str(row["topic"]))
        for tp in sorted({*self._changes, *best.states}):
            row, states = self._changes.get(tp), best.states.get(tp, [])
            if row is not None and not states and tp.topic in deleted:
                continue
            self._found.compared[LEADERS] += 1
            place = -1 if row is None else _place_of(row, states)
            late = list(metadata_log.overdue(states[place + 1 :], best, settled))
            is_known = row is not None and place >= 0 and self._led_alike(tp, states[: place + 1])
            if is_known and not late:
                continue
            traced = "nothing" if row is None else _words(row)
            shown = late or states[place:][:1]
            disk = shown[-1].words if shown else "nothing"
            self._note(LEADERS, tp, traced, disk, best.path)

    def _led_alike(self, tp: TopicPartition, states: Sequence[metadata_log.State]) -> bool:
        """True if the last state with a leader is the same, too, which the judges use."""
        ours = next((state for state in reversed(states) if state.leader >= 0), None)
        row = self._led.get(tp)
        if ours is None or row is None:
            return ours is None and row is None
        return (ours.leader, ours.leader_epoch) == (_int(row, "leader"), _int(row, "leader_epoch"))

    def _epochs(self) -> None:
        for replica in self._replicas:
            tp = TopicPartition(replica.topic, replica.partition)
            file = replica.directory / checkpoints.LEADER_EPOCHS
            if tp not in self._changes or not file.is_file():
                continue
            epochs = self._decoded(file, checkpoints.decode_epochs, LEADERS)
            if not epochs:
                continue
            known = _int(self._changes[tp], "leader_epoch")
            self._found.compared[LEADERS] += 1
            if epochs[-1][0] > known:
                traced = f"leader epoch {known}"
                self._note(LEADERS, tp, traced, f"leader epoch {epochs[-1][0]}", file)

    # -- high watermarks --------------------------------------------------------------------------

    def _high_watermarks(self) -> None:
        high = self._highest()
        for replica in self._replicas:
            tp = TopicPartition(replica.topic, replica.partition)
            file = replica.directory.parent / checkpoints.HIGH_WATERMARKS
            stored = self._offset(file, tp, HIGH_WATERMARKS)
            if stored is None or tp not in self._changes:
                continue
            self._found.compared[HIGH_WATERMARKS] += 1
            if stored > high.get(tp, 0):
                self._note(HIGH_WATERMARKS, tp, f"at most {high.get(tp, 0)}", str(stored), file)
        last = _last(self._rows("high_watermarks"), _partition)
        for replica in self._replicas:
            tp = TopicPartition(replica.topic, replica.partition)
            row, state = last.get(tp), self._changes.get(tp)
            if row is None or state is None or not self._is_held(replica, row, state):
                continue
            file, end = _log_end(replica)
            self._found.compared[HIGH_WATERMARKS] += 1
            if end < _int(row, "high_watermark"):
                traced = str(_int(row, "high_watermark"))
                self._note(HIGH_WATERMARKS, tp, traced, f"log end {end}", file)

    def _is_held(self, replica: ReplicaFiles, row: Row, state: Row) -> bool:
        """True if a replica in sync has to have what the last leader's high watermark covers."""
        in_sync = str(state["in_sync"]).split(",")
        is_same = row["leader_epoch"] == state["leader_epoch"] and row["broker"] == state["leader"]
        return (
            is_same
            and str(replica.broker) in in_sync
            and self._disturbed.get(replica.broker, _LONG_AGO) < _int(row, "t_us")
        )

    def _highest(self) -> Mapping[TopicPartition, int]:
        names = ["topic", "partition", "high_watermark"]
        begun = self._table("leadership", [*names, "role"])
        begun = begun.filter(pc.equal(begun["role"], "leader")).select(names)
        every = pa.concat_tables([self._table("high_watermarks", names), begun])
        most = every.group_by(names[:2]).aggregate([("high_watermark", "max")])
        return {_partition(row): _int(row, "high_watermark_max") for row in most.to_pylist()}

    # -- log starts -------------------------------------------------------------------------------

    def _log_starts(self) -> None:
        starts = _last(self._rows("log_starts"), lambda row: (row["broker"], _partition(row)))
        tiered = {(row["broker"], _partition(row)) for row in self._rows("local_log_starts")}
        for replica in self._replicas:
            tp = TopicPartition(replica.topic, replica.partition)
            if tp not in self._changes or not replica.paths:
                continue
            if (replica.broker, tp) in tiered:
                continue  # its files begin at the local log start, and its checkpoint lags
            row = starts.get((replica.broker, tp))
            traced = 0 if row is None else _int(row, "to_offset")
            first = int(replica.paths[0].stem)
            file = replica.directory.parent / checkpoints.LOG_STARTS
            stored = self._offset(file, tp, LOG_STARTS)
            disk, where = max((first, replica.paths[0]), (-1 if stored is None else stored, file))
            self._found.compared[LOG_STARTS] += 1
            is_exact = (
                row is not None
                and row["reason"] in _RETENTION
                and self._disturbed.get(replica.broker, _LONG_AGO) < _int(row, "t_us")
            )
            if disk > traced or (is_exact and disk < traced):
                name = f"{traced} on broker-{replica.broker}"
                self._note(LOG_STARTS, tp, name, str(disk), where)

    # -- what is read -----------------------------------------------------------------------------

    def _disturbances(self) -> Mapping[int, int]:
        """The last instant at which each broker's process or disks were disturbed."""
        found: dict[int, int] = {}
        for row in self._rows("node_states"):
            _raise_to(found, str(row["node"]), _int(row, "t_us"))
        for row in self._rows("faults"):
            if row["kind"] in _DISK_FAULTS:
                for name in str(row["resolved"]).split(", "):
                    _raise_to(found, name, _FOREVER)
        return found

    def _alone(self, listed: Sequence[ReplicaFiles]) -> list[ReplicaFiles]:
        """Replicas in use: a failed log directory may keep an abandoned copy."""
        last = _last(self._rows("leadership"), lambda row: (row["broker"], _partition(row)))
        places: dict[tuple[int, str, int], int] = {}
        for each in listed:
            place = each.broker, each.topic, each.partition
            places[place] = places.get(place, 0) + 1
        kept: list[ReplicaFiles] = []
        for each in listed:
            place = each.broker, each.topic, each.partition
            row = last.get((each.broker, TopicPartition(each.topic, each.partition)))
            if row is not None and row["role"] in {"leader", "follower"} and places[place] == 1:
                kept.append(each)
        return kept

    def _table(self, name: str, columns: Sequence[str]) -> pa.Table:
        parts = sorted((self._directory / "trace" / name).glob("part-*.parquet"))
        read = [pq.read_table(part, columns=list(columns)) for part in parts]
        if not read:
            return pa.table({each: pa.array([], pa.int64()) for each in columns})
        return pa.concat_tables(read)

    def _rows(self, name: str) -> Iterator[Row]:
        """The rows of a table in their order, with the columns that are needed here."""
        for batch in self._table(name, _COLUMNS[name]).to_batches():
            yield from batch.to_pylist()

    def _offset(self, file: Path, tp: TopicPartition, kind: str) -> int | None:
        offsets = self._decoded(file, checkpoints.decode_offsets, kind)
        return None if offsets is None else offsets.get(tp)

    def _decoded(
        self, file: Path, decode: Callable[[bytes, str], _Decoded], kind: str
    ) -> _Decoded | None:
        if not file.is_file():
            return None
        try:
            return decode(file.read_bytes(), file.name)
        except MalformedCheckpoint as error:
            words = f"{kind}: {file.relative_to(self._run)}: {error}"
            if words not in self._found.unchecked:
                self._found.unchecked.append(words)
            return None

    def _note(self, kind: str, tp: TopicPartition, traced: str, disk: str, file: Path) -> None:
        name = file.relative_to(self._run).as_posix()
        self._found.differences.append(Difference(kind, tp.topic, tp.partition, traced, disk, name))


def _last(rows: Iterable[Row], key: Callable[[Row], _Key]) -> dict[_Key, Row]:
    """The last row of each key."""
    return {key(row): row for row in rows}


def _partition(row: Row) -> TopicPartition:
    return TopicPartition(str(row["topic"]), _int(row, "partition"))


def _int(row: Row, name: str) -> int:
    value = row[name]
    assert isinstance(value, int), "the schema says so"
    return value


def _raise_to(found: dict[int, int], node: str, at: int) -> None:
    """Adds an instant of a broker; ignores other nodes."""
    kind, _, number = node.rpartition("-")
    if kind == "broker" and number.isdecimal():
        found[int(number)] = max(at, found.get(int(number), _LONG_AGO))


def _place_of(row: Row, states: Sequence[metadata_log.State]) -> int:
    """Index of a row of ``partition_changes`` among the states, from their end; -1 for none."""
    identity = tuple(_int(row, name) for name in ("leader", "leader_epoch", "partition_epoch"))
    for place in range(len(states) - 1, -1, -1):
        if states[place][:3] == identity:
            return place
    return -1


def _words(row: Row) -> str:
    return f"leader {row['leader']} in leader epoch {row['leader_epoch']}"


def _log_end(replica: ReplicaFiles) -> tuple[Path, int]:
    """The last segment, and the offset behind its last whole batch."""
    last = replica.paths[-1]
    end = int(last.stem)
    size = last.stat().st_size
    position = 0
    with last.open("rb") as file:
        while position + _HEADER.size <= size:
            file.seek(position)
            base, length, _, magic, _, delta = _HEADER.unpack(file.read(_HEADER.size))
            position += _LOG_OVERHEAD + length
            if magic != 2 or length <= 0 or position > size:
                break
            end = base + delta + 1
    return last, end
