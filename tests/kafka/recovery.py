"""Our own recovery of a log directory, as a broker does it when it starts."""

from pathlib import Path

from sim.log import checkpoints
from sim.log.files import FileStore
from sim.log.manager import LogManager


def recovered_ends(directory: Path, node: int) -> dict[str, int]:
    """Log end offsets after recovery, by partition; the directory is changed by it."""
    identity = checkpoints.decode_identity(
        (directory / checkpoints.META_PROPERTIES).read_bytes(), str(directory)
    )
    manager = LogManager(
        (FileStore(directory),), node, identity.cluster_id, (identity.directory_id,)
    )
    return {str(found.partition): found.log.log_end_offset for found in manager.load()}
