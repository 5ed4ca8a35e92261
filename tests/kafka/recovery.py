"""Log directories of a run to go on from, and our own recovery of one, as a starting broker's."""

import shutil
from pathlib import Path

from sim.log.config import LogConfig
from sim.log.directory.manager import LogManager
from sim.log.partition.reading import file_batches
from sim.log.store import checkpoints
from sim.log.store.files import FileStore
from tests.scenarios.run_kit import Ran


def copied(ran: Ran, to: Path, brokers: tuple[int, ...] = (1, 2, 3)) -> dict[int, list[Path]]:
    """The brokers' log directories, to be changed by real brokers."""
    copies = {}
    for node in brokers:
        copy = shutil.copytree(ran.directory / "disks" / f"broker-{node}", to / str(node))
        copies[node] = sorted(copy.iterdir())
    return copies


def values(directory):
    """Offset and value of every record of a partition directory."""
    return [
        (record.offset, record.value)
        for log in sorted(directory.glob("*.log"))
        for _, batch in file_batches(log)
        if not batch.is_control
        for record in batch.records()
    ]


def recovered_ends(directory: Path, node: int, compacted: tuple[str, ...] = ()) -> dict[str, int]:
    """Log end offsets after recovery, by partition; the directory is changed by it.

    Args:
        directory: One log directory.
        node: Of this broker.
        compacted: Topics whose cleanup policy is ``compact``.
    """
    identity = checkpoints.decode_identity(
        (directory / checkpoints.META_PROPERTIES).read_bytes(), str(directory)
    )
    manager = LogManager(
        (FileStore(directory),),
        node,
        identity.cluster_id,
        (identity.directory_id,),
        lambda partition: LogConfig(compact=partition.topic in compacted),
    )
    return {str(found.partition): found.log.log_end_offset for found in manager.load()}
