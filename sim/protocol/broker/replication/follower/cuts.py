"""Truncation of a follower's log, with its trace rows.

Source: ``ReplicaFetcherThread.truncate``, ``truncateFullyAndStartAt``.
"""

from sim.errors import CorruptRecord
from sim.ids import Offset
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.directories.alter_log_dirs import AlterLogDirs
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.tiered.ports import AuxState
from sim.trace.rows.log import (
    Truncations,
)
from sim.trace.rows.tiered import (
    LocalLogStarts,
)


class LogCuts:
    """Truncates the logs of one broker.

    Args:
        hosted: The broker's partitions.
        fetchers: Fetchers of the partitions.
        moves: Future logs, which are truncated with the current ones.
    """

    def __init__(self, hosted: HostedPartitions, fetchers: Fetchers, moves: AlterLogDirs) -> None:
        self._broker = hosted.broker
        self._fetchers = fetchers
        self._moves = moves

    def cut(self, replica: Replica, offset: Offset, reason: str, out: Effects) -> None:
        """Truncates a log, with the reason; the high watermark follows.

        Raises:
            CorruptRecord: If a header on the way is damaged; the row of the truncated part is
                written all the same.
            StorageFailed: If the disk has failed.
        """
        before, high_watermark = replica.log.log_end_offset, replica.high_watermark
        start = replica.log.log_start_offset
        damage: CorruptRecord | None = None
        try:
            replica.truncate_to(offset)
        except CorruptRecord as found:
            damage = found
        if damage is None or replica.log.log_end_offset < before:
            self._moves.truncated(replica.partition, offset)
            self._fetchers.note_start(replica, start, "truncation", out)
            self._note(replica, before, high_watermark, reason, out)
        if damage is not None:
            raise damage

    def restart_at(self, replica: Replica, offset: Offset, out: Effects) -> None:
        """Drops all of a log, and restarts it at the offset.

        Raises:
            StorageFailed: If the disk has failed or is full.
        """
        before, high_watermark = replica.log.log_end_offset, replica.high_watermark
        start = replica.log.log_start_offset
        replica.log.truncate_fully_and_start_at(offset)
        replica.high_watermark = offset
        self._fetchers.note_start(replica, start, "truncation", out)
        self._note(replica, before, high_watermark, "out_of_range", out)

    def restart_behind_remote(
        self, replica: Replica, log_start: Offset, state: AuxState, out: Effects
    ) -> None:
        """Drops all of a local log, and continues behind the remote segment with that state.

        Raises:
            StorageFailed: If the disk has failed or is full.
        """
        log = replica.log
        before, high_watermark = log.log_end_offset, replica.high_watermark
        start, local = log.log_start_offset, log.local_log_start_offset
        log.restart_behind_remote(state.next_offset, log_start, state.epochs, state.snapshot)
        replica.high_watermark = state.next_offset
        self._note(replica, before, high_watermark, "tiered", out)
        self._fetchers.note_start(replica, start, "truncation", out)
        out.append(
            LocalLogStarts.row(
                self._broker,
                *replica.partition,
                from_offset=local,
                to_offset=log.local_log_start_offset,
                log_start_offset=log.log_start_offset,
                reason="rebuilt",
            )
        )

    def _note(
        self, replica: Replica, before: Offset, high_watermark: Offset, reason: str, out: Effects
    ) -> None:
        out.append(
            Truncations.row(
                self._broker,
                *replica.partition,
                from_offset=before,
                to_offset=replica.log.log_end_offset,
                high_watermark=high_watermark,
                leader_epoch=replica.leader_epoch,
                reason=reason,
            )
        )
