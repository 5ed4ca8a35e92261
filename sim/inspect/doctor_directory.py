"""The doctor's view of a log directory as a whole: names, leftovers, checkpoints, identities.

Source: ``UnifiedLog.parseTopicPartitionName``, ``LogLoader``, ``OffsetCheckpointFile``.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition
from sim.inspect.finding import Finding
from sim.log.store import checkpoints
from sim.log.store.checkpoints import Identity, MalformedCheckpoint

CHECKPOINTS = (
    checkpoints.RECOVERY_POINTS,
    checkpoints.HIGH_WATERMARKS,
    checkpoints.LOG_STARTS,
    checkpoints.CLEANER_OFFSETS,
)
"""The offset checkpoints of a log directory."""

_ASIDE = re.compile(r"([a-zA-Z0-9._-]+)-(\d+)\.([0-9a-f]{32})-(delete|future|stray)")
_SUFFIXES = ("-delete", "-future", "-stray")
_LEGAL_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_LEFTOVERS = {
    ".cleaned": "a compaction that did not come to its end: deleted at the next start",
    ".swap": "a compaction that did: the next start puts it in its place",
    ".deleted": "waits for its deletion: deleted at the next start",
    ".tmp": "a file that was not written to its end: deleted at the next start",
    ".part": "a snapshot that was not written to its end: deleted at the next start",
}


class Extent(NamedTuple):
    """First and end offset of a log."""

    first_base: Offset
    """Base offset of the first segment."""
    end: Offset


def identity_of(directory: Path) -> Identity | None:
    """``meta.properties`` of a log directory; ``None`` if it is missing or cannot be read."""
    path = directory / checkpoints.META_PROPERTIES
    try:
        return checkpoints.decode_identity(path.read_bytes(), path.name)
    except (FileNotFoundError, MalformedCheckpoint):
        return None


def small_files(directory: Path) -> Iterator[Finding]:
    """Checks each file directly in a log directory."""
    identity = directory / checkpoints.META_PROPERTIES
    if identity.is_file():
        yield from tried(identity, checkpoints.decode_identity)
    else:
        yield Finding(identity, "error", "missing: a broker does not start without it")
    for name in CHECKPOINTS:
        path = directory / name
        if path.is_file():
            yield from tried(path, checkpoints.decode_offsets)
    marker = directory / checkpoints.CLEAN_SHUTDOWN
    if marker.is_file():
        yield from _clean_shutdown(marker)
    yield from leftovers(directory)


def tried(path: Path, decode: Callable[[bytes, str], object]) -> Iterator[Finding]:
    """The finding that a file cannot be decoded, if so."""
    try:
        decode(path.read_bytes(), path.name)
    except MalformedCheckpoint as error:
        yield Finding(path, "error", str(error))


def leftovers(directory: Path) -> Iterator[Finding]:
    """Files of work that was interrupted."""
    for path in sorted(directory.iterdir()):
        for suffix, message in _LEFTOVERS.items():
            if path.is_file() and path.name.endswith(suffix):
                yield Finding(path, "warning", message)


def put_aside(path: Path) -> bool:
    """True if a directory's name marks its log as deleted, future or stray."""
    return path.name.endswith(_SUFFIXES)


def names(path: Path, partition: TopicPartition | None) -> Iterator[Finding]:
    """Directory names that stop a broker.

    Args:
        path: A directory directly in a log directory.
        partition: Its partition, by its name.
    """
    if put_aside(path):
        if _ASIDE.fullmatch(path.name) is None:
            message = "topic-partition.uniqueId-delete, -future or -stray expected"
            yield Finding(path, "error", f"{message}: a broker does not start on it")
    elif partition is None:
        yield Finding(path, "error", "not a partition's directory: a broker does not start on it")
    elif _LEGAL_TOPIC.fullmatch(partition.topic) is None:
        message = f"{partition.topic!r} is no name of a topic: letters, digits, '.', '_' and '-'"
        yield Finding(path, "error", message)


def bounds(directory: Path, extents: Mapping[TopicPartition, Extent]) -> Iterator[Finding]:
    """Checkpointed offsets against the logs; logs of other directories are ignored."""
    starts = _offsets(directory / checkpoints.LOG_STARTS)
    for name in CHECKPOINTS:
        path = directory / name
        for partition, offset in _offsets(path).items():
            if partition == METADATA_PARTITION:
                yield Finding(path, "error", f"{partition} found: it is never checkpointed")
                continue
            extent = extents.get(partition)
            if extent is None:
                message = f"{partition} found, but no directory of it: forgotten at the next start"
                yield Finding(path, "warning", message)
                continue
            start = max(starts.get(partition, 0), extent.first_base)
            low = extent.first_base if name == checkpoints.LOG_STARTS else start
            if offset > extent.end:
                message = f"{partition}: {offset} is beyond the log end {extent.end}"
                yield Finding(path, "warning", message)
            elif offset < low and name != checkpoints.RECOVERY_POINTS:
                message = f"{partition}: {offset} is below the log start {low}"
                yield Finding(path, "warning", message)


def same_ids(directories: Sequence[Path]) -> Iterator[Finding]:
    """Directories that claim one identity, and directories of one server in two clusters."""
    known: dict[str, Path] = {}
    clusters: dict[int, tuple[str, Path]] = {}
    for directory in directories:
        identity = identity_of(directory)
        if identity is None:
            continue
        path = directory / checkpoints.META_PROPERTIES
        other = known.setdefault(identity.directory_id, directory)
        if other is not directory:
            message = f"directory.id {identity.directory_id} found, which {other} has, too"
            yield Finding(path, "error", message)
        cluster, first = clusters.setdefault(identity.node_id, (identity.cluster_id, directory))
        if cluster != identity.cluster_id and first.parent == directory.parent:
            message = f"cluster.id {identity.cluster_id} found, {first} has {cluster}"
            yield Finding(path, "error", message)


def moved_nowhere(
    directory: Path,
    extents: Iterable[TopicPartition],
    futures: Container[TopicPartition],
) -> Iterator[Finding]:
    """Logs that are to be moved into the log directory in which they are."""
    for partition in extents:
        if partition in futures:
            message = f"{partition} found, and a future log of it: another log directory expected"
            yield Finding(directory, "error", message)


def twice(
    found: Iterable[tuple[Path, NodeId | None, Iterable[TopicPartition]]],
) -> Iterator[Finding]:
    """Partitions with a log in two log directories of one server.

    Args:
        found: Each log directory, whose it is, and the partitions with a log in it.
    """
    known: dict[tuple[Path, NodeId, TopicPartition], Path] = {}
    for directory, node, partitions in found:
        for partition in partitions:
            if node is None or partition == METADATA_PARTITION:
                continue
            first = known.setdefault((directory.parent, node, partition), directory)
            if first != directory:
                message = f"{partition} found, which {first} has, too: a broker does not start"
                yield Finding(directory, "error", message)


def _offsets(path: Path) -> dict[TopicPartition, Offset]:
    try:
        return checkpoints.decode_offsets(path.read_bytes(), path.name)
    except (FileNotFoundError, MalformedCheckpoint):
        return {}


def _clean_shutdown(path: Path) -> Iterator[Finding]:
    try:
        found = json.loads(path.read_bytes())
        if isinstance(found, dict) and isinstance(found.get("brokerEpoch"), int):
            return
    except (ValueError, RecursionError):
        pass
    yield Finding(path, "warning", "no brokerEpoch found: the controller takes the stop as unclean")
