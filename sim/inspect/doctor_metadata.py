"""The doctor's view of the metadata: its log with its snapshots, and the placement of partitions.

Source: ``KafkaRaftLog.recoverSnapshots``, ``FileQuorumStateStore``, ``LogManager.isStrayReplica``.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition
from sim.inspect.finding import Finding
from sim.log.partition.reading import base_offset_of, file_batches, segments
from sim.log.store import checkpoints
from sim.log.store.checkpoints import MalformedCheckpoint
from sim.wire.fields import Value
from sim.wire.primitives import MalformedBytes
from sim.wire.schemas import decode, decode_control

BOOTSTRAP = "bootstrap.checkpoint"
"""In every log directory: the first records of a new cluster."""

_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")
_QUORUM_STATE = "quorum-state"
_QUORUM_NUMBERS = ("data_version", "leaderId", "leaderEpoch", "votedId")
_NEWEST_QUORUM_STATE = 1


class _Snapshot(NamedTuple):
    end_offset: Offset
    epoch: int
    path: Path


@dataclass(slots=True)
class ClusterState:
    """Topics and the places of their replicas, as the metadata has them."""

    names: dict[str, str] = field(default_factory=dict)
    """Topics by their ids."""
    replicas: dict[TopicPartition, tuple[NodeId, ...]] = field(default_factory=dict)

    @property
    def ids(self) -> dict[str, str]:
        """Topic ids by name."""
        return {name: topic_id for topic_id, name in self.names.items()}

    def apply(self, name: str, values: Mapping[str, Value]) -> None:
        """Replays a record; ignores those not about topics."""
        if name == "TopicRecord":
            self.names[str(values["topicId"])] = str(values["name"])
        elif name == "RemoveTopicRecord":
            removed = self.names.pop(str(values["topicId"]), "")
            self.replicas = {tp: ids for tp, ids in self.replicas.items() if tp.topic != removed}
        elif name in {"PartitionRecord", "PartitionChangeRecord"}:
            topic, replicas = self.names.get(str(values["topicId"])), values.get("replicas")
            number = values["partitionId"]
            assert isinstance(number, int), "the schema says so"
            if topic is not None and isinstance(replicas, Sequence):
                nodes = tuple(node for node in replicas if isinstance(node, int))
                self.replicas[TopicPartition(topic, number)] = nodes


def examine_metadata(directory: Path, end: Offset) -> tuple[ClusterState, list[Finding]]:
    """Cluster state from the metadata log's directory, and what is wrong with its own files.

    Args:
        directory: ``__cluster_metadata-0`` of a log directory.
        end: The log's end offset.
    """
    findings: list[Finding] = list(_quorum_state(directory))
    state = ClusterState()
    logs, _ = segments(directory)
    start = base_offset_of(logs[0]) if logs else 0
    loaded: Offset = 0
    for snapshot in _snapshots(directory):
        before = len(findings)
        records = list(_read(snapshot.path, findings))
        is_sound = len(findings) == before
        if snapshot.end_offset < start:
            message = f"older than the log, which begins at {start}: deleted at the next start"
            findings.append(Finding(snapshot.path, "warning", message))
        elif snapshot.end_offset > end:
            message = f"the log ends at {end}: it starts anew at the snapshot at the next start"
            findings.append(Finding(snapshot.path, "warning", message))
        if is_sound and snapshot.end_offset >= loaded:
            state, loaded = ClusterState(), snapshot.end_offset
            for name, values in records:
                state.apply(name, values)
    if start > loaded:
        message = f"begins at {start}, and no snapshot holds what lay below: no server starts on it"
        findings.append(Finding(logs[0], "error", message))
    for log in logs:
        for name, values in _records(log, loaded, findings):
            state.apply(name, values)
    return state, findings


def examine_bootstrap(path: Path) -> list[Finding]:
    """``bootstrap.checkpoint``, if it is there."""
    findings: list[Finding] = []
    if path.is_file():
        for _ in _read(path, findings):
            pass
    return findings


def replicas_out_of_place(
    directory: Path, partitions: Sequence[TopicPartition], node: NodeId, state: ClusterState
) -> Iterator[Finding]:
    """Partitions of a log directory that the metadata does not place on its server.

    A broker puts them aside as ``-stray`` at its next start.
    """
    ids = state.ids
    for partition in partitions:
        if partition == METADATA_PARTITION:
            continue
        path = directory / str(partition)
        replicas = state.replicas.get(partition)
        found = _topic_id(path / checkpoints.PARTITION_METADATA)
        if replicas is None:
            yield Finding(path, "warning", f"a stray replica: the metadata knows no {partition}")
        elif found is not None and found != ids[partition.topic]:
            message = f"topic id {found} found, the metadata says {ids[partition.topic]}"
            yield Finding(path / checkpoints.PARTITION_METADATA, "error", message)
        elif node not in replicas:
            message = f"a stray replica: on node {node}, the metadata places it on {list(replicas)}"
            yield Finding(path, "warning", message)


def _topic_id(path: Path) -> str | None:
    try:
        return checkpoints.decode_partition_metadata(path.read_bytes(), path.name)
    except (FileNotFoundError, MalformedCheckpoint):
        return None


def _snapshots(directory: Path) -> list[_Snapshot]:
    found = []
    for path in sorted(directory.glob("*.checkpoint")):
        name = _SNAPSHOT.fullmatch(path.name)
        if name is not None:
            found.append(_Snapshot(int(name[1]), int(name[2]), path))
    return found


def _read(path: Path, findings: list[Finding]) -> Iterator[tuple[str, dict[str, Value]]]:
    """The records of a snapshot; adds findings for its batches and its frame."""
    controls: list[str] = []
    end = expected = 0
    try:
        for position, batch in file_batches(path):
            end = position + batch.size_bytes
            if not batch.valid():
                message = f"batch at position {position}: the checksum is wrong"
                findings.append(Finding(path, "error", message))
                return
            if batch.base_offset != expected:
                message = f"batch at position {position}: offset {batch.base_offset} found, "
                findings.append(Finding(path, "error", f"{message}{expected} expected"))
            expected = batch.last_offset + 1
            for record in batch.records():
                if batch.is_control:
                    controls.append(decode_control(record.key or b"", record.value or b"").name)
                else:
                    decoded = decode(record.value or b"")
                    yield decoded.name, decoded.values
    except MalformedBytes as error:
        findings.append(Finding(path, "error", f"at position {end}: {error}"))
        return
    if left := path.stat().st_size - end:
        message = f"{left} bytes at position {end} are no whole batch"
        findings.append(Finding(path, "error", message))
    for name, place in (("SnapshotHeaderRecord", 0), ("SnapshotFooterRecord", -1)):
        if not controls or controls[place] != name:
            where = "first" if place == 0 else "last"
            findings.append(
                Finding(path, "error", f"no {name} found as its {where} control record")
            )


def _records(
    log: Path, start: Offset, findings: list[Finding]
) -> Iterator[tuple[str, dict[str, Value]]]:
    """Records of a segment from an offset on; its batches themselves are examined elsewhere."""
    try:
        for position, batch in file_batches(log):
            if batch.is_control or batch.base_offset < start or not batch.valid():
                continue
            for record in batch.records():
                try:
                    decoded = decode(record.value or b"")
                except MalformedBytes as error:
                    message = f"batch at position {position}: offset {record.offset}: {error}"
                    findings.append(Finding(log, "error", message))
                else:
                    yield decoded.name, decoded.values
    except MalformedBytes:
        return  # found as a segment's damage


def _quorum_state(directory: Path) -> Iterator[Finding]:
    path = directory / _QUORUM_STATE
    if not path.is_file():
        return
    try:
        fields = json.loads(path.read_bytes())
        numbers = [fields[name] for name in _QUORUM_NUMBERS]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        yield Finding(path, "error", f"not a quorum-state file: {error!r}; no server starts on it")
        return
    if not all(isinstance(number, int) for number in numbers):
        yield Finding(path, "error", f"numbers expected for {', '.join(_QUORUM_NUMBERS)}")
    elif numbers[0] > _NEWEST_QUORUM_STATE:
        message = f"data_version {numbers[0]} found, 0 or 1 expected: no server starts on it"
        yield Finding(path, "error", message)
