"""Cutting a follower's log, with the rows of the trace that say so.

Source: ``ReplicaFetcherThread.truncate``, ``truncateFullyAndStartAt``.
"""

from typing import TYPE_CHECKING

from sim.errors import CorruptRecord
from sim.ids import Offset
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


def truncate(
    manager: "ReplicaManager", replica: Replica, offset: Offset, reason: str, out: list[object]
) -> None:
    """Cut a log, and say why; the high watermark follows.

    Raises:
        CorruptRecord: If a damaged header is in the way; what was cut is said all the same.
        StorageFailed: If the disk has failed.
    """
    before, high_watermark = replica.log.log_end_offset, replica.high_watermark
    start = replica.log.log_start_offset
    damage: CorruptRecord | None = None
    try:
        replica.truncate_to(offset)
    except CorruptRecord as found:
        damage = found
    end = replica.log.log_end_offset
    if damage is None or end < before:
        manager.moves.truncated(replica.partition, offset)
        manager.follower.note_start(replica, start, "truncation", out)
        _note(manager, replica, before, high_watermark, reason, out)
    if damage is not None:
        raise damage


def restart_at(
    manager: "ReplicaManager", replica: Replica, offset: Offset, out: list[object]
) -> None:
    """Drop all of a log, which begins at the offset then.

    Raises:
        StorageFailed: If the disk has failed or is full.
    """
    before, high_watermark = replica.log.log_end_offset, replica.high_watermark
    start = replica.log.log_start_offset
    replica.log.truncate_fully_and_start_at(offset)
    replica.high_watermark = offset
    manager.follower.note_start(replica, start, "truncation", out)
    _note(manager, replica, before, high_watermark, "out_of_range", out)


def _note(
    manager: "ReplicaManager",
    replica: Replica,
    before: Offset,
    high_watermark: Offset,
    reason: str,
    out: list[object],
) -> None:
    """Write the trace row of a log that was cut."""
    partition = replica.partition
    row = (
        manager.broker,
        partition.topic,
        partition.partition,
        before,
        replica.log.log_end_offset,
        high_watermark,
        replica.leader_epoch,
        reason,
    )
    out.append(fx.Emit("truncations", row))
