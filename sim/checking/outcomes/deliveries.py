"""Deliveries of records to each reader: a group, or a consumer without one.

Every record in the final leader's log between a reader's first and last positions should have been
returned to it once. Otherwise it is *undelivered*, or *skipped by a reset* if
``auto.offset.reset``, the application's seek or a reset of the group's offsets jumped over it;
returned again it is *delivered twice*. Records that it passed and retention removed are *removed
unread*. A record that was returned and is not in the log, without a policy that
removed it, was *read and lost* later (a dirty read); one of
an aborted transaction was *read aborted*, which only readers of uncommitted data do lawfully.

Records beyond a reader's position are lag and not counted; nor are those before its first one.

Source: the failure catalogue, entries E1 to E4; rule S41 of the invariants.
"""

from collections.abc import Callable, Iterable
from typing import Final

from sim.checking.interval_set import IntervalSet, size
from sim.checking.outcomes.policy import Held
from sim.checking.outcomes.transactions import common
from sim.ids import Offset
from sim.trace.rows.clients import Positions, PositionsRow, Reads, ReadsRow

KINDS: Final = (
    "delivered", "undelivered", "delivered_twice", "skipped_by_reset", "removed_unread",
    "read_lost", "read_aborted",
)  # fmt: skip
"""Counts of a reader; ``delivered`` counts each record once."""


_SOUGHT: Final = frozenset({"seek", "altered"})
"""Reasons of jumps that the application, or the tool for groups, has ordered."""


class _Reader:
    """One reader of one partition."""

    __slots__ = ("at", "begin", "end", "got", "jumped", "twice")

    def __init__(self) -> None:
        self.at: Offset = -1
        """Position; -1 until it is known."""
        self.begin: Offset = 1 << 62
        """Lowest position so far."""
        self.end: Offset = 0
        """Highest position so far."""
        self.got: dict[int, IntervalSet] = {}
        """Record numbers by producer index."""
        self.twice = 0
        self.jumped = IntervalSet()
        """Offsets that resets jumped over."""

    def move_to(self, at: Offset) -> None:
        """Moves the position."""
        self.at = at
        self.begin = min(self.begin, at)
        self.end = max(self.end, at)


class Deliveries:
    """All readers of one partition."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[str, _Reader] = {}

    def read(self, row: ReadsRow) -> None:
        """Adds a run of records that a reader got."""
        name, base = row[Reads.GROUP] or row[Reads.CONSUMER], row[Reads.BASE_OFFSET]
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = _Reader()
        if base < reader.begin:  # of a share group, whose members do not wait for each other
            reader.begin = base
        reader.at = end = row[Reads.LAST_OFFSET] + 1
        if end > reader.end:
            reader.end = end
        producer, first = row[Reads.PRODUCER_INDEX], row[Reads.FIRST_RECORD]
        stop = first + row[Reads.RECORD_COUNT]
        got = reader.got.get(producer)
        if got is None:
            got = reader.got[producer] = IntervalSet()
        if first < got.stop:
            reader.twice += size(got.within(first, stop))
        got.add(first, stop)

    def move(self, row: PositionsRow) -> None:
        """Handles a jump of a reader's position."""
        name, offset = row[Positions.GROUP] or row[Positions.CONSUMER], row[Positions.OFFSET]
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = _Reader()
        if row[Positions.REASON] in _SOUGHT and 0 <= reader.at < offset:
            reader.jumped = reader.jumped.union(IntervalSet(((reader.at, offset),)))
        elif row[Positions.REASON] == "reset" and reader.at >= 0:
            # A jump backwards follows a truncation: other records may be there now.
            start = reader.at if reader.at < offset else reader.begin
            reader.jumped = reader.jumped.union(IntervalSet(((start, offset),)))
        reader.move_to(offset)

    def judged(
        self,
        log: Iterable[Held],
        removed: Iterable[Held],
        present: dict[int, IntervalSet],
        lawful: Callable[[int, IntervalSet], IntervalSet],
        aborted: Callable[[int], IntervalSet],
    ) -> dict[str, dict[str, int]]:
        """The numbers of :data:`KINDS` for each reader.

        Args:
            log: The final leader's, without what abort markers cover.
            removed: Offsets of records that retention or DeleteRecords removed.
            present: Record numbers in it, by producer index.
            lawful: Of a producer's records that are not there, those that were removed lawfully.
            aborted: A producer's records of aborted transactions.
        """
        batches = [held for held in log if held.producer_index >= 0]
        found = {}
        for name, reader in self._readers.items():
            counts = dict.fromkeys(KINDS, 0)
            counts["delivered_twice"] = reader.twice
            for producer, got in reader.got.items():
                dirty = IntervalSet(common(got, aborted(producer)))
                lost = IntervalSet(got.minus(present.get(producer, IntervalSet()).union(dirty)))
                counts["delivered"] += len(got)
                counts["read_aborted"] += len(dirty)
                counts["read_lost"] += size(lost.minus(lawful(producer, lost)))
            _add_missed(counts, reader, batches)
            counts["removed_unread"] = _removed_unread(reader, removed, aborted)
            found[name] = counts
        return found


def _add_missed(counts: dict[str, int], reader: _Reader, batches: Iterable[Held]) -> None:
    """Counts records in the log between a reader's positions that it never got."""
    nothing = IntervalSet()
    for held in batches:
        base = held.base_offset
        begin, end = max(base, reader.begin), min(base + held.record_count, reader.end)
        if begin >= end:
            continue
        first = held.first_record + begin - base
        got = reader.got.get(held.producer_index, nothing)
        for start, stop in got.missing(first, first + end - begin):
            at = begin + start - first
            jumped = size(reader.jumped.within(at, at + stop - start))
            counts["skipped_by_reset"] += jumped
            counts["undelivered"] += stop - start - jumped


def _removed_unread(
    reader: _Reader, removed: Iterable[Held], aborted: Callable[[int], IntervalSet]
) -> int:
    """Counts records that policy removed between a reader's positions and that it never got."""
    nothing = IntervalSet()
    count = 0
    for held in removed:
        base = held.base_offset
        begin, end = max(base, reader.begin), min(base + held.record_count, reader.end)
        if begin >= end:
            continue
        first = held.first_record + begin - base
        unread = IntervalSet(
            reader.got.get(held.producer_index, nothing).missing(first, first + end - begin)
        )
        count += size(unread.minus(aborted(held.producer_index)))
    return count
