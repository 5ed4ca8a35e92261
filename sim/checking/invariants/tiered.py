"""Invariants of tiered storage: local segments wait for their copies, and no hole is between."""

from typing import Final

from sim.checking.interval_set import IntervalSet
from sim.checking.invariant import NO_LOSS, Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.ids import NodeId, Offset
from sim.trace.rows.cluster import Leadership, LeadershipRow
from sim.trace.rows.tiered import (
    LocalLogStarts,
    LocalLogStartsRow,
    RemoteSegments,
    RemoteSegmentsRow,
)


class _Remote(Invariant):
    """Keeps the finished copies of each partition, and the losses of the object store."""

    def _watch(self, observer: Observer) -> None:
        self._observer = observer
        self._copies: dict[tuple[str, int], dict[str, tuple[Offset, Offset]]] = {}
        self._begun: dict[tuple[str, int], dict[str, tuple[NodeId, Offset, Offset]]] = {}
        self._lost: dict[tuple[str, int], str] = {}
        observer.listen("remote_segments", self._segment)
        observer.listen("local_log_starts", self._local_start)

    def _segment(self, row: RemoteSegmentsRow) -> None:
        key = row[RemoteSegments.TOPIC], row[RemoteSegments.PARTITION]
        copies, name = self._copies.setdefault(key, {}), row[RemoteSegments.SEGMENT]
        state = row[RemoteSegments.STATE]
        start, end = row[RemoteSegments.START_OFFSET], row[RemoteSegments.END_OFFSET] + 1
        begun = self._begun.setdefault(key, {})
        begun.pop(name, None)
        if state == "COPY_SEGMENT_STARTED":
            begun[name] = row[RemoteSegments.BROKER], start, end
        elif state == "COPY_SEGMENT_FINISHED":
            copies[name] = start, end
        elif state == "LOST":
            self._lost[key] = "the object store has lost a segment"
        elif state == "DELETE_SEGMENT_STARTED" and copies.pop(name, None) is not None:
            self._deleted(key, row)

    def _deleted(self, key: tuple[str, int], row: RemoteSegmentsRow) -> None:
        """A finished copy is about to be deleted."""

    def _local_start(self, row: LocalLogStartsRow) -> None:
        """A local log starts elsewhere."""

    def _holes(
        self, key: tuple[str, int], start: Offset, end: Offset, reader: NodeId | None = None
    ) -> list[tuple[int, int]]:
        """Offsets of [start, end) that no finished copy has.

        A row says that a copy is finished when its broker has the answer to that event, which may
        be lost. ``reader`` may have read the event of another broker's copy before.
        """
        copies = list(self._copies.get(key, {}).values())
        if reader is not None:
            begun = self._begun.get(key, {}).values()
            copies += [(low, high) for copier, low, high in begun if copier != reader]
        return list(IntervalSet(sorted(copies)).missing(start, end))


class CopiedBeforeDeleted(_Remote):
    """KIP-405's rule of local retention."""

    name = "copied-before-deleted"
    sentence = (
        "A tiered replica gives up local records only below the log start, or when a finished "
        "copy in the object store has them."
    )
    source = "KIP-405; UnifiedLog.deletableSegments, highestOffsetInRemoteStorage"
    conditions = NO_LOSS

    def _local_start(self, row: LocalLogStartsRow) -> None:
        key = row[LocalLogStarts.TOPIC], row[LocalLogStarts.PARTITION]
        start = max(row[LocalLogStarts.FROM_OFFSET], row[LocalLogStarts.LOG_START_OFFSET])
        if row[LocalLogStarts.REASON] == "rebuilt":
            start = row[LocalLogStarts.LOG_START_OFFSET]
        if key in self._lost:
            self.suspend(self._lost[key])
            return
        self.checked += 1
        broker = row[LocalLogStarts.BROKER]
        holes = self._holes(key, start, row[LocalLogStarts.TO_OFFSET], broker)
        partition = self._observer.partition(*key)
        if holes and partition.excuse is not None:
            self.suspend(partition.excuse)
        elif holes:
            low, high = holes[0]
            found = f"offsets {low} to {high - 1} leave the local log and are in no finished copy"
            raise self.broken_by(row, found, partition)


class RemoteWithoutHole(_Remote):
    """The union of the remote and the local log."""

    name = "remote-log-without-hole"
    sentence = (
        "A leader deletes a remote segment only after its log start has passed it, or when "
        "another copy has its records."
    )
    source = "KIP-405, KAFKA-15352; RemoteLogManager.cleanupExpiredRemoteLogSegments"
    conditions = NO_LOSS

    def _watch(self, observer: Observer) -> None:
        super()._watch(observer)
        self._starts: dict[tuple[str, int], dict[NodeId, Offset]] = {}
        observer.leadership.append(self._leadership)

    def _leadership(self, partition: Partition, _replica: Replica, row: LeadershipRow) -> None:
        del partition
        if row[Leadership.ROLE] == "removed":
            key = row[Leadership.TOPIC], row[Leadership.PARTITION]
            self._starts.get(key, {}).pop(row[Leadership.BROKER], None)

    def _local_start(self, row: LocalLogStartsRow) -> None:
        key = row[LocalLogStarts.TOPIC], row[LocalLogStarts.PARTITION]
        starts = self._starts.setdefault(key, {})
        starts[row[LocalLogStarts.BROKER]] = row[LocalLogStarts.TO_OFFSET]

    def _deleted(self, key: tuple[str, int], row: RemoteSegmentsRow) -> None:
        broker = row[RemoteSegments.BROKER]
        local = self._starts.get(key, {}).get(broker)
        if local is None:
            return
        if key in self._lost:
            self.suspend(self._lost[key])
            return
        partition = self._observer.partition(*key)
        start = max(partition.replica(broker).log_start, row[RemoteSegments.START_OFFSET])
        end = min(local, row[RemoteSegments.END_OFFSET] + 1)
        self.checked += 1
        holes = self._holes(key, start, end)
        if holes and partition.excuse is not None:
            # A leader that lost its log deletes copies of epochs that it does not know.
            self.suspend(partition.excuse)
        elif holes:
            low, high = holes[0]
            found = (
                f"offsets {low} to {high - 1} are deleted from the object store, and nowhere else"
            )
            raise self.broken_by(row, found, partition)


TIERED_INVARIANTS: Final[tuple[type[Invariant], ...]] = (CopiedBeforeDeleted, RemoteWithoutHole)
"""Invariants of tiered storage."""
