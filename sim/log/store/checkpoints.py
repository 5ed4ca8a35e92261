"""The small text files of a log directory: checkpoints, identity, topic id, clean shutdown.

All are replaced atomically and durable at once. A checkpoint of our own that cannot be read is a
failure of the disk, as in Kafka.

Source: ``CheckpointFile``, ``OffsetCheckpointFile``, ``LeaderEpochCheckpointFile``,
``PropertiesUtils``, ``PartitionMetadataFile``, ``CleanShutdownFileHandler``.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.log.store.files import DiskFailed, FileStore

RECOVERY_POINTS = "recovery-point-offset-checkpoint"
"""Everything below these offsets is durable."""

HIGH_WATERMARKS = "replication-offset-checkpoint"
"""High watermarks."""

LOG_STARTS = "log-start-offset-checkpoint"
"""Log start offsets above their first segment's base."""

CLEANER_OFFSETS = "cleaner-offset-checkpoint"
"""First dirty offsets of compacted logs."""

LEADER_EPOCHS = "leader-epoch-checkpoint"
"""In a partition's directory: first offset of each leader epoch."""

PARTITION_METADATA = "partition.metadata"
"""In a partition's directory: its topic's id."""

META_PROPERTIES = "meta.properties"
"""Identity of a log directory."""

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
"""Its existence means that the last shutdown was clean."""

LOCK = ".lock"
"""Empty; a process holds a lock on it as long as it uses the directory."""

_WHITESPACE = re.compile(r"\s+")


class MalformedCheckpoint(DiskFailed):
    """A checkpoint file cannot be read; the directory must go offline. ``args``: the message."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Contents of ``meta.properties``."""

    cluster_id: str
    node_id: NodeId
    directory_id: str


def encode_lines(lines: Sequence[str]) -> bytes:
    """A checkpoint file: version 0, number of entries, the entries."""
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode()


def decode_lines(data: bytes, name: str, fields: int) -> tuple[tuple[str, ...], ...]:
    """Entries of a checkpoint file, each split at white space. An empty file has none.

    Raises:
        MalformedCheckpoint: If version, count or number of fields is wrong.
    """
    if not data:
        return ()
    try:
        lines = data.decode().splitlines()
        version, count = int(lines[0]), int(lines[1])
    except (UnicodeDecodeError, ValueError, IndexError) as error:
        raise MalformedCheckpoint(f"{name}: no version and count: {error}") from error
    if version != 0:
        raise MalformedCheckpoint(f"{name}: version {version} found, 0 expected")
    if len(lines) != count + 2:
        raise MalformedCheckpoint(f"{name}: {count} entries declared, {len(lines) - 2} found")
    entries = tuple(tuple(_WHITESPACE.split(line)) for line in lines[2:])
    for entry in entries:
        if len(entry) != fields:
            raise MalformedCheckpoint(f"{name}: malformed entry {' '.join(entry)!r}")
    return entries


def write_offsets(store: FileStore, name: str, offsets: Mapping[TopicPartition, Offset]) -> None:
    """Replaces an offset checkpoint; lines are sorted by partition.

    Raises:
        DiskFailed: If the disk has failed or is full.
    """
    store.replace(name, encode_offsets(offsets))


def encode_offsets(offsets: Mapping[TopicPartition, Offset]) -> bytes:
    """Contents of an offset checkpoint; lines are sorted by partition."""
    return encode_lines([f"{tp.topic} {tp.partition} {offsets[tp]}" for tp in sorted(offsets)])


def read_offsets(store: FileStore, name: str) -> dict[TopicPartition, Offset]:
    """An offset checkpoint; empty if the file is missing.

    Raises:
        MalformedCheckpoint: If it cannot be read.
        DiskFailed: If the disk has failed.
    """
    data = store.read_whole(name)
    return decode_offsets(data or b"", name)


def decode_offsets(data: bytes, name: str) -> dict[TopicPartition, Offset]:
    """Contents of an offset checkpoint.

    Raises:
        MalformedCheckpoint: If it cannot be read.
    """
    found: dict[TopicPartition, Offset] = {}
    for topic, partition, offset in decode_lines(data, name, 3):
        try:
            found[TopicPartition(topic, int(partition))] = int(offset)
        except ValueError as error:
            raise MalformedCheckpoint(f"{name}: malformed entry: {error}") from error
    return found


def decode_epochs(data: bytes, name: str) -> tuple[tuple[LeaderEpoch, Offset], ...]:
    """Contents of a leader epoch checkpoint.

    Raises:
        MalformedCheckpoint: If it cannot be read.
    """
    try:
        return tuple((int(epoch), int(start)) for epoch, start in decode_lines(data, name, 2))
    except ValueError as error:
        raise MalformedCheckpoint(f"{name}: malformed entry: {error}") from error


def encode_epochs(entries: Sequence[tuple[LeaderEpoch, Offset]]) -> bytes:
    """A leader epoch checkpoint, in the order of the entries."""
    return encode_lines([f"{epoch} {start}" for epoch, start in entries])


def encode_identity(identity: Identity) -> bytes:
    """``meta.properties`` version 1; keys sorted, no date line, so equal runs give equal bytes."""
    return (
        f"#\ncluster.id={identity.cluster_id}\ndirectory.id={identity.directory_id}\n"
        f"node.id={identity.node_id}\nversion=1\n"
    ).encode()


def decode_identity(data: bytes, name: str) -> Identity:
    """Identity of a log directory.

    Raises:
        MalformedCheckpoint: If a key is missing or the version is not 1.
    """
    try:
        lines = data.decode().splitlines()
        pairs = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        if pairs["version"] != "1":
            raise MalformedCheckpoint(f"{name}: version {pairs['version']} found, 1 expected")
        return Identity(pairs["cluster.id"], int(pairs["node.id"]), pairs["directory.id"])
    except (KeyError, ValueError) as error:
        raise MalformedCheckpoint(f"{name}: not a meta.properties file: {error!r}") from error


def encode_partition_metadata(topic_id: str) -> bytes:
    """``partition.metadata``; it ends without a line end."""
    return f"version: 0\ntopic_id: {topic_id}".encode()


def decode_partition_metadata(data: bytes, name: str) -> str:
    """The topic id of a partition's directory.

    Raises:
        MalformedCheckpoint: If the file has another form.
    """
    found = re.fullmatch(r"version:\s+0\ntopic_id:\s+(\S{22})", data.decode(errors="replace"))
    if found is None:
        raise MalformedCheckpoint(f"{name}: not a partition.metadata file")
    return found[1]


def encode_clean_shutdown(broker_epoch: BrokerEpoch) -> bytes:
    """``.kafka_cleanshutdown``."""
    return json.dumps({"version": 0, "brokerEpoch": broker_epoch}, separators=(",", ":")).encode()


def decode_clean_shutdown(data: bytes) -> BrokerEpoch:
    """The broker epoch of the last clean shutdown; -1 if unknown."""
    try:
        found = json.loads(data)
    except ValueError:
        return -1
    epoch = found.get("brokerEpoch", -1) if isinstance(found, dict) else -1
    return epoch if isinstance(epoch, int) else -1
