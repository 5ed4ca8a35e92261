"""Translation of source offsets to target offsets by offset syncs.

Offsets of a record and of its copy differ: markers and removed records leave gaps on one side only,
and records copied twice take two offsets on the other. So a mirror writes pairs of offsets now and
then (*offset syncs*), and translates by those that it has kept.

Source: ``connect.mirror.{OffsetSyncWriter,OffsetSyncStore,MirrorSourceTask.PartitionState}``;
KAFKA-12468, KAFKA-12635, KAFKA-14666, KAFKA-15906.
"""

from typing import Final, NamedTuple

from sim.ids import NO_OFFSET, Offset, TopicPartition

HISTORY: Final = 64
"""Offset syncs kept for each partition (``SYNCS_PER_PARTITION``)."""


class OffsetSync(NamedTuple):
    """A record of the source cluster and its copy."""

    partition: TopicPartition
    """Of the source cluster."""
    upstream: Offset
    downstream: Offset


class _Partition:
    """The writer's state of one partition of the source cluster."""

    __slots__ = ("delayed", "last_downstream", "last_upstream", "next_upstream", "seen_downstream")

    def __init__(self) -> None:
        self.next_upstream: Offset = 0
        self.seen_downstream: Offset = -1
        self.last_upstream: Offset = -1
        self.last_downstream: Offset = -1
        self.delayed: OffsetSync | None = None


class OffsetSyncWriter:
    """Chooses the pairs of offsets that are written.

    Args:
        lag_max: ``offset.lag.max``; 0: a sync for every record.
        extrapolates: True if translation continues from the last sync at the pace of the source, as
            before KAFKA-12468: then only a gap or a jump needs a sync.
    """

    def __init__(self, lag_max: int, *, extrapolates: bool = False) -> None:
        assert lag_max >= 0, "offset.lag.max is not negative"
        self._lag_max = lag_max
        self._extrapolates = extrapolates
        self._partitions: dict[TopicPartition, _Partition] = {}

    def mirrored(
        self, partition: TopicPartition, upstream: Offset, downstream: Offset, count: int
    ) -> list[OffsetSync]:
        """Handles consecutive records, on both sides, that the target cluster has acknowledged.

        Args:
            partition: Of the source cluster.
            upstream: Offset of the first of them there.
            downstream: Offset of its copy.
            count: Number of records; at least one.

        Returns:
            Syncs to write at once, in order of offset.
        """
        known = self._partitions.get(partition)
        if known is None:
            known = self._partitions[partition] = _Partition()
            known.next_upstream = 0
        syncs: list[OffsetSync] = []
        at = 0
        if self._needs_sync(known, upstream, downstream):
            syncs.append(self._sync(known, partition, upstream, downstream))
            at = 1
        while at < count and not self._extrapolates:
            # Inside a run of records only the distance to the last sync grows.
            at = max(at, known.last_downstream + 1 + self._lag_max - downstream)
            if at < count:
                syncs.append(self._sync(known, partition, upstream + at, downstream + at))
                at += 1
        last = OffsetSync(partition, upstream + count - 1, downstream + count - 1)
        known.next_upstream, known.seen_downstream = last.upstream + 1, last.downstream
        known.delayed = None if syncs and syncs[-1] == last else last
        return syncs

    def promote(self) -> list[OffsetSync]:
        """The task commits: returns the newest unwritten pair of each partition (KAFKA-15906).

        None where translation extrapolates, which is older.
        """
        found: list[OffsetSync] = []
        for known in self._partitions.values():
            if known.delayed is not None and not self._extrapolates:
                found.append(known.delayed)
            known.delayed = None
        return found

    def _needs_sync(self, known: _Partition, upstream: Offset, downstream: Offset) -> bool:
        if known.last_downstream < 0 or upstream != known.next_upstream:
            return True
        if downstream < known.seen_downstream:
            return True
        expected = known.last_downstream + 1
        if self._extrapolates:
            expected = known.last_downstream + upstream - known.last_upstream
        return downstream - expected >= self._lag_max

    @staticmethod
    def _sync(
        known: _Partition, partition: TopicPartition, upstream: Offset, downstream: Offset
    ) -> OffsetSync:
        known.last_upstream, known.last_downstream = upstream, downstream
        return OffsetSync(partition, upstream, downstream)


class OffsetSyncStore:
    """Translates offsets of groups by the syncs that it has read.

    Of each partition 64 syncs are kept, those near the newest close together, older ones further
    and further apart. An offset between two syncs becomes the one after the copy of the older
    sync's record: never beyond the true one, so that nothing is skipped, and the records in between
    are read again.

    Args:
        extrapolates: As before KAFKA-12468 and KAFKA-14666: only the newest sync is kept, and the
            source's offsets are counted on from it, with all their gaps. A partition without any
            sync keeps its offsets as they are (KAFKA-12635).
    """

    def __init__(self, *, extrapolates: bool = False) -> None:
        self._extrapolates = extrapolates
        self._syncs: dict[TopicPartition, list[OffsetSync]] = {}

    def take(self, sync: OffsetSync) -> None:
        """Adds a sync; one that goes back removes all others."""
        syncs = self._syncs.get(sync.partition)
        if syncs is None or self._extrapolates or syncs[0].upstream > sync.upstream:
            self._syncs[sync.partition] = [sync] * HISTORY
        else:
            self._syncs[sync.partition] = _with_newest(syncs, sync)

    def translate(self, partition: TopicPartition, upstream: Offset) -> Offset | None:
        """Offset of the target cluster for a committed offset of the source cluster.

        Returns:
            -1 if it is before every known sync; ``None`` without any sync.
        """
        syncs = self._syncs.get(partition)
        if self._extrapolates:
            return self._extrapolate(syncs, upstream)
        if syncs is None:
            return None
        for sync in syncs:
            if sync.upstream <= upstream:
                return sync.downstream + (sync.upstream != upstream)
        return NO_OFFSET

    @staticmethod
    def _extrapolate(syncs: list[OffsetSync] | None, upstream: Offset) -> Offset:
        if syncs is None:
            return upstream
        newest = syncs[0]
        if newest.upstream > upstream:
            return NO_OFFSET
        return newest.downstream + upstream - newest.upstream


def _with_newest(former: list[OffsetSync], newest: OffsetSync) -> list[OffsetSync]:
    """The syncs with a new first one: place ``n`` holds one at most about ``2**n`` older.

    The former first one moves back as far as its age and its distance to its neighbours allow; from
    the first place on whose sync is still young enough, the rest stays.
    """
    syncs = [newest, *former[1:]]
    candidate, moved = newest, 0
    for place in range(1, HISTORY):
        candidate, moved = _candidate(syncs, former, place, candidate, moved)
        if _is_young(syncs[place - 1], syncs[place], place):
            break
        syncs[place] = candidate
    return syncs


def _candidate(
    syncs: list[OffsetSync],
    former: list[OffsetSync],
    place: int,
    candidate: OffsetSync,
    moved: int,
) -> tuple[OffsetSync, int]:
    """Sync for a place, and the number of former syncs that are done with."""
    while True:
        old = former[moved]
        is_apart = _is_apart(syncs[place - 1], old, place - 1)
        behind = place + 1 >= HISTORY or _is_apart(old, syncs[place + 1], place)
        is_fit = is_apart and behind and _is_young(syncs[place - 1], old, place)
        if is_fit:
            candidate = old
        is_twin = moved + 1 < HISTORY and former[moved + 1] is old
        is_useless = is_twin or not is_apart
        moved += is_fit or is_useless
        if moved >= place or not is_useless:
            return candidate, moved


def _is_young(front: OffsetSync, sync: OffsetSync, place: int) -> bool:
    """True if a sync is young enough for a place, after the one before it."""
    if front is sync or place == HISTORY - 1:
        return True
    return front.upstream - sync.upstream <= (1 << place) - (1 << place - 1)


def _is_apart(front: OffsetSync, sync: OffsetSync, place: int) -> bool:
    """True if two consecutive syncs are far enough apart, the first one at a place."""
    return front is sync or front.upstream - sync.upstream >= 1 << max(place - 2, 0)
