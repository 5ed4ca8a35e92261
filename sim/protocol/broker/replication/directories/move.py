"""One move of a replica between two log directories of its broker, and its thread.

Source: ``ReplicaAlterLogDirsThread``, ``AbstractFetcherThread``; KIP-113, KIP-858.
"""

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from sim.ids import NO_EPOCH, LeaderEpoch, Offset, TopicPartition
from sim.protocol.broker.log_dirs import FutureReplica
from sim.protocol.broker.replica import Replica, truncation_for
from sim.protocol.ports import Batch
from sim.units import LONG_AGO, Micros


@dataclass(slots=True)
class Move:
    """One move."""

    partition: TopicPartition
    future: FutureReplica
    origin: str
    """Name of the old directory."""
    origin_id: str
    leader_epoch: LeaderEpoch
    offset: Offset
    """Next offset to copy; while truncating, the truncation offset without a matching epoch."""
    high_watermark: Offset
    """Of the future log."""
    truncating: bool = True
    """True if the future log has to be truncated before more is copied."""
    assignment: Literal["none", "queued", "accepted"] = "none"
    """State of the assignment at the controller: requested, acknowledged."""
    not_before: Micros = LONG_AGO
    """Time of the next attempt after an error."""


class PendingCopy(NamedTuple):
    """Batches that a thread has read and not yet written."""

    move: Move
    offset: Offset
    leader_epoch: LeaderEpoch
    batches: tuple[Batch, ...]
    high_watermark: Offset
    log_start: Offset


@dataclass(slots=True)
class CopyThread:
    """One ``ReplicaAlterLogDirsThread``."""

    number: int
    running: bool = False
    """True if a turn is on its way."""
    partition: TopicPartition | None = None
    """Partition that it moves, as long as it can."""
    copy: PendingCopy | None = None
    moves: dict[TopicPartition, Move] = field(default_factory=dict)


def cut(move: Move, replica: Replica) -> None:
    """Truncates the future log at its divergence from the current one, or at their common end.

    Source: ``AbstractFetcherThread.maybeTruncate``, ``getOffsetTruncationState``.
    """
    log = move.future.log
    where, settled = move.offset, True
    if log.latest_epoch != NO_EPOCH:
        end = replica.log.end_offset_for_epoch(log.latest_epoch)
        where, settled = truncation_for(log, end, move.offset)
    log.truncate_to(where)
    move.offset = log.log_end_offset
    move.high_watermark = min(move.high_watermark, move.offset)
    move.truncating = not settled


def come_into_range(move: Move, replica: Replica) -> None:
    """The next offset may not be in the current log: it was truncated, or starts later now.

    Source: ``AbstractFetcherThread.fetchOffsetAndTruncate``.
    """
    current, log = replica.log, move.future.log
    if move.offset > current.log_end_offset:
        log.truncate_to(current.log_end_offset)
    elif move.offset < current.log_start_offset:
        if current.log_start_offset > log.log_end_offset:
            log.truncate_fully_and_start_at(current.log_start_offset)
    else:
        return
    move.offset = log.log_end_offset


def name_of(move: Move) -> tuple[str, int]:
    """Sort key of replicas."""
    return move.partition.topic, move.partition.partition
