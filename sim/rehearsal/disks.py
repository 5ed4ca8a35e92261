"""Log directories of a rehearsal's servers: formatted, replaced, bereft of files or of bytes."""

import os
import re
import shutil
import subprocess
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sim.errors import SimulationError
from sim.ids import NodeId, Offset, TopicPartition
from sim.log.directory.names import partition_of
from sim.log.partition.reading import file_batches
from sim.log.store.checkpoints import RECOVERY_POINTS, decode_offsets
from sim.rehearsal.apache import Apache
from sim.units import Bytes

META: Final = "meta.properties"
BOOTSTRAP: Final = "bootstrap.checkpoint"
_ENTRY_BYTES: Final = {".index": 8, ".timeindex": 12, ".txnindex": 34}
_PIECE: Final = 1 << 16
_TOOL: Final = "kafka.tools.StorageTool"


def random_id() -> str:
    """A random 128-bit id in Kafka's printed form, which does not begin with a dash."""
    while True:
        text = urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")
        if not text.startswith("-"):
            return text


class Formats:
    """Formats log directories as ``kafka-storage format`` does, which runs once for the cluster.

    Args:
        apache: The release.
        cluster_id: Of the new cluster.
    """

    def __init__(self, apache: Apache, cluster_id: str) -> None:
        self._apache = apache
        self._cluster_id = cluster_id
        self._meta = ""
        self._bootstrap = b""

    def learn(self, properties: Path, directory: Path) -> None:
        """Formats the first server's metadata directory with Kafka's own tool.

        Raises:
            SimulationError: If the tool refuses the server's settings.
        """
        command = self._apache.java(
            _TOOL, "format", "-t", self._cluster_id, "-c", str(properties), quick=True
        )
        done = subprocess.run(  # noqa: S603 - Kafka's own program
            command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            said = (done.stdout + done.stderr).strip()[-1_500:]
            raise SimulationError(f"Kafka's storage tool refuses the settings: {said}")
        self._meta = (directory / META).read_text(encoding="utf-8")
        self._bootstrap = (directory / BOOTSTRAP).read_bytes()

    def format(self, node: NodeId, directories: Sequence[Path]) -> None:
        """Formats log directories that lack it; each has an id of its own."""
        for directory in directories:
            directory.mkdir(parents=True, exist_ok=True)
            if (directory / META).exists():
                continue
            meta = re.sub(r"(?m)^node\.id=.*$", f"node.id={node}", self._meta)
            meta = re.sub(r"(?m)^directory\.id=.*$", f"directory.id={random_id()}", meta)
            (directory / META).write_text(meta, encoding="utf-8")
            (directory / BOOTSTRAP).write_bytes(self._bootstrap)


def trim_indexes(directory: Path) -> None:
    """Cuts the space that a running broker keeps at the end of its indexes, as its stop would.

    Source: ``AbstractIndex.trimToValidSize``.
    """
    for path in directory.glob("*/*index"):
        entry = _ENTRY_BYTES.get(path.suffix, 1)
        with path.open("r+b") as file:
            end = os.lseek(file.fileno(), 0, os.SEEK_END)
            used = _used(file.fileno(), end)
            os.ftruncate(file.fileno(), -(-used // entry) * entry)


def _used(handle: int, end: int) -> int:
    """Bytes of a file up to its last one that is not zero."""
    used, at = 0, 0
    while at < end:
        try:
            at = os.lseek(handle, at, os.SEEK_DATA)
        except OSError:
            break  # only holes follow
        piece = os.pread(handle, _PIECE, at)
        content = piece.rstrip(b"\0")
        used = at + len(content) if content else used
        at += len(piece)
    return used


def wipe(directory: Path) -> int:
    """Removes all that a log directory holds; returns the number of files."""
    files = sum(1 for path in directory.rglob("*") if path.is_file())
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    return files


def remove_replica(directories: Sequence[Path], partition: TopicPartition) -> bool:
    """Deletes the files of a replica; returns true if there were any."""
    found = [each / str(partition) for each in directories if (each / str(partition)).is_dir()]
    for path in found:
        shutil.rmtree(path)
    return bool(found)


def lose_unflushed(directory: Path, keeps: frozenset[str]) -> Bytes:
    """Cuts each log of a server that has ended to what it had flushed; returns the lost bytes.

    Flushed is what lies below the recovery point that the server has written down, and every
    segment but the last one, which is flushed as it rolls. Checkpoints and snapshots of metadata
    are flushed as they are written. A page cache would have lost no more, and often less.

    Args:
        directory: The log directory.
        keeps: Topics whose logs are flushed with every append.

    Source: ``LogManager.checkpointRecoveryOffsetsInDir``, ``UnifiedLog.roll``.
    """
    checkpoint = directory / RECOVERY_POINTS
    points: dict[TopicPartition, Offset] = {}
    if checkpoint.exists():
        points = decode_offsets(checkpoint.read_bytes(), str(checkpoint))
    lost: Bytes = 0
    for place in sorted(directory.iterdir()):
        partition = partition_of(place.name)
        segments = sorted(place.glob("*.log"))
        if partition is not None and segments and partition.topic not in keeps:
            lost += _cut(segments[-1], points.get(partition, 0))
    return lost


def _cut(segment: Path, point: Offset) -> Bytes:
    """Cuts a segment before its first batch at or above an offset."""
    end = segment.stat().st_size
    above = (at for at, batch in file_batches(segment) if batch.base_offset >= point)
    position = next(above, end)
    os.truncate(segment, position)
    return end - position
