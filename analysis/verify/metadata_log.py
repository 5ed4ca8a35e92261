"""States of each partition, in order, from a metadata log on a simulated disk.

Read from the segment files of ``__cluster_metadata-0``, and from a snapshot where the log does not
begin at offset 0. A log alone does not show which of its last records are committed; those that
most of the logs hold since a second before the newest one's end are assumed to be.

Source: ``PartitionRegistration.merge``: a record with a leader raises the leader epoch, and
every record the partition epoch; ``KafkaRaftLog``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from sim.ids import TopicPartition
from sim.log.partition.reading import base_offset_of, file_batches, segments
from sim.wire.fields import Value
from sim.wire.schemas import decode

DIRECTORY: Final = "__cluster_metadata-0"

_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_UNCHANGED: Final = -2
_SETTLED_MS: Final = 1_000


class State(NamedTuple):
    """A partition's state from an offset of the metadata log on."""

    leader: int
    leader_epoch: int
    partition_epoch: int
    offset: int
    timestamp_ms: int

    @property
    def words(self) -> str:
        """Text for a sentence."""
        return f"leader {self.leader} in leader epoch {self.leader_epoch}"


@dataclass(slots=True)
class MetadataLog:
    """One log directory's copy.

    Raises:
        MalformedBytes: If bytes of it cannot be read.
    """

    path: Path
    end: int = 0
    epoch: int = -1
    newest_ms: int = -1
    states: dict[TopicPartition, list[State]] = field(default_factory=dict)
    """States of every partition that is not deleted; at least one."""
    _names: dict[str, str] = field(default_factory=dict)

    def read(self) -> "MetadataLog":
        """Replays it from its beginning; returns itself."""
        logs, _ = segments(self.path)
        start = base_offset_of(logs[0]) if logs else 0
        for path in sorted(self.path.glob("*.checkpoint")) if start > 0 else ():
            name = _SNAPSHOT.fullmatch(path.name)
            if name is not None and int(name[1]) >= start:
                self._replay(path, 0, at=int(name[1]) - 1)
                start = int(name[1])
                break
        for log in logs:
            self._replay(log, start, at=None)
        return self

    def _replay(self, file: Path, start: int, at: int | None) -> None:
        """Replays a segment from an offset on, or a snapshot, whose records are of one offset."""
        for _, batch in file_batches(file):
            if not batch.valid():
                return
            if at is None:
                self.end, self.epoch = batch.last_offset + 1, batch.leader_epoch
                self.newest_ms = max(self.newest_ms, batch.max_timestamp_ms)
            if batch.is_control or (at is None and batch.last_offset < start):
                continue
            for record in batch.records():
                if at is None and record.offset < start:
                    continue
                decoded = decode(record.value or b"")
                where = record.offset if at is None else at
                self._apply(decoded.name, decoded.values, where, batch.max_timestamp_ms)

    def _apply(self, name: str, values: Mapping[str, Value], offset: int, at_ms: int) -> None:
        if name == "TopicRecord":
            self._names[str(values["topicId"])] = str(values["name"])
        elif name == "RemoveTopicRecord":
            removed = self._names.pop(str(values["topicId"]), "")
            self.states = {tp: found for tp, found in self.states.items() if tp.topic != removed}
        elif name in {"PartitionRecord", "PartitionChangeRecord"}:
            topic = self._names.get(str(values["topicId"]))
            if topic is None:
                return
            tp = TopicPartition(topic, _int(values["partitionId"]))
            found = self.states.setdefault(tp, [])
            if name == "PartitionRecord":
                epochs = _int(values["leaderEpoch"]), _int(values["partitionEpoch"])
                found.append(State(_int(values["leader"]), *epochs, offset, at_ms))
            elif found:
                last, leader = found[-1], _int(values.get("leader", _UNCHANGED))
                is_named = leader != _UNCHANGED
                found.append(
                    State(
                        leader if is_named else last.leader,
                        last.leader_epoch + is_named,
                        last.partition_epoch + 1,
                        offset,
                        at_ms,
                    )
                )


def read_all(disks: Path) -> list[MetadataLog]:
    """The copies below a directory of disks, the one that reaches furthest first.

    Raises:
        MalformedBytes: If bytes of one cannot be read.
    """
    found = [MetadataLog(path).read() for path in sorted(disks.glob(f"*/*/{DIRECTORY}"))]
    return sorted(found, key=lambda log: (-log.epoch, -log.end))


def settled_end(logs: Sequence[MetadataLog]) -> int:
    """Offset below which records are surely committed, but for those of the last second.

    Controllers that have no other role are the voters: most of them have to hold a record. Where
    there is none, servers with both roles are among the logs, and all have to.
    """
    voters = sorted(
        (log.end for log in logs if log.path.parents[1].name.startswith("controller-")),
        reverse=True,
    )
    if voters:
        return voters[len(voters) // 2]
    return min((log.end for log in logs), default=0)


def overdue(states: Sequence[State], log: MetadataLog, settled: int) -> Iterator[State]:
    """Of unobserved states, those that should have been observed."""
    for state in states:
        if state.offset < settled and state.timestamp_ms < log.newest_ms - _SETTLED_MS:
            yield state


def _int(value: Value) -> int:
    assert isinstance(value, int), "the schema says so"
    return value
