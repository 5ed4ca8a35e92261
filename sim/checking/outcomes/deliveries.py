"""What became of records on their way to each reader: a group, or a consumer without one.

Between where a reader began and where it ended, every record that stands in the final leader's log
should have been returned to it once. What was not is *undelivered*, or *skipped by a reset* if
``auto.offset.reset`` jumped over it; what was returned again was *delivered twice*. What it passed
and retention took was *removed unread*. A record that
was returned and is not in the log, without a policy that removed it, was *read and lost* later
(a dirty read, as the reader acted on what never was); one of an aborted transaction was *read
aborted*, which only readers of uncommitted data do lawfully.

What a reader has not come to yet is lag and not counted; nor is what lies before its beginning.

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
"""The numbers told of a reader; ``delivered`` counts each record once."""


class _Reader:
    """One reader of one partition."""

    __slots__ = ("at", "begin", "end", "got", "jumped", "twice")

    def __init__(self) -> None:
        self.at: Offset = -1
        """Where it stands; -1 until it is known."""
        self.begin: Offset = 1 << 62
        """The lowest offset at which it ever stood."""
        self.end: Offset = 0
        """The highest one."""
        self.got: dict[int, IntervalSet] = {}
        """Record numbers by producer index."""
        self.twice = 0
        self.jumped = IntervalSet()
        """Offsets that resets jumped over."""

    def stand(self, at: Offset) -> None:
        """It goes on there."""
        self.at = at
        self.begin = min(self.begin, at)
        self.end = max(self.end, at)


class Deliveries:
    """All readers of one partition."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[str, _Reader] = {}

    def read(self, row: ReadsRow) -> None:
        """A reader got a run of records."""
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
        """A reader goes on elsewhere."""
        name, offset = row[Positions.GROUP] or row[Positions.CONSUMER], row[Positions.OFFSET]
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = _Reader()
        if row[Positions.REASON] == "reset" and reader.at >= 0:
            # To an offset below, it goes because the log is shorter: what lies there is another.
            start = reader.at if reader.at < offset else reader.begin
            reader.jumped = reader.jumped.union(IntervalSet(((start, offset),)))
        reader.stand(offset)

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
            removed: Where records lay that retention or DeleteRecords took away.
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
                gone = IntervalSet(got.minus(present.get(producer, IntervalSet()).union(dirty)))
                counts["delivered"] += len(got)
                counts["read_aborted"] += len(dirty)
                counts["read_lost"] += size(gone.minus(lawful(producer, gone)))
            _add_missed(counts, reader, batches)
            counts["removed_unread"] = _removed_unread(reader, removed, aborted)
            found[name] = counts
        return found


def _add_missed(counts: dict[str, int], reader: _Reader, batches: Iterable[Held]) -> None:
    """Count what stands in the log between a reader's ends and never came to it."""
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
    """How much of what policy took lay between a reader's ends and never came to it."""
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
