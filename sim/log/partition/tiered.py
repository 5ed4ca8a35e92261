"""The remote side of a log: where its local part begins, and how it continues behind the other.

Source: ``UnifiedLog`` (``localLogStartOffset``, ``highestOffsetInRemoteStorage``),
``TierStateMachine.buildRemoteLogAuxState``; KIP-405.
"""

from collections.abc import Sequence

from sim.ids import LeaderEpoch, Offset
from sim.log.config import LogConfig
from sim.log.partition.epoch_cache import EpochCache
from sim.log.partition.segment import Segment
from sim.log.producers.snapshot import snapshot_file
from sim.log.store.files import FileStore


class TieredLog:
    """A log whose closed segments may be copied to an object store."""

    store: FileStore
    directory: str
    config: LogConfig
    log_start_offset: Offset
    _segments: list[Segment]
    _epochs: EpochCache

    def __init__(self) -> None:
        self.highest_remote: Offset = -1
        """Last offset in the remote log, as far as this broker knows; -1 for none."""

    @property
    def is_tiered(self) -> bool:
        """True if it has a remote log."""
        return self.config.remote

    @property
    def highest_remote_offset(self) -> Offset:
        """As in :class:`~sim.protocol.ports.ReplicaLog`."""
        return self.highest_remote

    @property
    def local_log_start_offset(self) -> Offset:
        """First offset of the local log; below it are only remote segments (KIP-405)."""
        if not self.config.remote:
            return self.log_start_offset
        return max(self.log_start_offset, self._segments[0].base_offset)

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Drops everything; the next record gets the offset."""
        raise NotImplementedError

    def rebuild_producers(self) -> None:
        """Reads the producers again."""
        raise NotImplementedError

    def restart_behind_remote(
        self,
        offset: Offset,
        log_start: Offset,
        epochs: Sequence[tuple[LeaderEpoch, Offset]],
        snapshot: bytes,
    ) -> None:
        """Drops everything local; continues at the offset with the state of the remote log.

        Args:
            offset: First offset of the local log, behind the last remote segment.
            log_start: The leader's log start offset.
            epochs: Leader epochs of the remote log.
            snapshot: The producers' snapshot file at the offset; empty for no producers.

        Raises:
            DiskFailed: If the disk has failed or is full.
        """
        self.truncate_fully_and_start_at(offset)
        self.log_start_offset = min(log_start, offset)
        for epoch, start in epochs:
            self._epochs.assign(epoch, start)
        self._epochs.truncate_from_start(self.log_start_offset)
        if snapshot:
            self.store.replace(snapshot_file(self.directory, offset), snapshot)
            self.rebuild_producers()
