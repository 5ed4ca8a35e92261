"""Judges the removals of cleaners: of each key the last record stays, and a tombstone for its time.

Rows of producers have the keys of a compacted topic's records; rows of cleaners the offsets that
they kept. A removal is lawful if a later committed record of the key was in the same log at that
moment, or if it was a tombstone older than ``delete.retention.ms``, counted from the first cleaning
of any replica that reached it. Records of other topics cost nothing here.

Source: ``Cleaner.shouldRetainRecord``, ``MemoryRecords.filterTo``; KAFKA-8522 for horizons.
"""

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sim.checking.interval_set import IntervalSet
from sim.checking.outcomes.policy import Held
from sim.ids import NodeId, Offset
from sim.trace.rows.log import LogContents, LogContentsRow, RecordKeys, RecordKeysRow
from sim.units import MS, Micros

NEVER: Final[Micros] = 1 << 62

CLOCK_GRAIN_US: Final[Micros] = 2 * MS
"""Horizons are whole milliseconds, rounded when they are set and when they are read."""


class RemovedRecord(NamedTuple):
    """One record that a cleaner removed from one log."""

    at: Micros
    broker: NodeId
    offset: Offset
    key: int
    """-1 if unknown."""
    is_tombstone: bool
    last_of_key: Offset
    """Highest committed offset of the key in that log; the record's own if nothing is later."""
    horizon_us: Micros
    """Time from which a tombstone may be removed; :data:`NEVER` before any cleaning reached it."""
    is_aborted: bool
    """True if an abort marker covers it."""

    @property
    def is_superseded(self) -> bool:
        """True if a later record of the key was in the log."""
        return self.last_of_key > self.offset

    @property
    def is_lawful(self) -> bool:
        """True if the cleaner was allowed to remove it."""
        if self.is_superseded or self.is_aborted:
            return True
        return self.is_tombstone and self.at + CLOCK_GRAIN_US >= self.horizon_us


class Keys:
    """Keys and tombstones of one partition's records, by producer and number."""

    __slots__ = ("_batches", "_firsts")

    def __init__(self) -> None:
        self._firsts: dict[int, list[int]] = {}
        self._batches: dict[int, dict[int, array[int]]] = {}

    def add(self, row: RecordKeysRow) -> None:
        """Adds a producer's batch; the last one counts of those made again, whole or in parts."""
        producer, first = row[RecordKeys.PRODUCER_INDEX], row[RecordKeys.FIRST_RECORD]
        keys = array("q", row[RecordKeys.KEYS].tolist())
        for place in row[RecordKeys.TOMBSTONES].tolist():
            keys[place] = ~keys[place]
        batches = self._batches.setdefault(producer, {})
        if first not in batches:
            insort(self._firsts.setdefault(producer, []), first)
        batches[first] = keys

    def of(self, producer: int, first: int, count: int) -> Iterator[tuple[int, bool]]:
        """Keys and tombstone flags of consecutive records; key -1 if unknown."""
        firsts = self._firsts.get(producer, [])
        batches = self._batches.get(producer, {})
        number, stop = first, first + count
        while number < stop:
            place = bisect_right(firsts, number) - 1
            start = firsts[place] if place >= 0 else 0
            keys = batches[start] if place >= 0 else array("q")
            if number - start >= len(keys):
                yield -1, False
                number += 1
                continue
            for key in keys[number - start : stop - start]:
                yield (key, False) if key >= 0 else (~key, True)
                number += 1


class _Survey:
    """The last committed offset of each key in one log, as far as it was surveyed."""

    __slots__ = ("latest", "seen")

    def __init__(self) -> None:
        self.latest: dict[int, Offset] = {}
        self.seen: Offset = 0


class Compaction:
    """All cleanings of one partition."""

    __slots__ = (
        "_horizons", "_surveys", "_taken_tombstones", "_wrong", "keys", "reached", "removed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.keys = Keys()
        self.reached: Offset = 0
        """Greatest cleaned offset of any replica; below it batches may differ in bytes."""
        self.removed: dict[int, IntervalSet] = {}
        """Record numbers that cleaners removed lawfully, by producer index."""
        self._wrong: list[tuple[int, int, RemovedRecord]] = []
        """Producer index, number, and the removal, of records that were the last of their keys."""
        self._surveys: dict[NodeId, _Survey] = {}
        self._taken_tombstones: dict[int, Offset] = {}
        """The last removed tombstone of each key, lawful or not."""
        self._horizons: list[tuple[Offset, Micros]] = []
        """Ends of cleanings, and the times from which tombstones below may be removed; none implies
        another."""

    def cut(self, broker: NodeId) -> None:
        """Drops the survey of a truncated log."""
        self._surveys.pop(broker, None)

    def take(
        self,
        row: LogContentsRow,
        removed: Iterable[Held],
        log: Iterable[Held],
        committed: Offset,
        hidden: IntervalSet,
    ) -> Iterator[RemovedRecord]:
        """Handles a stretch of log that a cleaner rewrote.

        Args:
            row: What it kept.
            removed: Records of producers that it removed, as runs.
            log: The log before, from the last offset of :meth:`seen` on, in order.
            committed: The true high watermark.
            hidden: Offsets that abort markers cover; what lies there replaces nothing.
        """
        self.reached = max(self.reached, row[LogContents.LAST_OFFSET] + 1)
        survey = self._surveys.setdefault(row[LogContents.BROKER], _Survey())
        self._look(survey, log, committed)
        for held in removed:
            keys = self.keys.of(held.producer_index, held.first_record, held.record_count)
            for place, (key, is_tombstone) in enumerate(keys):
                offset = held.base_offset + place
                removal = RemovedRecord(
                    row[LogContents.T_US], row[LogContents.BROKER], offset, key, is_tombstone,
                    survey.latest.get(key, offset), self._horizon(offset),
                    bool(hidden.within(offset, offset + 1)),
                )  # fmt: skip
                number = held.first_record + place
                if is_tombstone and key >= 0 and not removal.is_aborted:
                    known = self._taken_tombstones.get(key, -1)
                    self._taken_tombstones[key] = max(known, offset)
                if removal.is_lawful:
                    _add(self.removed, held.producer_index, number)
                else:
                    self._wrong.append((held.producer_index, number, removal))
                yield removal
        horizon = row[LogContents.STARTED_US] + row[LogContents.DELETE_RETENTION_MS] * MS
        self._reach(row[LogContents.LAST_OFFSET] + 1, horizon)

    def settle(self, log: Iterable[Held]) -> tuple[dict[int, IntervalSet], dict[int, IntervalSet]]:
        """Ends the run: a record removed too soon counts as removed if its key has a later one.

        Args:
            log: The final leader's, in order.

        Returns:
            By producer index, all records that cleaners removed lawfully or that later ones
            replaced; and tombstones that were removed before their time and that nothing replaced.
        """
        final = _Survey()
        self._look(final, log, NEVER)
        removed = {producer: known.union() for producer, known in self.removed.items()}
        early: dict[int, IntervalSet] = {}
        for producer, number, removal in self._wrong:
            surveys = (final, *self._surveys.values())
            latest = max([survey.latest.get(removal.key, -1) for survey in surveys])
            if latest > removal.offset:
                _add(removed, producer, number)
            elif removal.is_tombstone:
                _add(early, producer, number)
        return removed, early

    def deleted(self, log: Iterable[Held]) -> dict[int, Offset]:
        """Keys whose last record, a tombstone, a cleaner removed, with its offset.

        Args:
            log: The final leader's, in order.
        """
        final = _Survey()
        self._look(final, log, NEVER)
        return {
            key: offset
            for key, offset in self._taken_tombstones.items()
            if final.latest.get(key, -1) < offset
        }

    def seen(self, broker: NodeId) -> Offset:
        """End of the surveyed part of the replica's log."""
        survey = self._surveys.get(broker)
        return survey.seen if survey is not None else 0

    def _look(self, survey: _Survey, log: Iterable[Held], committed: Offset) -> None:
        latest = survey.latest
        for held in log:
            if held.base_offset >= committed:
                break
            count = min(held.record_count, committed - held.base_offset)
            if held.producer_index >= 0:
                keys = self.keys.of(held.producer_index, held.first_record, count)
                for place, (key, _) in enumerate(keys):
                    if key >= 0:
                        latest[key] = held.base_offset + place
            survey.seen = held.base_offset + count

    def _reach(self, end: Offset, horizon: Micros) -> None:
        if any(known >= end and due <= horizon for known, due in self._horizons):
            return
        others = [each for each in self._horizons if each[0] > end or each[1] < horizon]
        self._horizons = [*others, (end, horizon)]

    def _horizon(self, offset: Offset) -> Micros:
        return min((due for end, due in self._horizons if end > offset), default=NEVER)


def missing_from(row: LogContentsRow) -> list[tuple[Offset, Offset]]:
    """Ranges of the stretch's offsets at which no record is left."""
    base, last = row[LogContents.BASE_OFFSET], row[LogContents.LAST_OFFSET]
    kept = row[LogContents.KEPT]
    found = []
    at = base
    for delta in kept.tolist():
        offset = base + delta
        if offset > at:
            found.append((at, offset))
        at = offset + 1
    if at <= last:
        found.append((at, last + 1))
    return found


def cut_out(runs: Iterable[Held], gaps: list[tuple[Offset, Offset]]) -> Iterator[Held]:
    """The parts of the runs that lie in the gaps, which are in order and disjoint."""
    stops = [stop for _, stop in gaps]
    for held in runs:
        end = held.base_offset + held.record_count
        place = bisect_left(stops, held.base_offset + 1)
        while place < len(gaps) and gaps[place][0] < end:
            start = max(held.base_offset, gaps[place][0])
            stop = min(end, gaps[place][1])
            skipped = start - held.base_offset
            yield Held(start, stop - start, held.producer_index, held.first_record + skipped)
            place += 1


def _add(numbers: dict[int, IntervalSet], producer: int, number: int) -> None:
    known = numbers.get(producer)
    if known is None:
        known = numbers[producer] = IntervalSet()
    known.add(number, number + 1)
